"""Backdrops: the backgrounds of all places, painted once and kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from saywhere.world import landscapes, rooms
from saywhere.world.paper import Paper
from saywhere.world.zones import Painter, Zone

VARIANTS = 12
"""How many different backgrounds there are for each place; light, grain and mirroring add to that."""

PAINTERS: dict[str, Painter] = {**rooms.PAINTERS, **landscapes.PAINTERS}


@dataclass(frozen=True, slots=True, eq=False)
class Backdrop:
    """One background. photo: RGB; do not paint on it. labels: (size, size) numbers of `stuff` from 1. zones by name."""

    photo: Image.Image
    labels: NDArray[np.uint8]
    stuff: tuple[str, ...]
    zones: dict[str, Zone]


@lru_cache(maxsize=1024)
def backdrop(place: str, variant: int, mirrored: bool, size: int) -> Backdrop:
    """The background of this number for a place, at `size` pixels; its zones are the same at every size."""
    if mirrored:
        plain = backdrop(place, variant, False, size)
        photo = plain.photo.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        labels = np.ascontiguousarray(plain.labels[:, ::-1])
        zones = {name: replace(zone, x1=1 - zone.x2, x2=1 - zone.x1) for name, zone in plain.zones.items()}
        return Backdrop(photo, labels, plain.stuff, zones)
    rng = np.random.default_rng([list(PAINTERS).index(place), variant, 20])
    paper = Paper(size)
    zones = PAINTERS[place](paper, rng)
    if "sky" in zones:  # The sun shines behind everything else that is up there.
        zones["sun"] = replace(zones["sky"], order=zones["sky"].order - 1)
    pixels, labels = paper.finished(rng)
    return Backdrop(Image.fromarray(pixels), labels, tuple(paper.stuff), zones)
