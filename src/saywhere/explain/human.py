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
from saywhere.core.types import Bools, Floats

_SHAPE_TOLERANCE = 0.05


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
