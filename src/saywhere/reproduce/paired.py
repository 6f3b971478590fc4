"""Two rows compared seed by seed: how large the difference is, how sure it is, and whether it could be chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saywhere.core import InvalidValue

LEAST_SEEDS = 5
"""From fewer pairs a test says next to nothing: flipping the signs of four cannot give less than p = 0.125."""
MOST_FLIPPED = 20
"""Of more pairs not all flips are tried: there are 2 to the power of their number."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How much better one was than the other, over paired runs.

    differences: of each pair. low, high: 95 % interval of the mean by Student's t; from one pair, everything.
    p: two-sided paired t-test; 1 where all differences are 0. p_flips: two-sided and exact, as it assumes no more than
    that either sign was as likely: how many of the 2ⁿ ways to flip signs give a mean at least as far from 0. None if
    there are too many to try. All are NaN if a difference is, and p is from one pair.
    """

    differences: tuple[float, ...]
    mean: float
    low: float
    high: float
    p: float
    p_flips: float | None


def compare(better: ArrayLike, worse: ArrayLike, *, lower_is_better: bool = False) -> Comparison:
    """(n,) values of each, pair by pair. A positive difference speaks for `better`, whatever the direction."""
    from scipy import stats

    a, b = (np.asarray(values, dtype=np.float64) for values in (better, worse))
    if a.shape != b.shape:
        raise InvalidValue("paired values", f"of shapes {a.shape} and {b.shape} are no pairs")
    differences = b - a if lower_is_better else a - b
    mean, low, high = mean_interval(differences)
    n = len(differences)
    error = float(differences.std(ddof=1)) / np.sqrt(n) if n > 1 else float("nan")
    # Without any spread, t is infinite, or, if there is no difference either, says nothing.
    p = 2 * float(stats.t.sf(abs(mean) / error, n - 1)) if error != 0 else float(mean == 0)
    return Comparison(tuple(differences.tolist()), mean, low, high, p, _flipped(differences))


def mean_interval(values: ArrayLike) -> tuple[float, float, float]:
    """The mean of (n,) values, one for each seed, and its 95 % interval by Student's t; from one value, everything."""
    from scipy import stats

    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise InvalidValue("values", f"of shape {array.shape} are not one or more in a row")
    mean, n = float(array.mean()), len(array)
    reach = float(stats.t.ppf(0.975, n - 1) * array.std(ddof=1) / np.sqrt(n)) if n > 1 else float("inf")
    return mean, mean - reach, mean + reach


def least_p_flips(n: int) -> float:
    """The smallest p that flips of n pairs can give: only none flipped and all flipped are so far from 0."""
    return 2.0 ** (1 - n)


def _flipped(differences: NDArray[np.float64]) -> float | None:
    if not np.isfinite(differences).all():
        return float("nan")
    if len(differences) > MOST_FLIPPED:
        return None
    sums = np.zeros(1)
    for size in np.abs(differences):
        sums = np.concatenate([sums + size, sums - size])
    # Sums that are equal but for rounding count as equal.
    slack = 1e-9 * float(np.abs(differences).sum())
    return float(np.mean(np.abs(sums) >= abs(float(differences.sum())) - slack))
