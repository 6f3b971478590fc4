"""Closing the gap between images and texts: a vector from an image becomes one that a decoder of texts understands.

Every way treats each row on its own, so that a region gets the same alone and among others. Noise, the sixth way, acts
while the decoder learns and leaves nothing to do here; see `noise`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.errors import InvalidValue
from saywhere.models.patchioner.bridge import Bridge
from saywhere.models.patchioner.memory import MemoryBank, Nearest, Vectors, unit_rows


@dataclass(frozen=True, slots=True, eq=False)
class Closed:
    """What goes to the decoder.

    vectors: (m, d) float32 rows of length 1. prompts: for each row the beginning of a text to write on from, if the way
    has such. nearest: for each row the sentences or words that it came from, nearest first; empty lists if from none.
    """

    vectors: Vectors
    prompts: tuple[str, ...] | None
    nearest: list[list[Nearest]]


class Gap(Protocol):
    """A way to close the gap."""

    def close(self, vectors: ArrayLike) -> Closed:
        """vectors: (m, d), of any length but 0."""


class Direct:
    """Nothing is done but to bring rows to length 1."""

    def close(self, vectors: ArrayLike) -> Closed:
        rows = np.asarray(vectors)
        if rows.ndim != 2:
            raise InvalidValue("vectors", f"have shape {rows.shape}, not (m, d)")
        return Closed(unit_rows(rows, "vectors"), None, [[] for _ in rows])


@dataclass(frozen=True, slots=True)
class MemoryGap:
    """Vectors put together again out of a bank of sentences (DeCap); see `MemoryBank.project`."""

    bank: MemoryBank
    temperature: float = 0.01
    top: int | None = None
    nearest: int = 5

    def close(self, vectors: ArrayLike) -> Closed:
        projected = self.bank.project(vectors, self.temperature, self.top, self.nearest)
        return Closed(projected.vectors, None, projected.nearest)


@dataclass(frozen=True, slots=True)
class BridgeGap:
    """Vectors led to texts by a denoiser (Diffusion Bridge); see `Bridge.cross`."""

    bridge: Bridge
    start: int = 600
    steps: int = 5

    def close(self, vectors: ArrayLike) -> Closed:
        crossed = self.bridge.cross(vectors, self.start, self.steps)
        return Closed(crossed, None, [[] for _ in crossed])
