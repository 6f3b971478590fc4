"""What stands and hangs in a bathroom."""

from __future__ import annotations

from saywhere.world.brush import Brush
from saywhere.world.colours import STEEL, WHITE, WOOD, dark, light
from saywhere.world.drawings._style import Drawing, Style


def _bathtub(b: Brush, style: Style) -> None:
    for x in (28, 158):
        b.ellipse(x, 82, 8, 6, STEEL)
    b.line([(176, 30), (176, 8), (160, 8), (160, 14)], 4, STEEL)
    b.blob([(6, 30), (94, 32), (184, 30), (178, 62), (160, 80), (94, 84), (30, 80), (12, 62)], style.ink)
    b.ellipse(95, 29, 92, 9, light(style.ink, 0.4))
    b.ellipse(95, 29, 84, 6, (150, 206, 232))
    for x, y, r in ((50, 23, 10), (66, 20, 12), (84, 23, 10), (104, 22, 11), (118, 25, 8)):
        b.ellipse(x, y, r, r * 0.8, WHITE)


def _toilet(b: Brush, style: Style) -> None:
    ink = style.ink
    b.box(14, 2, 60, 42, ink, 5)
    b.box(11, 1, 63, 9, dark(ink, 0.1), 3)
    b.ellipse(50, 20, 4, 3, STEEL)
    b.blob([(24, 60), (50, 60), (48, 80), (54, 96), (20, 96), (26, 80)], dark(ink, 0.08))
    b.blob([(8, 52), (37, 46), (66, 52), (58, 68), (37, 76), (16, 68)], ink)
    b.ellipse(37, 51, 29, 11, light(ink, 0.4))
    b.ellipse(37, 52, 20, 6.6, dark(ink, 0.35))


def _sink(b: Brush, style: Style) -> None:
    ink = style.ink
    b.polygon([(34, 40), (56, 40), (52, 104), (38, 104)], dark(ink, 0.12))
    b.line([(45, 24), (45, 8), (60, 8), (60, 16)], 4.4, STEEL)
    b.blob([(3, 26), (45, 28), (87, 26), (76, 46), (45, 54), (14, 46)], ink)
    b.ellipse(45, 26, 43, 8, light(ink, 0.35))
    b.ellipse(45, 27, 34, 5, dark(ink, 0.25))


def _mirror(b: Brush, style: Style) -> None:
    b.ellipse(42, 52, 41, 51, style.ink)
    b.ellipse(42, 52, 34, 44, (190, 220, 236))
    b.polygon([(22, 60), (52, 14), (62, 22), (28, 76)], (226, 242, 250))


def _towel(b: Brush, style: Style) -> None:
    b.line([(2, 5), (58, 5)], 3.4, STEEL)
    b.box(8, 4, 52, 84, style.ink, 3)
    b.box(8, 60, 52, 66, light(style.ink, 0.5))
    b.box(8, 72, 52, 75, light(style.ink, 0.5))
    b.line([(30, 10), (30, 58)], 1.2, dark(style.ink, 0.25))


def _stool(b: Brush, style: Style) -> None:
    for x, foot in ((18, 70), (46, 70), (10, 78), (54, 78)):
        b.line([(32 + (x - 32) * 0.7, 20), (x, foot)], 5, dark(WOOD, 0.25))
    b.box(4, 16, 60, 24, dark(style.ink, 0.2), 3)
    b.ellipse(32, 15, 29, 9, light(style.ink, 0.1))


DRAWINGS: dict[str, Drawing] = {
    "bathtub": Drawing(190, 90, _bathtub),
    "toilet": Drawing(74, 98, _toilet),
    "sink": Drawing(90, 106, _sink),
    "mirror": Drawing(84, 104, _mirror),
    "towel": Drawing(60, 86, _towel),
    "stool": Drawing(64, 82, _stool),
}
