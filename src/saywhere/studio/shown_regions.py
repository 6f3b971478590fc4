"""Regions as the API gives them back: what a model points out, to be drawn."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from saywhere.core import Box, BoxSet, InvalidValue, Mask, Point, Polygon, Region, Trace, WholeImage
from saywhere.core.types import Floats
from saywhere.studio.messages import Grid, PlaceXyxy, PointXyt, Reply

MOST_SIDE = 1024
"""Rows and columns of a mask; larger ones are thinned."""


class ShownWhole(Reply):
    kind: Literal["whole"] = "whole"


class ShownBox(Reply):
    kind: Literal["box"] = "box"
    xyxy: PlaceXyxy


class ShownBoxes(Reply):
    kind: Literal["boxes"] = "boxes"
    boxes: list[PlaceXyxy]


class ShownPoint(Reply):
    kind: Literal["point"] = "point"
    x: float
    y: float


class ShownPolygon(Reply):
    kind: Literal["polygon"] = "polygon"
    points: list[list[float]]


class ShownTrace(Reply):
    """starts: the index of the first point of every stroke."""

    kind: Literal["trace"] = "trace"
    points: list[PointXyt]
    starts: list[int]


class ShownMask(Reply):
    """size: rows and columns over the whole photo. counts: run lengths as in COCO's files: down the columns, outside
    and inside in turn, outside first."""

    kind: Literal["mask"] = "mask"
    size: Grid
    counts: list[int]


ShownRegion = Annotated[
    ShownWhole | ShownBox | ShownBoxes | ShownPoint | ShownPolygon | ShownTrace | ShownMask, Field(discriminator="kind")
]


def shown(region: Region) -> Any:
    """A region as a reply carries it.

    >>> shown(Box(0.1, 0.2, 0.4, 0.6)).model_dump()
    {'kind': 'box', 'xyxy': [0.1, 0.2, 0.4, 0.6]}
    """
    match region:
        case WholeImage():
            return ShownWhole()
        case Box():
            return ShownBox(xyxy=list(region.xyxy))
        case BoxSet():
            return ShownBoxes(boxes=[list(box.xyxy) for box in region.boxes])
        case Point():
            return ShownPoint(x=region.x, y=region.y)
        case Polygon():
            return ShownPolygon(points=region.points_xy.tolist())
        case Trace():
            return ShownTrace(points=region.points.tolist(), starts=list(region.starts))
        case Mask():
            return _shown_mask(region.values)
    raise InvalidValue("region", f"is a {type(region).__name__}, which cannot be drawn")


def _shown_mask(values: Floats) -> ShownMask:
    step = -(-max(values.shape) // MOST_SIDE)
    inside = values[::step, ::step] > 0
    flat = inside.T.ravel()
    borders = np.flatnonzero(np.diff(flat, prepend=False))
    return ShownMask(size=list(inside.shape), counts=np.diff(borders, prepend=0, append=len(flat)).tolist())
