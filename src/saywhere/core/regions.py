"""Regions: ways of saying "here". They differ only in how they weigh the patch grid."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.errors import InvalidValue
from saywhere.core.frame import Frame
from saywhere.core.types import Floats, owned

_LINES = 64
_MARK = 0.03
"""Half the side of the square that marks a point."""
_FARTHEST = 10.0
"""In widths or heights of the photo: people overshoot an edge, but not by that much."""


@runtime_checkable
class Region(Protocol):
    """Anything that can be pointed at. `Trace` is one too.

    >>> isinstance(Box(0, 0, 0.5, 0.5), Region)
    True
    """

    def weights(self, frame: Frame) -> Floats:
        """(rows, cols) weights of the patches, at least 0, summing to 1. InvalidValue if the frame sees none of it."""
        ...

    @property
    def name(self) -> str:
        """The region in a few words."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Its kind and its numbers, in fractions of the photo; times in seconds."""
        ...

    def outlines(self) -> list[Floats]:
        """Closed outlines to draw, each (n, 2), cut at the photo's edges; none where there is nothing to go round."""
        ...


@dataclass(frozen=True, slots=True)
class WholeImage:
    """All of the photo that the frame sees.

    >>> WholeImage().weights(Frame.of_grid(1, 4)).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """

    @property
    def name(self) -> str:
        return "whole photo"

    def to_json(self) -> dict[str, Any]:
        return {"whole": True}

    def outlines(self) -> list[Floats]:
        return []

    def weights(self, frame: Frame, by: Literal["uniform", "gaussian", "centre"] = "uniform") -> Floats:
        """by: "uniform"; "gaussian", exp(−a²−b²) with a, b from −1 to 1 across the grid; "centre", one patch.

        Patches that show only padding weigh nothing.
        """
        rows, cols = frame.grid
        shown = frame.coverage((0, 0, 1, 1)) > 0
        if by == "uniform":
            grid = np.ones(frame.grid)
        elif by == "gaussian":
            a, b = (np.linspace(-1, 1, n) if n > 1 else np.zeros(1) for n in (rows, cols))
            grid = np.exp(-(a[:, None] ** 2) - b[None, :] ** 2)
        elif by == "centre":
            grid = np.zeros(frame.grid)
            grid[rows // 2, cols // 2] = 1
        else:
            raise InvalidValue("by", f"is {by!r}, not 'uniform', 'gaussian' or 'centre'")
        return _normalised(grid * shown, "whole image")


@dataclass(frozen=True, slots=True)
class Patch:
    """One cell of the grid.

    >>> Patch(0, 1).weights(Frame.of_grid(1, 3)).tolist()
    [[0.0, 1.0, 0.0]]
    """

    row: int
    col: int

    @property
    def name(self) -> str:
        return f"patch {self.row},{self.col}"

    def to_json(self) -> dict[str, Any]:
        return {"patch": [self.row, self.col]}

    def outlines(self) -> list[Floats]:
        return []  # where it lies depends on the frame

    def weights(self, frame: Frame) -> Floats:
        if not (0 <= self.row < frame.rows and 0 <= self.col < frame.cols):
            raise InvalidValue(f"patch ({self.row}, {self.col})", f"is not on the {frame.rows}×{frame.cols} grid")
        grid = np.zeros(frame.grid)
        grid[self.row, self.col] = 1
        return grid


@dataclass(frozen=True, slots=True)
class Point:
    """One place. x, y: fractions of the image.

    >>> Point(0.9, 0.5).weights(Frame.of_grid(1, 3)).tolist()
    [[0.0, 0.0, 1.0]]
    """

    x: float
    y: float

    def __post_init__(self) -> None:
        owned((self.x, self.y), "point", (2,))

    @property
    def name(self) -> str:
        return f"point {self.x:.3g},{self.y:.3g}"

    def to_json(self) -> dict[str, Any]:
        return {"point_xy": [self.x, self.y]}

    def outlines(self) -> list[Floats]:
        """A small square."""
        return [corners((self.x - _MARK, self.y - _MARK, self.x + _MARK, self.y + _MARK))]

    def weights(self, frame: Frame) -> Floats:
        """The patch under the point."""
        at = [[self.x, self.y]]
        if not frame.sees(at)[0]:
            raise InvalidValue(f"point ({self.x:g}, {self.y:g})", _unseen(frame))
        row, col = frame.cells(at)[0].tolist()
        return Patch(row, col).weights(frame)


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle. Corners in fractions of the image, x1 < x2, y1 < y2; what leaves the image is ignored.

    >>> Box(0, 0, 0.5, 1).weights(Frame.of_grid(1, 4)).tolist()
    [[0.5, 0.5, 0.0, 0.0]]
    """

    x1: float
    y1: float
    x2: float
    y2: float

    def __post_init__(self) -> None:
        owned(self.xyxy, "box", (4,))
        if max(map(abs, self.xyxy)) > _FARTHEST:
            raise InvalidValue(
                f"box {self.xyxy}",
                "lies far outside: corners are fractions of the photo's width and height",
                f"if these are pixels: Box.from_px({', '.join(map(str, self.xyxy))}, size_px=(width, height))",
            )
        if self.x1 >= self.x2 or self.y1 >= self.y2:
            raise InvalidValue(
                f"box {self.xyxy}", "has no area", "corners go x1 < x2, y1 < y2; for one place use Point"
            )

    @classmethod
    def from_px(cls, x1: float, y1: float, x2: float, y2: float, size_px: tuple[int, int]) -> Box:
        """A box given in pixels. size_px: width and height of the photo.

        >>> Box.from_px(10, 20, 100, 200, size_px=(200, 400))
        Box(x1=0.05, y1=0.05, x2=0.5, y2=0.5)
        """
        width, height = size_px
        if not (width > 0 and height > 0):
            raise InvalidValue("size_px", f"is {size_px}, not a width and a height above 0")
        return cls(x1 / width, y1 / height, x2 / width, y2 / height)

    @property
    def xyxy(self) -> tuple[float, float, float, float]:
        return self.x1, self.y1, self.x2, self.y2

    @property
    def name(self) -> str:
        return "box " + ",".join(f"{value:.3g}" for value in self.xyxy)

    def to_json(self) -> dict[str, Any]:
        return {"box_xyxy": list(self.xyxy)}

    def outlines(self) -> list[Floats]:
        return [corners(self.xyxy)]

    def weights(self, frame: Frame, by: Literal["touch", "coverage"] = "touch") -> Floats:
        """by: "touch", every patch that the box meets weighs the same; "coverage", as much as it is covered."""
        if by not in ("touch", "coverage"):
            raise InvalidValue("by", f"is {by!r}, not 'touch' or 'coverage'")
        covered = frame.coverage(self.xyxy)
        return _normalised(covered if by == "coverage" else (covered > 0) * 1.0, f"box {self.xyxy}", frame)


@dataclass(frozen=True, slots=True)
class BoxSet:
    """Several boxes meant together.

    >>> BoxSet([Box(0, 0, 0.2, 1), Box(0.8, 0, 1, 1)]).weights(Frame.of_grid(1, 4)).tolist()
    [[0.5, 0.0, 0.0, 0.5]]
    """

    boxes: tuple[Box, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "boxes", tuple(self.boxes))
        if not self.boxes:
            raise InvalidValue("box set", "is empty")

    @property
    def name(self) -> str:
        return f"{len(self.boxes)} boxes"

    def to_json(self) -> dict[str, Any]:
        return {"boxes_xyxy": [list(box.xyxy) for box in self.boxes]}

    def outlines(self) -> list[Floats]:
        return [corners(box.xyxy) for box in self.boxes]

    def weights(self, frame: Frame, by: Literal["patch", "box"] = "patch") -> Floats:
        """by: "patch", each patch counts once for each box that meets it (Patch-ioner, Eq. 1), so large boxes weigh
        more; "box", each box weighs the same. Boxes that the frame does not see are an error either way."""
        if by not in ("patch", "box"):
            raise InvalidValue("by", f"is {by!r}, not 'patch' or 'box'")
        each = [box.weights(frame) for box in self.boxes]
        return _normalised(sum((w if by == "box" else (w > 0) * 1.0) for w in each), "box set", frame)


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """A map over the whole photo, of any resolution. values: (h, w), at least 0; booleans make a plain mask.

    >>> Mask([[0, 1], [0, 1]]).weights(Frame.of_grid(1, 2)).tolist()
    [[0.0, 1.0]]
    """

    values: Floats

    def __init__(self, values: ArrayLike) -> None:
        array = owned(values, "mask", (None, None))
        if array.size == 0 or (array < 0).any() or not array.any():
            raise InvalidValue("mask", "is empty" if not array.any() else "holds negative values")
        object.__setattr__(self, "values", array)

    def __repr__(self) -> str:
        rows, cols = self.values.shape
        return f"<Mask of {rows}×{cols}>"

    @property
    def name(self) -> str:
        return "mask"

    def to_json(self) -> dict[str, Any]:
        return {"mask_shape": list(self.values.shape)}

    def outlines(self) -> list[Floats]:
        """The box around it."""
        rows, cols = np.nonzero(self.values)
        height, width = self.values.shape
        return [corners((cols.min() / width, rows.min() / height, (cols.max() + 1) / width, (rows.max() + 1) / height))]

    def weights(self, frame: Frame) -> Floats:
        """Each patch weighs as much as lies on it, by area."""
        return _normalised(area_sums(self.values, frame), "mask", frame)


@dataclass(frozen=True, slots=True, eq=False)
class Polygon:
    """An outline, such as a lasso. points_xy: (n ≥ 3, 2) fractions; closed by itself, and it may cross itself.

    >>> Polygon([(0, 0), (1, 0), (0, 1)]).weights(Frame.of_grid(1, 2)).tolist()
    [[0.75, 0.25]]
    """

    points_xy: Floats

    def __init__(self, points_xy: ArrayLike) -> None:
        points = owned(points_xy, "polygon", (None, 2))
        if len(points) < 3:
            raise InvalidValue("polygon", f"has {len(points)} points; an outline needs three")
        object.__setattr__(self, "points_xy", points)

    def __repr__(self) -> str:
        return f"<Polygon of {len(self.points_xy)} points>"

    @property
    def name(self) -> str:
        return f"polygon of {len(self.points_xy)} points"

    def to_json(self) -> dict[str, Any]:
        return {"polygon_xy": self.points_xy.tolist()}

    def outlines(self) -> list[Floats]:
        return [np.clip(self.points_xy, 0, 1)]

    def weights(self, frame: Frame) -> Floats:
        """Each patch weighs as much as it is covered; what an outline goes round twice is outside again.

        Exact, unless the outline crosses itself: then along 64 lines through each row of patches.
        """
        import shapely

        inside = shapely.Polygon(self.points_xy)
        if not shapely.is_valid(inside):
            # Exact geometry would find every crossing: minutes, for a few hundred points scribbled at random.
            return _normalised(_even_odd(self.points_xy, frame), "polygon", frame)
        on_photo = shapely.intersection(inside, shapely.box(0, 0, 1, 1))
        x, y = frame.cell_edges()
        cells = shapely.box(x[None, :-1], y[:-1, None], x[None, 1:], y[1:, None])
        covered = shapely.area(shapely.intersection(cells, on_photo))
        return _normalised(covered, "polygon", frame)


def _even_odd(points_xy: Floats, frame: Frame) -> Floats:
    """(rows, cols) how much of each cell lies inside an outline, by the even-odd rule, along lines through the rows."""
    x, y = (np.clip(edges, 0, 1) for edges in frame.cell_edges())
    (x1, y1), (x2, y2) = points_xy.T, np.roll(points_xy, -1, axis=0).T
    # Right of the first crossing a line is inside, right of the second outside again, and so on.
    signs = np.where(np.arange(len(points_xy)) % 2, -1.0, 1.0)
    covered = np.zeros(frame.grid)
    for row, (top, bottom) in enumerate(itertools.pairwise(y)):
        lines = top + (bottom - top) * ((np.arange(_LINES) + 0.5) / _LINES)[:, None]
        crossed = (y1 <= lines) != (y2 <= lines)
        slopes = (x2 - x1) / np.where(y1 == y2, 1, y2 - y1)
        at = np.sort(np.where(crossed, x1 + (lines - y1) * slopes, np.inf), axis=1)
        inside = np.stack([np.maximum(edge - at, 0) @ signs for edge in x], axis=1)
        covered[row] = np.diff(inside, axis=1).mean(axis=0) * (bottom - top)
    return np.maximum(covered, 0)


def corners(box_xyxy: Sequence[float]) -> Floats:
    """(4, 2) of a box, cut at the photo's edges, from the top left on clockwise."""
    x1, y1, x2, y2 = np.clip(box_xyxy, 0, 1)
    return np.array([(x1, y1), (x2, y1), (x2, y2), (x1, y2)])


def area_sums(values: Floats, frame: Frame) -> Floats:
    """(rows, cols) how much of a map over the photo, (h, w), falls on each cell: exact, for any two resolutions."""
    height, width = values.shape
    x, y = frame.cell_edges()
    along_y = _integral(values, y * height)
    summed: Floats = _integral(along_y.T, x * width).T
    return summed


def _integral(values: Floats, edges: Floats) -> Floats:
    """(len(edges) − 1, w) sums of rows of (h, w) values between edges, rows split in proportion."""
    running = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    at = np.clip(edges, 0, len(values))
    below = np.minimum(np.floor(at).astype(np.int64), len(values) - 1)
    share = (at - below)[:, None]
    sums: Floats = np.diff(running[below] * (1 - share) + running[below + 1] * share, axis=0)
    return np.maximum(sums, 0)


def _normalised(grid: ArrayLike, what: str, frame: Frame | None = None) -> Floats:
    weights = np.asarray(grid, dtype=np.float64)
    total = weights.sum()
    if not total > 0:
        raise InvalidValue(what, _unseen(frame) if frame else "covers no patch")
    normalised: Floats = weights / total
    return normalised


def _unseen(frame: Frame) -> str:
    left, top, right, bottom = frame.visible_xyxy
    return f"covers nothing of the visible part of the photo, x {left:.3g}–{right:.3g}, y {top:.3g}–{bottom:.3g}"
