"""Is an explanation true to the model, and does it agree with people?

Shapes: b items, r regions. Arrays are numpy's; give `tensor.cpu().numpy()`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.attention import AttentionMap
from saywhere.core.errors import InvalidValue
from saywhere.core.frame import Frame
from saywhere.core.types import Floats, owned
from saywhere.metrics.ranking import spearman
from saywhere.metrics.referring import box_iou


@dataclass(frozen=True, slots=True, eq=False)
class RankAgreement:
    """Rank correlations, one for each item; NaN where there is no order to compare.

    each: (b,). Undefined: fewer than two regions that both sides rank, or all of them equal on one side.
    """

    each: Floats

    @property
    def undefined(self) -> int:
        return int(np.isnan(self.each).sum())

    @property
    def mean(self) -> float:
        """Over the items where it is defined; NaN if it is nowhere."""
        defined = self.each[~np.isnan(self.each)]
        return float(defined.mean()) if len(defined) else math.nan


def rank_agreement(importance: ArrayLike, other: ArrayLike, present: ArrayLike) -> RankAgreement:
    """Spearman's correlation of two importances (b, r) over the regions present (b, r) of each item.

    With `occlusion` as the other: faithfulness. With human importance: grounding. Ties share their mean rank; a region
    that is NaN on either side is left out.
    """
    one = owned(importance, "importance", (None, None), finite=False)
    two = owned(other, "importance to compare with", one.shape, finite=False)
    here = _booleans(present, one.shape)
    return RankAgreement(
        np.array([spearman(a[p], b[p], nan_policy="omit") for a, b, p in zip(one, two, here, strict=True)], np.float64)
    )


def top_box_iou(importance: ArrayLike, human: ArrayLike, boxes_xyxy: ArrayLike) -> float:
    """IoU of the most important region for the network and for people. importance, human: (r,); boxes_xyxy: (r, 4).

    The mean over all choices where several regions are at the top. NaN if a side ranks no region.
    """
    tops = [_top(importance, "importance"), _top(human, "human importance")]
    boxes = owned(boxes_xyxy, "regions", (len(tops[0]), 4))
    if len(tops[0]) != len(tops[1]):
        raise InvalidValue("human importance", f"has {len(tops[1])} numbers for {len(tops[0])} regions")
    if not (tops[0].any() and tops[1].any()):
        return math.nan
    return float(box_iou(boxes[tops[0]], boxes[tops[1]]).mean())


def top_map_iou(importance: ArrayLike, boxes_xyxy: ArrayLike, attention: AttentionMap, level: float = 0.5) -> float:
    """IoU of the network's most important region with where people look.

    importance: (r,); boxes_xyxy: (r, 4). People look where the map reaches `level` of its highest value. The mean over
    all regions at the top; NaN if no region has an importance.
    """
    if not 0 < level <= 1:
        raise InvalidValue("level", f"{level} is not in (0, 1]")
    top = _top(importance, "importance")
    boxes = owned(boxes_xyxy, "regions", (len(top), 4))
    looked = attention.values >= level * attention.values.max()
    frame = Frame.of_grid(*attention.values.shape)
    ious = []
    for box in boxes[top]:
        covered = frame.coverage(box)
        inside = covered[looked].sum()
        ious.append(inside / (looked.sum() + covered.sum() - inside))
    return float(np.mean(ious)) if ious else math.nan


def _top(importance: ArrayLike, what: str) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """(r,) which regions have the highest value; NaN has none."""
    values = owned(importance, what, (None,), finite=False)
    known = ~np.isnan(values)
    return known & (values == values[known].max()) if known.any() else known


def _booleans(values: ArrayLike, shape: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    array = np.asarray(values)
    if array.dtype != np.bool_ or array.shape != shape:
        raise InvalidValue("present", f"is {array.dtype} of shape {array.shape}, not boolean {shape}")
    return array
