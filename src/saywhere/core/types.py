"""Types that every package speaks."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]


class Progress(Protocol):
    """Is told how far some work is."""

    def __call__(self, doing: str, done: int, total: int, /) -> None:
        """doing: what, in a few words. total: 0 if nobody knows."""
        ...
