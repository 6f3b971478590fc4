"""Where something is, in words, and what lies beside it. Positions are fractions of the photo, x right, y down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from saywhere.core.types import Floats

BoxXyxy = tuple[float, float, float, float]

# A stretch of pointing that spans this much of the photo in both directions is about all of it.
_EVERYWHERE = 0.7
_ROWS, _COLUMNS = ("top", "", "bottom"), ("left", "", "right")
_INSIDE = 0.8
"""A box lies in another with this share of its area."""
_NEAR_EDGE = 0.01
DIRECTIONS: Final = {"left": "left of it", "right": "right of it", "above": "above it", "below": "below it"}
"""Where a neighbour may be, and how that is said."""


def place_of(xy: Floats) -> str:
    """(n, 2) positions in words: "on the left", "at the bottom right", "in the middle", "across the photo".

    >>> import numpy as np
    >>> place_of(np.array([[0.1, 0.4], [0.2, 0.6]]))
    'on the left'
    """
    width, height = xy.max(axis=0) - xy.min(axis=0)
    if width >= _EVERYWHERE and height >= _EVERYWHERE:
        return "across the photo"
    x, y = xy.mean(axis=0).tolist()
    return _third(x, y)


def place_of_box(box_xyxy: Sequence[float]) -> str:
    """The place of a box, by the third of the photo that its middle lies in.

    >>> place_of_box((0.7, 0.0, 0.9, 0.2))
    'at the top right'
    """
    left, top, right, bottom = box_xyxy
    return _third((left + right) / 2, (top + bottom) / 2)


def _third(x: float, y: float) -> str:
    column, row = (names[min(2, max(0, int(3 * at)))] for names, at in ((_COLUMNS, x), (_ROWS, y)))
    if row:
        return f"at the {row} {column}".rstrip()
    return f"on the {column}" if column else "in the middle"


def overlap(a: BoxXyxy, b: BoxXyxy) -> float:
    """Intersection over union.

    >>> overlap((0.0, 0.0, 0.5, 1.0), (0.0, 0.0, 1.0, 1.0))
    0.5
    """
    common = _common(a, b)
    return common / (_area(a) + _area(b) - common)


def lies_in(box_xyxy: BoxXyxy, other_xyxy: BoxXyxy) -> bool:
    """Whether a box lies in a larger one.

    >>> lies_in((0.2, 0.2, 0.4, 0.4), (0.1, 0.1, 0.9, 0.5))
    True
    """
    own = _area(box_xyxy)
    return own < _area(other_xyxy) and _common(box_xyxy, other_xyxy) >= _INSIDE * own


def edges_of(box_xyxy: BoxXyxy) -> list[str]:
    """The edges of the photo that a box touches.

    >>> edges_of((0.0, 0.2, 0.5, 1.0))
    ['left', 'bottom']
    """
    left, top, right, bottom = box_xyxy
    touched = {"left": left, "top": top, "right": 1 - right, "bottom": 1 - bottom}
    return [name for name, gap in touched.items() if gap <= _NEAR_EDGE]


def neighbours(boxes_xyxy: Sequence[BoxXyxy]) -> list[dict[str, int]]:
    """For each box the number of the nearest one in each direction, where there is one.

    A box is a neighbour to the left if its middle lies farther left than up or down, and outside of the box; boxes that
    lie in one another are none.

    >>> neighbours([(0.0, 0.4, 0.2, 0.6), (0.5, 0.4, 0.7, 0.6)])
    [{'right': 1}, {'left': 0}]
    """
    found: list[dict[str, int]] = []
    for number, box in enumerate(boxes_xyxy):
        nearest: dict[str, tuple[float, int]] = {}
        for other_number, other in enumerate(boxes_xyxy):
            if other_number == number or lies_in(box, other) or lies_in(other, box):
                continue
            direction = _direction(box, other)
            if direction:
                nearest[direction] = min(nearest.get(direction, (9.0, -1)), (_gap(box, other), other_number))
        found.append({name: nearest[name][1] for name in DIRECTIONS if name in nearest})
    return found


def _direction(box: BoxXyxy, other: BoxXyxy) -> str:
    """In which direction another box lies; empty if its middle lies within the box's own reach both ways."""
    x, y = (other[0] + other[2]) / 2, (other[1] + other[3]) / 2
    across = "left" if x < box[0] else "right" if x > box[2] else ""
    along = "above" if y < box[1] else "below" if y > box[3] else ""
    if not (across and along):
        return across or along
    aside, off = (abs(at - (box[i] + box[i + 2]) / 2) for i, at in ((0, x), (1, y)))
    return across if aside >= off else along


def _gap(box: BoxXyxy, other: BoxXyxy) -> float:
    """The square of the distance between two boxes; of those that touch, the nearer middles count a little."""
    gaps = (max(0.0, other[i] - box[i + 2], box[i] - other[i + 2]) for i in (0, 1))
    middles = ((other[i] + other[i + 2] - box[i] - box[i + 2]) / 2 for i in (0, 1))
    return sum(gap**2 for gap in gaps) + 0.01 * sum(middle**2 for middle in middles)


def _common(a: BoxXyxy, b: BoxXyxy) -> float:
    width, height = (min(a[i + 2], b[i + 2]) - max(a[i], b[i]) for i in (0, 1))
    return max(0.0, width) * max(0.0, height)


def _area(box: BoxXyxy) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])
