"""How regions and boxes of a photo lie on each other, and what is pointed at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from saywhere.core import Box, Frame, InvalidValue, Point, Region, Trace, WholeImage
from saywhere.core.types import Floats32
from saywhere.vision.view import Found

_FAINTEST = 0.02
"""Things found with less certainty than this are not counted."""
_LINE_FIT: Final = 0.5
"""A point or a line means all of the thing under it, so how little of the thing it covers matters less."""
_INSIDE: Final = 0.5
"""A box lies in a region if at least this share of it does."""


@dataclass(frozen=True, slots=True, eq=False)
class Overlaps:
    """How regions and things found lie on each other.

    scores: (t,) of the things. kinds: (t,) the number of each one's name. of_thing: (m, t) the share of each thing that
    lies in each region. of_region: (m, t) the share of each region that the thing covers. areal: (m,) whether the
    region is an area, which is meant to fit what it shows, rather than a line or a point on it.
    """

    scores: Floats32
    kinds: NDArray[np.intp]
    of_thing: Floats32
    of_region: Floats32
    areal: NDArray[np.bool_]


def overlaps(
    found: Sequence[Found],
    names: Sequence[str],
    weights: Floats32,
    frame: Frame,
    regions: Sequence[Region] | None = None,
) -> Overlaps:
    """weights: (m, rows, cols) of the regions. regions: themselves, if known: boxes are then compared exactly, where
    the grid is too coarse for small ones."""
    place = {name: number for number, name in enumerate(names)}
    counted = [one for one in found if one.score >= _FAINTEST and one.name in place]
    scores = np.array([one.score for one in counted], dtype=np.float32)
    kinds = np.array([place[one.name] for one in counted], dtype=np.intp)
    areal = np.array([not isinstance(one, Point | Trace) for one in regions or ()] or [True] * len(weights), dtype=bool)
    shape = len(weights), len(counted)
    of_thing, of_region = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    if counted and len(weights):
        covered = np.stack([frame.coverage(one.box_xyxy).ravel() for one in counted])
        flat = weights.reshape(len(weights), -1)
        of_region = (flat / flat.sum(axis=1, keepdims=True) @ covered.T).astype(np.float32)
        inside = flat / flat.max(axis=1, keepdims=True)
        for number, cells in enumerate(covered):
            # A thing that lies wholly in padding covers no cell.
            of_thing[:, number] = np.minimum(cells, inside).sum(axis=1) / max(cells.sum(), 1e-9)
        boxes = np.array([one.box_xyxy for one in counted])
        for row, region in enumerate(regions or ()):
            if isinstance(region, Box):
                of_thing[row], of_region[row] = _box_shares(region, boxes)
    return Overlaps(scores, kinds, of_thing, of_region, areal)


def _box_shares(region: Box, boxes_xyxy: NDArray[np.float64]) -> tuple[Floats32, Floats32]:
    """Shares of (t, 4) boxes in a region, and of the part of the region that lies in the photo in each of them."""
    left, top, right, bottom = np.clip(region.xyxy, 0, 1)
    x1, y1, x2, y2 = boxes_xyxy.T
    width = np.clip(np.minimum(x2, right) - np.maximum(x1, left), 0, None)
    height = np.clip(np.minimum(y2, bottom) - np.maximum(y1, top), 0, None)
    area = max((right - left) * (bottom - top), 1e-12)
    common = width * height
    return (common / ((x2 - x1) * (y2 - y1))).astype(np.float32), (common / area).astype(np.float32)


def pointed(boxes_xyxy: Floats32, region: Region | None, frame: Frame) -> Floats32 | None:
    """(r,) how much each of (r, 4) boxes is pointed at, within [0, 1]; None if nothing or the whole photo is.

    The share of what is pointed at that lies in the box × the share of the box that is pointed at, so that a box must
    fit: the whole photo holds every point, but a point is little of it. For points and lines the second share counts by
    its square root, see `_LINE_FIT`. A box is compared exactly with boxes, other regions patch by patch.
    """
    if region is None or isinstance(region, WholeImage):
        return None
    of_box, of_region = _shares(boxes_xyxy, region, frame)
    power = _LINE_FIT if isinstance(region, Point | Trace) else 1.0
    fits: Floats32 = np.clip(of_region * of_box**power, 0, 1)
    if not fits.any():
        raise InvalidValue("region", "lies in none of the places that answers are made from")
    return fits


def inside(boxes_xyxy: Floats32, region: Region, frame: Frame) -> NDArray[np.bool_]:
    """(r,) which of (r, 4) boxes lie in a region by half at least; if none does, those that hold most of it."""
    if isinstance(region, WholeImage) or not len(boxes_xyxy):
        return np.ones(len(boxes_xyxy), dtype=bool)
    of_box, of_region = _shares(boxes_xyxy, region, frame)
    chosen: NDArray[np.bool_] = of_box >= _INSIDE
    if not chosen.any():
        chosen = (of_region > 0) & (of_region == of_region.max())
    return chosen


def _shares(boxes_xyxy: Floats32, region: Region, frame: Frame) -> tuple[Floats32, Floats32]:
    """(r,) the share of each box that lies in the region, and of the region that lies in the box."""
    shares = np.zeros((2, len(boxes_xyxy)), dtype=np.float32)
    # A patch of padding is a box without area, in which nothing lies.
    real = (boxes_xyxy[:, :2] < boxes_xyxy[:, 2:]).all(axis=1)
    boxes = [Found(tuple(box), "place", 1.0) for box in boxes_xyxy[real].tolist()]
    lying = overlaps(boxes, ("place",), region.weights(frame)[None].astype(np.float32), frame, [region])
    shares[:, real] = lying.of_thing[0], lying.of_region[0]
    return shares[0], shares[1]
