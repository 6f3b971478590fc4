"""Chance: streams that do not depend on each other, and quick choices from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from saywhere.core.errors import InvalidValue

T = TypeVar("T")

STREAMS = ("scene", "narrator", "captions", "hl", "questions", "referring", "video", "pointing again")
"""What each scene draws chance for. A stream of its own for each: asking for captions does not change the picture."""


def stream(seed: int, index: int, name: str, part: int = 0) -> np.random.Generator:
    """The generator of one scene for one purpose; the same whether it is made alone or among thousands."""
    for what, value in (("seed", seed), ("index", index), ("part", part)):
        if value < 0:
            raise InvalidValue(what, f"is {value}: must not be negative")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, index, STREAMS.index(name), part])))


def pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    """One of them, each as likely. Much quicker than Generator.choice."""
    return options[int(rng.random() * len(options))]


def weighted(rng: np.random.Generator, weights: Mapping[T, float]) -> T:
    """A key, as likely as its weight."""
    rest = float(rng.random()) * sum(weights.values())
    for key, weight in weights.items():
        rest -= weight
        if rest < 0:
            return key
    return next(reversed(list(weights)))


def number(rng: np.random.Generator, chances: Sequence[float]) -> int:
    """0, 1, 2 …, as likely as `chances` says; they sum to 1."""
    rest = float(rng.random())
    for n, chance in enumerate(chances):
        rest -= chance
        if rest < 0:
            return n
    return len(chances) - 1


def between(rng: np.random.Generator, low: float, high: float) -> float:
    return low + (high - low) * float(rng.random())


def shuffled(rng: np.random.Generator, options: Sequence[T]) -> list[T]:
    return [options[i] for i in rng.permutation(len(options)).tolist()]


def weights(text: str) -> dict[str, float]:
    """ "cup 3, teddy bear, vase 0.6": how often each of some things occurs; 1 where no number is given."""
    found: dict[str, float] = {}
    for entry in text.split(", "):
        name, _, number = entry.rpartition(" ")
        found |= {name: float(number)} if number[:1].isdigit() else {entry: 1.0}
    return found
