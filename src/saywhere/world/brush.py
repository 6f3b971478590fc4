"""A brush: smooth shapes in the drawing's own units, on a clear canvas."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageChops, ImageDraw

from saywhere.world.colours import Ink

Point = tuple[float, float]
Points = Sequence[Point]

OVERSAMPLING = 3
"""Drawn this much larger and shrunk once: that is all the anti-aliasing there is."""

_CURVE_STEPS = 6
_THINNEST_PX = 0.8
_RIM = 0.3


class Brush:
    """Shapes on a clear canvas of `width` × `height` units, `scale` pixels of the finished sprite to a unit."""

    def __init__(self, width: float, height: float, scale: float) -> None:
        self._scale = scale * OVERSAMPLING
        size = (max(1, math.ceil(width * self._scale)), max(1, math.ceil(height * self._scale)))
        self.image = Image.new("RGBA", size, (0, 0, 0, 0))
        self._draw = ImageDraw.Draw(self.image)

    def polygon(self, points: Points, ink: Ink) -> None:
        self._draw.polygon([(x * self._scale, y * self._scale) for x, y in points], fill=(*ink, 255))

    def ellipse(self, x: float, y: float, rx: float, ry: float, ink: Ink, tilt: float = 0.0) -> None:
        """Around the centre x, y; tilt in degrees, clockwise."""
        if tilt:
            self.polygon(ellipse_points(x, y, rx, ry, tilt), ink)
            return
        s = self._scale
        self._draw.ellipse(((x - rx) * s, (y - ry) * s, (x + rx) * s, (y + ry) * s), fill=(*ink, 255))

    def pie(self, x: float, y: float, rx: float, ry: float, start: float, end: float, ink: Ink) -> None:
        """A slice of an ellipse; degrees clockwise from the right."""
        s = self._scale
        box = ((x - rx) * s, (y - ry) * s, (x + rx) * s, (y + ry) * s)
        self._draw.pieslice(box, start, end, fill=(*ink, 255))

    def ring(self, x: float, y: float, rx: float, ry: float, width: float, ink: Ink) -> None:
        s = self._scale
        box = ((x - rx) * s, (y - ry) * s, (x + rx) * s, (y + ry) * s)
        self._draw.ellipse(box, outline=(*ink, 255), width=max(1, round(self._thick(width))))

    def box(self, x1: float, y1: float, x2: float, y2: float, ink: Ink, radius: float = 0.0) -> None:
        s = self._scale
        corners = (x1 * s, y1 * s, x2 * s, y2 * s)
        if radius:
            self._draw.rounded_rectangle(corners, radius * s, fill=(*ink, 255))
        else:
            self._draw.rectangle(corners, fill=(*ink, 255))

    def blob(self, points: Points, ink: Ink) -> None:
        """A smooth closed shape through the points."""
        self.polygon(_spline(points, closed=True), ink)

    def line(self, points: Points, width: float, ink: Ink, *, smooth: bool = False) -> None:
        """A line with round ends and joints, never thinner than can be seen."""
        path = _spline(points, closed=False) if smooth and len(points) > 2 else list(points)
        thick = self._thick(width)
        pixels = [(x * self._scale, y * self._scale) for x, y in path]
        self._draw.line(pixels, fill=(*ink, 255), width=max(1, round(thick)))
        radius = thick / 2
        for x, y in pixels:
            self._draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=(*ink, 255))

    def limb(self, points: Points, widths: Sequence[float], ink: Ink) -> None:
        """A smooth line whose width changes from point to point: an arm, a leg, a tail."""
        path = _spline(points, closed=False)
        at = np.linspace(0, len(widths) - 1, len(path))
        radii = np.interp(at, range(len(widths)), widths) / 2 * self._scale
        for (x, y), radius in zip(path, radii.tolist(), strict=True):
            px, py = x * self._scale, y * self._scale
            self._draw.ellipse((px - radius, py - radius, px + radius, py + radius), fill=(*ink, 255))
        sides: tuple[list[Point], list[Point]] = ([], [])
        for i, (x, y) in enumerate(path):
            (ax, ay), (bx, by) = path[max(0, i - 1)], path[min(len(path) - 1, i + 1)]
            length = math.hypot(bx - ax, by - ay) or 1.0
            nx, ny = -(by - ay) / length * radii[i] / self._scale, (bx - ax) / length * radii[i] / self._scale
            sides[0].append((x + nx, y + ny))
            sides[1].append((x - nx, y - ny))
        self.polygon(sides[0] + sides[1][::-1], ink)

    def glaze(self, points: Points, ink: Ink, strength: float) -> None:
        """Tint what is already painted inside the shape; the outline stays. strength: 0 … 1."""
        pixels = [(x * self._scale, y * self._scale) for x, y in points]
        left, top = (max(0, math.floor(min(p[axis] for p in pixels))) for axis in (0, 1))
        right = min(self.image.width, math.ceil(max(x for x, _ in pixels)) + 1)
        bottom = min(self.image.height, math.ceil(max(y for _, y in pixels)) + 1)
        mask = Image.new("L", (max(1, right - left), max(1, bottom - top)), 0)
        ImageDraw.Draw(mask).polygon([(x - left, y - top) for x, y in pixels], fill=round(255 * strength))
        part = self.image.crop((left, top, left + mask.width, top + mask.height))
        alpha = part.getchannel("A")
        part.paste(ink, mask=ImageChops.multiply(mask, alpha))
        part.putalpha(alpha)
        self.image.paste(part, (left, top))

    def finished(self) -> Image.Image:
        """The sprite at its final size: smooth edges, a darker rim, light from the upper left."""
        width, height = (max(1, round(side / OVERSAMPLING)) for side in self.image.size)
        return _lit(self.image.resize((width, height), Image.Resampling.BOX))

    def _thick(self, width: float) -> float:
        return max(width * self._scale, _THINNEST_PX * OVERSAMPLING)


def _lit(sprite: Image.Image) -> Image.Image:
    """Darker at its rim, so that it stands out; lighter at the upper left, darker at the lower right."""
    pixels = np.asarray(sprite).astype(np.float32)
    height, width = pixels.shape[:2]
    solid = np.pad(pixels[..., 3], 1) / 255
    beside = np.minimum(np.minimum(solid[:-2, 1:-1], solid[2:, 1:-1]), np.minimum(solid[1:-1, :-2], solid[1:-1, 2:]))
    down = np.linspace(0, 1, height, dtype=np.float32)[:, None]
    right = np.linspace(0, 1, width, dtype=np.float32)[None, :]
    inside = 1 - _RIM * (1 - beside)
    pixels[..., :3] *= ((1.10 - 0.16 * down - 0.10 * right) * inside)[..., None]
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def ellipse_points(x: float, y: float, rx: float, ry: float, tilt: float = 0.0, n: int = 48) -> list[Point]:
    """Around the centre x, y; tilt in degrees, clockwise."""
    c, s = math.cos(math.radians(tilt)), math.sin(math.radians(tilt))
    turn = [(rx * math.cos(2 * math.pi * i / n), ry * math.sin(2 * math.pi * i / n)) for i in range(n)]
    return [(x + u * c - v * s, y + u * s + v * c) for u, v in turn]


def _spline(points: Points, *, closed: bool) -> list[Point]:
    """A Catmull–Rom curve through the points."""
    n = len(points)
    curve: list[Point] = []
    for i in range(n if closed else n - 1):
        if closed:
            a, b, c, d = (points[(i + k) % n] for k in (-1, 0, 1, 2))
        else:
            a, b, c, d = (points[min(n - 1, max(0, i + k))] for k in (-1, 0, 1, 2))
        for step in range(_CURVE_STEPS):
            u = step / _CURVE_STEPS
            curve.append((_between(a[0], b[0], c[0], d[0], u), _between(a[1], b[1], c[1], d[1], u)))
    return curve if closed else [*curve, points[-1]]


def _between(a: float, b: float, c: float, d: float, u: float) -> float:
    return 0.5 * (2 * b + (c - a) * u + (2 * a - 5 * b + 4 * c - d) * u**2 + (3 * b - a - 3 * c + d) * u**3)
