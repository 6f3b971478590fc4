"""One photo's places in the three ways that models write them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saywhere.core import Frame
from saywhere.core.trajectory import BINS
from saywhere.core.types import Floats

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Fractions of the photo, bins 0 … 999 as TraceVLM writes them, and absolute pixels of the resized photo as
    Qwen2.5-VL does. frame: how the photo was resized. All are (n, 2), x before y.

    >>> places = Coordinates(Frame.squash((640, 480), (644, 476), 28))
    >>> places.to_pixels([(0.5, 0.5)]).tolist(), places.to_bins([(0.5, 1.0)]).tolist()
    ([[322, 238]], [[500, 999]])
    """

    frame: Frame

    def to_bins(self, points_xy: ArrayLike) -> Ints:
        """Bins of places; those off the photo move to its edge."""
        return np.clip(np.floor(np.asarray(points_xy, dtype=np.float64) * BINS), 0, BINS - 1).astype(np.int64)

    def from_bins(self, bins_xy: ArrayLike) -> Floats:
        """The middles of bins, in fractions."""
        middles: Floats = (np.asarray(bins_xy, dtype=np.float64) + 0.5) / BINS
        return middles

    def to_pixels(self, points_xy: ArrayLike) -> Ints:
        """The nearest pixels of the resized photo."""
        return np.clip(np.rint(self.frame.to_input(points_xy)), 0, self.frame.input_size).astype(np.int64)

    def from_pixels(self, points_px: ArrayLike) -> Floats:
        """Pixels of the resized photo, in fractions."""
        return self.frame.from_input(points_px)

    def bins_of_pixels(self, points_px: ArrayLike) -> Ints:
        return self.to_bins(self.from_pixels(points_px))

    def pixels_of_bins(self, bins_xy: ArrayLike) -> Ints:
        return self.to_pixels(self.from_bins(bins_xy))
