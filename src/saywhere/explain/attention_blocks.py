"""Blocks of an attention matrix: how much vision and tags attend to each other, and how evenly (Sec. 5 of the paper).

A block holds the numbers of the rows of one `TokenKind` (the asker) and the columns of another (the asked):
vision→vision, vision→tag and tag→vision are those of the paper, and any other pair can be had. The paper looks at the
first layer and takes the maximum over heads; so do the defaults here.

Numbers are those of the matrix with heads joined. With "max" a row may sum to more than 1, and the more heads a model
has, the more so: compare masses of models with equal numbers of heads, or use "mean".

Shapes: b images, n places of the input, h heads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from scipy.special import entr

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.core.types import Bools, Floats, Ints, Progress
from saywhere.explain.rounds import ROUND, ImageOf, attend_rounds
from saywhere.models.attended import Attended, Attending, TokenKind
from saywhere.models.tagged_regions import TaggedRegions

Heads = Literal["max", "mean"]
_HEADS: Final[tuple[Heads, ...]] = get_args(Heads)

Relation = tuple[TokenKind, TokenKind]
"""Who asks (rows), and who is asked (columns)."""

VISION_TO_VISION: Final[Relation] = (TokenKind.REGION, TokenKind.REGION)
VISION_TO_TAG: Final[Relation] = (TokenKind.REGION, TokenKind.TAG)
TAG_TO_VISION: Final[Relation] = (TokenKind.TAG, TokenKind.REGION)

RELATIONS: Final[Mapping[str, tuple[Relation, ...]]] = {
    "vision→vision": (VISION_TO_VISION,),
    "vision→tag": (VISION_TO_TAG,),
    "tag→vision": (TAG_TO_VISION,),
    "all the relations": (VISION_TO_VISION, VISION_TO_TAG, TAG_TO_VISION),
}
"""The blocks of Fig. 3, and the three together as in Fig. 4."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockStats:
    """Numbers of one block in each of b images; NaN where the block is empty (no tags, no regions, all padding).

    std: (b,) of the block's numbers (of all of them, not of a sample). This is what the paper plots, and it falls as
        the input grows longer, because shares of more places are smaller: between inputs of other lengths it says
        nothing about evenness.
    mass: (b,) their sum. It grows with the number of rows.
    evenness: (b,) in [0, 1], which does not depend on the length: of each row of the block the entropy of its numbers,
        made to sum to 1, over the entropy of equal ones; the mean over rows. 1 is wholly even, 0 all on one place. NaN
        too where there is one column only, or no mass: nothing could be shared out.
    rows: (b,) askers in the block, so that mass / rows is what one of them gives.
    """

    std: Floats
    mass: Floats
    evenness: Floats
    rows: Ints

    @property
    def empty(self) -> int:
        """Images in which the block has no number at all."""
        return int(np.isnan(self.std).sum())

    def __len__(self) -> int:
        return len(self.std)

    @classmethod
    def joined(cls, parts: Iterable[BlockStats]) -> BlockStats:
        """Those of several batches, one after the other."""
        some = list(parts)
        floats = [np.concatenate([np.zeros(0), *(getattr(one, name) for one in some)]) for name in _NUMBERS]
        rows = np.concatenate([np.zeros(0, np.int64), *(one.rows for one in some)])
        return cls(floats[0], floats[1], floats[2], rows)


_NUMBERS = ("std", "mass", "evenness")


def joined_heads(attended: Attended, layer: int = 0, heads: Heads = "max") -> Floats:
    """(b, n, n) the attention of a layer, over its heads the maximum or the mean. layer: from 0; −1 is the last."""
    if heads not in _HEADS:
        raise UnknownName("way to join heads", str(heads), _HEADS)
    count = len(attended.layers)
    if not -count <= layer < count:
        raise InvalidValue("layer", f"{layer} is not one of {count}", "the first is 0, the last −1")
    chosen = attended.layers[layer].detach()
    found = chosen.amax(dim=1) if heads == "max" else chosen.mean(dim=1)
    numbers: Floats = found.double().cpu().numpy()
    return numbers


def block_mask(parts: Ints, relations: Iterable[Relation]) -> Bools:
    """(b, n, n) which numbers of a matrix belong to any of these relations. parts: (b, n) of `TokenKind`."""
    mask = np.zeros((*parts.shape, parts.shape[1]), np.bool_)
    for asker, asked in relations:
        mask |= (parts == asker)[:, :, None] & (parts == asked)[:, None, :]
    return mask


def parts_of(attended: Attended) -> Ints:
    """(b, n) of `TokenKind`."""
    parts: Ints = attended.parts.cpu().numpy().astype(np.int64)
    return parts


def block_stats(
    attended: Attended, relations: Iterable[Relation], *, layer: int = 0, heads: Heads = "max"
) -> BlockStats:
    """The statistics of one block, or of several taken together, in each image."""
    return _stats(joined_heads(attended, layer, heads), block_mask(parts_of(attended), relations))


def relation_stats(
    attended: Attended,
    relations: Mapping[str, Sequence[Relation]] = RELATIONS,
    *,
    layer: int = 0,
    heads: Heads = "max",
) -> dict[str, BlockStats]:
    """`block_stats` of several blocks by name; by default those of the paper."""
    values, parts = joined_heads(attended, layer, heads), parts_of(attended)
    return {name: _stats(values, block_mask(parts, pairs)) for name, pairs in relations.items()}


def measure_blocks(
    model: Attending,
    ids: Sequence[str],
    image_of: ImageOf,
    relations: Mapping[str, Sequence[Relation]] = RELATIONS,
    *,
    layer: int = 0,
    heads: Heads = "max",
    batch: int = ROUND,
    progress: Progress | None = None,
) -> dict[str, BlockStats]:
    """`relation_stats` of any number of images in their order, `batch` of them at a time: the data of Fig. 4."""
    found: dict[str, list[BlockStats]] = {name: [] for name in relations}
    for some in attend_rounds(model, ids, image_of, batch=batch, progress=progress):
        for name, stats in relation_stats(some.attended, relations, layer=layer, heads=heads).items():
            found[name].append(stats)
    return {name: BlockStats.joined(parts) for name, parts in found.items()}


def _stats(values: Floats, mask: Bools) -> BlockStats:
    """values, mask: (b, n, n)."""
    kept = np.where(mask, values, 0.0)
    count, mass = mask.sum(axis=(1, 2)), kept.sum(axis=(1, 2))
    full = count > 0
    size = np.maximum(count, 1)
    away = np.where(mask, values - (mass / size)[:, None, None], 0.0)
    std = np.sqrt((away**2).sum(axis=(1, 2)) / size)
    return BlockStats(
        np.where(full, std, np.nan),
        np.where(full, mass, np.nan),
        _evenness(kept, mask),
        mask.any(axis=2).sum(axis=1).astype(np.int64),
    )


def _evenness(kept: Floats, mask: Bools) -> Floats:
    """(b,) the mean over rows of their entropy over that of equal shares; NaN where no row can be uneven."""
    columns, sums = mask.sum(axis=2), kept.sum(axis=2)
    usable = (columns > 1) & (sums > 0)
    shares = kept / np.where(usable, sums, 1.0)[:, :, None]
    entropy = entr(shares).sum(axis=2) / np.log(np.where(usable, columns, 2))
    rows = usable.sum(axis=1)
    total = np.where(usable, entropy, 0.0).sum(axis=1)
    # Rounding can leave equal shares a hair above 1.
    evenness: Floats = np.where(rows > 0, np.minimum(total / np.maximum(rows, 1), 1.0), np.nan)
    return evenness


@dataclass(frozen=True, slots=True, eq=False)
class SpecialAttention:
    """What special tokens receive, layer by layer and by who asks (Fig. 10; Fig. 11 shows the same in matrices).

    share: (b, layers, parts) the mean over the askers of a part of what each gives; NaN where there is no such asker,
        or no special token to ask. parts: the askers, in the order of the last axis.
    """

    share: Floats
    parts: tuple[TokenKind, ...]

    @property
    def mean(self) -> Floats:
        """(layers, parts) over the images where it is defined; NaN where it is nowhere."""
        defined = ~np.isnan(self.share)
        counts = defined.sum(axis=0)
        sums = np.where(defined, self.share, 0.0).sum(axis=0)
        mean: Floats = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        return mean

    @classmethod
    def joined(cls, parts: Sequence[SpecialAttention]) -> SpecialAttention:
        """Those of several batches, one after the other."""
        if not parts or any(one.parts != parts[0].parts for one in parts):
            raise InvalidValue("attention to special tokens", "there is none, or the askers differ")
        return cls(np.concatenate([one.share for one in parts]), parts[0].parts)


ASKERS: Final = (TokenKind.CAPTION, TokenKind.TAG, TokenKind.REGION, TokenKind.SPECIAL)


def separators(attended: Attended) -> Bools:
    """(b, n) the special tokens but the first place: [SEP], where an input begins with [CLS] as BERT's do."""
    special = np.array(parts_of(attended) == TokenKind.SPECIAL, np.bool_)
    special[:, :1] = False
    return special


def special_attention(
    attended: Attended, *, asked: Bools | None = None, askers: Sequence[TokenKind] = ASKERS, heads: Heads = "mean"
) -> SpecialAttention:
    """How much of their attention the askers give to special tokens in each layer.

    asked: (b, n) which places; by default `separators`. heads: "mean" by default, so that it is a share of 1.
    """
    parts = parts_of(attended)
    columns = separators(attended) if asked is None else np.asarray(asked, np.bool_)
    if columns.shape != parts.shape:
        raise InvalidValue("places asked", f"have shape {columns.shape} for an input of shape {parts.shape}")
    rows = np.stack([parts == asker for asker in askers], axis=1)
    counts = rows.sum(axis=2)
    defined = (counts > 0) & np.any(columns, axis=1, keepdims=True)
    found = []
    for layer in range(len(attended.layers)):
        given = np.where(columns[:, None], joined_heads(attended, layer, heads), 0.0).sum(axis=2)
        share = np.einsum("bpn,bn->bp", rows.astype(np.float64), given) / np.maximum(counts, 1)
        found.append(np.where(defined, share, np.nan))
    return SpecialAttention(np.stack(found, axis=1), tuple(askers))


@dataclass(frozen=True, slots=True)
class Span:
    """A run of places of one part: start up to, not with, stop."""

    part: TokenKind
    start: int
    stop: int


@dataclass(frozen=True, slots=True, eq=False)
class AttentionMatrix:
    """One image's attention, ready to be drawn (Fig. 3).

    values: (m, m) from row to column. labels: (m,) what stands at each place. spans: the parts, one after the other.
    """

    values: Floats
    labels: tuple[str, ...]
    spans: tuple[Span, ...]


def attention_matrix(
    attended: Attended,
    number: int,
    image: TaggedRegions,
    *,
    layer: int = 0,
    heads: Heads = "max",
    words: Sequence[str] = (),
    specials: tuple[str, str] = ("[CLS]", "[SEP]"),
    padding: bool = False,
) -> AttentionMatrix:
    """The matrix of one image of a batch with the names of its places.

    number: which of the batch. image: the same, for the names of its tags; regions are called by their number. words:
    of the caption, if it was read; those not given are called by their place. specials: what a special token is called
    at the first place, and elsewhere. padding: keep its places, as the paper's picture does; otherwise only what is
    there.
    """
    parts, index = parts_of(attended), attended.index.cpu().numpy()
    if not 0 <= number < len(parts):
        raise InvalidValue("image", f"{number} is not one of {len(parts)} in the batch")
    kept = np.flatnonzero((parts[number] != TokenKind.PAD) | padding)
    values = joined_heads(attended, layer, heads)[number][np.ix_(kept, kept)]
    kinds = [TokenKind(int(kind)) for kind in parts[number][kept]]
    said = iter(words)
    labels = []
    for place, kind in zip(kept, kinds, strict=True):
        own = int(index[number, place])
        match kind:
            case TokenKind.PAD:
                labels.append("[PAD]")
            case TokenKind.SPECIAL:
                labels.append(specials[0] if place == 0 else specials[1])
            case TokenKind.CAPTION:
                labels.append(next(said, str(place)))
            case TokenKind.TAG:
                labels.append(image.tags[own])
            case TokenKind.REGION:
                # The image as a whole, in models that do not look at regions one by one, has no number.
                labels.append(str(own) if own >= 0 else "image")
    return AttentionMatrix(values, tuple(labels), _spans(kinds))


def _spans(kinds: Sequence[TokenKind]) -> tuple[Span, ...]:
    starts = [i for i, kind in enumerate(kinds) if i == 0 or kinds[i - 1] is not kind]
    return tuple(
        Span(kinds[start], start, stop) for start, stop in zip(starts, [*starts[1:], len(kinds)], strict=False)
    )
