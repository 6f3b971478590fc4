"""Masks as COCO's plain run lengths: down the columns, from the left one to the right, pixels outside and inside in
turn, outside first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Bools


def runs_of(inside: Bools) -> list[int]:
    """The run lengths of a mask (rows, cols).

    >>> runs_of(np.array([[False, True], [True, True]]))
    [1, 3]
    """
    flat = inside.T.ravel()
    borders = np.flatnonzero(np.diff(flat)) + 1
    starts = [0, *([0] if flat[0] else []), *borders.tolist(), flat.size]
    runs: list[int] = np.diff(starts).tolist()
    return runs


def mask_of_runs(runs: Sequence[int], rows: int, cols: int) -> Bools:
    """(rows, cols) True inside.

    >>> mask_of_runs([1, 3], 2, 2).tolist()
    [[False, True], [True, True]]
    """
    if min(rows, cols) < 1 or min(runs, default=0) < 0 or sum(runs) != rows * cols:
        raise InvalidValue("the mask", f"has runs of {sum(runs)} pixels in all, not {rows} × {cols}")
    inside: Bools = np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(cols, rows).T
    return inside
