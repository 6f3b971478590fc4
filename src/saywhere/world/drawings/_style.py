"""What one drawing is given: its colours, and a little chance so that no two are quite the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from saywhere.world.brush import Brush
from saywhere.world.colours import Ink

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Style:
    """ink: the colour by which people name it. accent: a second colour. pose: for what has several."""

    ink: Ink
    accent: Ink
    rng: np.random.Generator
    pose: str = ""

    def about(self, value: float, spread: float = 0.08) -> float:
        """The value, a little more or less."""
        return value * (1 + spread * (2 * float(self.rng.random()) - 1))

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.rng.random() * len(options))]


@dataclass(frozen=True, slots=True)
class Drawing:
    """How to draw one kind of thing, in a frame of width × height units."""

    width: float
    height: float
    paint: Callable[[Brush, Style], None]
