"""How far apart are two scanpaths: sequences of fixations, or of trace points?

A path is (n, 2), columns x and y as fractions of the image's width and height, or (n, 3) with the time in seconds,
which must not decrease. Only places and their order are compared. Points may leave [0, 1]: people overshoot the edge.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.core.types import Floats, Ints, owned
from saywhere.metrics._mean import MeanScore

Method = Literal["dtw", "frechet", "hausdorff", "edit"]
METHODS: tuple[Method, ...] = ("dtw", "frechet", "hausdorff", "edit")


def scanpath_distance(
    a: ArrayLike,
    b: ArrayLike,
    method: Method = "dtw",
    *,
    aspect: float = 1.0,
    grid: tuple[int, int] = (5, 5),
) -> float:
    """Distance of two paths; 0 for a path and itself, and symmetric, whatever the method.

    dtw: dynamic time warping, the least sum of distances over all ways to walk both paths forwards. Grows with length.
    frechet: discrete Fréchet distance, the least longest distance over all such walks (the shortest leash).
    hausdorff: the farthest any point of one path is from all of the other. Order does not matter.
    edit: string-edit distance of the grid cells visited (staying in a cell counts once) over the length of the longer
        string, in [0, 1].
    aspect: the image's width / height. Distances are then in image heights; with 1, a unit is width or height alike.
    grid: (columns, rows) for "edit"; points outside the image belong to the nearest cell.

    >>> scanpath_distance([(0, 0), (1, 0)], [(0, 0.5), (1, 0.5)])
    1.0
    """
    one, other = _path(a, "path a"), _path(b, "path b")
    if method == "edit":
        return _edit_distance(_cells(one, grid), _cells(other, grid))
    if method not in METHODS:
        raise UnknownName("scanpath method", method, METHODS)
    distances = _distances(one, other, aspect)
    if method == "hausdorff":
        return float(max(distances.min(axis=0).max(), distances.min(axis=1).max()))
    return _best_walk(distances, np.add if method == "dtw" else np.maximum)


class ScanpathDistance(MeanScore):
    """Mean of `scanpath_distance` over pairs of paths."""

    higher_is_better = False

    def __init__(self, method: Method = "dtw", *, aspect: float = 1.0, grid: tuple[int, int] = (5, 5)) -> None:
        super().__init__()
        self.method: Method = method
        self.aspect, self.grid = aspect, grid

    def update(self, a: ArrayLike, b: ArrayLike) -> None:
        """Add one pair of paths, each (n, 2) or (n, 3)."""
        self._scores.append(scanpath_distance(a, b, self.method, aspect=self.aspect, grid=self.grid))


def _path(points: ArrayLike, what: str) -> Floats:
    """The places of a path, (n, 2) with n >= 1."""
    path = owned(points, what, (None, None))
    if not len(path):
        raise InvalidValue(what, "has no point")
    if path.shape[1] not in (2, 3):
        raise InvalidValue(what, f"has shape {path.shape}, not (n, 2) or (n, 3)")
    backwards = np.diff(path[:, 2:], axis=0) < 0
    if backwards.any():
        row = int(backwards.argmax()) + 1
        raise InvalidValue(what, f"time goes backwards at point {row}", "columns are x, y, t in seconds")
    return path[:, :2]


def _distances(a: Floats, b: Floats, aspect: float) -> Floats:
    """Euclidean distance of every point of `a` to every point of `b`, in image heights: (n, m)."""
    if not (np.isfinite(aspect) and aspect > 0):
        raise InvalidValue("aspect", f"{aspect} is not a width over a height")
    across = (a[:, None, 0] - b[None, :, 0]) * aspect
    down = a[:, None, 1] - b[None, :, 1]
    distances: Floats = np.hypot(across, down)
    return distances


def _best_walk(distances: Floats, combine: np.ufunc) -> float:
    """The least combined distance of a walk from the first to the last pair, each step forward in one path or in both.

    best[i, j] = combine(distances[i, j], min(best[i-1, j], best[i, j-1], best[i-1, j-1])). Cells with i + j = k depend
    only on the two antidiagonals before, so each antidiagonal is one array operation.
    """
    n, m = distances.shape
    mirrored = distances[:, ::-1]
    # Entry i + 1 of an antidiagonal belongs to row i; infinity stands for cells outside.
    before, previous = np.full(n + 1, np.inf), np.full(n + 1, np.inf)
    previous[1] = distances[0, 0]
    for k in range(1, n + m - 1):
        low, high = max(0, k - m + 1), min(k, n - 1) + 1
        reached = np.minimum(np.minimum(previous[low:high], previous[low + 1 : high + 1]), before[low:high])
        current = np.full(n + 1, np.inf)
        current[low + 1 : high + 1] = combine(mirrored.diagonal(m - 1 - k), reached)
        before, previous = previous, current
    return float(previous[n])


def _cells(path: Floats, grid: tuple[int, int]) -> Ints:
    """The grid cells visited, in order, staying in one counted once."""
    columns, rows = grid
    if columns < 1 or rows < 1:
        raise InvalidValue("grid", f"{grid} is not columns and rows of at least 1")
    col = np.clip(np.floor(path[:, 0] * columns), 0, columns - 1).astype(np.int64)
    row = np.clip(np.floor(path[:, 1] * rows), 0, rows - 1).astype(np.int64)
    cells = row * columns + col
    return cells[np.r_[True, cells[1:] != cells[:-1]]]


def _edit_distance(a: Ints, b: Ints) -> float:
    """Levenshtein distance over the longer length."""
    steps = np.arange(len(b) + 1)
    row = steps
    for i, cell in enumerate(a, start=1):
        swapped = np.minimum(row[1:] + 1, row[:-1] + (b != cell))
        # Insertions run along the row: entry j is the least of entry k + (j - k) over k <= j.
        row = np.minimum.accumulate(np.r_[i, swapped] - steps) + steps
    return int(row[-1]) / max(len(a), len(b))
