"""The accumulating half of every metric that is a mean of one score per item."""

from __future__ import annotations

import math
from collections.abc import Iterable

from saywhere.core.errors import InvalidValue


def mean_of(scores: Iterable[float], what: str) -> float:
    """The mean of the scores that are defined (not NaN); NaN when none is. No score at all is an error.

    The sum is exact, so the order in which items came does not change the result.
    """
    kept = list(scores)
    if not kept:
        raise InvalidValue(what, "no item was given, so there is no mean")
    defined = [score for score in kept if not math.isnan(score)]
    return math.fsum(defined) / len(defined) if defined else math.nan


class MeanScore:
    """Base of the classes that average one score per item. Subclasses add `update`.

    A score that is not defined for an item (NaN, as the metric's function says) is left out of the mean and counted in
    `undefined`. Fed with one item, `compute` returns what the metric's function returns.
    """

    higher_is_better = True

    def __init__(self) -> None:
        self._scores: list[float] = []

    @property
    def items(self) -> int:
        """How many items were given."""
        return len(self._scores)

    @property
    def undefined(self) -> int:
        """How many of them have no score."""
        return sum(math.isnan(score) for score in self._scores)

    def compute(self) -> float:
        """The mean over the items that have a score; NaN when none of them has."""
        return mean_of(self._scores, type(self).__name__)

    def reset(self) -> None:
        """Forget every item."""
        self._scores.clear()
