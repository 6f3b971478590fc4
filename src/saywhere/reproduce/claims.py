"""Claims and whether they held: paired differences, their interval, their tests, and the verdict.

Every claim of every experiment is judged here. `Claim` is the only record of what was found and `judge_together` the
only place where a verdict is made, of all claims of a report at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saywhere.core.errors import InvalidValue
from saywhere.reproduce.decisions import (
    LEVEL,
    detectable_difference,
    detectable_margin,
    difference_p,
    equivalence_p,
    holm,
)
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
    """`better` is above `worse` in a measure, says a source: to be judged. better, worse: keys of rows.

    margin: if given, the claim is that both are equal but for less than this, in the measure's own unit.
    """

    text: str
    measure: MeasureColumn
    better: str
    worse: str
    source: str = PAPER
    margin: float | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, or of someone else about it, and whether it held here.

    measure: what was compared. better, worse: names of the rows. differences: for each seed, how much better `better`
    was (positive: as claimed, whatever the direction). low, high: 95 % interval of the mean difference, paired over
    seeds, of this claim alone. verdict: "held", "not held" (the other way round) or "undecided".
    source: whose claim, as in "claims of …"; `PAPER` is the paper. p, p_flips: two-sided tests over seeds, as in
    `PairedDifference`; of an equivalence, p is `equivalence_p`; None if not tested. margin: as of `ClaimPlan`.
    error: standard error of the mean difference. p_together: p after Holm's correction for all claims of the source.
    detectable: of an undecided claim, the smallest difference (of an equivalence, margin) that this run would have
    shown with 80 % power at the level that it had to reach; None if nothing can be told.
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
    margin: float | None = None
    error: float | None = None
    p_together: float | None = None
    detectable: float | None = None

    @property
    def freedom(self) -> float:
        """Of Student's t. Over photos, of which there are many, there is one mean difference alone."""
        return len(self.differences) - 1 if len(self.differences) > 1 else np.inf


def judge_together(claims: Sequence[Claim]) -> list[Claim]:
    """Verdicts of all claims of a report, those of one source corrected together, with what could have been shown."""
    judged = list(claims)
    for source in dict.fromkeys(claim.source for claim in claims):
        places = [i for i, claim in enumerate(claims) if claim.source == source]
        corrected = holm([_known(claims[i].p) for i in places])
        open_ones = sum(not p <= LEVEL for p in corrected)
        for i, p in zip(places, corrected, strict=True):
            judged[i] = _decided(claims[i], p, open_ones)
    return judged


def _known(p: float | None) -> float:
    return float("nan") if p is None else p


def _decided(claim: Claim, p_together: float, open_ones: int) -> Claim:
    """open_ones: how many claims of the source stay undecided, so that each had to reach their share of the level."""
    if np.isnan(p_together):
        return replace(claim, verdict="undecided")
    if p_together <= LEVEL:
        mean = float(np.mean(claim.differences))
        as_claimed = mean > 0 if claim.margin is None else abs(mean) < claim.margin
        return replace(claim, verdict="held" if as_claimed else "not held", p_together=p_together)
    shown = None
    if claim.error is not None:
        smallest = detectable_difference if claim.margin is None else detectable_margin
        shown = smallest(claim.error, claim.freedom, LEVEL / open_ones)
    return replace(claim, verdict="undecided", p_together=p_together, detectable=shown)


def judge(
    text: str,
    measure: MeasureColumn,
    better: ModelRow,
    worse: ModelRow,
    source: str = PAPER,
    margin: float | None = None,
) -> Claim:
    """Compare two rows seed by seed. The verdict is that of this claim alone, until `judge_together`."""
    _check_margin(margin)
    values = ([score[measure.name] for score in row.scores] for row in (better, worse))
    found = compare(*values, lower_is_better=measure.lower_is_better)
    n = len(found.differences)
    tested = n > 1 and np.isfinite(found.error)
    claim = Claim(
        *(text, measure.name, better.name, worse.name, found.differences, found.low, found.high, "undecided", source),
        p=_p_of(found.mean, found.error, n - 1, margin) if tested else None,
        p_flips=found.p_flips if n >= LEAST_SEEDS and margin is None else None,
        margin=margin,
        error=found.error if tested else None,
    )
    return judge_together([claim])[0]


def _p_of(mean: float, error: float, freedom: float, margin: float | None) -> float:
    if margin is None:
        return difference_p(mean, error, freedom)
    return equivalence_p(mean, error, freedom, margin)


def _check_margin(margin: float | None) -> None:
    if margin is not None and not 0 < margin < np.inf:
        raise InvalidValue("margin", f"is {margin}, but equal means: less than something above 0 apart")


def judge_plan(plan: ClaimPlan, board: Scoreboard, place: str = "") -> Claim:
    """Judge a planned claim. place: which data it is about, if the report has several."""
    better, worse = board.row(plan.better), board.row(plan.worse)
    before = f"{place}: " if place else ""
    named = ModelRow(before + better.name, better.scores)
    return judge(before + plan.text, plan.measure, named, worse, plan.source, plan.margin)


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
    text: str,
    measure: str,
    better: str,
    worse: str,
    differences: ArrayLike,
    photos: Sequence[Hashable],
    source: str = PAPER,
    margin: float | None = None,
) -> Claim:
    """Judge over photos, not seeds. differences: (n,) how much better `better` was, item by item."""
    _check_margin(margin)
    means = photo_means(differences, photos)
    mean = float(np.asarray(differences, dtype=np.float64).mean())
    if means is None:
        return Claim(text, measure, better, worse, (mean,), -np.inf, np.inf, "undecided", source, margin=margin)
    low, high = (float(end) for end in np.percentile(means, _TAILS))
    error = float(means.std())
    p = _p_of(mean, error, np.inf, margin)
    claim = Claim(text, measure, better, worse, (mean,), low, high, "undecided", source, p, None, margin, error)
    return judge_together([claim])[0]


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """How much better one was than the other, over paired runs.

    differences: of each pair. low, high: 95 % interval of the mean by Student's t; from one pair, everything.
    p: two-sided paired t-test; 1 where all differences are 0. p_flips: two-sided and exact, as it assumes no more than
    that either sign was as likely: how many of the 2ⁿ ways to flip signs give a mean at least as far from 0. None if
    there are too many to try. error: of the mean. All are NaN if a difference is, and p and error are from one pair.
    """

    differences: tuple[float, ...]
    mean: float
    low: float
    high: float
    p: float
    p_flips: float | None
    error: float


def compare(better: ArrayLike, worse: ArrayLike, *, lower_is_better: bool = False) -> PairedDifference:
    """(n,) values of each, pair by pair. A positive difference speaks for `better`, whatever the direction."""
    a, b = (np.asarray(values, dtype=np.float64) for values in (better, worse))
    if a.shape != b.shape:
        raise InvalidValue("paired values", f"of shapes {a.shape} and {b.shape} are no pairs")
    differences = b - a if lower_is_better else a - b
    mean, low, high = mean_interval(differences)
    n = len(differences)
    error = float(differences.std(ddof=1)) / np.sqrt(n) if n > 1 else float("nan")
    # Without any spread, t is infinite, or, if there is no difference either, says nothing.
    p = difference_p(mean, error, n - 1)
    return PairedDifference(tuple(differences.tolist()), mean, low, high, p, _flipped(differences), float(error))


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

    From fewer than two photos nothing can be told: the interval is everything.
    """
    means = photo_means(differences, photos, draws=draws, seed=seed)
    if means is None:
        return -np.inf, np.inf
    low, high = np.percentile(means, _TAILS)
    return float(low), float(high)


def photo_means(
    differences: ArrayLike, photos: Sequence[Hashable], *, draws: int = DRAWS, seed: int = 0
) -> NDArray[np.float64] | None:
    """(draws,) means of (n,) paired differences as whole photos are drawn again; None from fewer than two photos.

    photos: of each difference, its photo. What is on one photo is drawn together, because it is alike.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or len(values) != len(photos) or not len(values):
        raise InvalidValue("differences", f"of shape {values.shape} do not fit {len(photos)} photos")
    if not np.isfinite(values).all():
        raise InvalidValue("differences", "hold NaN or infinity")
    numbers = {photo: i for i, photo in enumerate(dict.fromkeys(photos))}
    if len(numbers) < 2:
        return None
    place = [numbers[photo] for photo in photos]
    sums, counts = np.bincount(place, weights=values), np.bincount(place)
    generator = np.random.default_rng(seed)
    times = generator.multinomial(len(numbers), np.full(len(numbers), 1 / len(numbers)), size=draws)
    return np.asarray((times @ sums) / (times @ counts), dtype=np.float64)
