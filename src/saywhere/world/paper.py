"""Paper: backgrounds in fractions of the picture, painted together with the truth of what each pixel shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from saywhere.world.brush import Points
from saywhere.world.colours import Ink

_OVERSAMPLING = 2


class Paper:
    """A square picture of `size` pixels. Positions are fractions, x right, y down.

    stuff: the names of what was painted, in the order of their first appearance; `labels` holds their numbers.
    """

    def __init__(self, size: int) -> None:
        self._size, self._large = size, size * _OVERSAMPLING
        self._image = Image.new("RGB", (self._large, self._large))
        self._labels = Image.new("L", (size, size), 0)
        self._draw = ImageDraw.Draw(self._image)
        self._label_draw = ImageDraw.Draw(self._labels)
        self.stuff: list[str] = []
        self._grains: list[tuple[int, float, int, int]] = []

    def area(self, points: Points, top: Ink, bottom: Ink, stuff: str = "") -> None:
        """A shape that changes evenly from its top colour to its bottom colour; without a name it belongs below."""
        xs, ys = [x for x, _ in points], [y for _, y in points]
        left, up, right, down = (round(v * self._large) for v in (min(xs), min(ys), max(xs), max(ys)))
        extent = (max(1, right - left + 1), max(1, down - up + 1))
        mask = Image.new("L", extent, 0)
        ImageDraw.Draw(mask).polygon([(x * self._large - left, y * self._large - up) for x, y in points], fill=255)
        ramp = np.linspace(top, bottom, extent[1]).round().astype(np.uint8)[:, None, :]
        self._image.paste(Image.fromarray(ramp).resize(extent), (left, up), mask)
        if stuff:
            if stuff not in self.stuff:
                self.stuff.append(stuff)
            shape = [(x * self._size, y * self._size) for x, y in points]
            self._label_draw.polygon(shape, fill=self.stuff.index(stuff) + 1)

    def box(self, x1: float, y1: float, x2: float, y2: float, top: Ink, bottom: Ink, stuff: str = "") -> None:
        """An upright rectangle, as `area`."""
        self.area([(x1, y1), (x2, y1), (x2, y2), (x1, y2)], top, bottom, stuff)

    def band(self, y1: float, y2: float, top: Ink, bottom: Ink, stuff: str = "") -> None:
        """An area from the left edge to the right edge."""
        self.area([(-0.01, y1), (1.01, y1), (1.01, y2), (-0.01, y2)], top, bottom, stuff)

    def line(self, points: Points, width: float, ink: Ink) -> None:
        """width: fraction of the picture."""
        pixels = [(x * self._large, y * self._large) for x, y in points]
        self._draw.line(pixels, fill=ink, width=max(1, round(width * self._large)))

    def ellipse(self, x: float, y: float, rx: float, ry: float, ink: Ink) -> None:
        s = self._large
        self._draw.ellipse(((x - rx) * s, (y - ry) * s, (x + rx) * s, (y + ry) * s), fill=ink)

    def grain(self, stuff: str, strength: float, wide: int = 1, high: int = 1) -> None:
        """Roughen what shows `stuff`. strength: in steps of 255; wide, high: how far one grain reaches, in 1/128."""
        self._grains.append((self.stuff.index(stuff) + 1, strength, wide, high))

    def finished(self, rng: np.random.Generator) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """(size, size, 3) the picture, and (size, size) the numbers of `stuff`, from 1."""
        small = self._image.resize((self._size, self._size), Image.Resampling.BOX)
        pixels = np.asarray(small).astype(np.float32)
        labels = np.asarray(self._labels).copy()
        for label, strength, wide, high in self._grains:
            noise = _noise(rng, self._size, wide, high) * strength
            pixels += np.where(labels == label, noise, 0)[..., None]
        return np.clip(pixels, 0, 255).round().astype(np.uint8), labels


def _noise(rng: np.random.Generator, size: int, wide: int, high: int) -> NDArray[np.float32]:
    """(size, size) smooth noise of about −1 … 1. It is drawn at 128 × 128, so that any size shows the same grain."""
    rows, cols = -(-128 // high), -(-128 // wide)
    coarse = Image.fromarray(rng.standard_normal((rows, cols)).astype(np.float32) * 0.5)
    return np.asarray(coarse.resize((size, size), Image.Resampling.BICUBIC))


def wave(
    x1: float, x2: float, y: float, rise: float, phase: float, turns: float, n: int = 24
) -> Sequence[tuple[float, float]]:
    """A wavy line from x1 to x2."""
    u = np.linspace(0, 1, n)
    ys = y + rise * np.sin(2 * np.pi * (turns * u + phase))
    return list(zip((x1 + u * (x2 - x1)).tolist(), ys.tolist(), strict=True))
