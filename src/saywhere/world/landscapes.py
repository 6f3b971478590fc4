"""Landscapes: backgrounds under the open sky."""

from __future__ import annotations

import numpy as np

from saywhere.world.chance import between, pick
from saywhere.world.colours import Ink, dark, light, mix
from saywhere.world.paper import Paper, wave
from saywhere.world.zones import Painter, Zone

_SKIES: tuple[tuple[Ink, Ink], ...] = (
    ((96, 156, 222), (190, 222, 244)),
    ((118, 176, 232), (214, 232, 244)),
    ((150, 180, 206), (220, 226, 232)),
    ((112, 146, 206), (250, 214, 178)),
)
_GRASS: tuple[Ink, ...] = ((122, 172, 84), (108, 158, 72), (142, 178, 88))


def _sky(paper: Paper, rng: np.random.Generator, horizon: float) -> Zone:
    top, bottom = _SKIES[int(rng.random() * len(_SKIES))]
    paper.band(-0.01, horizon + 0.02, top, bottom, "sky")
    paper.grain("sky", 5, 24, 6)
    return Zone(0.08, 0.07, 0.92, max(0.1, horizon * 0.55), "sky", order=-3, centred=True)


def _hills(paper: Paper, rng: np.random.Generator, horizon: float, ink: Ink) -> None:
    for k in range(2):
        ridge = wave(-0.02, 1.02, horizon - 0.045 + 0.03 * k, 0.022, float(rng.random()), between(rng, 0.7, 1.6))
        shade = mix(ink, (170, 200, 220), 0.45 - 0.25 * k)
        paper.area([*ridge, (1.02, horizon + 0.03), (-0.02, horizon + 0.03)], shade, shade, "hill")
    paper.grain("hill", 5, 3, 2)


def _street(paper: Paper, rng: np.random.Generator) -> dict[str, Zone]:
    kerb = between(rng, 0.62, 0.67)
    walk = kerb - 0.11
    sky = _sky(paper, rng, walk)
    x = -0.05
    while x < 1.0:
        width, roof = between(rng, 0.1, 0.2), walk - between(rng, 0.14, 0.3)
        wall = mix(
            pick(rng, ((186, 150, 130), (160, 166, 176), (206, 190, 160), (150, 130, 130))), (200, 214, 230), 0.35
        )
        paper.box(x, roof, x + width, walk + 0.01, wall, dark(wall, 0.12), "skyline")
        for row in range(int((walk - roof) / 0.05)):
            for col in range(1, int(width / 0.035)):
                y = roof + 0.02 + row * 0.05
                right = x + col * 0.035
                paper.box(right - 0.012, y, right, y + 0.022, dark(wall, 0.3), dark(wall, 0.3))
        x += width + between(rng, 0.0, 0.03)
    paper.band(walk, kerb, (176, 172, 166), (190, 186, 180), "sidewalk")
    for k in range(12):
        paper.line([(k / 11, walk), (k / 11 - 0.02, kerb)], 0.003, (150, 146, 142))
    paper.band(kerb, 1.01, (92, 94, 100), (112, 114, 120), "road")
    paper.line([(0, kerb), (1, kerb)], 0.016, (214, 212, 206))
    for k in range(5):
        x = k * 0.24 - 0.05
        paper.area([(x, 0.83), (x + 0.13, 0.83), (x + 0.125, 0.85), (x - 0.01, 0.85)], (240, 236, 214), (240, 236, 214))
    paper.grain("road", 8, 1, 1)
    paper.grain("sidewalk", 5, 1, 1)
    return {
        "sky": sky,
        "far": Zone(0.05, walk + 0.01, 0.95, walk + 0.02, "sidewalk", 0.62, 0.62, order=-1),
        "ground": Zone(0.06, walk + 0.05, 0.94, kerb - 0.005, "sidewalk", 0.8, 0.84, order=0),
        "lane": Zone(0.15, kerb + 0.09, 0.85, kerb + 0.13, "road", 0.9, 0.94, order=1),
        "near lane": Zone(0.12, 0.94, 0.88, 0.97, "road", 1.1, 1.15, order=2),
    }


def _station(paper: Paper, rng: np.random.Generator) -> dict[str, Zone]:
    edge = between(rng, 0.62, 0.66)
    sky = _sky(paper, rng, 0.5)
    wall = pick(rng, ((176, 110, 90), (168, 160, 150), (150, 150, 160)))
    paper.band(0.36, 0.52, wall, dark(wall, 0.1), "wall")
    for k in range(22):
        paper.line([(k / 21, 0.36), (k / 21, 0.52)], 0.003, dark(wall, 0.2))
    paper.band(0.52, edge, (122, 112, 102), (142, 132, 120), "tracks")
    for k in range(26):
        paper.line([(k / 25, edge - 0.075), (k / 25 - 0.02, edge - 0.02)], 0.008, (92, 70, 54))
    for y in (edge - 0.07, edge - 0.025):
        paper.line([(0, y), (1, y)], 0.009, (196, 200, 206))
    paper.band(edge, 1.01, (180, 178, 174), (204, 202, 198), "platform")
    paper.line([(0, edge), (1, edge)], 0.014, (120, 118, 114))
    paper.line([(0, edge + 0.05), (1, edge + 0.05)], 0.018, (246, 206, 60))
    for k in range(-5, 6):
        paper.line([(0.5 + k * 0.12, edge + 0.06), (0.5 + k * 0.24, 1.0)], 0.003, (160, 158, 154))
    paper.band(-0.01, 0.1, (86, 96, 108), (104, 114, 126), "roof")
    for x in (0.04, 0.96):
        paper.box(x - 0.015, 0.1, x + 0.015, edge + 0.14, (96, 106, 116), (76, 84, 94))
    paper.grain("tracks", 12, 1, 1)
    paper.grain("platform", 5, 1, 1)
    return {
        "sky": Zone(sky.x1, 0.15, sky.x2, 0.24, "sky", order=-3, centred=True),
        "wall": Zone(0.15, 0.2, 0.85, 0.26, "roof", order=4, centred=True),
        "track": Zone(0.35, edge - 0.02, 0.65, edge - 0.018, "tracks", order=-1),
        "ground": Zone(0.1, edge + 0.13, 0.9, 0.97, "platform", 0.95, 1.25),
    }


def _shore(paper: Paper, rng: np.random.Generator, horizon: float, beach: float) -> None:
    sea = pick(rng, ((40, 116, 176), (36, 132, 168), (62, 128, 190)))
    paper.band(horizon, beach + 0.05, dark(sea, 0.1), light(sea, 0.28), "sea")
    for _ in range(int(70 * (beach - horizon) / 0.4)):
        y = horizon + 0.012 + (beach - horizon) * float(rng.random()) ** 0.8
        x, half = float(rng.random()), 0.01 + 0.04 * (y - horizon) / max(0.05, beach - horizon)
        paper.line(wave(x - half, x + half, y, 0.004, 0, 0.5, 7), 0.004, light(sea, 0.42))
    paper.grain("sea", 5, 10, 2)


def _beach(paper: Paper, rng: np.random.Generator) -> dict[str, Zone]:
    horizon, shore = between(rng, 0.3, 0.38), between(rng, 0.54, 0.6)
    sky = _sky(paper, rng, horizon)
    _shore(paper, rng, horizon, shore)
    edge = wave(-0.02, 1.02, shore, 0.016, float(rng.random()), between(rng, 1, 2))
    sand = pick(rng, ((236, 212, 160), (228, 200, 148), (242, 222, 178)))
    paper.area(
        [(x, y - 0.018) for x, y in edge] + [(1.02, 1.01), (-0.02, 1.01)], (240, 248, 250), (240, 248, 250), "sea"
    )
    paper.area([*edge, (1.02, 1.01), (-0.02, 1.01)], dark(sand, 0.12), light(sand, 0.1), "sand")
    paper.grain("sand", 9, 1, 1)
    return {
        "sky": sky,
        "water": Zone(0.08, horizon + 0.03, 0.92, shore - 0.05, "sea", 0.4, 0.62, order=-2),
        "far": Zone(0.05, shore + 0.04, 0.95, shore + 0.09, "sand", 0.75, 0.8),
        "ground": Zone(0.08, shore + 0.1, 0.92, 0.96, "sand", 0.72, 1.15),
    }


def _sea(paper: Paper, rng: np.random.Generator) -> dict[str, Zone]:
    horizon = between(rng, 0.34, 0.46)
    sky = _sky(paper, rng, horizon)
    _shore(paper, rng, horizon, 1.0)
    return {
        "sky": sky,
        "far": Zone(0.1, horizon + 0.01, 0.9, horizon + 0.04, "sea", 0.5, 0.5, order=-2),
        "water": Zone(0.12, horizon + 0.12, 0.88, 0.93, "sea", 0.55, 1.2),
    }


def _meadow(paper: Paper, rng: np.random.Generator, horizon: float) -> Ink:
    grass = pick(rng, _GRASS)
    _hills(paper, rng, horizon, dark(grass, 0.18))
    paper.band(horizon, 1.01, light(grass, 0.12), dark(grass, 0.08), "grass")
    for _ in range(160):
        x, u = float(rng.random()), float(rng.random())
        y = horizon + 0.02 + (0.98 - horizon) * u
        tall = 0.008 + 0.02 * u
        paper.line(
            [(x, y), (x + tall * between(rng, -0.4, 0.4), y - tall)], 0.003, dark(grass, between(rng, 0.05, 0.3))
        )
    paper.grain("grass", 7, 2, 1)
    return grass


def _open_ground(horizon: float, stuff: str) -> dict[str, Zone]:
    return {
        "horizon": Zone(0.1, horizon + 0.005, 0.9, horizon + 0.01, "hill" if stuff != "snow" else "snow", order=-2),
        "far": Zone(0.05, horizon + 0.03, 0.95, horizon + 0.1, stuff, 0.6, 0.7, order=0),
        "ground": Zone(0.08, horizon + 0.14, 0.92, 0.96, stuff, 0.65, 1.15),
    }


def _park(paper: Paper, rng: np.random.Generator) -> dict[str, Zone]:
    horizon = between(rng, 0.38, 0.44)
    sky = _sky(paper, rng, horizon)
    _meadow(paper, rng, horizon)
    zones = {"sky": sky, **_open_ground(horizon, "grass")}
    if rng.random() < 0.55:
        x, y = between(rng, 0.3, 0.7), horizon + 0.2
        for grow, ink in ((1.12, (96, 132, 70)), (1.0, (104, 164, 206))):
            turn = np.linspace(0, 2 * np.pi, 40)
            points = list(
                zip((x + 0.27 * grow * np.cos(turn)).tolist(), (y + 0.075 * grow * np.sin(turn)).tolist(), strict=True)
            )
            paper.area(points, ink, light(ink, 0.2), "pond" if grow == 1.0 else "")
        zones["water"] = Zone(x - 0.17, y - 0.01, x + 0.17, y + 0.045, "pond", 0.8, 0.95, order=0)
        zones["ground"] = Zone(0.08, y + 0.16, 0.92, 0.96, "grass", 0.85, 1.15)
    else:
        start, end = between(rng, 0.2, 0.8), between(rng, 0.2, 0.8)
        paper.area(
            [(start - 0.02, horizon + 0.02), (start + 0.02, horizon + 0.02), (end + 0.24, 1.01), (end - 0.14, 1.01)],
            (206, 188, 152),
            (222, 206, 172),
            "path",
        )
        paper.grain("path", 6, 1, 1)
    return zones


def _field(paper: Paper, rng: np.random.Generator) -> dict[str, Zone]:
    horizon = between(rng, 0.34, 0.44)
    sky = _sky(paper, rng, horizon)
    _meadow(paper, rng, horizon)
    for _ in range(90):
        x, u = float(rng.random()), float(rng.random())
        y = horizon + 0.04 + (0.94 - horizon) * u
        paper.ellipse(
            x, y, 0.003 + 0.004 * u, 0.003 + 0.004 * u, pick(rng, ((250, 240, 150), (252, 252, 250), (240, 160, 180)))
        )
    return {"sky": sky, **_open_ground(horizon, "grass")}


def _farm(paper: Paper, rng: np.random.Generator) -> dict[str, Zone]:
    horizon = between(rng, 0.36, 0.42)
    sky = _sky(paper, rng, horizon)
    _meadow(paper, rng, horizon)
    soil = pick(rng, ((150, 108, 70), (168, 126, 82)))
    left = bool(rng.random() < 0.5)
    top = horizon + between(rng, 0.22, 0.3)
    slope = 0.06 if left else -0.06
    paper.area([(-0.02, top - slope), (1.02, top + slope), (1.02, 1.01), (-0.02, 1.01)], light(soil, 0.1), soil, "soil")
    for k in range(-8, 9):
        paper.line(
            [(0.5 + k * 0.09, top + 0.01 + slope * k * 0.09 * 2), (0.5 + k * 0.24, 1.0)], 0.008, dark(soil, 0.18)
        )
    paper.grain("soil", 9, 2, 1)
    zones = {"sky": sky, **_open_ground(horizon, "grass")}
    zones["ground"] = Zone(0.08, top + 0.08, 0.92, 0.96, "soil", 0.8, 1.15)
    return zones


def _snow(paper: Paper, rng: np.random.Generator) -> dict[str, Zone]:
    horizon = between(rng, 0.36, 0.46)
    sky = _sky(paper, rng, horizon + 0.1)
    for k in range(3):
        ridge = wave(-0.02, 1.02, horizon + 0.02 + 0.16 * k, 0.035, float(rng.random()), between(rng, 0.4, 0.9))
        shade = mix((206, 220, 238), (250, 252, 255), 0.3 + 0.35 * k)
        paper.area([*ridge, (1.02, 1.01), (-0.02, 1.01)], light(shade, 0.4), dark(shade, 0.05), "snow")
    for _ in range(5):
        x, y = float(rng.random()), between(rng, horizon + 0.2, 0.95)
        paper.line([(x, y), (x + 0.3, y + 0.05)], 0.004, (206, 218, 236))
    paper.grain("snow", 4, 3, 2)
    return {"sky": sky, **_open_ground(horizon + 0.03, "snow")}


PAINTERS: dict[str, Painter] = {
    "street": _street,
    "station": _station,
    "beach": _beach,
    "sea": _sea,
    "park": _park,
    "field": _field,
    "farm": _farm,
    "snow": _snow,
}
