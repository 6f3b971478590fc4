"""Small things that stand on tables, beds and floors."""

from __future__ import annotations

import math

from saywhere.world.brush import Brush
from saywhere.world.colours import BLACK, LEAF, STEEL, WHITE, Ink, dark, light
from saywhere.world.drawings._style import Drawing, Style

_PETALS: tuple[Ink, ...] = ((226, 70, 80), (246, 196, 60), (240, 142, 174), (150, 90, 180))


def _cup(b: Brush, style: Style) -> None:
    ink = style.ink
    b.ring(50, 28, 13, 13, 5, dark(ink, 0.1))
    b.blob([(4, 8), (28, 11), (50, 8), (48, 36), (42, 52), (12, 52), (6, 36)], ink)
    b.ellipse(27, 9, 24, 6, light(ink, 0.4))
    b.ellipse(27, 10, 19, 4, (96, 60, 36))


def _plate(b: Brush, style: Style) -> None:
    b.ellipse(48, 17, 47, 13, dark(style.ink, 0.18))
    b.ellipse(48, 14, 47, 13, style.ink)
    b.ellipse(48, 14, 32, 8, dark(style.ink, 0.1))
    b.ellipse(48, 15, 31, 7.4, light(style.ink, 0.25))


def _bottle(b: Brush, style: Style) -> None:
    ink = style.ink
    b.blob([(4, 44), (10, 30), (10, 12), (20, 12), (20, 30), (26, 44), (26, 92), (15, 95), (4, 92)], ink)
    b.box(9, 2, 21, 12, dark(ink, 0.45), 2)
    b.box(4, 54, 26, 78, WHITE)
    b.line([(8, 62), (22, 62)], 2.4, dark(ink, 0.2))
    b.line([(8, 69), (18, 69)], 1.6, dark(ink, 0.2))


def _bowl(b: Brush, style: Style) -> None:
    b.pie(42, 16, 40, 34, 0, 180, style.ink)
    b.box(28, 46, 56, 51, dark(style.ink, 0.2), 2)
    b.ellipse(42, 15, 40, 9, light(style.ink, 0.35))
    b.ellipse(42, 16, 34, 6.6, dark(style.ink, 0.3))
    b.line([(6, 27), (78, 27)], 1.6, light(style.ink, 0.35))


def _apple(b: Brush, style: Style) -> None:
    b.blob(
        [(24, 14), (36, 10), (46, 24), (40, 44), (30, 49), (24, 47), (18, 49), (8, 44), (2, 24), (12, 10)], style.ink
    )
    b.line([(24, 16), (26, 4)], 2.8, (96, 62, 36))
    b.limb([(27, 8), (34, 4), (41, 5)], [2, 7, 2], LEAF)
    b.ellipse(14, 22, 4, 6, light(style.ink, 0.5), 20)


def _banana(b: Brush, style: Style) -> None:
    ink = style.ink
    b.limb([(8, 10), (22, 34), (48, 42), (76, 30)], [6, 16, 17, 6], ink)
    b.limb([(12, 8), (34, 26), (58, 30), (80, 16)], [5, 14, 14, 5], light(ink, 0.2))
    b.line([(4, 5), (13, 11)], 5.4, (110, 84, 40))
    b.ellipse(78, 22, 3, 4, (110, 84, 40))


def _cake(b: Brush, style: Style) -> None:
    b.ellipse(46, 66, 45, 9, (226, 228, 232))
    b.box(10, 34, 82, 64, (214, 164, 104), 3)
    b.ellipse(46, 63, 36, 7, (214, 164, 104))
    b.box(10, 48, 82, 53, light(style.ink, 0.3))
    b.ellipse(46, 33, 36, 9, style.ink)
    for x, drop in ((13, 12), (26, 8), (40, 13), (54, 8), (67, 13), (79, 9)):
        b.ellipse(x, 36 + drop / 3, 6, drop, style.ink)
    for x in (28, 46, 64):
        b.box(x - 2, 12, x + 2, 31, WHITE)
        b.ellipse(x, 7, 3, 5, (250, 170, 40))


def _vase(b: Brush, style: Style) -> None:
    for x, y in ((14, 26), (36, 10), (58, 24), (26, 16), (48, 16), (36, 28)):
        b.line([(36, 66), (x, y)], 2, LEAF)
        ink = style.pick(_PETALS)
        for k in range(5):
            a = math.radians(72 * k)
            b.ellipse(x + 6 * math.cos(a), y + 6 * math.sin(a), 5.4, 5.4, ink)
        b.ellipse(x, y, 4, 4, (252, 222, 90))
    b.blob([(26, 58), (46, 58), (44, 70), (56, 90), (48, 112), (24, 112), (16, 90), (28, 70)], style.ink)
    b.ellipse(28, 88, 4, 10, light(style.ink, 0.4), 8)


def _book(b: Brush, style: Style) -> None:
    ink = style.ink
    b.polygon([(8, 6), (70, 6), (82, 26), (16, 26)], ink)
    b.polygon([(26, 11), (60, 11), (66, 19), (30, 19)], light(ink, 0.55))
    b.box(17, 27, 81, 37, (244, 238, 220))
    b.line([(18, 32), (80, 32)], 1, (200, 190, 166))
    b.limb([(9, 8), (13, 20), (16, 34)], [5, 7, 9], dark(ink, 0.3))
    b.box(14, 36, 82, 40, dark(ink, 0.2), 1)


def _laptop(b: Brush, style: Style) -> None:
    b.box(16, 2, 106, 62, dark(style.ink, 0.2), 4)
    b.box(21, 7, 101, 56, (70, 130, 196))
    b.box(28, 14, 66, 40, (236, 242, 248), 1)
    b.box(72, 14, 94, 26, (248, 200, 80), 1)
    b.polygon([(16, 62), (106, 62), (121, 80), (1, 80)], style.ink)
    b.polygon([(22, 64), (100, 64), (107, 72), (15, 72)], dark(style.ink, 0.5))
    b.box(1, 79, 121, 84, dark(style.ink, 0.3), 2)


def _pot(b: Brush, style: Style) -> None:
    ink = style.ink
    for x in (7, 93):
        b.ring(x, 34, 7, 5, 3.4, BLACK)
    b.blob([(12, 24), (50, 26), (88, 24), (86, 52), (76, 62), (24, 62), (14, 52)], ink)
    b.ellipse(50, 24, 38, 8, dark(ink, 0.2))
    b.pie(50, 23, 36, 14, 180, 360, light(ink, 0.2))
    b.ellipse(50, 7, 6, 4, BLACK)


def _kettle(b: Brush, style: Style) -> None:
    ink = style.ink
    b.ring(44, 26, 24, 23, 4.4, BLACK)
    b.limb([(20, 58), (10, 46), (4, 32)], [13, 9, 7], dark(ink, 0.12))
    b.blob([(18, 46), (28, 30), (44, 27), (62, 30), (72, 46), (74, 76), (45, 80), (14, 76)], ink)
    b.pie(45, 32, 17, 9, 180, 360, light(ink, 0.25))
    b.ellipse(45, 23, 3.6, 3.6, BLACK)
    b.ellipse(32, 52, 4, 12, light(ink, 0.4), 14)


def _pizza(b: Brush, style: Style) -> None:
    b.ellipse(50, 24, 49, 15, (226, 228, 232))
    b.ellipse(50, 20, 44, 15, (196, 136, 70))
    b.ellipse(50, 19, 38, 11.6, style.ink)
    for x, y in ((30, 17), (46, 13), (66, 15), (38, 23), (56, 22), (72, 20)):
        b.ellipse(x, y, 5.4, 2.6, (196, 52, 40))
    for x, y in ((24, 21), (52, 17), (62, 25), (80, 18)):
        b.ellipse(x, y, 2.4, 1.4, (60, 120, 54))


def _teddy_bear(b: Brush, style: Style) -> None:
    ink = style.ink
    for side in (-1, 1):
        b.ellipse(36 + side * 20, 9, 9, 9, ink)
        b.ellipse(36 + side * 20, 10, 5, 5, light(ink, 0.35))
        b.ellipse(36 + side * 25, 50, 8, 13, dark(ink, 0.08), side * -25)
    b.ellipse(36, 58, 22, 24, ink)
    b.ellipse(36, 58, 13, 15, light(ink, 0.35))
    for side in (-1, 1):
        b.ellipse(36 + side * 19, 78, 11, 9, dark(ink, 0.05))
        b.ellipse(36 + side * 19, 78, 6, 5, light(ink, 0.35))
    b.ellipse(36, 24, 23, 20, ink)
    b.ellipse(36, 31, 10, 8, light(ink, 0.45))
    for x in (28, 44):
        b.ellipse(x, 21, 2.6, 2.8, BLACK)
    b.ellipse(36, 28, 4, 3, BLACK)


def _pillow(b: Brush, style: Style) -> None:
    b.blob([(3, 4), (33, 8), (63, 4), (60, 22), (63, 40), (33, 36), (3, 40), (6, 22)], style.ink)
    b.line([(18, 14), (14, 30)], 1.4, dark(style.ink, 0.2))
    b.line([(48, 13), (51, 30)], 1.4, dark(style.ink, 0.2))


def _telephone(b: Brush, style: Style) -> None:
    ink = style.ink
    b.polygon([(14, 30), (58, 30), (70, 58), (2, 58)], ink)
    b.ellipse(36, 43, 13, 10, light(ink, 0.6))
    b.ellipse(36, 43, 6, 4.6, dark(ink, 0.2))
    b.box(2, 56, 70, 62, dark(ink, 0.3), 2)
    b.limb([(6, 20), (20, 10), (52, 10), (66, 20)], [13, 9, 9, 13], dark(ink, 0.12))
    for x in (22, 50):
        b.box(x - 3, 14, x + 3, 30, STEEL)


DRAWINGS: dict[str, Drawing] = {
    "cup": Drawing(66, 54, _cup),
    "plate": Drawing(96, 31, _plate),
    "bottle": Drawing(30, 97, _bottle),
    "bowl": Drawing(84, 52, _bowl),
    "apple": Drawing(50, 51, _apple),
    "banana": Drawing(86, 52, _banana),
    "cake": Drawing(92, 76, _cake),
    "vase": Drawing(72, 114, _vase),
    "book": Drawing(84, 41, _book),
    "laptop": Drawing(122, 85, _laptop),
    "pot": Drawing(100, 64, _pot),
    "kettle": Drawing(80, 82, _kettle),
    "pizza": Drawing(100, 40, _pizza),
    "teddy bear": Drawing(74, 88, _teddy_bear),
    "pillow": Drawing(66, 44, _pillow),
    "telephone": Drawing(72, 63, _telephone),
}
