"""Human importance of regions or patches: E_in / (E_in + E_out), from whatever says where people look (HINT, Eq. 1).

Maps are made by `AttentionMap` (of a trace's dwell, fixations, boxes, masks) and by `saywhere.formats.hat`; here are
those of several people, and the step from maps to regions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.attention import DEFAULT_SHAPE, AttentionMap
from saywhere.core.errors import InvalidValue
from saywhere.core.frame import Frame
from saywhere.core.types import Bools, Floats, owned
from saywhere.metrics.referring import box_iou

_SHAPE_TOLERANCE = 0.05
_WHOLE = 0.99
TIE = 0.05
"""Importances by overlap that are nearer to each other are the same."""


def human_importance(
    attention: AttentionMap | ArrayLike, where: Frame | ArrayLike, photo_size: tuple[int, int] | None = None
) -> Floats:
    """(r,) in [0, 1] how much people look at each region; ½ is "as much as elsewhere".

    attention: a map over the whole image, (h, w) in any resolution. where: (r, 4) boxes xyxy, fractions of the image;
    or a Frame, then row by row its patches: those that show only padding get NaN. photo_size: width and height; a map
    of another shape than the photo's, by more than a twentieth, is refused. Not known: any shape will do.
    Refused with InvalidValue: a map that is empty, negative, zero everywhere or holds NaN, and a box without area.
    """
    seen = _map(attention, photo_size)
    if not isinstance(where, Frame):
        return seen.importance(where)
    return _where_area(seen, patch_boxes(where))[0]


def overlap_importance(boxes_xyxy: ArrayLike, asked_xyxy: ArrayLike) -> Floats:
    """(r,) in [0, 1]: how well each region fits what people were asked to look at, its best IoU with one of the boxes.

    boxes_xyxy: (r, 4). asked_xyxy: (n, 4), n ≥ 1. Of E_in / (E_in + E_out) every region that holds all of what is
    asked has nearly 1, the sky around a clock as well as the clock; of this, the clock alone. Rounded to steps of 0.05,
    so that near ties are ties. The whole image is no place to look at: NaN.

    >>> overlap_importance([(0, 0, 1, 1), (0, 0, 1, 0.6), (0.4, 0.2, 0.6, 0.4)], [(0.4, 0.2, 0.6, 0.4)]).tolist()
    [nan, 0.05, 1.0]
    """
    boxes, asked = owned(boxes_xyxy, "regions", (None, 4)), owned(asked_xyxy, "asked boxes", (None, 4))
    if not len(asked):
        raise InvalidValue("asked boxes", "there are none to look at")
    importance: Floats = np.round(box_iou(boxes, asked).max(axis=1) / TIE) * TIE
    importance[whole_image(boxes)] = np.nan
    return importance


def whole_image(boxes_xyxy: Floats) -> Bools:
    """(r,) which of (r, 4) regions are the whole image, but for a hundredth of it."""
    sides = np.clip(boxes_xyxy[:, 2:], 0, 1) - np.clip(boxes_xyxy[:, :2], 0, 1)
    covers: Bools = sides.prod(axis=1) >= _WHOLE
    return covers


def patch_boxes(frame: Frame) -> Floats:
    """(rows · cols, 4) the patches of a frame, row by row, as boxes xyxy on the photo; padding has no area."""
    x, y = (np.clip(edges, 0, 1) for edges in frame.cell_edges())
    left, top = np.meshgrid(x[:-1], y[:-1])
    right, bottom = np.meshgrid(x[1:], y[1:])
    boxes: Floats = np.stack([left, top, right, bottom], axis=-1).reshape(-1, 4)
    return boxes


def mean_attention(maps: Sequence[AttentionMap], shape: tuple[int, int] = DEFAULT_SHAPE) -> AttentionMap:
    """Where several people look, each counting the same however bright their map is."""
    if not maps:
        raise InvalidValue("attention maps", "there is none to take the mean of")
    densities: list[Floats] = [one.resized(shape).density for one in maps]
    return AttentionMap(np.mean(densities, axis=0))


def _map(attention: AttentionMap | ArrayLike, photo_size: tuple[int, int] | None) -> AttentionMap:
    seen = attention if isinstance(attention, AttentionMap) else AttentionMap(attention)
    if photo_size is not None:
        height, width = seen.values.shape
        ratio = (width / height) / (photo_size[0] / photo_size[1])
        if not 1 / (1 + _SHAPE_TOLERANCE) <= ratio <= 1 + _SHAPE_TOLERANCE:
            reason = f"is {width}×{height}, which is not the shape of a {photo_size[0]}×{photo_size[1]} photo"
            raise InvalidValue("attention map", reason)
    return seen


def _where_area(attention: AttentionMap, boxes_xyxy: Floats) -> tuple[Floats, Bools]:
    """(r,) importances, NaN for boxes without area on the image, and (r,) which boxes have some."""
    clipped = np.clip(boxes_xyxy, 0, 1)
    has_area: Bools = np.all(clipped[:, 2:] > clipped[:, :2], axis=1)
    importance = np.full(len(boxes_xyxy), np.nan)
    if has_area.any():
        importance[has_area] = attention.importance(clipped[has_area])
    return importance, has_area
