"""What carries people: on roads, rails, water and in the air. Facing left."""

from __future__ import annotations

from saywhere.world.brush import Brush
from saywhere.world.colours import BLACK, GLASS, RUBBER, STEEL, WHITE, Ink, dark, light
from saywhere.world.drawings._style import Drawing, Style

_LAMP: Ink = (255, 236, 150)
_TAIL: Ink = (200, 36, 32)


def _wheel(b: Brush, x: float, y: float, radius: float) -> None:
    b.ellipse(x, y, radius, radius, RUBBER)
    b.ellipse(x, y, radius * 0.55, radius * 0.55, (190, 194, 200))
    b.ellipse(x, y, radius * 0.2, radius * 0.2, STEEL)


def _car(b: Brush, style: Style) -> None:
    ink = style.ink
    roof = style.about(4, 0.8)
    b.blob([(34, 28), (50, roof + 2), (88, roof), (112, 24), (114, 34), (70, 36)], ink)
    b.polygon([(42, 28), (54, roof + 6), (70, roof + 5), (70, 28)], GLASS)
    b.polygon([(75, 28), (75, roof + 5), (88, roof + 5), (103, 28)], GLASS)
    b.blob([(4, 36), (16, 29), (40, 26), (104, 26), (128, 30), (136, 38), (136, 50), (70, 54), (4, 50)], ink)
    b.box(5, 46, 135, 51, dark(ink, 0.3), 2)
    b.line([(72, 28), (72, 47)], 1, dark(ink, 0.35))
    b.line([(78, 33), (86, 33)], 1.6, dark(ink, 0.45))
    b.ellipse(9, 37, 5, 4, _LAMP)
    b.box(131, 33, 137, 40, _TAIL, 2)
    _wheel(b, 32, 50, 12)
    _wheel(b, 108, 50, 12)


def _bus(b: Brush, style: Style) -> None:
    ink = style.ink
    b.box(3, 4, 197, 82, ink, 9)
    b.box(3, 56, 197, 64, light(ink, 0.7))
    b.box(5, 14, 22, 50, GLASS, 3)
    for x in range(54, 190, 26):
        b.box(x, 14, x + 21, 42, GLASS, 3)
    b.box(28, 14, 48, 78, dark(GLASS, 0.25), 2)
    b.line([(38, 14), (38, 78)], 1.4, dark(ink, 0.5))
    b.box(28, 6, 90, 12, BLACK, 2)
    b.ellipse(8, 70, 4, 4, _LAMP)
    b.box(193, 66, 198, 74, _TAIL)
    _wheel(b, 62, 82, 13)
    _wheel(b, 156, 82, 13)


def _truck(b: Brush, style: Style) -> None:
    ink = style.ink
    b.box(56, 2, 178, 72, light(style.accent, 0.75), 3)
    b.box(56, 62, 178, 72, dark(light(style.accent, 0.75), 0.25))
    for x in range(74, 176, 18):
        b.line([(x, 6), (x, 60)], 1, dark(light(style.accent, 0.75), 0.18))
    b.blob([(6, 44), (14, 20), (24, 16), (52, 16), (54, 40), (54, 74), (6, 74)], ink)
    b.polygon([(14, 42), (21, 23), (40, 23), (40, 42)], GLASS)
    b.box(4, 66, 56, 74, STEEL, 2)
    b.ellipse(9, 58, 4, 4, _LAMP)
    for x in (30, 118, 146):
        _wheel(b, x, 76, 12.5)


def _bicycle(b: Brush, style: Style) -> None:
    ink = style.ink
    for x in (26, 96):
        b.ring(x, 56, 23, 23, 3.4, RUBBER)
        for dx, dy in ((0, 22), (22, 0), (15, 15), (15, -15)):
            b.line([(x - dx, 56 - dy), (x + dx, 56 + dy)], 0.5, STEEL)
    frame = [(26, 56), (42, 24), (80, 24), (60, 58), (42, 24)]
    b.line(frame, 4, ink)
    b.line([(80, 22), (96, 56), (60, 58)], 4, ink)
    b.line([(60, 58), (80, 24)], 4, ink)
    b.line([(42, 26), (38, 10), (28, 8)], 3.2, BLACK)
    b.line([(76, 15), (82, 28)], 3, STEEL)
    b.limb([(68, 14), (78, 12), (88, 13)], [4, 6, 7], BLACK)
    b.ellipse(60, 58, 6, 6, STEEL)
    b.line([(60, 58), (66, 68), (71, 68)], 2.4, BLACK)


def _train(b: Brush, style: Style) -> None:
    ink = style.ink
    b.blob(
        [(4, 72), (8, 44), (30, 16), (60, 8), (160, 8), (296, 8), (297, 40), (297, 74), (160, 76), (20, 76)],
        light(ink, 0.02),
    )
    b.box(60, 8, 297, 15, dark(ink, 0.25))
    b.polygon([(14, 44), (33, 19), (50, 15), (50, 44)], GLASS)
    for x in range(62, 284, 30):
        b.box(x, 22, x + 22, 42, GLASS, 3)
    b.box(8, 52, 297, 60, WHITE)
    for x in (150, 240):
        b.box(x + 2, 18, x + 18, 72, dark(ink, 0.28), 2)
        b.box(x + 5, 22, x + 15, 44, GLASS, 2)
    b.ellipse(12, 64, 5, 4, _LAMP)
    b.box(10, 74, 297, 82, (60, 62, 68))
    for x in (40, 66, 120, 146, 200, 226, 270):
        b.ellipse(x, 83, 8, 8, RUBBER)
        b.ellipse(x, 83, 4, 4, STEEL)


def _sailboat(b: Brush, style: Style) -> None:
    b.line([(54, 4), (54, 100)], 3, (120, 84, 50))
    b.polygon([(51, 8), (51, 88), (8, 88)], WHITE)
    b.polygon([(58, 14), (58, 88), (96, 88)], light(style.ink, 0.55))
    b.polygon([(54, 2), (54, 10), (70, 6)], style.ink)
    b.blob([(4, 94), (54, 97), (104, 94), (92, 114), (54, 119), (18, 114)], style.ink)
    b.line([(10, 98), (98, 98)], 3, WHITE)


def _ship(b: Brush, style: Style) -> None:
    ink = style.ink
    b.box(62, 34, 160, 56, WHITE, 2)
    b.box(78, 18, 140, 36, WHITE, 2)
    for x, top in ((92, 2), (116, 2)):
        b.box(x, top, x + 14, 20, (206, 60, 46))
        b.box(x, top, x + 14, top + 6, BLACK)
    for x in range(68, 156, 13):
        b.ellipse(x + 3, 45, 3.6, 3.6, dark(GLASS, 0.3))
    for x in range(84, 136, 13):
        b.box(x, 23, x + 7, 30, dark(GLASS, 0.3), 1)
    b.polygon([(4, 52), (198, 52), (184, 88), (28, 88)], ink)
    b.polygon([(22, 78), (189, 78), (184, 90), (28, 90)], (150, 40, 36))
    b.line([(12, 58), (195, 58)], 2.4, light(ink, 0.6))


def _plane(b: Brush, style: Style) -> None:
    ink = style.ink
    b.polygon([(146, 32), (176, 4), (190, 4), (176, 38)], ink)
    b.polygon([(92, 34), (132, 12), (142, 14), (122, 36)], dark(WHITE, 0.25))
    b.limb([(20, 40), (90, 38), (176, 36)], [24, 27, 9], WHITE)
    b.ellipse(20, 40, 15, 11, WHITE)
    b.limb([(14, 46), (90, 47), (172, 40)], [4, 5, 3], ink)
    b.polygon([(8, 38), (16, 32), (26, 32), (26, 38)], dark(GLASS, 0.35))
    for x in range(40, 146, 11):
        b.ellipse(x, 36, 2.4, 3, dark(GLASS, 0.4))
    b.polygon([(78, 42), (120, 42), (150, 68), (136, 70)], dark(WHITE, 0.18))
    b.ellipse(108, 58, 10, 5.4, STEEL)


def _tractor(b: Brush, style: Style) -> None:
    ink = style.ink
    b.box(46, 12, 96, 18, dark(ink, 0.2), 2)
    b.polygon([(54, 18), (90, 18), (94, 56), (50, 56)], GLASS)
    for x1, x2 in ((54, 50), (90, 94), (70, 68)):
        b.line([(x1, 16), (x2, 56)], 3, dark(ink, 0.2))
    b.box(6, 44, 66, 74, ink, 5)
    b.box(50, 52, 104, 74, ink, 4)
    b.line([(24, 44), (24, 20)], 3.4, STEEL)
    b.ellipse(9, 54, 4, 4, _LAMP)
    for y in (54, 61, 68):
        b.line([(16, y), (40, y)], 1.6, dark(ink, 0.35))
    for x, y, r in ((26, 84, 14), (84, 72, 27)):
        b.ellipse(x, y, r, r, RUBBER)
        b.ellipse(x, y, r * 0.56, r * 0.56, (244, 206, 60))
        b.ellipse(x, y, r * 0.16, r * 0.16, STEEL)


DRAWINGS: dict[str, Drawing] = {
    "car": Drawing(140, 63, _car),
    "bus": Drawing(200, 96, _bus),
    "truck": Drawing(182, 90, _truck),
    "bicycle": Drawing(122, 81, _bicycle),
    "train": Drawing(300, 92, _train),
    "sailboat": Drawing(108, 120, _sailboat),
    "ship": Drawing(202, 91, _ship),
    "airplane": Drawing(194, 74, _plane),
    "tractor": Drawing(114, 100, _tractor),
}
