"""Making scenes, one or many."""

from __future__ import annotations

from collections.abc import Iterator

from saywhere.core.errors import InvalidValue
from saywhere.world.chance import stream, weighted
from saywhere.world.layout import Layout, lay_out
from saywhere.world.paint import paint
from saywhere.world.places import PLACES, place_of
from saywhere.world.scene import Scene

SMALLEST, LARGEST = 16, 2048


def make_scene(seed: int, index: int = 0, size: int = 128, place: str | None = None) -> Scene:
    """Scene number `index` of the world `seed`, `size` × `size` pixels.

    Always the same bytes, whether made alone or among others; at another size it is the same scene. place: one of
    PLACES; drawn by chance if not given.
    """
    if not SMALLEST <= size <= LARGEST:
        raise InvalidValue("size", f"is {size} pixels, not {SMALLEST} to {LARGEST}")
    return paint(make_layout(seed, index, place), index, size)


def make_layout(seed: int, index: int = 0, place: str | None = None) -> Layout:
    """What the scene of this number holds, before it is painted."""
    rng = stream(seed, index, "scene")
    drawn = weighted(rng, {name: p.weight for name, p in PLACES.items()})
    return lay_out(rng, place_of(place if place is not None else drawn))


def scenes(n: int, seed: int = 0, size: int = 128, start: int = 0, place: str | None = None) -> Iterator[Scene]:
    """Scenes `start` … `start + n − 1` of the world `seed`."""
    if n < 0:
        raise InvalidValue("n", f"is {n}: must not be negative")
    for index in range(start, start + n):
        yield make_scene(seed, index, size, place)
