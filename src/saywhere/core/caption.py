"""What a region shows, in words: the one form that every model's captions have."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from saywhere.core.regions import Region, WholeImage

OBJECT, SCENE = "object", "scene"
"""Levels of captions: what is there, and where it is. A model may have others, such as "action"."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """A sentence that a model knows. cosine: with what the caption is of. share: how much of the caption's vector it
    makes up."""

    sentence: str
    cosine: float
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Caption:
    """What a region shows.

    text: the caption. score: the mean log-probability of its words. region: what it is of. level: "object", or one
    above it, such as "scene". origin: the model that wrote it. sure: whether to rely on it. similarity: the cosine of
    the region with the nearest sentence that the model knows; None for a model without a memory. nearest: those
    sentences, to judge the caption by.

    >>> print(Caption("a cup", -0.1), Caption("a cat", -2.0, sure=False))
    a cup a cat (unsure)
    """

    text: str
    score: float
    region: Region = field(default_factory=WholeImage)
    level: str = OBJECT
    origin: str = ""
    sure: bool = True
    similarity: float | None = None
    nearest: tuple[Nearest, ...] = ()

    @property
    def confidence(self) -> float:
        """The geometric mean of its words' probabilities, 0 … 1."""
        return math.exp(self.score)

    def __str__(self) -> str:
        return self.text if self.sure else f"{self.text} (unsure)"
