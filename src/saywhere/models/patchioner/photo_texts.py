"""What a decoder that reads photos learns from: photos with their captions, names of boxes and surroundings, as
batches of several texts a photo."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import torch
from torch import Tensor

from saywhere.core import Frame
from saywhere.core.errors import InvalidFile
from saywhere.core.types import Floats32
from saywhere.language.surroundings import surroundings_in
from saywhere.language.vocabulary import BEGIN_ID, END_ID, Vocabulary, plain_words
from saywhere.models.common.batches import Movable, padded
from saywhere.models.eye.features import CAPTIONS, CAPTIONS_KIND, EyeFeatures, EyeItem, PhotoPixels, RegionNames
from saywhere.models.eye.objective import EyeBatch
from saywhere.models.eye.variation import Variation, varied_photo
from saywhere.store import Store

WHOLE = -2
_ARTICLE = re.compile(r"an? ")
_WINDOW = (2, 14)
"""Patches along a side of the part of surroundings that is put into words."""


class RegionNameIds(NamedTuple):
    """A box, the ids of each of its names, and the number of the class that its first name is; −1 for none."""

    box_xyxy: tuple[float, float, float, float]
    names: list[list[int]]
    kind: int


class SurroundingIds(NamedTuple):
    """What a caption says of surroundings: their kind and the ids of its phrase."""

    kind: int
    phrase: list[int]


NOTHING = RegionNameIds((0.0, 0.0, 1.0, 1.0), [[]], -1)


@dataclass(frozen=True, slots=True, eq=False)
class PhotoTexts:
    """One photo and its texts. captions: ids of each. region_names: boxes with their names. surroundings: what the
    captions say of them."""

    photo: EyeItem
    captions: list[list[int]]
    region_names: list[RegionNameIds]
    surroundings: list[SurroundingIds]


@dataclass(frozen=True, slots=True, eq=False)
class PhotoTextBatch(Movable):
    """B photos with k texts each, side by side.

    inputs: (B, 1 + n, size), or pixels; see `EyeItem`. cells: (B * k, rows, cols), how much of a text's box lies on
    each cell; even for the whole photo. is_whole: (B * k,). classes: (B * k,), which a detector would have named; −1
    for none.
    words: (B * k, t) ids with begin and end; padding alone where there is no text. known: what an eye that learns
    beside is taught. surroundings: (B,) the kind that the last text of each photo is about, whose cells are not known
    before the photo is seen; −1 for none.
    """

    inputs: Tensor
    cells: Tensor
    is_whole: Tensor
    classes: Tensor
    words: Tensor
    known: EyeBatch | None = None
    surroundings: Tensor | None = None


class PhotoTextItems:
    """Photos of a features folder that people told of, as items; or all whose boxes have names."""

    def __init__(
        self,
        folder: Path,
        split: str,
        vocabulary: Vocabulary,
        most_words: int,
        pixels: PhotoPixels | None = None,
        *,
        captioned: bool = True,
    ) -> None:
        """pixels: see `EyeFeatures`. captioned: only photos with captions; else those come twice, the others once."""
        self._features = EyeFeatures(folder, split, pixels)
        self._captions = Store(folder / CAPTIONS, CAPTIONS_KIND)
        self._vocabulary, self._most_words = vocabulary, most_words
        self._kinds = {name: number for number, name in enumerate(self._features.names)}
        told = {row.key for row in self._captions if row["captions"]}
        named = set() if captioned else {row.key for row in self._captions}
        keys = [self._features.key(i) for i in range(len(self._features))]
        self._rows = [i for among in (told, named) for i, key in enumerate(keys) if key in among]
        if not self._rows:
            raise InvalidFile(folder, f"has no photo of the split {split!r} that people told of")
        self.fingerprint = f"{self._features.fingerprint}-{self._captions.fingerprint}"

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> PhotoTexts:
        row = self._rows[index]
        kept = self._captions.by_key(self._features.key(row))
        region_names = msgspec.convert(kept["called"], list[RegionNames])
        return PhotoTexts(
            self._features[row],
            [self._ids(text) for text in kept["captions"]],
            [
                RegionNameIds(one.box_xyxy, [self._ids(text) for text in one.texts], self._kind(one))
                for one in region_names
            ],
            [
                SurroundingIds(one.kind, self._ids(one.phrase))
                for text in kept["captions"]
                for one in surroundings_in(plain_words(text))
            ],
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Of classes."""
        return self._features.names

    def caption_ids(self) -> Iterator[list[list[int]]]:
        """Of each photo, without reading what the trunk gave."""
        for row in self._rows:
            yield [self._ids(text) for text in self._captions.by_key(self._features.key(row))["captions"]]

    def _kind(self, region_names: RegionNames) -> int:
        return self._kinds.get(_ARTICLE.sub("", region_names.texts[0], count=1), -1)

    def _ids(self, text: str) -> list[int]:
        ids = self._vocabulary.encode(plain_words(text)).ids
        return list(ids)[: self._most_words]


def varied(item: PhotoTexts, sided: Collection[int], generator: torch.Generator) -> PhotoTexts:
    """A photo of pixels, cut and perhaps mirrored at random, with the names of those boxes that are left. sided: ids of
    words that are wrong in the mirror."""
    said = [*item.captions, *(name for one in item.region_names for name in one.names)]
    variation = Variation.drawn(generator, may_mirror=not any(i in sided for ids in said for i in ids))
    boxes_xyxy = np.array([one.box_xyxy for one in item.region_names], np.float32).reshape(-1, 4)
    left, kept = variation.boxes(boxes_xyxy)
    region_names = [
        item.region_names[i]._replace(box_xyxy=(x1, y1, x2, y2))
        for i, (x1, y1, x2, y2) in zip(kept.tolist(), left.tolist(), strict=True)
    ]
    return replace(item, photo=varied_photo(item.photo, variation), region_names=region_names)


def with_surroundings(
    batch: PhotoTextBatch, shown: Tensor, rows: Tensor, kinds: Tensor, generator: torch.Generator
) -> PhotoTextBatch:
    """The batch with a place for the last text of each photo: patches that show its kind of surroundings, within a
    window around one of them. shown: (B, kept) kinds; rows: (B, kept) numbers of patches. Texts without such patches
    are left out."""
    photos, kept = rows.shape
    side = batch.cells.shape[-1]
    grid = side // 2
    theirs = (shown == kinds[:, None]) & (kinds >= 0)[:, None]
    chance = torch.rand(photos, kept, generator=generator).to(rows.device)
    centre = rows.gather(1, (chance * theirs).argmax(dim=1, keepdim=True))
    windows = torch.randint(*_WINDOW, (2, photos, 1), generator=generator).to(rows.device)
    inside = ((rows // grid - centre // grid).abs() * 2 <= windows[0]) & (
        (rows % grid - centre % grid).abs() * 2 <= windows[1]
    )
    weights = torch.zeros(photos, grid * grid, device=rows.device).scatter(1, rows, (theirs & inside).float())
    by_cell = weights.view(photos, grid, grid).repeat_interleave(2, dim=1).repeat_interleave(2, dim=2)
    total = by_cell.sum(dim=(1, 2), keepdim=True)
    cells, words = batch.cells.view(photos, -1, side, side).clone(), batch.words.view(photos, -1, batch.words.shape[1])
    cells[:, -1] = by_cell / total.clamp(min=1)
    words = torch.cat([words[:, :-1], words[:, -1:] * (total > 0).long()], dim=1)
    return replace(batch, cells=cells.flatten(0, 1), words=words.flatten(0, 1))


def text_batch_of(
    items: Sequence[PhotoTexts], cells: Sequence[Floats32], kinds: Sequence[int], texts: Sequence[Sequence[int]]
) -> PhotoTextBatch:
    """kinds: of each text's box; −1 for none, WHOLE for the whole photo."""
    words = [np.array([BEGIN_ID, *ids, END_ID] if ids else [], np.int64) for ids in texts]
    longest = max(2, *(len(ids) for ids in words))
    return PhotoTextBatch(
        torch.from_numpy(np.stack([item.photo.inputs for item in items])),
        torch.from_numpy(np.stack(cells)),
        torch.tensor([kind == WHOLE for kind in kinds]),
        torch.tensor([max(kind, -1) for kind in kinds]),
        padded(words, longest),
    )


def box_cells(box_xyxy: Sequence[float], side: int) -> Floats32:
    along_y, along_x = Frame.of_grid(side, side).coverages(np.array([box_xyxy], np.float64))
    shares = np.outer(along_y[0], along_x[0]).astype(np.float32)
    weights: Floats32 = shares / max(float(shares.sum()), 1e-9)
    return weights


def one_of(surroundings: Sequence[SurroundingIds], generator: torch.Generator) -> SurroundingIds:
    if not surroundings:
        return SurroundingIds(-1, [])
    return surroundings[int(torch.randint(len(surroundings), (), generator=generator))]


def drawn(count: int, wanted: int, generator: torch.Generator) -> list[int | None]:
    """`wanted` of `count` numbers at random; None where there are too few."""
    order: list[int | None] = list(torch.randperm(count, generator=generator)[:wanted].tolist())
    return order + [None] * (wanted - len(order))


def drawn_evenly(kinds: Sequence[int], wanted: int, generator: torch.Generator) -> list[int | None]:
    """The same, as many of each kind as there are: one dog among nine people is drawn before the second person."""
    drawn: dict[int, int] = {}
    rounds: list[tuple[int, int, int]] = []
    for i in torch.randperm(len(kinds), generator=generator).tolist():
        drawn[kinds[i]] = drawn.get(kinds[i], 0) + 1
        rounds.append((drawn[kinds[i]], len(rounds), i))
    order: list[int | None] = [i for _, _, i in sorted(rounds)[:wanted]]
    return order + [None] * (wanted - len(order))
