"""Closing the gap between images and texts: a vector from an image becomes one that a decoder of texts understands.

Every way treats each row on its own, so that a region gets the same alone and among others. Noise
acts while the decoder learns and leaves nothing to do here; see `objective.noisy`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.errors import InvalidValue
from saywhere.models.patchioner.memory import MemoryBank, Projected, unit_rows

if TYPE_CHECKING:
    from saywhere.models.patchioner.bridge import Bridge


class Gap(Protocol):
    """A way to close the gap."""

    def close(self, vectors: ArrayLike) -> Projected:
        """What goes to the decoder; `nearest` is empty lists if it came from no sentences. vectors: (m, d), not 0."""


class Direct:
    """Nothing is done but to bring rows to length 1."""

    def close(self, vectors: ArrayLike) -> Projected:
        rows = np.asarray(vectors)
        if rows.ndim != 2:
            raise InvalidValue("vectors", f"have shape {rows.shape}, not (m, d)")
        return Projected(unit_rows(rows, "vectors"), [[] for _ in rows])


@dataclass(frozen=True, slots=True)
class MemoryGap:
    """Vectors put together again out of a bank of sentences (DeCap); see `MemoryBank.project`."""

    bank: MemoryBank
    temperature: float = 0.01
    top: int | None = None
    nearest: int = 5

    def close(self, vectors: ArrayLike) -> Projected:
        return self.bank.project(vectors, self.temperature, self.top, self.nearest)


@dataclass(frozen=True, slots=True)
class BridgeGap:
    """Vectors led to texts by a denoiser (Diffusion Bridge); see `Bridge.cross`."""

    bridge: Bridge
    start: int = 600
    steps: int = 5

    def close(self, vectors: ArrayLike) -> Projected:
        crossed = self.bridge.cross(vectors, self.start, self.steps)
        return Projected(crossed, [[] for _ in crossed])
