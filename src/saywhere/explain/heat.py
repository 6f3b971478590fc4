"""Importances of regions or patches as a picture over the image."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.attention import DEFAULT_SHAPE
from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.core.frame import Frame
from saywhere.core.types import Floats, owned
from saywhere.explain.human import patch_boxes, whole_image

Side = Literal["for", "against"]
_PARTS = ("for", "against")


def region_heat(
    importance: ArrayLike, boxes_xyxy: ArrayLike, shape: tuple[int, int] = DEFAULT_SHAPE, *, part: Side = "for"
) -> Floats:
    """(h, w) in [0, 1]: each place is as hot as the most important region over it, the hottest region 1.

    importance: (r,); NaN is no heat. boxes_xyxy: (r, 4), in proportion at their edges. part: "for" shows the positive
    importances and "against" the negative ones, turned round; the others are no heat. The map is 0 everywhere if there
    is none of the part asked for: nothing is scaled up to look like something. A region that is the whole image is left
    out where there are others: it would paint over all of them.
    """
    if part not in _PARTS:
        raise UnknownName("part of the importances", part, _PARTS)
    values = owned(importance, "importance", (None,), finite=False)
    boxes = owned(boxes_xyxy, "regions", (len(values), 4))
    if np.isinf(values).any():
        raise InvalidValue("importance", "holds infinity")
    heats = np.maximum(np.nan_to_num(values if part == "for" else -values), 0)
    if (whole := whole_image(boxes)).any() and not whole.all():
        heats[whole] = 0
    frame = Frame.of_grid(*shape)
    heat = np.zeros(shape)
    for value, box in zip(heats, boxes, strict=True):
        if value > 0:
            np.maximum(heat, value * frame.coverage(box), out=heat)
    return heat / heats.max() if heats.any() else heat


def patch_heat(
    importance: ArrayLike, frame: Frame, shape: tuple[int, int] = DEFAULT_SHAPE, *, part: Side = "for"
) -> Floats:
    """`region_heat` of the patches of a frame: (rows · cols,) row by row, or (rows, cols)."""
    values = np.ravel(np.asarray(importance, dtype=np.float64))
    if len(values) != frame.rows * frame.cols:
        raise InvalidValue("importance", f"has {len(values)} numbers for a {frame.rows}×{frame.cols} grid")
    return region_heat(values, patch_boxes(frame), shape, part=part)
