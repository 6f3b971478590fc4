"""The statistics behind a verdict: equivalence, what could have been shown, and claims corrected together."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

LEVEL = 0.05
"""How often, at most, claims of one source that are all wrong may give any verdict but "undecided"."""
POWER = 0.8
"""How often a difference of the size on a power line would be found."""
_SPREADS = 2000


def difference_p(mean: float, error: float, freedom: float) -> float:
    """Two-sided: that a mean as far from 0 comes of nothing. error: its standard error. freedom: of Student's t.

    >>> round(difference_p(2.0, 1.0, float("inf")), 4)
    0.0455
    """
    from scipy import stats

    if error == 0:
        return float(mean == 0)
    return 2 * float(stats.t.sf(abs(mean) / error, freedom))


def equivalence_p(mean: float, error: float, freedom: float, margin: float) -> float:
    """Of the side of ±margin that the mean lies on. Inside: two one-sided tests (TOST) that the difference is smaller
    than the margin. Outside: a two-sided test that it is larger.

    >>> round(equivalence_p(0.0, 1.0, float("inf"), margin=2.0), 4), equivalence_p(3.0, 0.0, 4, margin=2.0)
    (0.0228, 0.0)
    """
    from scipy import stats

    beyond = abs(mean) - margin
    if error == 0:
        return float(beyond == 0)
    one_sided = float(stats.t.sf(abs(beyond) / error, freedom))
    return one_sided if beyond < 0 else 2 * one_sided


def detectable_difference(error: float, freedom: float, level: float = LEVEL, power: float = POWER) -> float:
    """The smallest true difference that a two-sided paired t-test with this spread finds with this power.

    >>> round(detectable_difference(1.0, 1e6), 2)
    2.8
    """
    from scipy import optimize, stats

    if not error > 0 or not math.isfinite(error):
        return 0.0 if error == 0 else math.nan
    if math.isinf(freedom):
        return error * float(stats.norm.isf(level / 2) + stats.norm.ppf(power))
    bar = float(stats.t.isf(level / 2, freedom))
    # Scipy's noncentral t overflows where few seeds make the bar high, so the spread is averaged over here.
    spreads = np.sqrt(stats.chi2.ppf((np.arange(_SPREADS) + 0.5) / _SPREADS, freedom) / freedom)

    def missing(size: float) -> float:
        found = stats.norm.cdf(size - bar * spreads) + stats.norm.cdf(-size - bar * spreads)
        return float(found.mean()) - power

    # A difference of four times the bar is found almost always.
    return error * float(optimize.brentq(missing, 0.0, 4 * bar + 5))


def detectable_margin(error: float, freedom: float, level: float = LEVEL, power: float = POWER) -> float:
    """The smallest margin inside which two one-sided tests place equal rows with this power.

    >>> round(detectable_margin(1.0, float("inf")), 2)
    2.93
    """
    from scipy import stats

    if not math.isfinite(error):
        return math.nan
    return error * float(stats.t.isf(level, freedom) + stats.t.isf((1 - power) / 2, freedom))


def holm(probabilities: Sequence[float]) -> list[float]:
    """Each p as Holm's step-down correction leaves it: at most `LEVEL` where the claim may be decided.

    NaN, a claim that could not be tested, stays NaN but counts, because it was asked.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(np.nan_to_num(probabilities, nan=math.inf), kind="stable")
    corrected, highest = [math.nan] * len(order), 0.0
    for rank, i in enumerate(order):
        p = probabilities[i]
        if not math.isnan(p):
            highest = max(highest, min(1.0, (len(order) - rank) * p))
            corrected[i] = highest
    return corrected
