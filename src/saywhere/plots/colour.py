"""Colours that tell time: violet is the start, yellow the end, and equal times look equally far apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saywhere.core import Narrative, Word
from saywhere.core.trace import Trace
from saywhere.core.types import Floats

STEPS = 256
# Lightness, chroma and hue (degrees) in OKLCh at even places on the way. Lightness only rises, so the order of times
# survives grey printing and colour blindness; it stays off both ends, so that a line shows on dark and light photos.
_WAY = np.array([(0.42, 0.19, 285), (0.52, 0.225, 325), (0.64, 0.20, 375), (0.77, 0.150, 418), (0.90, 0.160, 460)])
# OKLab to linear sRGB, in its two published steps.
_LAB_TO_CONES = np.array(
    [
        (1.0, 0.3963377774, 0.2158037573),
        (1.0, -0.1055613458, -0.0638541728),
        (1.0, -0.0894841775, -1.2914855480),
    ]
)
_CONES_TO_RGB = np.array(
    [
        (4.0767416621, -3.3077115913, 0.2309699292),
        (-1.2684380046, 2.6097574011, -0.3413193965),
        (-0.0041960863, -0.7034186147, 1.7076147010),
    ]
)


@lru_cache(maxsize=1)
def _table() -> tuple[Floats, Floats]:
    """(256, 3) sRGB in [0, 1] at even perceptual distances, and (256,) the luminance of each."""
    fine = np.linspace(0, len(_WAY) - 1, 4097)
    lightness, chroma, hue = (np.interp(fine, range(len(_WAY)), column) for column in _WAY.T)
    lab = np.stack([lightness, chroma * np.cos(np.radians(hue)), chroma * np.sin(np.radians(hue))], axis=1)
    travelled = np.append(0, np.cumsum(np.linalg.norm(np.diff(lab, axis=0), axis=1)))
    even = np.linspace(0, travelled[-1], STEPS)
    lab = np.stack([np.interp(even, travelled, column) for column in lab.T], axis=1)
    linear = np.clip((lab @ _LAB_TO_CONES.T) ** 3 @ _CONES_TO_RGB.T, 0, 1)
    srgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return srgb, linear @ (0.2126, 0.7152, 0.0722)


def time_colours(shares: ArrayLike) -> Floats:
    """(…, 3) sRGB in [0, 1] for shares of the whole time; those outside [0, 1] get the colour of the nearer end."""
    return _table()[0][_index(shares)]


def inks(shares: ArrayLike) -> list[str]:
    """Black or white for each of (n,) shares: whichever is easier to read on its colour."""
    # The luminance where black and white have the same contrast by the rules of WCAG.
    return ["#000000" if luminance > 0.179 else "#ffffff" for luminance in _table()[1][_index(shares)]]


def _index(shares: ArrayLike) -> NDArray[np.int64]:
    return np.rint(np.clip(np.asarray(shares, dtype=np.float64), 0, 1) * (STEPS - 1)).astype(np.int64)


def hex_colours(shares: ArrayLike) -> list[str]:
    """#rrggbb for each of (n,) shares."""
    return as_hex(time_colours(shares))


def as_hex(srgb: Floats) -> list[str]:
    """#rrggbb for each of (n, 3) colours in [0, 1]."""
    return ["#" + bytes(rgb).hex() for rgb in np.rint(srgb * 255).astype(np.uint8)]


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Which time has which colour: from start_s to end_s, in seconds."""

    start_s: float
    end_s: float

    @classmethod
    def of(cls, words: tuple[Word, ...], trace: Trace) -> TimeScale:
        """From the first sound or movement to the last; 0 to 0 if there is neither."""
        times = [t for word in words for t in (word.start_s, word.end_s)]
        times += [trace.start_s, trace.end_s] if len(trace) else []
        return cls(min(times, default=0.0), max(times, default=0.0))

    @classmethod
    def of_narrative(cls, narrative: Narrative) -> TimeScale:
        return cls.of(narrative.words, narrative.trace)

    def shares(self, times_s: ArrayLike) -> Floats:
        """Where in the span each time lies, 0 to 1; all 0 if the span has no length."""
        times = np.asarray(times_s, dtype=np.float64)
        # Halved first: times near the largest float must not overflow.
        length = self.end_s / 2 - self.start_s / 2
        shares: Floats = (times / 2 - self.start_s / 2) / length if length > 0 else np.zeros_like(times)
        return shares

    def colours(self, times_s: ArrayLike) -> Floats:
        """(…, 3) sRGB in [0, 1]."""
        return time_colours(self.shares(times_s))
