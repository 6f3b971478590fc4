"""What people build, put up and take along outdoors."""

from __future__ import annotations

import math

from saywhere.world.brush import Brush
from saywhere.world.colours import BLACK, GLASS, STEEL, WHITE, WOOD, Ink, dark, light
from saywhere.world.drawings._style import Drawing, Style

_LIT: Ink = (255, 232, 150)


def _house(b: Brush, style: Style) -> None:
    wall, roof = light(style.ink, 0.25), style.pick(((150, 62, 48), (96, 74, 66), (84, 90, 104)))
    b.box(100, 10, 114, 44, (150, 84, 70))
    b.box(16, 54, 126, 128, wall)
    b.polygon([(4, 58), (71, 6), (138, 58)], roof)
    b.polygon([(71, 6), (138, 58), (120, 58), (66, 14)], dark(roof, 0.2))
    b.box(60, 86, 82, 128, (116, 72, 44), 1)
    b.ellipse(78, 108, 1.8, 1.8, _LIT)
    for x in (26, 94):
        b.box(x, 74, x + 22, 98, WHITE)
        b.box(x + 2, 76, x + 20, 96, GLASS)
        b.line([(x + 11, 75), (x + 11, 97)], 1.6, WHITE)
        b.line([(x + 1, 86), (x + 21, 86)], 1.6, WHITE)


def _building(b: Brush, style: Style) -> None:
    wall = style.ink
    rows = style.pick((7, 8, 9))
    b.box(2, 6, 98, 178, wall)
    b.box(0, 2, 100, 10, dark(wall, 0.3))
    b.glaze([(78, 10), (98, 10), (98, 178), (78, 178)], (10, 10, 20), 0.18)
    step = 150 / rows
    for row in range(rows):
        for x in (12, 34, 56, 78):
            pane = _LIT if style.rng.random() < 0.18 else dark(GLASS, 0.25 + 0.15 * style.rng.random())
            b.box(x, 18 + row * step, x + 12, 18 + row * step + step * 0.6, pane)
    b.box(40, 160, 60, 178, dark(wall, 0.55))


def _barn(b: Brush, style: Style) -> None:
    ink = style.ink
    b.polygon([(14, 128), (14, 60), (34, 26), (80, 4), (126, 26), (146, 60), (146, 128)], ink)
    for x in range(24, 146, 12):
        b.line([(x, 62), (x, 127)], 0.8, dark(ink, 0.25))
    b.line([(6, 64), (32, 26), (80, 3), (128, 26), (154, 64)], 7, dark((110, 104, 104), 0.25))
    b.box(54, 74, 106, 128, WHITE)
    b.box(58, 78, 102, 128, dark(ink, 0.15))
    for a, c in (((58, 78), (80, 128)), ((80, 78), (58, 128)), ((80, 78), (102, 128)), ((102, 78), (80, 128))):
        b.line([a, c], 2.6, WHITE)
    b.line([(80, 78), (80, 128)], 2.6, WHITE)
    b.box(68, 34, 92, 54, WHITE)
    b.box(71, 37, 89, 51, BLACK)


def _traffic_light(b: Brush, style: Style) -> None:
    b.box(15, 70, 21, 138, STEEL)
    b.box(8, 132, 28, 139, dark(STEEL, 0.3), 2)
    b.box(2, 2, 34, 76, (44, 48, 52), 7)
    lamps: tuple[tuple[float, Ink, Ink], ...] = (
        (15, (236, 40, 36), (88, 26, 26)),
        (39, (248, 196, 40), (92, 74, 22)),
        (63, (50, 214, 90), (20, 76, 38)),
    )
    lit = max(range(3), key=lambda i: -sum(abs(a - c) for a, c in zip(lamps[i][1], style.ink, strict=True)))
    for i, (y, on, off) in enumerate(lamps):
        b.ellipse(18, y, 10, 10, on if i == lit else off)


def _street_lamp(b: Brush, style: Style) -> None:
    ink = dark(style.ink, 0.1)
    b.line([(16, 168), (16, 22), (24, 8), (42, 8)], 4.4, ink, smooth=False)
    b.box(9, 158, 23, 170, ink, 2)
    b.polygon([(34, 8), (58, 8), (54, 18), (38, 18)], ink)
    b.ellipse(46, 19, 8, 4.4, _LIT)


def _bench(b: Brush, style: Style) -> None:
    wood = style.ink
    for x in (16, 104):
        b.line([(x, 8), (x, 36), (x - 3, 60)], 4, (60, 62, 66))
        b.line([(x + 5, 36), (x + 8, 60)], 4, (60, 62, 66))
    for y in (6, 16, 26):
        b.box(6, y, 116, y + 7, wood, 2)
    b.polygon([(6, 36), (116, 36), (121, 47), (1, 47)], light(wood, 0.12))
    b.line([(4, 42), (118, 42)], 1.2, dark(wood, 0.35))
    b.box(1, 46, 121, 50, dark(wood, 0.3), 1)


def _stop_sign(b: Brush, style: Style) -> None:
    b.box(23, 44, 28, 122, STEEL)
    octagon = [
        (25.5 + 25 * math.cos(math.radians(22.5 + 45 * k)), 26 + 25 * math.sin(math.radians(22.5 + 45 * k)))
        for k in range(8)
    ]
    b.polygon(octagon, WHITE)
    b.polygon([(25.5 + (x - 25.5) * 0.88, 26 + (y - 26) * 0.88) for x, y in octagon], style.ink)
    b.box(10, 21, 41, 31, WHITE, 2)


def _hydrant(b: Brush, style: Style) -> None:
    ink = style.ink
    b.box(10, 54, 36, 62, dark(ink, 0.25), 2)
    b.box(14, 18, 32, 56, ink, 2)
    b.pie(23, 19, 12, 14, 180, 360, ink)
    b.box(9, 16, 37, 21, dark(ink, 0.2), 2)
    for x in (7, 39):
        b.box(x - 5, 28, x + 5, 38, dark(ink, 0.15), 2)
    b.ellipse(23, 36, 6, 6, light(ink, 0.35))
    b.box(20, 1, 26, 8, ink, 1)


def _umbrella(b: Brush, style: Style) -> None:
    b.line([(66, 16), (66, 148)], 3.4, (170, 130, 84))
    for k in range(6):
        start = 180 + k * 30
        b.pie(66, 52, 64, 46, start, start + 30, style.ink if k % 2 == 0 else WHITE)
    for k in range(6):
        b.pie(
            2 + 64 / 6 * (2 * k + 1), 52, 10.6, 5, 180, 360, light(style.ink, 0.1) if k % 2 == 0 else dark(WHITE, 0.1)
        )
    b.ellipse(66, 6, 3, 3, style.ink)


def _ball(b: Brush, style: Style) -> None:
    b.ellipse(26, 26, 24, 24, WHITE)
    for k in range(3):
        b.pie(26, 26, 24, 24, 20 + k * 120, 80 + k * 120, style.ink)
    b.ellipse(26, 26, 5, 5, style.ink)


def _deck_chair(b: Brush, style: Style) -> None:
    b.line([(20, 84), (84, 30)], 3.6, WOOD)
    b.line([(82, 84), (34, 46)], 3.6, WOOD)
    b.limb([(94, 10), (70, 50), (22, 58)], [9, 9, 9], style.ink)
    b.limb([(88, 12), (66, 46), (24, 53)], [3, 3, 3], WHITE)
    b.line([(97, 6), (91, 18)], 4, WOOD)
    b.line([(16, 62), (20, 50)], 4, WOOD)


def _surfboard(b: Brush, style: Style) -> None:
    b.blob([(17, 0), (28, 30), (31, 74), (26, 116), (17, 134), (8, 116), (3, 74), (6, 30)], style.ink)
    b.blob([(17, 10), (21, 40), (21, 90), (17, 124), (13, 90), (13, 40)], WHITE)
    b.line([(5, 90), (29, 84)], 4, light(style.ink, 0.6))


def _kite(b: Brush, style: Style) -> None:
    b.polygon([(36, 2), (66, 34), (36, 78), (6, 34)], style.ink)
    b.polygon([(36, 2), (66, 34), (36, 34)], light(style.ink, 0.4))
    b.polygon([(6, 34), (36, 34), (36, 78)], light(style.ink, 0.4))
    b.line([(36, 78), (46, 92), (34, 104), (44, 118)], 1.8, BLACK, smooth=True)
    for x, y in ((43, 90), (37, 103)):
        b.polygon([(x - 7, y - 4), (x - 7, y + 4), (x, y), (x + 7, y - 4), (x + 7, y + 4), (x, y)], style.ink)


def _suitcase(b: Brush, style: Style) -> None:
    ink = style.ink
    b.line([(22, 26), (22, 4), (50, 4), (50, 26)], 3, STEEL)
    b.box(4, 22, 68, 94, ink, 7)
    for x in (20, 36, 52):
        b.line([(x, 28), (x, 88)], 2, dark(ink, 0.3))
    b.box(28, 20, 44, 25, BLACK, 2)
    for x in (14, 58):
        b.ellipse(x, 96, 5, 5, BLACK)


def _backpack(b: Brush, style: Style) -> None:
    ink = style.ink
    b.line([(26, 14), (34, 3), (42, 14)], 3.4, dark(ink, 0.4), smooth=True)
    b.limb([(8, 36), (3, 52), (8, 72)], [5, 7, 5], dark(ink, 0.35))
    b.limb([(60, 36), (65, 52), (60, 72)], [5, 7, 5], dark(ink, 0.35))
    b.box(8, 12, 60, 86, ink, 16)
    b.box(14, 50, 54, 80, light(ink, 0.16), 6)
    b.line([(16, 58), (52, 58)], 2, dark(ink, 0.4))
    b.line([(14, 34), (34, 40), (54, 34)], 2, dark(ink, 0.4), smooth=True)


DRAWINGS: dict[str, Drawing] = {
    "house": Drawing(142, 130, _house),
    "building": Drawing(100, 180, _building),
    "barn": Drawing(160, 130, _barn),
    "traffic light": Drawing(36, 140, _traffic_light),
    "street lamp": Drawing(60, 172, _street_lamp),
    "bench": Drawing(122, 62, _bench),
    "stop sign": Drawing(52, 124, _stop_sign),
    "fire hydrant": Drawing(46, 63, _hydrant),
    "umbrella": Drawing(132, 150, _umbrella),
    "ball": Drawing(52, 52, _ball),
    "deck chair": Drawing(104, 88, _deck_chair),
    "surfboard": Drawing(34, 136, _surfboard),
    "kite": Drawing(72, 122, _kite),
    "suitcase": Drawing(72, 102, _suitcase),
    "backpack": Drawing(68, 88, _backpack),
}
