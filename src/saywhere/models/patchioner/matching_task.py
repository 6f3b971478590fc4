"""How a network that tells photos apart is trained: every photo is nearest to its own captions among all of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
import numpy as np
import torch
from msgspec import Meta
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Floats32
from saywhere.models.common.batches import Movable, padded
from saywhere.models.common.modes import seeded_dropout
from saywhere.models.common.recalls import recalls
from saywhere.models.eye.features import AUXILIARY, AUXILIARY_KIND, FOUND, FOUND_KIND, EyeFeatures, FoundThings
from saywhere.models.eye.objective import drawn_patches
from saywhere.models.patchioner.matching import LEAST_SCORE, MOST_THINGS, Matcher, MatcherConfig, MatchNet
from saywhere.models.patchioner.queries import QueryNet, padded_tokens
from saywhere.store import Store
from saywhere.vision.auxiliary import to_floats
from saywhere.vision.things import NamedThings

QUERY_TEXTS, QUERY_TEXTS_KIND = "texts", "captions token by token"
QUERY_TEXTS_FIELDS = {"states": "float16", "tokens": "int16"}
QUERY_START = "start"
"""In a folder of queries: states of all tokens of a photo's captions, one after another, and how many each has; and the
network to begin with."""
WINDOWS_KIND = "windows of photos"
WINDOWS_FIELDS = {"windows": "float16", "centres": "float32", "contrast": "float32"}
_VALIDATION_BATCH = 50
_THINGS = ("vectors", "boxes_xyxy", "scores")
_FIRST_SCALE, _LARGEST_SCALE = 30.0, 100.0
_SPREAD_PHOTOS = 1000
"""Photos that say how what a second look gives is spread."""


class MatchingSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[model]: the shape, as `MatcherConfig` describes it; what the data fixes is not in it. captions: of each photo in
    a step. kept_share: of windows that are read in a step. A network of queries begins as the data has it."""

    width: int = 256
    heads: int = 4
    layers: int = 2
    feed_forward: int = 512
    dropout: float = 0.1
    captions: Annotated[int, Meta(ge=1)] = 2
    kept_share: Annotated[float, Meta(gt=0, le=1)] = 0.5


class MatchingData(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[data]: folder: that `saywhere build eye` wrote. windows: what an eye saw of its photos, as `saywhere
    build matching` writes it. auxiliary: whether what a second look gave is read, too. queries: what the text encoder
    read of captions, and the network that goes on from there, if texts are to be read in a way of their own; the same
    command writes it. statements: whether photos without captions teach, too, by what questions and answers say of
    them. start: the folder of such a part to begin with. validation: photos among which each is to be found, at most.
    """

    folder: Path
    windows: Path
    auxiliary: bool = False
    queries: Path | None = None
    statements: bool = False
    start: Path | None = None
    validation: Annotated[int, Meta(ge=2)] = 500

    def __post_init__(self) -> None:
        if self.statements and self.queries is not None:
            raise ValueError("statements were not read token by token: leave out statements or queries")


@dataclass(frozen=True, slots=True, eq=False)
class MatchItem:
    """One photo. windows, centres, contrast, auxiliary: as `MatchNet` reads them. caption_vectors: (k, d), at least
    one. caption_states: of each, as `QueryNet` reads them; none without such a network."""

    windows: Floats32
    centres: Floats32
    contrast: Floats32
    auxiliary: Floats32
    things: NamedThings
    caption_vectors: Floats32
    caption_states: tuple[Floats32, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class MatchBatch(Movable):
    """B photos: the seven inputs of `MatchNet`, and captions: (B, k, d), k of each, drawn at random. tokens: (B × k, t,
    d) of the same, and there: (B × k, t), which there are; no row without a network of queries."""

    windows: Tensor
    centres: Tensor
    contrast: Tensor
    names: Tensor
    boxes_xyxy: Tensor
    scores: Tensor
    auxiliary: Tensor
    captions: Tensor
    tokens: Tensor
    there: Tensor

    @property
    def read(self) -> tuple[Tensor, ...]:
        things = self.names, self.boxes_xyxy, self.scores
        return self.windows, self.centres, self.contrast, *things, self.auxiliary


class MatchItems(Sequence[MatchItem]):
    """Photos of a split that were seen and have captions; those of "train", if asked for, or statements."""

    def __init__(self, data: MatchingData, split: str) -> None:
        self._by_statements = data.statements and split == "train"
        self._features, self._windows = EyeFeatures(data.folder, split), Store(data.windows, WINDOWS_KIND)
        self._found = Store(data.folder / FOUND, FOUND_KIND)
        self._auxiliary = Store(data.folder / AUXILIARY, AUXILIARY_KIND) if data.auxiliary else None
        self._texts = None if data.queries is None else Store(data.queries / QUERY_TEXTS, QUERY_TEXTS_KIND)
        every = range(len(self._features))
        self._rows = [i for i in every if self._features.key(i) in self._windows and len(self._texts_of(i))]
        if not self._rows:
            raise InvalidFile(data.windows, f"has no photo of the split {split!r} that people told of")
        parts = [self._features.fingerprint, self._windows.fingerprint, self._found.fingerprint]
        parts += [store.fingerprint for store in (self._auxiliary, self._texts) if store is not None]
        self.fingerprint = "-".join((*parts, str(len(self._rows))))

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> MatchItem:  # type: ignore[override]  # one at a time
        row, key = self._rows[index], self._features.key(self._rows[index])
        seen = self._windows.by_key(key)
        found = FoundThings.of_row(self._found.by_key(key)) if key in self._found else FoundThings.none()
        return MatchItem(
            np.array(seen["windows"], np.float32),
            np.array(seen["centres"], np.float32),
            np.array(seen["contrast"], np.float32),
            self._second(key),
            found.named(self._features.name_vectors).surest(MOST_THINGS, LEAST_SCORE),
            self._texts_of(row),
            self._read(key),
        )

    def _read(self, key: str) -> tuple[Floats32, ...]:
        if self._texts is None:
            return ()
        row = self._texts.by_key(key)
        return tuple(np.split(np.asarray(row["states"]), np.cumsum(row["tokens"])[:-1]))

    def _second(self, key: str) -> Floats32:
        if self._auxiliary is None:
            return np.zeros((1, 0), np.float32)
        return to_floats(self._auxiliary.by_key(key)["features"])

    def _texts_of(self, row: int) -> Floats32:
        return self._features.sayings(row) if self._by_statements else self._features.caption_vectors(row)


class MatchTraining(nn.Module):
    """A network, and how sharply the cosines of each of its vectors are read."""

    def __init__(self, network: MatchNet) -> None:
        super().__init__()
        self.network = network
        vectors = 1 if network.second is None else 2
        self.scale = nn.Parameter(torch.full((vectors,), float(np.log(_FIRST_SCALE))))

    def save_pretrained(self, folder: str | Path, *, half: bool = False) -> None:  # noqa: ARG002 - of all that is trained
        Matcher(self.network).save_pretrained(folder)


class MatchingTask:
    """Photos → vectors by which their captions find them."""

    model_section: ClassVar[type[msgspec.Struct]] = MatchingSection
    data_section: ClassVar[type[msgspec.Struct]] = MatchingData

    def __init__(self, model: MatchingSection, data: MatchingData) -> None:
        self._section, self._data = model, data
        self._train, self._validation = (MatchItems(data, split) for split in ("train", "validation"))

    def build(self, generator: torch.Generator) -> nn.Module:  # noqa: ARG002 - torch's own is seeded too
        first, section = self._train[0], self._section
        shape = (section.width, section.heads, section.layers, section.feed_forward, section.dropout)
        config = MatcherConfig(first.windows.shape[1], len(first.contrast), *shape)
        config = replace(config, auxiliary_size=first.auxiliary.shape[1])
        start = None if self._data.queries is None else QueryNet.from_pretrained(self._data.queries / QUERY_START)
        if start is not None:
            heads, inner = start.config.heads, start.config.feed_forward
            config = replace(config, query_layers=start.config.layers, query_heads=heads, query_feed_forward=inner)
        network = MatchNet(config)
        if start is not None and network.query is not None:
            network.query.load_state_dict(start.state_dict())
        if self._data.start is not None:
            begun = Matcher.from_pretrained(self._data.start).network
            if begun.config != config:
                raise InvalidValue("[data] start", "is a network of another shape", "begin without one")
            network.load_state_dict(begun.state_dict())
        elif network.second is not None:
            some = range(0, len(self._train), max(1, len(self._train) // _SPREAD_PHOTOS))
            network.second.spread_as(torch.from_numpy(np.stack([self._train[i].auxiliary[0] for i in some])))
        return MatchTraining(network)

    def train_items(self) -> MatchItems:
        return self._train

    def collate(self, items: Sequence[MatchItem], generator: torch.Generator) -> MatchBatch:
        places = items[0].centres.shape[0]
        kept = max(1, round(self._section.kept_share * places))
        rows = drawn_patches(len(items), places, kept, generator).numpy()
        drawn = [self._drawn(len(one.caption_vectors), generator) for one in items]
        return batch_of(items, drawn, rows)

    def _drawn(self, captions: int, generator: torch.Generator) -> NDArray[np.int64]:
        drawn: NDArray[np.int64] = torch.randint(captions, (self._section.captions,), generator=generator).numpy()
        return drawn

    def losses(self, model: nn.Module, batch: MatchBatch, generator: torch.Generator) -> Mapping[str, Tensor]:
        training = _training_of(model)
        with seeded_dropout(generator, training.network):
            each = training.network.each(*batch.read)
            captions = _texts_of(training.network, batch)
        scales = training.scale.exp().clamp(max=_LARGEST_SCALE)
        losses = [_contrast(scale * photos.float(), captions) for scale, photos in zip(scales, each, strict=True)]
        parts = dict(zip(("by_eye", "by_second_look"), (one.detach() for one in losses), strict=False))
        return {"loss": torch.stack(losses).sum(), **parts}

    def counts(self, batch: MatchBatch) -> Mapping[str, float]:  # noqa: ARG002 - of the protocol
        """None: a photo's caption is told from those of the others in its batch."""
        return {}

    def validate(self, model: nn.Module) -> dict[str, float]:
        """r1, r5, r10: how often a caption finds its photo among the first 1, 5 and 10 of so many. eye_r1, …: by what
        the eye tells by itself."""
        network = _training_of(model).network
        device = next(network.parameters()).device
        count = min(self._data.validation, len(self._validation))
        ours, eyes, plain, queries = ([] for _ in range(4))
        owners: list[int] = []
        for first in range(0, count, _VALIDATION_BATCH):
            items = [self._validation[i] for i in range(first, min(first + _VALIDATION_BATCH, count))]
            batch = batch_of(items, [np.zeros(0, np.int64)] * len(items)).to(device)
            ours.append(network(*batch.read).float().cpu())
            eyes.append(functional.normalize(batch.contrast.float(), dim=-1).cpu())
            for place, item in enumerate(items, first):
                plain.append(functional.normalize(torch.from_numpy(item.caption_vectors), dim=-1))
                owners += [place] * len(item.caption_vectors)
                if network.query is not None:
                    read = (part.to(device) for part in padded_tokens(item.caption_states))
                    queries.append(network.query(*read).float().cpu())
        by_eye = recalls(torch.cat(eyes), torch.cat(plain), owners)
        measures = recalls(torch.cat(ours), torch.cat(queries or plain), owners)
        return measures | {f"eye_{name}": value for name, value in by_eye.items()}

    def fingerprint(self) -> str:
        return f"{self._train.fingerprint}-{len(self._train)}-{len(self._validation)}"


def _contrast(photos: Tensor, captions: Tensor) -> Tensor:
    """How badly (p, d) photos are told by their (p, k, d) captions among all of the batch, and these by them."""
    scores = torch.einsum("pd,ckd->kpc", photos, captions)
    own = torch.arange(len(photos), device=photos.device).expand(len(scores), -1)
    there = functional.cross_entropy(scores.flatten(0, 1), own.flatten())
    back = functional.cross_entropy(scores.transpose(1, 2).flatten(0, 1), own.flatten())
    return (there + back) / 2


def _texts_of(network: MatchNet, batch: MatchBatch) -> Tensor:
    """(B, k, d) of length 1: the captions as they are read."""
    if network.query is None:
        return functional.normalize(batch.captions.float(), dim=-1)
    read: Tensor = network.query(batch.tokens, batch.there).float()
    return read.reshape(*batch.captions.shape[:2], -1)


def batch_of(
    items: Sequence[MatchItem], drawn: Sequence[NDArray[np.int64]], rows: NDArray[np.int64] | None = None
) -> MatchBatch:
    """drawn: for each photo the numbers of its captions in the batch, as many of each. rows: (B, kept) the windows that
    are read; all by default."""
    windows, centres = (np.stack([getattr(one, name) for one in items]) for name in ("windows", "centres"))
    if rows is not None:
        photo = np.arange(len(items))[:, None]
        windows, centres = np.concatenate([windows[:, :1], windows[:, 1:][photo, rows]], axis=1), centres[photo, rows]
    most = max(1, *(len(one.things) for one in items))
    names, boxes, scores = (padded([getattr(one.things, name) for one in items], most, 0) for name in _THINGS)
    contrast, auxiliary = (np.stack([getattr(one, name) for one in items]) for name in ("contrast", "auxiliary"))
    captions = np.stack([one.caption_vectors[numbers] for one, numbers in zip(items, drawn, strict=True)])
    seen = (torch.from_numpy(part) for part in (windows, centres, contrast, auxiliary, captions))
    windows_seen, centres_seen, contrast_seen, second, told = seen
    told_by = ((one, number) for one, numbers in zip(items, drawn, strict=True) for number in numbers.tolist())
    texts = padded_tokens([one.caption_states[number] for one, number in told_by if one.caption_states])
    return MatchBatch(windows_seen, centres_seen, contrast_seen, names, boxes, scores, second, told, *texts)


def _training_of(model: nn.Module) -> MatchTraining:
    if not isinstance(model, MatchTraining):
        raise InvalidValue("model", f"is a {type(model).__name__}, not a MatchTraining")
    return model
