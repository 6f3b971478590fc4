"""Labels along an edge: near to what they name, in its order, and never one over another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.types import Floats


def spread(wanted: ArrayLike, sizes: ArrayLike, low: float, high: float) -> Floats:
    """(n,) middles of labels that keep their order, stay in [low, high] and do not overlap.

    wanted: (n,) where each would stand best, rising. sizes: (n,) how much of the edge each takes. The sum of squared
    shifts is the least possible. Labels that do not all fit overlap evenly.
    """
    from scipy.optimize import isotonic_regression  # slow to import, and not always needed

    middles, taken = np.asarray(wanted, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    if not len(middles):
        return np.empty(0)
    room = high - low
    taken = taken * min(1.0, room / taken.sum()) if taken.sum() > 0 else taken
    # Pushed together without overlap, all labels start at 0; what is left of each place may then only rise.
    packed = np.cumsum(taken) - taken / 2
    slack = isotonic_regression(middles - packed).x
    return np.asarray(np.clip(slack, low, max(low, high - taken.sum())) + packed, dtype=np.float64)


def fitting_step(counts: Sequence[int], size: float, room: float) -> int:
    """The least step so that each step-th of all labels fits. counts: of labels in each group. size: of one label."""
    step = 1
    while step < max(counts, default=1) and sum(-(-count // step) for count in counts) * size > room:
        step += 1
    return step
