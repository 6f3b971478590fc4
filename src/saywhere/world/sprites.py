"""Sprites: every thing drawn once and kept, in the sizes in which it was needed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from saywhere.world.brush import Brush
from saywhere.world.chance import pick
from saywhere.world.colours import PALETTE, Ink, dark, light
from saywhere.world.drawings import DRAWINGS, Style
from saywhere.world.kinds import KINDS

_MOST_PIXELS = 24_000_000
"""Of kept sprites, together: about 100 MB."""

_SMALLEST_MASTER_PX = 64
_HALF = 127

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True, eq=False)
class Sprite:
    """image: RGBA. solid: where it counts as there, 0 or 255. area: pixels that are solid."""

    image: Image.Image
    solid: Image.Image
    area: int


class _Kept(Generic[K]):
    """The most recently used sprites, bounded by their pixels."""

    def __init__(self, most_pixels: int) -> None:
        self._sprites: OrderedDict[K, Sprite] = OrderedDict()
        self._most, self._pixels = most_pixels, 0

    def get(self, key: K, make: Callable[[], Sprite]) -> Sprite:
        found = self._sprites.get(key)
        if found is not None:
            self._sprites.move_to_end(key)
            return found
        sprite = make()
        self._sprites[key] = sprite
        self._pixels += sprite.image.width * sprite.image.height
        while self._pixels > self._most and len(self._sprites) > 1:
            _, dropped = self._sprites.popitem(last=False)
            self._pixels -= dropped.image.width * dropped.image.height
        return sprite


_masters: _Kept[tuple[str, str, str, int, int]] = _Kept(_MOST_PIXELS)
_fitted: _Kept[tuple[str, str, str, int, bool, int]] = _Kept(_MOST_PIXELS)
_shadows: dict[tuple[int, int], Image.Image] = {}


def sprite(kind: str, colour: str, pose: str, shape: int, mirrored: bool, height_px: int) -> Sprite:
    """One thing, its drawing's frame `height_px` pixels high."""

    def fit() -> Sprite:
        master_px = _SMALLEST_MASTER_PX
        while master_px < height_px:
            master_px *= 2
        master = _masters.get(
            (kind, colour, pose, shape, master_px), lambda: _drawn(kind, colour, pose, shape, master_px)
        )
        width_px = max(1, round(master.image.width * height_px / master_px))
        image = master.image.resize((width_px, height_px), Image.Resampling.HAMMING)
        return _with_mask(image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else image)

    return _fitted.get((kind, colour, pose, shape, mirrored, height_px), fit)


def shadow(width_px: int, height_px: int) -> Image.Image:
    """A soft spot on the ground, as a mask."""
    key = (max(2, width_px), max(2, height_px))
    if key not in _shadows:
        large = Image.new("L", (64, 32), 0)
        ImageDraw.Draw(large).ellipse((8, 5, 56, 27), fill=110)
        _shadows[key] = large.filter(ImageFilter.GaussianBlur(4)).resize(key)
    return _shadows[key]


def _drawn(kind: str, colour: str, pose: str, shape: int, height_px: int) -> Sprite:
    drawing = DRAWINGS[kind]
    # Chance depends on the names only, never on the size: all sizes show the same thing.
    rng = np.random.default_rng([list(DRAWINGS).index(kind), list(PALETTE).index(colour), shape, *pose.encode()])
    accent = pick(rng, list(PALETTE.values()))
    brush = Brush(drawing.width, drawing.height, height_px / drawing.height)
    drawing.paint(brush, Style(_shade(KINDS[kind].ink(colour), shape), accent, rng, pose))
    return _with_mask(brush.finished().resize((max(1, round(drawing.width * height_px / drawing.height)), height_px)))


def _shade(ink: Ink, shape: int) -> Ink:
    """Each shape has its own shade of the colour, near enough to keep the name."""
    return (ink, dark(ink, 0.1), light(ink, 0.1))[shape % 3]


def _with_mask(image: Image.Image) -> Sprite:
    solid = np.asarray(image)[..., 3] > _HALF
    return Sprite(image, Image.fromarray(solid.astype(np.uint8) * 255), int(solid.sum()))
