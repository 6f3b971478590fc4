"""Claims and whether they held: paired differences, their interval, their tests, and the verdict.

Every claim of every experiment is judged here. `Claim` is the only record of what was found and `verdict_of` the only
place where a verdict is made, so whatever decides more carefully (the smallest difference that could have been found,
a test that two rows are equal, a correction for many claims) belongs into this module and nowhere else.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saywhere.core.errors import InvalidValue
from saywhere.reproduce.tables import MeasureColumn, ModelRow, Scoreboard

PAPER = "paper"
"""Source of the paper's own claims."""
LEAST_SEEDS = 5
"""From fewer pairs a test says next to nothing: flipping the signs of four cannot give less than p = 0.125."""
MOST_FLIPPED = 20
"""Of more pairs not all flips are tried: there are 2 to the power of their number."""
DRAWS = 4000
_TAILS = (2.5, 97.5)


@dataclass(frozen=True, slots=True)
class ClaimPlan:
    """`better` is above `worse` in a measure, says a source: to be judged. better, worse: keys of rows."""

    text: str
    measure: MeasureColumn
    better: str
    worse: str
    source: str = PAPER


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, or of someone else about it, and whether it held here.

    measure: what was compared. better, worse: names of the rows. differences: for each seed, how much better `better`
    was (positive: as claimed, whatever the direction). low, high: 95 % interval of the mean difference, paired over
    seeds. verdict: "held", "not held" (the other way round) or "undecided" (the interval holds 0).
    source: whose claim, as in "claims of …"; `PAPER` is the paper. p, p_flips: two-sided tests over seeds, as in
    `PairedDifference`; None if not tested.
    """

    text: str
    measure: str
    better: str
    worse: str
    differences: tuple[float, ...]
    low: float
    high: float
    verdict: str
    source: str = PAPER
    p: float | None = None
    p_flips: float | None = None


def verdict_of(low: float, high: float) -> str:
    """What an interval of the difference says of the claim that it is positive."""
    return "held" if low > 0 else "not held" if high < 0 else "undecided"


def judge(text: str, measure: MeasureColumn, better: ModelRow, worse: ModelRow, source: str = PAPER) -> Claim:
    """Compare two rows seed by seed; tested, too, if there are seeds enough for that."""
    values = ([score[measure.name] for score in row.scores] for row in (better, worse))
    found = compare(*values, lower_is_better=measure.lower_is_better)
    tests = (found.p, found.p_flips) if len(found.differences) >= LEAST_SEEDS else (None, None)
    return Claim(
        *(text, measure.name, better.name, worse.name),
        *(found.differences, found.low, found.high, verdict_of(found.low, found.high), source, *tests),
    )


def judge_plan(plan: ClaimPlan, board: Scoreboard, place: str = "") -> Claim:
    """Judge a planned claim. place: which data it is about, if the report has several."""
    better, worse = board.row(plan.better), board.row(plan.worse)
    before = f"{place}: " if place else ""
    named = ModelRow(before + better.name, better.scores)
    return judge(before + plan.text, plan.measure, named, worse, plan.source)


def judge_measures(
    text: str,
    measure: MeasureColumn,
    sides: Mapping[str, MeasureColumn],
    key: str,
    board: Scoreboard,
    source: str = PAPER,
) -> Claim:
    """Compare two measures of the same row. measure: what both are. sides: the better, then the worse, by name."""
    better, worse = (
        ModelRow(name, tuple({measure.name: value} for value in board.values(key, column.name)))
        for name, column in sides.items()
    )
    return judge(text, measure, better, worse, source)


def judge_photos(
    text: str, measure: str, better: str, worse: str, differences: ArrayLike, photos: Sequence[Hashable]
) -> Claim:
    """Judge over photos, not seeds. differences: (n,) how much better `better` was, item by item."""
    low, high = photo_interval(differences, photos)
    mean = float(np.asarray(differences, dtype=np.float64).mean())
    return Claim(text, measure, better, worse, (mean,), low, high, verdict_of(low, high))


@dataclass(frozen=True, slots=True)
class PairedDifference:
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


def compare(better: ArrayLike, worse: ArrayLike, *, lower_is_better: bool = False) -> PairedDifference:
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
    return PairedDifference(tuple(differences.tolist()), mean, low, high, p, _flipped(differences))


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


def photo_interval(
    differences: ArrayLike, photos: Sequence[Hashable], *, draws: int = DRAWS, seed: int = 0
) -> tuple[float, float]:
    """The 95 % interval of the mean of (n,) paired differences, by drawing whole photos again and again.

    photos: of each difference, its photo. What is on one photo is drawn together, because it is alike. From fewer than
    two photos nothing can be told: the interval is everything.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or len(values) != len(photos) or not len(values):
        raise InvalidValue("differences", f"of shape {values.shape} do not fit {len(photos)} photos")
    if not np.isfinite(values).all():
        raise InvalidValue("differences", "hold NaN or infinity")
    numbers = {photo: i for i, photo in enumerate(dict.fromkeys(photos))}
    if len(numbers) < 2:
        return -np.inf, np.inf
    place = [numbers[photo] for photo in photos]
    sums, counts = np.bincount(place, weights=values), np.bincount(place)
    generator = np.random.default_rng(seed)
    times = generator.multinomial(len(numbers), np.full(len(numbers), 1 / len(numbers)), size=draws)
    low, high = np.percentile((times @ sums) / (times @ counts), _TAILS)
    return float(low), float(high)
