"""Questions about photos as the network reads them: items, one a photo, and batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Floats32
from saywhere.models.common.batches import Movable


@dataclass(frozen=True, slots=True, eq=False)
class AskedItem:
    """One question. tokens: (t, text_size). target_ids, target_scores: answers that are right, and how much.

    pointed: (r,) how much it points at each place, or nothing.
    """

    tokens: NDArray[np.float16] | Floats32
    target_ids: NDArray[np.int64]
    target_scores: Floats32
    pointed: Floats32 | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PhotoItem:
    """A photo with questions about it. regions: (r, region_size). boxes: (r, 4) xyxy."""

    regions: NDArray[np.float16] | Floats32
    boxes: Floats32
    asked: tuple[AskedItem, ...]


@dataclass(frozen=True, slots=True, eq=False)
class AnswerBatch(Movable):
    """regions: (P, r, f). boxes: (P, r, 4). present: (P, r). tokens: (P, q, t, d). read: (P, q, t). pointed: (P, q, r).

    targets: (P, q, answers). asked: (P, q) bool, whether there is such a question.
    """

    regions: Tensor
    boxes: Tensor
    present: Tensor
    tokens: Tensor
    read: Tensor
    pointed: Tensor
    targets: Tensor
    asked: Tensor

    def __len__(self) -> int:
        return len(self.regions)


def collate(items: Sequence[PhotoItem], answers: int) -> AnswerBatch:
    """Photos of any number of places with any number of questions."""
    if not items:
        raise InvalidValue("batch", "holds no item")
    photos, places = len(items), max(len(one.regions) for one in items)
    most = max(1, *(len(one.asked) for one in items))
    longest = max((len(question.tokens) for one in items for question in one.asked), default=1)
    size = next((question.tokens.shape[1] for one in items for question in one.asked), 1)
    regions = torch.zeros(photos, places, items[0].regions.shape[1])
    boxes, present = torch.zeros(photos, places, 4), torch.zeros(photos, places, dtype=torch.bool)
    tokens, read = (
        torch.zeros(photos, most, longest, size),
        torch.zeros(photos, most, longest, dtype=torch.bool),
    )
    pointed, targets = torch.ones(photos, most, places), torch.zeros(photos, most, answers)
    asked = torch.zeros(photos, most, dtype=torch.bool)
    for p, one in enumerate(items):
        count = len(one.regions)
        regions[p, :count], boxes[p, :count], present[p, :count] = _tensor(one.regions), _tensor(one.boxes), True
        for q, question in enumerate(one.asked):
            tokens[p, q, : len(question.tokens)] = _tensor(question.tokens)
            read[p, q, : len(question.tokens)] = True
            targets[p, q, torch.from_numpy(question.target_ids)] = _tensor(question.target_scores)
            asked[p, q] = True
            if question.pointed is not None:
                pointed[p, q, :count] = _tensor(question.pointed)
    return AnswerBatch(regions, boxes, present, tokens, read, pointed, targets, asked)


def _tensor(values: ArrayLike) -> Tensor:
    return torch.from_numpy(np.array(values, dtype=np.float32))
