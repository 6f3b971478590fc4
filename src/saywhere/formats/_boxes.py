"""Boxes as files have them, in pixels: checked, and turned into fractions of the image where its size is known."""

from __future__ import annotations

import math
from typing import Annotated

import msgspec

from saywhere.core.errors import InvalidValue

BoxXyxy = tuple[float, float, float, float]
BoxXywh = tuple[float, float, float, float]

# Larger sides come from broken files; a mask of the largest allowed image takes 1 GiB.
MAX_SIDE_PX = 2**15
_FARTHEST_PX = 1e6

Side = Annotated[int, msgspec.Meta(ge=1, le=MAX_SIDE_PX)]
"""Width or height of an image in pixels, as decoded from files."""


def check_size(width: int, height: int) -> None:
    """InvalidValue unless these can be the sides of an image, in pixels."""
    if not (1 <= width <= MAX_SIDE_PX and 1 <= height <= MAX_SIDE_PX):
        raise InvalidValue("the image", f"cannot be {width} × {height} pixels, sides go from 1 to {MAX_SIDE_PX}")


def xyxy(box_xywh: BoxXywh) -> BoxXyxy:
    """Left, top, width, height → left, top, right, bottom."""
    x, y, width, height = box_xywh
    return x, y, x + width, y + height


def check_box(box_xyxy_px: BoxXyxy, size_px: tuple[int, int] | None = None) -> None:
    """InvalidValue unless the box has an area and, where the image's width and height are given, meets the image.

    Boxes may lap over the edge of the image, as many annotated ones do by rounding.
    """
    x1, y1, x2, y2 = box_xyxy_px
    shown = f"({x1:g}, {y1:g}, {x2:g}, {y2:g})"
    if not all(math.isfinite(c) and abs(c) <= _FARTHEST_PX for c in box_xyxy_px):
        raise InvalidValue("the box", f"{shown} is not a place on a photo")
    if x1 >= x2 or y1 >= y2:
        raise InvalidValue("the box", f"{shown} (left, top, right, bottom) has no area")
    if size_px and (x1 >= size_px[0] or y1 >= size_px[1] or x2 <= 0 or y2 <= 0):
        raise InvalidValue("the box", f"{shown} lies outside the image of {size_px[0]} × {size_px[1]} pixels")


def fractions(box_xyxy_px: BoxXyxy, width: int, height: int) -> BoxXyxy:
    """The box in fractions of an image of this size in pixels."""
    x1, y1, x2, y2 = box_xyxy_px
    return x1 / width, y1 / height, x2 / width, y2 / height
