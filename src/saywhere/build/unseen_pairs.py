"""A split of photos for captioners: in the test, pairs of things meet that never meet in training.

Every thing of a pair is in training too, only never beside the other, so that a caption of the two cannot be told from
habit: the robust split of Lu et al. (Neural Baby Talk, 2018), on which HINT's captioners are tested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from saywhere.core.errors import InvalidValue

Pair = tuple[str, str]
"""Two classes, in the order of the alphabet."""


@dataclass(frozen=True, slots=True)
class PairSettings:
    """test: at most this share of the photos. validation: of those that are left. least: photos that show a pair.

    kept: of the photos of each thing of a pair, the share that must stay outside the test.
    """

    test: float = 0.15
    validation: float = 0.05
    least: int = 20
    kept: float = 0.5

    def __post_init__(self) -> None:
        for name in ("test", "validation", "kept"):
            if not 0 < getattr(self, name) < 1:
                raise InvalidValue(name, f"is {getattr(self, name):g}, not a share between 0 and 1")
        if self.least < 1:
            raise InvalidValue("least", f"is {self.least}, not at least 1")


@dataclass(frozen=True, slots=True)
class PairSplit:
    """sides: "train", "validation" and "test" → photos, in the order given. pairs: pair → photos of the test that show
    it."""

    sides: dict[str, tuple[str, ...]]
    pairs: dict[Pair, int]


def split_by_pairs(
    photos: Mapping[str, Set[str]], rng: np.random.Generator, settings: PairSettings | None = None
) -> PairSplit:
    """Divide photos; the same for the same photos and generator. photos: each with the classes that it shows.

    Pairs are drawn one after another, and taken while the test stays small enough and their things common enough.

    >>> photos = {str(i): {"dog"} if i % 3 else {"dog", "cat"} if i % 6 else {"cat"} for i in range(60)}
    >>> split = split_by_pairs(photos, np.random.default_rng(0), PairSettings(test=0.2, least=5, kept=0.4))
    >>> split.pairs, [len(side) for side in split.sides.values()]
    ({('cat', 'dog'): 10}, [48, 2, 10])
    """
    wanted = settings or PairSettings()
    showing: dict[Pair, set[str]] = {}
    for photo, classes in photos.items():
        for pair in combinations(sorted(classes), 2):
            showing.setdefault(pair, set()).add(photo)
    common = sorted(pair for pair, there in showing.items() if len(there) >= wanted.least)
    counts = Counter(name for classes in photos.values() for name in classes)
    test: set[str] = set()
    taken: Counter[str] = Counter()
    pairs: dict[Pair, int] = {}
    for place in rng.permutation(len(common)).tolist():
        pair = common[place]
        more = showing[pair] - test
        if len(test) + len(more) > wanted.test * len(photos):
            continue
        larger = taken + Counter(name for photo in more for name in photos[photo])
        named = {name for one in (*pairs, pair) for name in one}
        if all(larger[name] <= (1 - wanted.kept) * counts[name] for name in named):
            test, taken, pairs[pair] = test | more, larger, len(showing[pair])
    if not pairs:
        reason = f"no two things meet on {wanted.least} photos and can be taken out of training"
        raise InvalidValue("photos", reason, "lower least or kept, or give more photos")
    rest = [photo for photo in photos if photo not in test]
    chosen = set(rng.permutation(len(rest))[: round(wanted.validation * len(rest))].tolist())
    sides = {
        "train": tuple(photo for place, photo in enumerate(rest) if place not in chosen),
        "validation": tuple(photo for place, photo in enumerate(rest) if place in chosen),
        "test": tuple(photo for photo in photos if photo in test),
    }
    return PairSplit(sides, pairs)
