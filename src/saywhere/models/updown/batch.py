"""Questions and captions as the networks read them: items, and batches of them.

b items, r regions (of the image that has most), t words (of the longest). Regions and words that are not there are 0;
human importance is NaN wherever nobody gave any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Floats32
from saywhere.language.vocabulary import BEGIN_ID, END_ID
from saywhere.models.common.batches import Movable, padded, padding_mask
from saywhere.models.region_features import RegionFeatures


@dataclass(frozen=True, slots=True, eq=False)
class QuestionItem:
    """One question. regions: (r, f). boxes: (r, 4) xyxy. words: (t,) ids. targets: (answers,) soft scores.

    importance: (r,) in [0, 1], how much people look at each region to answer, or nothing. index: in its folder.
    pointed: (r,) in [0, 1], how much the one who asks points at each region, or nothing.
    """

    regions: Floats32
    boxes: Floats32
    words: NDArray[np.int64]
    targets: Floats32
    importance: Floats32 | None
    pointed: Floats32 | None
    index: int


@dataclass(frozen=True, slots=True, eq=False)
class CaptionItem:
    """One caption. regions: (r, f). boxes: (r, 4) xyxy. words: (t,) ids without markers. index: in its folder.

    visual: places of visual words among `words`, each with the importance (r,) of the image's regions for it.
    """

    regions: Floats32
    boxes: Floats32
    words: NDArray[np.int64]
    visual: tuple[tuple[int, Floats32], ...]
    index: int


@dataclass(frozen=True, slots=True, eq=False)
class QuestionBatch(Movable):
    """regions: (b, r, f). boxes: (b, r, 4). present: (b, r) bool. questions: (b, t) ids. targets: (b, answers).

    importance: (b, r), NaN where none. hinted: (b,) bool, whether an item has any. index: (b,).
    pointed: (b, r), 1 everywhere for a question that points at nothing.
    """

    regions: Tensor
    boxes: Tensor
    present: Tensor
    questions: Tensor
    targets: Tensor
    importance: Tensor
    pointed: Tensor
    hinted: Tensor
    index: Tensor

    def __len__(self) -> int:
        return len(self.index)


@dataclass(frozen=True, slots=True, eq=False)
class CaptionBatch(Movable):
    """regions, boxes, present, index: as for questions.

    words: (b, t) what is read, BEGIN_ID first. targets: (b, t) what comes next, END_ID last, PAD_ID after it.
    importance: (b, t, r) for the word that place t is to say, NaN where none. hinted: (b, t) bool, where there is any.
    """

    regions: Tensor
    boxes: Tensor
    present: Tensor
    words: Tensor
    targets: Tensor
    importance: Tensor
    hinted: Tensor
    index: Tensor

    def __len__(self) -> int:
        return len(self.index)


def collate_questions(items: Sequence[QuestionItem]) -> QuestionBatch:
    """Questions of any lengths about images of any numbers of regions."""
    regions, boxes, present = collate_regions([(one.regions, one.boxes) for one in items])
    importance, pointed = torch.full(present.shape, torch.nan), torch.ones(present.shape)
    for i, one in enumerate(items):
        for rows, values in ((importance, one.importance), (pointed, one.pointed)):
            if values is not None:
                rows[i, : len(values)] = torch.from_numpy(values)
    return QuestionBatch(
        regions,
        boxes,
        present,
        padded([one.words for one in items]),
        torch.from_numpy(np.stack([one.targets for one in items])),
        importance,
        pointed,
        torch.tensor([one.importance is not None for one in items]),
        torch.tensor([one.index for one in items]),
    )


def collate_captions(items: Sequence[CaptionItem]) -> CaptionBatch:
    """Captions of any lengths about images of any numbers of regions."""
    regions, boxes, present = collate_regions([(one.regions, one.boxes) for one in items])
    words = padded([np.concatenate([[BEGIN_ID], one.words]) for one in items])
    importance = torch.full((*words.shape, present.shape[1]), torch.nan)
    hinted = torch.zeros(words.shape, dtype=torch.bool)
    for i, one in enumerate(items):
        for place, shares in one.visual:
            importance[i, place, : len(shares)] = torch.from_numpy(shares)
            hinted[i, place] = True
    return CaptionBatch(
        regions,
        boxes,
        present,
        words,
        padded([np.concatenate([one.words, [END_ID]]) for one in items]),
        importance,
        hinted,
        torch.tensor([one.index for one in items]),
    )


def collate_regions(images: Sequence[tuple[Floats32, Floats32]]) -> tuple[Tensor, Tensor, Tensor]:
    """Features (r, f) and boxes (r, 4) of each image, as regions (b, r, f), boxes (b, r, 4) and flags (b, r)."""
    if not images:
        raise InvalidValue("batch", "holds no item")
    counts = torch.tensor([len(regions) for regions, _ in images])
    present = padding_mask(counts, int(counts.max()))
    return padded([regions for regions, _ in images]), padded([boxes for _, boxes in images]), present


def collate_features(images: Sequence[RegionFeatures], region_size: int) -> tuple[Tensor, Tensor, Tensor]:
    """The same of values; an image that does not fit the network is named by its number."""
    for i, image in enumerate(images):
        if image.features.shape[1] != region_size:
            reason = f"has features of size {image.features.shape[1]}, but the network reads {region_size}"
            raise InvalidValue(f"image {i}", reason)
    return collate_regions([(image.features, image.boxes_xyxy) for image in images])
