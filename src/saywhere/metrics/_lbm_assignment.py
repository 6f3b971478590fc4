"""Local assignment problems, solved exactly and many at once.

Rows stand for the boxes of the shorter trace, columns for those of the longer one. Every row takes one column, no
column is taken twice, and a row may only take columns near its own place. Seen from the columns this is narrow: at
most 2k + 2 neighbouring rows can reach a column, however long the traces are. So we walk over the columns and keep,
for every set of those rows that already have a column, the cheapest way to get there. One step of that walk is a
handful of array operations over all problems together.

Every row always finds a column: its own k = 0 window is never empty, and those windows can be served together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saywhere.core.types import Floats

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# The walk keeps 2^(2k+1) sums per problem: beyond this k, a general solver on one problem after the other is faster.
WIDEST_WALK = 3
# A step of the walk costs about the same for one problem as for a hundred: it pays for many problems at once, and for
# traces so long that the general solver's full matrix of costs would be the greater burden.
MANY_PROBLEMS = 16
MANY_COLUMNS = 2000
# How many sums one step of the walk updates: few enough to stay in a core's cache, enough to make numpy worth calling.
BLOCK_STATES = 1 << 16
# A block also holds every cost of its problems.
BLOCK_PROBLEMS = 1 << 11


@dataclass(frozen=True, slots=True)
class Problems:
    """Assignment problems over one pool of boxes; every array is (n,) int64, one entry per problem.

    rows, columns: how many boxes on each side, 1 <= rows <= columns.
    first_row, first_column: where each side begins in the pool.
    """

    first_row: Ints
    rows: Ints
    first_column: Ints
    columns: Ints

    def __getitem__(self, chosen: Ints) -> Problems:
        return Problems(self.first_row[chosen], self.rows[chosen], self.first_column[chosen], self.columns[chosen])


# (column j, rows q, columns m), each (n,) -> (home, straddles, advances), each (n,). Column j may be taken by the rows
# home - k ... home + k, and by row home + k + 1 as well where it straddles. Home is 0 at the first column, q - 1 at
# the last, and grows by one from column j to j + 1 where it advances.
Windows = Callable[[Ints, Ints, Ints], tuple[Ints, Bools, Bools]]


def exact_windows(column: Ints, rows: Ints, columns: Ints) -> tuple[Ints, Bools, Bools]:
    """floor((i - k) m/q) <= j < (i + 1 + k) m/q, in integers: a product of floats misses some of the edges.

    Turned round: column j spans [j q/m, (j + 1) q/m) on the axis of rows, and home is the row where that span begins.
    """
    home, rest = np.divmod(column * rows, columns)
    return home, rest + rows > columns, rest + rows >= columns


def rounded_windows(column: Ints, rows: Ints, columns: Ints) -> tuple[Ints, Bools, Bools]:
    """(i - k) r <= j < (i + 1 + k) r, with r = m/q and both products rounded to float64. No column straddles.

    Rounded on purpose: this is what the authors' program compares, with the edges it misses.
    """
    ratio = columns / rows
    home = np.floor(column / ratio)
    home += ((home + 1) * ratio <= column).astype(np.float64) - (home * ratio > column)
    return home.astype(np.int64), np.zeros(len(column), dtype=np.bool_), (home + 1) * ratio <= column + 1


def cheapest_totals(pool_xyxy: Floats, problems: Problems, k: int, windows: Windows) -> Floats:
    """The least sum over the rows of the mean L1 distance of the four coordinates.

    pool_xyxy: (N, 4) finite boxes. Returns (n,), one total per problem.
    """
    totals = np.empty(len(problems.rows), dtype=np.float64)
    # From k = q - 1 on, every row reaches every column.
    reach = np.minimum(problems.rows - 1, min(k, int(problems.rows.max(initial=0))))
    walks = (reach <= WIDEST_WALK) & ((problems.columns > MANY_COLUMNS) | (len(totals) >= MANY_PROBLEMS))
    for k_reached in range(min(k, WIDEST_WALK) + 1):
        chosen = np.flatnonzero(walks & (reach == k_reached))
        # Longest first, so that the problems still running are always the first ones of a block.
        chosen = chosen[np.argsort(-problems.columns[chosen], kind="stable")]
        size = min(BLOCK_STATES >> (2 * k_reached + 1), BLOCK_PROBLEMS)
        for start in range(0, len(chosen), size):
            block = chosen[start : start + size]
            totals[block] = _walk(pool_xyxy, problems[block], k_reached, windows)
    for one in np.flatnonzero(~walks):
        row_boxes = pool_xyxy[problems.first_row[one] :][: problems.rows[one]]
        column_boxes = pool_xyxy[problems.first_column[one] :][: problems.columns[one]]
        totals[one] = _assign(row_boxes, column_boxes, int(reach[one]), windows)
    return totals / 4.0


def _walk(pool_xyxy: Floats, problems: Problems, k: int, windows: Windows) -> Floats:
    """Least sums of L1 distances, by the walk over columns; problems come longest first.

    best[s, p] is the least sum for problem p when exactly the rows in the set s are served: bit t of s stands for row
    home - k + t, t = 0 ... 2k. Rows below zero count as served from the start, and no sum with a row from q on in its
    set is read at the end, so rows outside the problem need no care in between.
    """
    running = np.searchsorted(-problems.columns, -np.arange(problems.columns[0] + 1))
    costs, advances = _column_costs(pool_xyxy, problems, k, windows, running)
    totals = np.empty(len(problems.rows), dtype=np.float64)
    half = 1 << (2 * k)
    best = np.full((2 * half, len(totals)), np.inf)
    best[(1 << k) - 1] = 0.0
    end = 0
    for active, still in zip(running[:-1].tolist(), running[1:].tolist(), strict=True):
        start, end = end, end + active
        cost = costs[:, start:end]
        served = best.copy()
        for bit in range(2 * k + 1):
            by_bit = (-1, 2, 1 << bit, active)
            with_row = served.reshape(by_bit)[:, 1]
            np.minimum(with_row, best.reshape(by_bit)[:, 0] + cost[bit], out=with_row)
        totals[still:active] = served[(2 << k) - 1, still:]
        # Where home advances, the row that falls out of reach must be served, and the row that comes into reach is
        # unserved or takes this very column, in which case the other one was served before.
        moves = advances[start : start + still]
        lower = np.where(moves, served[1::2, :still], served[:half, :still])
        upper = np.where(moves, best[1::2, :still] + cost[-1, :still], served[half:, :still])
        best = np.concatenate([lower, upper])
    return totals


def _column_costs(
    pool_xyxy: Floats, problems: Problems, k: int, windows: Windows, running: Ints
) -> tuple[Floats, Bools]:
    """What a column costs each row that may take it: column by column, and in each over the problems still running.

    running: (columns + 1,) how many problems have column 0, 1, ... Returns costs (2k + 2, total) as sums of L1
    distances, the last infinite where the column does not straddle, and advances (total,) as in `Windows`.
    """
    column = np.repeat(np.arange(len(running)), running)
    problem = np.arange(len(column)) - np.repeat(np.cumsum(running) - running, running)
    home, straddles, advances = windows(column, problems.rows[problem], problems.columns[problem])
    column_boxes = pool_xyxy[problems.first_column[problem] + column]
    home_in_pool = problems.first_row[problem] + home
    costs = np.empty((2 * k + 2, len(column)), dtype=np.float64)
    for cost, offset in zip(costs, range(-k, k + 2), strict=True):
        # A row outside the problem reads some other box, or the pool's edge (hence "clip"): the walk never uses it.
        gaps = pool_xyxy.take(home_in_pool + offset, axis=0, mode="clip")
        gaps -= column_boxes
        np.abs(gaps, out=gaps)
        cost[:] = gaps[:, 0] + gaps[:, 1] + gaps[:, 2] + gaps[:, 3]
    costs[-1, ~straddles] = np.inf
    return costs, advances


def _assign(row_boxes: Floats, column_boxes: Floats, k: int, windows: Windows) -> float:
    """Least sum of L1 distances for one problem, by a general assignment solver. Boxes: (q, 4) and (m, 4), q <= m."""
    from scipy.optimize import linear_sum_assignment  # slow to import, and not always needed
    from scipy.spatial.distance import cdist

    rows, columns = len(row_boxes), len(column_boxes)
    home, straddles, _ = windows(np.arange(columns), np.array([rows]), np.array([columns]))
    row = np.arange(rows)[:, np.newaxis]
    allowed = (row >= home - k) & (row <= home + k + straddles)
    costs = np.where(allowed, cdist(row_boxes, column_boxes, "cityblock"), np.inf)
    return float(costs[linear_sum_assignment(costs)].sum())
