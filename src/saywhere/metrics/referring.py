"""Referring expressions: box and mask IoU, precision at a threshold, cIoU and gIoU.

Here gIoU is the mean IoU over items, as the referring segmentation papers write it. It is not the "generalized IoU"
loss of boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Bools, Floats, Ints, owned


def box_iou(a_xyxy: ArrayLike, b_xyxy: ArrayLike) -> Floats:
    """IoU of every box of `a` (n, 4) with every box of `b` (m, 4): (n, m).

    Boxes are x0, y0, x1, y1 in any one unit, x0 <= x1 and y0 <= y1. Two boxes without area have IoU 0.

    >>> box_iou([(0, 0, 2, 1)], [(1, 0, 3, 1), (0, 0, 2, 1)]).round(3).tolist()
    [[0.333, 1.0]]
    """
    a, b = checked_boxes(a_xyxy, "boxes a"), checked_boxes(b_xyxy, "boxes b")
    return _iou(a[:, None, :], b[None, :, :])


def paired_box_iou(a_xyxy: ArrayLike, b_xyxy: ArrayLike) -> Floats:
    """IoU of box i of `a` with box i of `b`, both (n, 4): (n,). Two boxes without area have IoU 0.

    >>> paired_box_iou([(0, 0, 2, 1)], [(0, 0, 1, 1)]).tolist()
    [0.5]
    """
    a, b = checked_boxes(a_xyxy, "boxes a"), checked_boxes(b_xyxy, "boxes b")
    if len(a) != len(b):
        raise InvalidValue("pairs of boxes", f"{len(a)} boxes against {len(b)}")
    return _iou(a, b)


def points_into(box_xyxy: ArrayLike, true_xyxy: ArrayLike) -> bool:
    """Whether the middle of a box lies in the true one.

    >>> points_into((0, 0, 1, 1), (0.4, 0.4, 0.9, 0.9)), points_into((0, 0, 1, 1), (0.6, 0, 1, 1))
    (True, False)
    """
    box, true = (checked_boxes(np.asarray(one)[None], "box")[0] for one in (box_xyxy, true_xyxy))
    middle = (box[:2] + box[2:]) / 2
    return bool((true[:2] <= middle).all() and (middle <= true[2:]).all())


def mask_iou(predicted: ArrayLike, target: ArrayLike) -> float:
    """IoU of two masks of one shape (h, w), boolean or 0/1. Two empty masks agree: 1.

    >>> mask_iou([[1, 1]], [[0, 1]])
    0.5
    """
    return float(_ious(_tally([predicted], [target]))[0])


def precision_at(ious: ArrayLike, threshold: float = 0.5) -> float:
    """The share of items whose IoU reaches `threshold` (>=).

    ious: (n,) in [0, 1], of boxes (`paired_box_iou`) or masks (`mask_iou`); an item without a prediction has IoU 0.

    >>> precision_at([0.2, 0.5, 0.9, 0.4])
    0.5
    """
    metric = PrecisionAt(threshold)
    metric.update(ious)
    return metric.compute()


def ciou(predicted: Sequence[ArrayLike], target: Sequence[ArrayLike]) -> float:
    """Sum of the intersections over sum of the unions: large targets weigh more.

    predicted, target: masks pair by pair, each pair of one shape (h, w). NaN when every mask is empty.

    >>> round(ciou([[[1, 1]], [[1, 0]]], [[[1, 1]], [[0, 1]]]), 3)
    0.5
    """
    return _finish_ciou(_tally(predicted, target))


def giou(predicted: Sequence[ArrayLike], target: Sequence[ArrayLike]) -> float:
    """Mean of the IoU of each pair of masks: every item weighs the same.

    As in gRefCOCO, an empty target that was predicted empty scores 1, and 0 when anything was predicted.

    >>> giou([[[1, 1]], [[1, 0]]], [[[1, 1]], [[0, 1]]])
    0.5
    """
    return _finish_giou(_tally(predicted, target))


class PrecisionAt:
    """`precision_at` over batches."""

    higher_is_better = True

    def __init__(self, threshold: float = 0.5) -> None:
        if not 0 < threshold <= 1:
            raise InvalidValue("IoU threshold", f"{threshold} is not in (0, 1]")
        self.threshold = threshold
        self.reset()

    def update(self, ious: ArrayLike) -> None:
        """Add IoUs (n,) of boxes or masks."""
        values = owned(ious, "IoUs", (None,))
        if values.size and not (values.min() >= 0 and values.max() <= 1):
            raise InvalidValue("IoUs", "hold a value outside [0, 1]")
        self._hits += int((values >= self.threshold).sum())
        self._items += len(values)

    def compute(self) -> float:
        """The share of items that reach the threshold."""
        if not self._items:
            raise InvalidValue("precision", "no item was given, so there is no share")
        return self._hits / self._items

    def reset(self) -> None:
        """Forget every item."""
        self._hits = self._items = 0


class _Areas(NamedTuple):
    """One number per pair of masks, in pixels."""

    intersection: Ints
    union: Ints


class _MaskMetric:
    """What `CIoU` and `GIoU` share: the areas of every pair seen."""

    higher_is_better = True

    def __init__(self) -> None:
        self._batches: list[_Areas] = []

    def update(self, predicted: Sequence[ArrayLike], target: Sequence[ArrayLike]) -> None:
        """Add masks pair by pair, each pair of one shape (h, w)."""
        self._batches.append(_tally(predicted, target))

    def reset(self) -> None:
        """Forget every item."""
        self._batches.clear()

    def _all(self) -> _Areas:
        if not self._batches:
            return _tally([], [])
        return _Areas(*(np.concatenate(column) for column in zip(*self._batches, strict=True)))


class CIoU(_MaskMetric):
    """`ciou` over batches."""

    def compute(self) -> float:
        """Sum of the intersections over sum of the unions."""
        return _finish_ciou(self._all())


class GIoU(_MaskMetric):
    """`giou` over batches."""

    def compute(self) -> float:
        """Mean IoU over all pairs."""
        return _finish_giou(self._all())


class ReferringScores:
    """All that is told of referring expressions, over items: of boxes, of masks, or of both.

    >>> scores = ReferringScores()
    >>> scores.add_box((0, 0, 1, 1), (0, 0, 0.5, 1)), scores.add_box(None, (0, 0, 0.5, 1))
    (0.5, 0.0)
    >>> scores.compute()
    {'boxes': 2, 'P@0.5': 0.5, 'mean IoU': 0.25, 'pointing': 0.5}
    """

    higher_is_better = True

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = PrecisionAt(threshold).threshold
        self.reset()

    def add_box(self, predicted_xyxy: ArrayLike | None, true_xyxy: ArrayLike) -> float:
        """The IoU of one pair of boxes, which is counted. predicted_xyxy: None if nothing was found."""
        found = (
            None
            if predicted_xyxy is None
            else paired_box_iou(np.asarray(predicted_xyxy)[None], np.asarray(true_xyxy)[None])[0]
        )
        self._box_ious.append(0.0 if found is None else float(found))
        self._pointed.append(predicted_xyxy is not None and points_into(predicted_xyxy, true_xyxy))
        return self._box_ious[-1]

    def add_mask(self, predicted: ArrayLike, target: ArrayLike) -> float:
        """The IoU of one pair of masks (h, w), which is counted. Nothing found is an empty mask."""
        areas = _tally([predicted], [target])
        self._areas.append(areas)
        return float(_ious(areas)[0])

    def compute(self) -> dict[str, float]:
        """Of boxes: how many, the share that reaches the threshold, the mean IoU, and the share whose middle lies in
        the true box. Of masks: how many, the share that reaches the threshold, cIoU and gIoU."""
        if not self._box_ious and not self._areas:
            raise InvalidValue("scores of expressions", "no item was given")
        scores: dict[str, float] = {}
        name = f"P@{self.threshold:g}"
        if self._box_ious:
            shares = precision_at(self._box_ious, self.threshold), float(np.mean(self._box_ious))
            scores |= {"boxes": len(self._box_ious), name: shares[0], "mean IoU": shares[1]}
            scores["pointing"] = float(np.mean(self._pointed))
        if self._areas:
            areas = _Areas(*(np.concatenate(column) for column in zip(*self._areas, strict=True)))
            share = precision_at(_ious(areas), self.threshold)
            scores |= {"masks": len(self._areas), f"mask {name}": share}
            scores |= {"cIoU": _finish_ciou(areas), "gIoU": _finish_giou(areas)}
        return scores

    def reset(self) -> None:
        """Forget every item."""
        self._box_ious: list[float] = []
        self._pointed: list[bool] = []
        self._areas: list[_Areas] = []


def checked_boxes(boxes_xyxy: ArrayLike, what: str) -> Floats:
    """Boxes (n, 4) with finite numbers and ordered corners."""
    boxes = owned(boxes_xyxy, what, (None, 4))
    backwards = (boxes[:, :2] > boxes[:, 2:]).any(axis=1)
    if backwards.any():
        row = int(backwards.argmax())
        raise InvalidValue(what, f"row {row} has x1 < x0 or y1 < y0", "boxes are x0, y0, x1, y1, not x, y, w, h")
    return boxes


def _iou(a: Floats, b: Floats) -> Floats:
    """IoU along the last axis, which holds xyxy."""
    sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    shared = sides.clip(min=0).prod(axis=-1)
    union = (a[..., 2:] - a[..., :2]).prod(axis=-1) + (b[..., 2:] - b[..., :2]).prod(axis=-1) - shared
    # Rounding can leave a thin box's union a hair below its intersection.
    ious: Floats = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return ious.clip(max=1.0)


def _tally(predicted: Sequence[ArrayLike], target: Sequence[ArrayLike]) -> _Areas:
    if len(predicted) != len(target):
        raise InvalidValue("pairs of masks", f"{len(predicted)} predicted masks against {len(target)} targets")
    intersection, union = np.zeros(len(predicted), np.int64), np.zeros(len(predicted), np.int64)
    for i, (p, t) in enumerate(zip(predicted, target, strict=True)):
        one, other = _mask(p, f"predicted mask {i}"), _mask(t, f"target mask {i}")
        if one.shape != other.shape:
            raise InvalidValue(f"pair of masks {i}", f"has shapes {one.shape} and {other.shape}")
        intersection[i], union[i] = np.count_nonzero(one & other), np.count_nonzero(one | other)
    return _Areas(intersection, union)


def _ious(areas: _Areas) -> Floats:
    ious: Floats = np.ones(len(areas.union))
    return np.divide(areas.intersection, areas.union, out=ious, where=areas.union > 0)


def _finish_ciou(areas: _Areas) -> float:
    _require_items(areas, "cIoU")
    union = int(areas.union.sum())
    return int(areas.intersection.sum()) / union if union else float("nan")


def _finish_giou(areas: _Areas) -> float:
    _require_items(areas, "gIoU")
    return float(_ious(areas).mean())


def _require_items(areas: _Areas, what: str) -> None:
    if not len(areas.union):
        raise InvalidValue(what, "no pair of masks was given")


def _mask(values: ArrayLike, what: str) -> Bools:
    """A mask (h, w) of booleans, or of numbers that are all 0 or 1."""
    if isinstance(values, np.ndarray) and values.dtype == np.bool_ and values.ndim == 2:
        return values
    numbers = owned(values, what, (None, None), finite=False)
    if not ((numbers == 0) | (numbers == 1)).all():
        raise InvalidValue(what, "holds values other than 0 and 1", "threshold it first: mask > 0.5, or mask > 127")
    mask: Bools = numbers == 1
    return mask
