"""Hidden states of a photo's patches, window by window."""

from __future__ import annotations

import math

import numpy as np

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Floats32

WINDOWS = 10
"""Rows and columns of windows, if they divide the patches' grid."""


def window_means(states: Floats32) -> tuple[Floats32, int]:
    """(1 + side², s) of (1 + n, s) hidden states: the whole's, and the mean of those in each window, row by row; and
    how many windows lie along a side, as many as patches if the grid cannot be cut."""
    grid = math.isqrt(len(states) - 1)
    if grid**2 != len(states) - 1 or grid < 1:
        raise InvalidValue("view.states", f"are {len(states)}, not one more than a square")
    side = WINDOWS if grid % WINDOWS == 0 else grid
    cut = states[1:].reshape(side, grid // side, side, grid // side, -1).mean(axis=(1, 3))
    return np.concatenate([states[:1], cut.reshape(side * side, -1)]), side
