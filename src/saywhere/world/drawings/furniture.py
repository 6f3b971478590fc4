"""What stands on the floor or hangs on the wall of a room."""

from __future__ import annotations

import math

from saywhere.world.brush import Brush
from saywhere.world.colours import BLACK, LEAF, STEEL, WHITE, WOOD, Ink, dark, light, mix
from saywhere.world.drawings._style import Drawing, Style

_SPINES: tuple[Ink, ...] = (
    (190, 52, 46),
    (52, 92, 160),
    (226, 176, 60),
    (70, 130, 84),
    (120, 76, 140),
    (224, 220, 206),
)


def _table(b: Brush, style: Style) -> None:
    wood = style.ink
    for x in (34, 158):
        b.box(x, 28, x + 8, 78, dark(wood, 0.38))
    for x in (8, 184):
        b.box(x, 34, x + 9, 96, dark(wood, 0.2))
    b.polygon([(26, 2), (174, 2), (198, 32), (2, 32)], light(wood, 0.12))
    for u in (0.33, 0.66):
        b.line([(26 - 24 * u + 2, 2 + 30 * u), (174 + 24 * u - 2, 2 + 30 * u)], 0.8, dark(wood, 0.12))
    b.box(2, 32, 198, 41, dark(wood, 0.14), 1)


def _desk(b: Brush, style: Style) -> None:
    wood = style.ink
    b.box(12, 34, 20, 92, dark(wood, 0.25))
    b.box(128, 34, 190, 92, dark(wood, 0.12))
    for y in (40, 58, 76):
        b.box(133, y, 185, y + 14, light(wood, 0.1), 1)
        b.line([(153, y + 7), (165, y + 7)], 2.2, STEEL)
    b.polygon([(24, 2), (176, 2), (198, 28), (2, 28)], light(wood, 0.14))
    b.box(2, 28, 198, 36, dark(wood, 0.16), 1)


def _chair(b: Brush, style: Style) -> None:
    ink = style.ink
    for x in (14, 46):
        b.box(x, 6, x + 6, 66, dark(ink, 0.12), 2)
    for y in (12, 28, 44):
        b.box(16, y, 50, y + 8, ink, 2)
    for x, foot in ((12, 100), (50, 100), (4, 114), (56, 114)):
        b.box(x, 66, x + 6, foot, dark(ink, 0.3), 1)
    b.polygon([(14, 60), (52, 60), (64, 74), (2, 74)], light(ink, 0.15))
    b.box(2, 74, 64, 80, dark(ink, 0.15), 1)


def _sofa(b: Brush, style: Style) -> None:
    ink = style.ink
    for x in (18, 172):
        b.box(x, 80, x + 10, 92, dark(WOOD, 0.4))
    b.box(18, 6, 182, 66, dark(ink, 0.1), 12)
    b.line([(100, 14), (100, 46)], 1.6, dark(ink, 0.4))
    b.box(22, 46, 100, 68, light(ink, 0.16), 6)
    b.box(100, 46, 178, 68, light(ink, 0.16), 6)
    b.box(20, 64, 180, 84, dark(ink, 0.16), 4)
    b.box(2, 32, 28, 84, ink, 10)
    b.box(172, 32, 198, 84, ink, 10)
    b.polygon([(32, 30), (52, 26), (56, 48), (36, 50)], light(style.accent, 0.15))


def _bed(b: Brush, style: Style) -> None:
    wood = dark(WOOD, 0.2)
    b.box(2, 4, 14, 100, wood, 3)
    b.box(208, 48, 218, 102, wood, 3)
    b.box(8, 62, 212, 90, dark(WHITE, 0.16), 3)
    b.blob([(8, 48), (30, 42), (110, 44), (212, 46), (214, 66), (110, 68), (8, 66)], WHITE)
    b.blob([(70, 42), (140, 40), (210, 44), (216, 60), (214, 84), (140, 88), (66, 86), (64, 60)], style.ink)
    b.blob([(66, 42), (88, 40), (92, 64), (86, 87), (64, 86)], light(style.ink, 0.45))
    b.box(14, 28, 60, 50, WHITE, 9)
    b.line([(20, 46), (54, 46)], 1.4, dark(WHITE, 0.2))


def _lamp(b: Brush, style: Style) -> None:
    b.ellipse(34, 164, 18, 5, dark(STEEL, 0.4))
    b.line([(34, 50), (34, 162)], 3.4, dark(STEEL, 0.3))
    b.polygon([(20, 4), (48, 4), (66, 52), (2, 52)], light(style.ink, 0.2))
    b.glaze([(26, 4), (42, 4), (52, 52), (16, 52)], (255, 246, 190), 0.45)


def _television(b: Brush, style: Style) -> None:
    b.box(54, 82, 80, 96, dark(style.ink, 0.2))
    b.box(34, 94, 100, 99, dark(style.ink, 0.2), 2)
    b.box(2, 2, 132, 84, style.ink, 5)
    b.box(8, 8, 126, 76, (60, 96, 136))
    b.polygon([(8, 76), (8, 56), (44, 38), (76, 56), (104, 42), (126, 54), (126, 76)], (74, 124, 84))
    b.ellipse(98, 24, 8, 8, (248, 222, 120))
    b.polygon([(8, 8), (50, 8), (20, 76), (8, 76)], (86, 122, 160))


def _window(b: Brush, style: Style) -> None:
    b.box(2, 4, 112, 122, WHITE)
    b.box(8, 10, 106, 114, (170, 212, 244))
    b.blob([(8, 88), (34, 76), (66, 86), (106, 74), (106, 114), (8, 114)], (122, 172, 96))
    b.ellipse(76, 34, 14, 8, WHITE)
    b.ellipse(64, 38, 10, 6, WHITE)
    b.box(54, 10, 60, 114, WHITE)
    b.box(8, 58, 106, 64, WHITE)
    b.blob([(0, 2), (30, 2), (26, 40), (10, 78), (14, 118), (0, 122)], style.ink)
    b.blob([(114, 2), (84, 2), (88, 40), (104, 78), (100, 118), (114, 122)], style.ink)
    b.box(0, 0, 114, 6, dark(style.ink, 0.35), 2)
    b.box(0, 118, 114, 124, dark(WHITE, 0.15), 1)


def _painting(b: Brush, style: Style) -> None:
    b.box(1, 1, 91, 71, dark(WOOD, 0.15), 1)
    b.box(7, 7, 85, 65, WHITE)
    b.box(12, 12, 80, 60, light(style.ink, 0.5))
    if style.rng.random() < 0.5:
        b.polygon([(12, 60), (34, 28), (50, 46), (62, 34), (80, 60)], dark(style.ink, 0.2))
        b.ellipse(66, 23, 6, 6, (248, 214, 90))
    else:
        b.ellipse(46, 36, 18, 18, style.ink)
        b.polygon([(14, 58), (46, 30), (78, 58)], dark(style.ink, 0.35))


def _bookshelf(b: Brush, style: Style) -> None:
    wood = style.ink
    b.box(2, 2, 104, 172, wood, 2)
    for top in (8, 48, 88, 128):
        b.box(8, top, 98, top + 34, dark(wood, 0.55))
        x = 10.0
        while x < 90:
            width, height = style.about(8, 0.4), style.about(26, 0.18)
            if style.rng.random() < 0.9:
                b.box(x, top + 34 - height, min(97, x + width), top + 34, style.pick(_SPINES))
            x += width + 1
        b.box(4, top + 34, 102, top + 40, light(wood, 0.12))


def _plant(b: Brush, style: Style) -> None:
    for tip in ((6, 30), (20, 8), (38, 2), (56, 10), (72, 32), (12, 54), (66, 54)):
        base, bend = (38.0, 72.0), ((38 + tip[0]) / 2, (72 + tip[1]) / 2 - 8)
        b.limb([base, bend, tip], [4, style.about(13, 0.2), 2], mix(LEAF, (120, 180, 80), style.rng.random() * 0.6))
    b.polygon([(20, 72), (56, 72), (50, 110), (26, 110)], style.ink)
    b.box(17, 68, 59, 77, dark(style.ink, 0.12), 2)


def _rug(b: Brush, style: Style) -> None:
    b.polygon([(28, 2), (172, 2), (198, 38), (2, 38)], style.ink)
    b.polygon([(36, 7), (164, 7), (184, 33), (16, 33)], light(style.ink, 0.4))
    b.polygon([(44, 11), (156, 11), (172, 29), (28, 29)], style.ink)
    b.ellipse(100, 20, 26, 5.4, light(style.ink, 0.6))


def _clock(b: Brush, style: Style) -> None:
    b.ellipse(32, 32, 31, 31, style.ink)
    b.ellipse(32, 32, 25, 25, WHITE)
    for k in range(12):
        a = math.radians(k * 30)
        b.ellipse(32 + 20 * math.cos(a), 32 + 20 * math.sin(a), 1.6, 1.6, BLACK)
    hour, minute = style.rng.random() * 6.28, style.rng.random() * 6.28
    b.line([(32, 32), (32 + 11 * math.cos(hour), 32 + 11 * math.sin(hour))], 3, BLACK)
    b.line([(32, 32), (32 + 17 * math.cos(minute), 32 + 17 * math.sin(minute))], 2, BLACK)


def _refrigerator(b: Brush, style: Style) -> None:
    ink = style.ink
    b.box(3, 2, 83, 168, ink, 5)
    b.line([(4, 62), (82, 62)], 2.4, dark(ink, 0.4))
    for top, bottom in ((36, 56), (70, 108)):
        b.line([(12, top), (12, bottom)], 4, dark(ink, 0.45))
    b.glaze([(66, 4), (82, 4), (82, 166), (66, 166)], (10, 10, 20), 0.12)
    b.box(8, 166, 20, 172, BLACK)
    b.box(66, 166, 78, 172, BLACK)
    b.box(44, 22, 54, 32, (220, 80, 70), 1)
    b.box(58, 26, 66, 36, (250, 214, 90), 1)


def _oven(b: Brush, style: Style) -> None:
    ink = style.ink
    b.polygon([(10, 2), (90, 2), (98, 16), (2, 16)], (58, 60, 66))
    for x in (32, 68):
        b.ring(x, 9, 13, 4, 1.8, (150, 154, 160))
    b.box(2, 16, 98, 104, ink, 2)
    for x in (16, 34, 52, 70, 86):
        b.ellipse(x, 25, 4.2, 4.2, BLACK)
    b.box(10, 38, 90, 90, (40, 42, 48), 4)
    b.box(18, 50, 82, 84, (96, 70, 52), 3)
    b.line([(14, 43), (86, 43)], 3.6, light(STEEL, 0.5))


def _wardrobe(b: Brush, style: Style) -> None:
    wood = style.ink
    b.box(2, 2, 114, 168, wood, 3)
    b.box(0, 0, 116, 8, dark(wood, 0.25), 1)
    for x in (8, 60):
        b.box(x, 14, x + 48, 152, light(wood, 0.14), 2)
        b.box(x + 6, 20, x + 42, 80, wood, 2)
        b.box(x + 6, 88, x + 42, 146, wood, 2)
    for x in (53, 63):
        b.ellipse(x, 86, 2.6, 2.6, BLACK)
    for x in (8, 100):
        b.box(x, 166, x + 8, 174, dark(wood, 0.4))


DRAWINGS: dict[str, Drawing] = {
    "table": Drawing(200, 97, _table),
    "desk": Drawing(200, 93, _desk),
    "chair": Drawing(66, 115, _chair),
    "sofa": Drawing(200, 93, _sofa),
    "bed": Drawing(220, 103, _bed),
    "lamp": Drawing(68, 170, _lamp),
    "television": Drawing(134, 100, _television),
    "window": Drawing(114, 125, _window),
    "painting": Drawing(92, 72, _painting),
    "bookshelf": Drawing(106, 174, _bookshelf),
    "plant": Drawing(78, 112, _plant),
    "rug": Drawing(200, 40, _rug),
    "clock": Drawing(64, 64, _clock),
    "refrigerator": Drawing(86, 173, _refrigerator),
    "oven": Drawing(100, 106, _oven),
    "wardrobe": Drawing(116, 175, _wardrobe),
}
