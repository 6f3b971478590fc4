"""Layout: which things a scene has and where they stand, in fractions of the picture, before a pixel is painted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from saywhere.world.backdrops import VARIANTS, backdrop
from saywhere.world.chance import between, number, pick, weighted
from saywhere.world.colours import Ink
from saywhere.world.kinds import KINDS, SITTING, Kind
from saywhere.world.places import Place, Slot
from saywhere.world.zones import Zone

SHAPES = 3
"""How many shapes of one kind, colour and pose there are, besides mirroring."""

_TRIES = 5
_MOST_HIDDEN = 0.45
_MOST_HIDDEN_BEHIND = 0.75
_HARDLY_HIDDEN = 0.12
_HEIGHT_STEP = 1.06
_SMALLEST_LAYOUT_PX = 16  # Zones are the same at every size; a tiny backdrop tells them.
_Room = tuple[float, float, float, float, float, tuple[float, float, float]]
"""Box, area against which hiding is measured, and what is painted first."""

_SEAT_TO_FRAME = {"man": 0.43, "woman": 0.43, "child": 0.34}
"""How far below the seat the frame of a seated figure ends, in its heights."""


@dataclass(frozen=True, slots=True)
class PlacedThing:
    """One thing to paint. x: its middle, y: its lower edge, height: of its drawing; all in fractions of the picture.

    key: what is painted first. on: position in the layout of the thing that it stands on. stuff: else, what it is on.
    """

    kind: str
    colour: str
    pose: str
    shape: int
    mirrored: bool
    x: float
    y: float
    height: float
    key: tuple[float, float, float]
    stuff: str = ""
    on: int | None = None

    @property
    def width(self) -> float:
        return self.height * KINDS[self.kind].aspect

    @property
    def box_xyxy(self) -> tuple[float, float, float, float]:
        half = self.width / 2
        return self.x - half, self.y - self.height, self.x + half, self.y


@dataclass(frozen=True, slots=True)
class Layout:
    """variant, mirrored: which backdrop. light: its colour. grain: where the noise is cut out, fractions."""

    place: str
    variant: int
    mirrored: bool
    light: Ink
    grain: tuple[float, float]
    items: tuple[PlacedThing, ...]


def lay_out(rng: np.random.Generator, place: Place) -> Layout:
    """Fill the place's slots in their order."""
    variant, mirrored = int(rng.random() * VARIANTS), bool(rng.random() < 0.5)
    brightness, warmth = between(rng, 0.9, 1.0), between(rng, -0.05, 0.05)
    light = (
        round(255 * brightness * min(1.0, 1 + warmth)),
        round(255 * brightness),
        round(255 * brightness * min(1.0, 1 - warmth)),
    )
    grain = (float(rng.random()), float(rng.random()))
    zones = backdrop(place.name, variant, mirrored, _SMALLEST_LAYOUT_PX).zones
    items: list[PlacedThing] = []
    boxes: list[_Room] = []
    for slot in place.slots:
        _fill(rng, place, slot, zones, items, boxes)
    return Layout(place.name, variant, mirrored, light, grain, tuple(items))


def _fill(
    rng: np.random.Generator,
    place: Place,
    slot: Slot,
    zones: Mapping[str, Zone],
    items: list[PlacedThing],
    taken: list[_Room],
) -> None:
    count = number(rng, slot.chances)
    supports = [i for i, item in enumerate(items) if slot.zone == f"on {item.kind}"]
    if not count or (not supports and slot.zone not in zones):
        return
    same = weighted(rng, slot.kinds) if slot.alike else ""
    for _ in range(count):
        kind = KINDS[same or weighted(rng, slot.kinds)]
        on = pick(rng, supports) if supports else None
        look = _look(rng, kind, seated=on is not None and KINDS[items[on].kind].seat and kind.group == "person")
        best, least = None, 1.0
        for _ in range(_TRIES):
            if on is None:
                item = _in_zone(rng, kind, look, zones[slot.zone], place)
            else:
                item = _on_thing(rng, kind, look, items[on], on)
            room = _room(item)
            hidden = _most_hidden(room, taken, on)
            if hidden < least:
                best, least = (item, room), hidden
            if hidden <= _HARDLY_HIDDEN:
                break
        if best is not None and least <= _MOST_HIDDEN:
            items.append(best[0])
            taken.append(best[1])


@dataclass(frozen=True, slots=True)
class _Appearance:
    colour: str
    pose: str
    shape: int
    mirrored: bool
    size: float


def _look(rng: np.random.Generator, kind: Kind, *, seated: bool) -> _Appearance:
    pose = SITTING if seated else pick(rng, kind.poses)
    colour = weighted(rng, kind.colours)
    return _Appearance(colour, pose, int(rng.random() * SHAPES), bool(rng.random() < 0.5), between(rng, 0.88, 1.14))


def _in_zone(rng: np.random.Generator, kind: Kind, look: _Appearance, zone: Zone, place: Place) -> PlacedThing:
    u = float(rng.random())
    y = zone.y1 + u * (zone.y2 - zone.y1)
    height = _step(kind.height * place.scale * (zone.far + u * (zone.near - zone.far)) * look.size)
    width = height * kind.aspect
    # A thing may be cut off by the picture's edge, but most of it is to be seen.
    inset = min(0.4, 0.42 * width)
    x = min(max(between(rng, zone.x1, zone.x2), inset), 1 - inset)
    key = (float(zone.order), y, 0.0)
    if zone.centred:
        y = min(y + height / 2, zone.y2 + height)
    return PlacedThing(kind.name, look.colour, look.pose, look.shape, look.mirrored, x, y, height, key, zone.stuff)


def _on_thing(rng: np.random.Generator, kind: Kind, look: _Appearance, support: PlacedThing, on: int) -> PlacedThing:
    surface = KINDS[support.kind].surface or (0.0, 0.0, 1.0, 0.0)
    left, top, _, _ = support.box_xyxy
    x1, x2 = (surface[0], surface[2]) if not support.mirrored else (1 - surface[2], 1 - surface[0])
    scale = support.height / KINDS[support.kind].height
    height = _step(kind.height * scale * look.size)
    x = left + support.width * between(rng, x1, x2)
    y = top + support.height * between(rng, surface[1], surface[3])
    key = (support.key[0], support.key[1], y)
    if look.pose == SITTING:
        y += _SEAT_TO_FRAME[kind.name] * height
    return PlacedThing(kind.name, look.colour, look.pose, look.shape, look.mirrored, x, y, height, key, "", on)


def _step(height: float) -> float:
    """Heights come in steps of a few per cent: then most sprites are at hand already."""
    return _HEIGHT_STEP ** round(math.log(height, _HEIGHT_STEP))


def _room(item: PlacedThing) -> _Room:
    soft = item.key[0] < 0 or KINDS[item.kind].surface is not None
    return *item.box_xyxy, item.width * item.height * (_MOST_HIDDEN_BEHIND / _MOST_HIDDEN if soft else 1.0), item.key


def _most_hidden(room: _Room, taken: Sequence[_Room], on: int | None) -> float:
    """How much of the worse hidden of two things would be hidden, over all pairs with the new one.

    Boxes stand for shapes; what a thing stands on does not count.
    """
    worst = 0.0
    x1, y1, x2, y2, area, key = room
    for i, (left, top, right, bottom, other_area, other_key) in enumerate(taken):
        if left < x2 and x1 < right and top < y2 and y1 < bottom and i != on:
            overlap = (min(x2, right) - max(x1, left)) * (min(y2, bottom) - max(y1, top))
            worst = max(worst, overlap / (area if key < other_key else other_area))
    return worst
