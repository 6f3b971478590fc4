"""Rooms: backgrounds with a wall and a floor."""

from __future__ import annotations

import numpy as np

from saywhere.world.chance import between, pick
from saywhere.world.colours import Ink, dark, light
from saywhere.world.paper import Paper
from saywhere.world.zones import Painter, Zone

_WALLS: tuple[Ink, ...] = (
    (226, 216, 196),
    (206, 222, 226),
    (234, 224, 224),
    (204, 218, 198),
    (238, 226, 178),
    (216, 206, 226),
)
_BOARDS: tuple[Ink, ...] = ((176, 128, 82), (150, 104, 66), (196, 154, 104))


def _floor(paper: Paper, rng: np.random.Generator, edge: float, *, tiles: bool) -> None:
    if tiles:
        base = pick(rng, ((214, 206, 194), (196, 204, 210), (222, 212, 184)))
        paper.band(edge, 1.01, dark(base, 0.12), base, "floor")
        joint = dark(base, 0.25)
        for k in range(-7, 8):
            paper.line([(0.5 + k * 0.10, edge), (0.5 + k * 0.24, 1.0)], 0.004, joint)
        for k in range(1, 6):
            y = edge + (1 - edge) * (k / 5.4) ** 1.5
            paper.line([(0, y), (1, y)], 0.004, joint)
    else:
        base = pick(rng, _BOARDS)
        paper.band(edge, 1.01, dark(base, 0.18), base, "floor")
        for k in range(-9, 10):
            paper.line([(0.5 + k * 0.08, edge), (0.5 + k * 0.2, 1.0)], 0.004, dark(base, 0.22))
    paper.grain("floor", 6, 6, 1)
    paper.line([(0, edge), (1, edge)], 0.02, light(base, 0.5))


def _room(edge: float) -> dict[str, Zone]:
    """Zones that every room has: on the wall, against it, on the floor before it, and flat on the floor."""
    return {
        "wall": Zone(0.12, 0.16, 0.88, edge * 0.5, "wall", order=-3, centred=True),
        "back": Zone(0.08, edge + 0.025, 0.92, edge + 0.06, "floor", 0.92, 0.95),
        "front": Zone(0.1, edge + 0.16, 0.9, 0.965, "floor", 0.98, 1.1, order=1),
        "flat": Zone(0.3, 0.84, 0.7, 0.95, "floor", 1.0, 1.1, order=-1),
    }


def _tiled_wall(paper: Paper, rng: np.random.Generator, edge: float, from_y: float) -> None:
    wall = pick(rng, ((222, 232, 236), (236, 232, 220), (204, 226, 232), (226, 236, 222)))
    paper.band(-0.01, edge + 0.01, wall, dark(wall, 0.06), "wall")
    joint = dark(wall, 0.14)
    for k in range(1, 14):
        paper.line([(k / 14, from_y), (k / 14, edge)], 0.003, joint)
    for k in range(8):
        y = from_y + (edge - from_y) * k / 7
        paper.line([(0, y), (1, y)], 0.003, joint)
    paper.grain("wall", 3, 8, 8)


def _kitchen(paper: Paper, rng: np.random.Generator) -> dict[str, Zone]:
    edge = between(rng, 0.54, 0.6)
    _tiled_wall(paper, rng, edge, 0.2)
    stripe = pick(rng, ((196, 90, 70), (84, 130, 160), (120, 150, 96), (226, 170, 80)))
    paper.band(0.17, 0.2, stripe, stripe)
    _floor(paper, rng, edge, tiles=True)
    return _room(edge)


def _bathroom(paper: Paper, rng: np.random.Generator) -> dict[str, Zone]:
    edge = between(rng, 0.56, 0.62)
    _tiled_wall(paper, rng, edge, 0.0)
    tint = pick(rng, ((110, 170, 200), (96, 176, 176), (150, 150, 196)))
    for k in range(14):
        if k % 2:
            paper.box(k / 14, edge * 3 / 7, (k + 1) / 14, edge * 4 / 7, tint, tint)
    _floor(paper, rng, edge, tiles=True)
    return _room(edge)


def _papered_room(paper: Paper, rng: np.random.Generator, *, stripes: bool) -> dict[str, Zone]:
    edge = between(rng, 0.56, 0.62)
    wall = pick(rng, _WALLS)
    paper.band(-0.01, edge + 0.01, light(wall, 0.1), dark(wall, 0.08), "wall")
    if stripes:
        for k in range(16):
            x = (k + 0.25) / 16
            paper.box(x, 0, x + 0.025, edge, dark(wall, 0.06), dark(wall, 0.12))
    paper.grain("wall", 3, 4, 4)
    _floor(paper, rng, edge, tiles=False)
    return _room(edge)


def _living_room(paper: Paper, rng: np.random.Generator) -> dict[str, Zone]:
    return _papered_room(paper, rng, stripes=bool(rng.random() < 0.6))


def _bedroom(paper: Paper, rng: np.random.Generator) -> dict[str, Zone]:
    return _papered_room(paper, rng, stripes=False)


def _office(paper: Paper, rng: np.random.Generator) -> dict[str, Zone]:
    edge = between(rng, 0.56, 0.62)
    wall = pick(rng, ((226, 228, 230), (210, 216, 222), (232, 228, 218)))
    paper.band(-0.01, edge + 0.01, wall, dark(wall, 0.08), "wall")
    for x in (0.2, 0.55):
        paper.area([(x, 0.0), (x + 0.25, 0.0), (x + 0.29, 0.045), (x - 0.04, 0.045)], (255, 255, 250), (246, 246, 236))
    paper.grain("wall", 2, 8, 8)
    carpet = pick(rng, ((120, 130, 150), (134, 128, 122), (108, 126, 118)))
    paper.band(edge, 1.01, dark(carpet, 0.15), carpet, "floor")
    paper.grain("floor", 9, 1, 1)
    paper.line([(0, edge), (1, edge)], 0.018, dark(wall, 0.3))
    return _room(edge)


PAINTERS: dict[str, Painter] = {
    "kitchen": _kitchen,
    "living room": _living_room,
    "bedroom": _bedroom,
    "bathroom": _bathroom,
    "office": _office,
}
