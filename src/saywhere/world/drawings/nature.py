"""What grows, lies, floats and shines outdoors."""

from __future__ import annotations

import math

from saywhere.world.brush import Brush
from saywhere.world.colours import LEAF, WHITE, WOOD, Ink, dark, light, mix
from saywhere.world.drawings._style import Drawing, Style

_TRUNK: Ink = (112, 78, 50)


def _tree(b: Brush, style: Style) -> None:
    leaf = style.ink
    b.limb([(50, 84), (49, 112), (50, 138)], [11, 12, 17], _TRUNK)
    b.line([(50, 96), (66, 80)], 5, _TRUNK)
    b.line([(50, 100), (34, 82)], 5, _TRUNK)
    spots = [(50, 30, 28), (26, 46, 24), (74, 46, 24), (36, 68, 24), (66, 68, 24), (50, 52, 32)]
    for x, y, r in spots:
        b.ellipse(style.about(x, 0.06), style.about(y, 0.06), r, r * 0.92, dark(leaf, 0.12))
    for x, y, r in ((42, 30, 20), (24, 44, 15), (66, 42, 17), (44, 58, 18)):
        b.ellipse(style.about(x, 0.1), style.about(y, 0.1), r, r * 0.85, light(leaf, 0.10))
    for _ in range(16):
        b.ellipse(20 + 60 * style.rng.random(), 18 + 60 * style.rng.random(), 4, 3, dark(leaf, 0.14))


def _pine(b: Brush, style: Style) -> None:
    leaf = style.ink
    b.box(40, 128, 52, 150, _TRUNK)
    for i, (top, bottom, reach) in enumerate(((6, 56, 24), (32, 96, 34), (64, 134, 44))):
        half = style.about(reach, 0.06)
        points = [(46.0, float(top))]
        points += [
            (46 + half, bottom - 6),
            (46 + half * 0.5, bottom),
            (46.0, bottom - 5),
            (46 - half * 0.5, bottom),
            (46 - half, bottom - 6),
        ]
        b.polygon(points, dark(leaf, 0.24 - 0.08 * i))
        b.glaze([(46, top), (46 - half, bottom - 6), (46 - half * 0.4, bottom)], light(leaf, 0.25), 0.35)


def _palm(b: Brush, style: Style) -> None:
    lean = style.about(10, 0.8)
    top = (54 + lean, 44.0)
    b.limb([(46, 158), (48, 100), top], [13, 10, 8], (156, 116, 72))
    for k in range(9):
        y = 150 - k * 11.5
        x = 46 + (lean + 8) * (158 - y) ** 2 / 114**2
        b.line([(x - 5, y), (x + 5, y - 2)], 1.2, dark((156, 116, 72), 0.35))
    for angle in (200, 232, 262, 292, 322, 350, 170, 10):
        a = math.radians(style.about(angle, 0.03))
        reach = 50 if angle not in (170, 10) else 42
        tip = (top[0] + reach * math.cos(a), top[1] + reach * math.sin(a) * 0.8 + 18)
        bend = (top[0] + reach * 0.55 * math.cos(a), top[1] + reach * 0.62 * math.sin(a) - 6)
        b.limb([top, bend, tip], [5, 13, 2], mix(style.ink, (30, 70, 30), 0.35 * style.rng.random()))
    for x, y in ((-5, 5), (4, 6), (0, 9)):
        b.ellipse(top[0] + x, top[1] + y, 4.6, 4.6, (96, 62, 36))


def _bush(b: Brush, style: Style) -> None:
    leaf = style.ink
    for x, y, r in ((22, 40, 19), (78, 40, 19), (38, 28, 22), (62, 26, 22), (50, 40, 24)):
        b.ellipse(style.about(x, 0.05), y, r, r * 0.95, dark(leaf, 0.16))
    for x, y, r in ((30, 30, 13), (56, 22, 14), (72, 34, 12), (46, 40, 13)):
        b.ellipse(x, y, r, r * 0.8, light(leaf, 0.12))
    b.box(14, 44, 86, 58, dark(leaf, 0.2), 8)


def _flower(b: Brush, style: Style) -> None:
    b.line([(24, 30), (25, 52), (24, 78)], 3.2, LEAF, smooth=True)
    b.limb([(24, 66), (14, 58), (6, 56)], [3, 9, 2], LEAF)
    b.limb([(25, 70), (34, 62), (43, 60)], [3, 9, 2], dark(LEAF, 0.15))
    for k in range(6):
        a = math.radians(k * 60 + 15)
        b.ellipse(24 + 12 * math.cos(a), 22 + 12 * math.sin(a), 9.2, 9.2, style.ink)
    centre = (246, 200, 50) if style.ink[2] > 90 or style.ink[0] < 230 else (130, 80, 30)
    b.ellipse(24, 22, 8, 8, centre)


def _rock(b: Brush, style: Style) -> None:
    ink = style.ink
    b.polygon([(4, 46), (12, 22), (34, style.about(6, 0.6)), (60, 10), (82, 26), (88, 47), (60, 50), (24, 50)], ink)
    b.polygon([(12, 22), (34, 8), (46, 22), (30, 34)], light(ink, 0.22))
    b.polygon([(60, 10), (82, 26), (88, 47), (66, 42), (54, 26)], dark(ink, 0.22))


def _cloud(b: Brush, style: Style) -> None:
    puffs = [(30, 38, 22), (56, 26, 25), (86, 28, 23), (112, 40, 19), (70, 42, 24)]
    for x, y, r in puffs:
        b.ellipse(x, y + 3, style.about(r), r * 0.84, dark(style.ink, 0.08))
    for x, y, r in puffs:
        b.ellipse(x - 2, y - 2, r * 0.86, r * 0.72, style.ink)
    b.box(18, 44, 124, 59, dark(style.ink, 0.08), 8)


def _sun(b: Brush, style: Style) -> None:
    for k in range(12):
        a = math.radians(k * 30)
        left, right = a - 0.11, a + 0.11
        b.polygon(
            [
                (40 + 26 * math.cos(left), 40 + 26 * math.sin(left)),
                (40 + 39 * math.cos(a), 40 + 39 * math.sin(a)),
                (40 + 26 * math.cos(right), 40 + 26 * math.sin(right)),
            ],
            style.ink,
        )
    b.ellipse(40, 40, 24, 24, style.ink)
    b.ellipse(37, 37, 15, 15, light(style.ink, 0.4))


def _snowman(b: Brush, style: Style) -> None:
    for y, r in ((86, 25), (52, 19), (25, 14)):
        b.ellipse(36, y, r, r * 0.96, (246, 250, 254))
    b.line([(52, 50), (70, 38)], 2.6, _TRUNK)
    b.line([(20, 50), (2, 40)], 2.6, _TRUNK)
    b.line([(24, 37), (36, 41), (48, 37)], 6, style.ink, smooth=True)
    b.line([(44, 39), (47, 54)], 6, style.ink)
    for x in (31, 41):
        b.ellipse(x, 22, 2, 2, (30, 30, 34))
    b.polygon([(36, 25), (36, 30), (51, 29)], (240, 130, 40))
    for y in (50, 60, 80):
        b.ellipse(36, y, 2.2, 2.2, (30, 30, 34))
    b.box(24, 0, 48, 12, (40, 40, 46), 2)
    b.box(17, 11, 55, 15, (40, 40, 46), 2)


def _hay_bale(b: Brush, style: Style) -> None:
    straw = style.ink
    b.ellipse(52, 38, 36, 35, dark(straw, 0.2))
    b.box(32, 3, 52, 73, dark(straw, 0.2))
    b.ellipse(34, 38, 31, 35, straw)
    for r in (26, 19, 12, 5):
        b.ring(34, 38, r * 0.88, r, 1.6, dark(straw, 0.28))


def _fence(b: Brush, style: Style) -> None:
    wood = style.ink
    for y in (14, 32):
        b.box(0, y, 200, y + 7, dark(wood, 0.14), 1)
    for x in range(4, 200, 24):
        b.polygon([(x, 50), (x, 8), (x + 6, 0), (x + 12, 8), (x + 12, 50)], wood)
        b.line([(x + 9, 10), (x + 9, 48)], 1, dark(wood, 0.2))


def _sandcastle(b: Brush, style: Style) -> None:
    sand = style.ink
    b.polygon([(2, 80), (16, 56), (98, 56), (112, 80)], dark(sand, 0.16))
    for x, top, w in ((22, 30, 20), (72, 30, 20), (44, 14, 26)):
        b.box(x, top, x + w, 66, sand)
        for k in range(3):
            left = x + k * w / 2.6
            b.box(left, top - 6, left + w / 4.4, top, sand)
        b.box(x + w * 0.38, top + 10, x + w * 0.62, top + 20, dark(sand, 0.42), 2)
    b.pie(57, 70, 8, 12, 180, 360, dark(sand, 0.5))
    b.line([(57, 8), (57, -2)], 1.6, WOOD)
    b.polygon([(58, 0), (72, 4), (58, 8)], (210, 50, 46))


def _mountain(b: Brush, style: Style) -> None:
    ink = style.ink
    peak = style.about(92, 0.12)
    b.polygon(
        [(0, 100), (peak - 40, 42), (peak - 26, 48), (peak, 4), (peak + 30, 44), (peak + 44, 36), (190, 100)], ink
    )
    b.polygon([(peak - 14, 28), (peak, 4), (peak + 16, 26), (peak + 8, 24), (peak + 2, 34), (peak - 6, 26)], WHITE)
    b.polygon(
        [(peak, 4), (peak + 30, 44), (peak + 44, 36), (190, 100), (peak + 30, 100), (peak + 6, 52)], dark(ink, 0.2)
    )
    b.polygon([(peak + 1, 6), (peak + 16, 26), (peak + 8, 24), (peak + 3, 32)], dark(WHITE, 0.14))


DRAWINGS: dict[str, Drawing] = {
    "tree": Drawing(100, 140, _tree),
    "pine tree": Drawing(92, 150, _pine),
    "palm tree": Drawing(124, 160, _palm),
    "bush": Drawing(100, 60, _bush),
    "flower": Drawing(48, 80, _flower),
    "rock": Drawing(92, 52, _rock),
    "cloud": Drawing(134, 62, _cloud),
    "sun": Drawing(80, 80, _sun),
    "mountain": Drawing(190, 100, _mountain),
    "snowman": Drawing(72, 112, _snowman),
    "hay bale": Drawing(90, 76, _hay_bale),
    "fence": Drawing(202, 52, _fence),
    "sandcastle": Drawing(114, 82, _sandcastle),
}
