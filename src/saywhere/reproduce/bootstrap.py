"""Claims judged over photos: how far a difference would wander had other photos of the same kind been held out."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core import InvalidValue
from saywhere.reproduce.results import Claim

DRAWS = 4000
_TAILS = (2.5, 97.5)


def paired_interval(
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


def judge_photos(
    text: str, measure: str, better: str, worse: str, differences: ArrayLike, photos: Sequence[Hashable]
) -> Claim:
    """The verdict on a claim. differences: (n,) how much better `better` was, item by item; see `paired_interval`."""
    low, high = paired_interval(differences, photos)
    verdict = "held" if low > 0 else "not held" if high < 0 else "undecided"
    return Claim(
        text, measure, better, worse, (float(np.asarray(differences, dtype=np.float64).mean()),), low, high, verdict
    )
