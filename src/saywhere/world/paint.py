"""Painting: from a layout to a picture with labels, back to front."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops

from saywhere.world.backdrops import Backdrop, backdrop
from saywhere.world.layout import Layout, PlacedThing
from saywhere.world.scene import BoxXyxy, Scene, Thing
from saywhere.world.sprites import Sprite, shadow, sprite

_FLOATING = frozenset({"sky", "wall", "sea", "pond", "roof", "hill"})
"""Where nothing throws a shadow."""

_HORIZON = 0.3
_GRAIN_STRENGTH = 5


def paint(layout: Layout, index: int, size: int) -> Scene:
    """The scene of a layout. The same layout at another size is the same scene, sharper."""
    ground = backdrop(layout.place, layout.variant, layout.mirrored, size)
    photo = ground.photo.copy()
    numbers = np.arange(len(ground.stuff) + 1, dtype=np.uint8)
    numbers[1:] += len(layout.items)
    labels = Image.fromarray(numbers[ground.labels])
    rects: dict[int, tuple[int, int, Sprite]] = {}
    for i in sorted(range(len(layout.items)), key=lambda i: layout.items[i].key):
        rects[i] = _put(photo, labels, layout.items[i], i + 1, size)
    lit = ImageChops.multiply(photo, Image.new("RGB", photo.size, layout.light))
    noisy = ImageChops.add(lit, _grain(size, layout.grain), offset=-_GRAIN_STRENGTH)
    return _scene(layout, index, np.array(noisy), np.array(labels), rects, ground)


def _put(photo: Image.Image, labels: Image.Image, item: PlacedThing, number: int, size: int) -> tuple[int, int, Sprite]:
    drawn = sprite(item.kind, item.colour, item.pose, item.shape, item.mirrored, max(3, round(item.height * size)))
    left = round(item.x * size - drawn.image.width / 2)
    top = round(item.y * size) - drawn.image.height
    if item.on is None and item.stuff not in _FLOATING and item.kind != "rug":
        width, height = round(drawn.image.width * 1.05), max(2, round(drawn.image.width * 0.14))
        spot = shadow(width, height)
        photo.paste(
            (16, 16, 22), (left - round(drawn.image.width * 0.02), round(item.y * size) - spot.height // 2), spot
        )
    photo.paste(drawn.image, (left, top), drawn.image)
    labels.paste(number, (left, top, left + drawn.image.width, top + drawn.image.height), drawn.solid)
    return left, top, drawn


@lru_cache(maxsize=8)
def _noise(size: int) -> Image.Image:
    rng = np.random.default_rng([size, 21])
    return Image.fromarray(rng.integers(0, 2 * _GRAIN_STRENGTH + 1, (size, size, 3), dtype=np.uint8))


def _grain(size: int, start: tuple[float, float]) -> Image.Image:
    """Sensor noise around _GRAIN_STRENGTH: a kept picture, moved round by `start`."""
    return ImageChops.offset(_noise(size), int(start[0] * size), int(start[1] * size))


def _scene(
    layout: Layout,
    index: int,
    photo: NDArray[np.uint8],
    labels: NDArray[np.uint8],
    rects: dict[int, tuple[int, int, Sprite]],
    ground: Backdrop,
) -> Scene:
    size = len(photo)
    names = ["", *(item.kind for item in layout.items), *ground.stuff]
    seen = np.bincount(labels.ravel(), minlength=len(names))
    shown = [n for n in range(1, len(names)) if seen[n]]
    position = {n: i for i, n in enumerate(shown)}
    if len(shown) < len(names) - 1:
        renumber = np.zeros(256, dtype=np.uint8)
        renumber[shown] = np.arange(1, len(shown) + 1)
        labels = renumber[labels]
    things = []
    for n in shown:
        area = float(seen[n]) / size**2
        if n <= len(layout.items):
            item, (left, top, drawn) = layout.items[n - 1], rects[n - 1]
            box = _bounds(labels, position[n] + 1, left, top, drawn.image.width, drawn.image.height)
            on = position.get(_support(item, layout.items, ground.stuff))
            visible = float(seen[n]) / max(1, drawn.area)
            depth = _depth(item, layout.items)
            things.append(Thing(item.kind, item.colour, item.pose, box, area, visible, depth, on, identity=n - 1))
        else:
            box = _bounds(labels, position[n] + 1, 0, 0, size, size)
            things.append(Thing(names[n], "", "", box, area, 1.0, 1.0, None, stuff=True, identity=n - 1))
    photo.flags.writeable = False
    labels.flags.writeable = False
    return Scene(index, layout.place, photo, labels, tuple(things))


def _support(item: PlacedThing, items: Sequence[PlacedThing], stuff: Sequence[str]) -> int:
    """The number of what the item is on; −1 if that is not in the picture."""
    if item.on is not None:
        return item.on + 1
    return len(items) + 1 + stuff.index(item.stuff) if item.stuff in stuff else -1


def _depth(item: PlacedThing, items: Sequence[PlacedThing]) -> float:
    if item.key[0] <= -2:
        return 1.0
    base = items[item.on].y if item.on is not None else item.y
    return min(0.99, max(0.0, 1 - (base - _HORIZON) / (1 - _HORIZON)))


def _bounds(labels: NDArray[np.uint8], number: int, left: int, top: int, width: int, height: int) -> BoxXyxy:
    """Bounds of a number's pixels, known to lie in this rectangle, in fractions."""
    size = len(labels)
    x0, y0 = max(0, left), max(0, top)
    here = labels[y0 : max(0, top + height), x0 : max(0, left + width)] == number
    rows, cols = here.any(axis=1).nonzero()[0], here.any(axis=0).nonzero()[0]
    return (
        (x0 + int(cols[0])) / size,
        (y0 + int(rows[0])) / size,
        (x0 + int(cols[-1]) + 1) / size,
        (y0 + int(rows[-1]) + 1) / size,
    )
