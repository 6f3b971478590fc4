"""Comparing two rankings: Spearman's correlation, rank-biased overlap, average overlap, IoU of the tops.

A ranking is a sequence of distinct items, best first. Items that share a rank come as one set:
`["cup", {"spoon", "fork"}, "table"]`. Tied items sit at the same rank (Webber's reading, written RBO^w by Corsi and
Urbano 2024): a set belongs whole to the top d as soon as its first place is within d, and the agreement at depth d is
2 |A_d and B_d| / (|A_d| + |B_d|). Without ties this is the plain |A_d and B_d| / d.

"RBO with p = 1", found in some papers, is average overlap: at p = 1 the weights of RBO are all zero.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.core.types import Floats, Ints, owned
from saywhere.metrics._mean import MeanScore, mean_of

Ranking = Sequence[object]
NanPolicy = Literal["raise", "omit"]


@dataclass(frozen=True, slots=True)
class RBO:
    """Rank-biased overlap of two rankings of which only the beginning is known.

    extrapolated: the point estimate, the agreement seen going on below. minimum: when nothing below agrees.
    residual: how much higher it can be; minimum + residual is the upper bound.
    """

    extrapolated: float
    minimum: float
    residual: float


def ranking_from_scores(scores: Mapping[Hashable, float]) -> list[object]:
    """Items by falling score, equal scores as one set. NaN is an error.

    >>> ranking_from_scores({"cup": 0.9, "spoon": 0.1, "cat": 0.4})
    ['cup', 'cat', 'spoon']
    """
    groups: dict[float, list[Hashable]] = {}
    for item, score in scores.items():
        if math.isnan(score):
            raise InvalidValue("scores", f"the score of {item!r} is NaN")
        groups.setdefault(float(score), []).append(item)
    ordered = [groups[score] for score in sorted(groups, reverse=True)]
    return [group[0] if len(group) == 1 else frozenset(group) for group in ordered]


def spearman(a: ArrayLike, b: ArrayLike, *, nan_policy: NanPolicy = "raise") -> float:
    """Spearman's rank correlation of two lists of numbers (n,); equal numbers share their average rank.

    NaN when either list is constant or holds fewer than two numbers: there is no order to compare. A NaN in the input
    is an error, or with nan_policy="omit" its pair is left out.

    >>> round(spearman([1, 2, 3], [1, 3, 9]), 3)
    1.0
    """
    one, other = owned(a, "values a", (None,), finite=False), owned(b, "values b", (None,), finite=False)
    if len(one) != len(other):
        raise InvalidValue("values to correlate", f"{len(one)} against {len(other)}")
    if nan_policy not in ("raise", "omit"):
        raise UnknownName("nan_policy", nan_policy, ("raise", "omit"))
    missing = np.isnan(one) | np.isnan(other)
    if missing.any():
        if nan_policy == "raise":
            raise InvalidValue("values to correlate", f"pair {int(missing.argmax())} holds NaN", 'nan_policy="omit"')
        one, other = one[~missing], other[~missing]
    if len(one) < 2 or (one == one[0]).all() or (other == other[0]).all():
        return math.nan
    x, y = _average_ranks(one), _average_ranks(other)
    x, y = x - x.mean(), y - y.mean()
    return float(np.clip(x @ y / math.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def rank_biased_overlap(a: Ranking, b: Ranking, p: float) -> RBO:
    """Rank-biased overlap (Webber, Moffat and Zobel 2010) of two rankings, which may differ in length and hold ties.

    p: in (0, 1), the chance of looking one rank further; the first d ranks weigh more the smaller p is.

    >>> round(rank_biased_overlap(["a", "b"], ["a", "b"], p=0.9).extrapolated, 3)
    1.0
    """
    if not 0 < p < 1:
        raise InvalidValue("persistence p", f"{p} is not in (0, 1)", "for p = 1 use average_overlap")
    short, long = sorted((_top_ranks(a, "ranking a"), _top_ranks(b, "ranking b")), key=len)
    s, n = len(short), len(long)
    overlap, short_size, long_size = _overlap(short, long, n)
    depth = np.arange(1, n + 1)
    # Below its end the shorter list is taken to hold one unknown item a rank.
    both_sizes = np.where(depth <= s, short_size, depth) + long_size
    unseen = np.clip(depth - s, 0, None)
    seen_rate = 2 * overlap[s - 1] / both_sizes[s - 1]
    last = int(overlap[-1])

    def weighted(extra: Floats | Ints | float, tail: float) -> float:
        agreement = 2 * (overlap + extra) / both_sizes
        return float((1 - p) / p * ((agreement * p**depth).sum() + tail))

    minimum = weighted(0.0, last * (-math.log1p(-p) - float((p**depth / depth).sum())))
    full = n + s - last  # the depth from which two lists that agree wherever they can agree wholly
    climb = np.arange(n + 1, full + 1)
    maximum = weighted(unseen, float(((2 * climb - n - s + last) / climb * p**climb).sum()) + p ** (full + 1) / (1 - p))
    extrapolated = weighted(unseen * seen_rate, float((last + (n - s) * seen_rate) / n * p ** (n + 1) / (1 - p)))
    return RBO(extrapolated, minimum, max(0.0, maximum - minimum))


def average_overlap(a: Ranking, b: Ranking, depth: int | None = None) -> float:
    """Mean over d = 1 … depth of the agreement of the two tops d.

    depth: the length of the shorter ranking when None. Where a ranking ends before the depth, its missing places agree
    with nothing.

    >>> average_overlap(["a", "b", "c"], ["a", "c", "b"])
    0.8333333333333334
    """
    one, other = _top_ranks(a, "ranking a"), _top_ranks(b, "ranking b")
    depth = min(len(one), len(other)) if depth is None else _checked_depth(depth, "depth")
    overlap, one_size, other_size = _overlap(one, other, depth)
    places = np.arange(1, depth + 1)
    return float(np.mean(2 * overlap / (np.maximum(one_size, places) + np.maximum(other_size, places))))


def iou_at(a: Ranking, b: Ranking, k: int) -> float:
    """Intersection over union of the two tops k as sets. A ranking shorter than k gives all it has.

    >>> iou_at(["a", "b", "c"], ["a", "c", "b"], k=2)
    0.3333333333333333
    """
    k = _checked_depth(k, "k")
    one, other = (
        {item for item, rank in _top_ranks(ranking, what).items() if rank <= k}
        for ranking, what in ((a, "ranking a"), (b, "ranking b"))
    )
    return len(one & other) / len(one | other)


class Spearman(MeanScore):
    """Mean of `spearman` over pairs of lists; pairs without an order count as undefined."""

    def __init__(self, *, nan_policy: NanPolicy = "raise") -> None:
        super().__init__()
        self.nan_policy: NanPolicy = nan_policy

    def update(self, a: ArrayLike, b: ArrayLike) -> None:
        """Add one pair of lists (n,)."""
        self._scores.append(spearman(a, b, nan_policy=self.nan_policy))


class AverageOverlap(MeanScore):
    """Mean of `average_overlap` over pairs of rankings."""

    def __init__(self, depth: int | None = None) -> None:
        super().__init__()
        self.depth = depth

    def update(self, a: Ranking, b: Ranking) -> None:
        """Add one pair of rankings."""
        self._scores.append(average_overlap(a, b, self.depth))


class IoUAt(MeanScore):
    """Mean of `iou_at` over pairs of rankings."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def update(self, a: Ranking, b: Ranking) -> None:
        """Add one pair of rankings."""
        self._scores.append(iou_at(a, b, self.k))


class RankBiasedOverlap:
    """Mean of `rank_biased_overlap` over pairs of rankings, part by part."""

    higher_is_better = True

    def __init__(self, p: float) -> None:
        self.p = p
        self._scores: list[RBO] = []

    def update(self, a: Ranking, b: Ranking) -> None:
        """Add one pair of rankings."""
        self._scores.append(rank_biased_overlap(a, b, self.p))

    def compute(self) -> RBO:
        """The mean estimate, minimum and residual."""
        return RBO(
            mean_of((score.extrapolated for score in self._scores), "RankBiasedOverlap"),
            mean_of((score.minimum for score in self._scores), "RankBiasedOverlap"),
            mean_of((score.residual for score in self._scores), "RankBiasedOverlap"),
        )

    def reset(self) -> None:
        """Forget every pair."""
        self._scores.clear()


def _average_ranks(values: Floats) -> Floats:
    """Ranks 1 … n of the values, equal ones sharing the mean of theirs."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    ranks: Floats = (last - (counts - 1) / 2)[group]
    return ranks


def _top_ranks(ranking: Ranking, what: str) -> dict[Hashable, int]:
    """The place (from 1) at which each item, or the set it is tied in, begins."""
    ranks: dict[Hashable, int] = {}
    for entry in ranking:
        group = entry if isinstance(entry, set | frozenset) else (entry,)
        if not group:
            raise InvalidValue(what, "holds an empty set of tied items")
        place = len(ranks) + 1
        for item in group:
            if not isinstance(item, Hashable):
                raise InvalidValue(what, f"{item!r} cannot be an item", "items are names or numbers, ties are sets")
            if item in ranks:
                raise InvalidValue(what, f"holds {item!r} twice")
            ranks[item] = place
    if not ranks:
        raise InvalidValue(what, "is empty")
    return ranks


def _overlap(a: Mapping[Hashable, int], b: Mapping[Hashable, int], depth: int) -> tuple[Ints, Ints, Ints]:
    """For each depth 1 … `depth`: items in both tops, items in the top of `a`, of `b`; each (depth,)."""

    def up_to(ranks: list[int]) -> Ints:
        within = np.array([rank for rank in ranks if rank <= depth], np.int64)
        return np.bincount(within, minlength=depth + 1)[1:].cumsum()

    shared = [max(rank, b[item]) for item, rank in a.items() if item in b]
    return up_to(shared), up_to(list(a.values())), up_to(list(b.values()))


def _checked_depth(depth: int, what: str) -> int:
    if isinstance(depth, bool) or not isinstance(depth, int | np.integer) or depth < 1:
        raise InvalidValue(what, f"{depth!r} is not a whole number of at least 1")
    return int(depth)
