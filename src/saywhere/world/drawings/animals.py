"""Animals, seen from the side and facing left, but for the cat, who looks at you."""

from __future__ import annotations

from saywhere.world.brush import Brush
from saywhere.world.colours import BLACK, Ink, dark, light, mix
from saywhere.world.drawings._style import Drawing, Style

_BEAK: Ink = (240, 160, 40)


def _four_legs(
    b: Brush, xs: tuple[float, float, float, float], top: float, foot: float, width: float, ink: Ink
) -> None:
    """Two legs behind, then two in front: xs in that order."""
    for i, x in enumerate(xs):
        shade = dark(ink, 0.22) if i < 2 else ink
        b.limb([(x, top), (x + 1, (top + foot) / 2), (x, foot)], [width * 1.5, width, width * 0.9], shade)


def _dog(b: Brush, style: Style) -> None:
    ink = style.ink
    b.limb([(98, 44), (110, 34), (114, 16)], [9, 7, 4], ink)
    _four_legs(b, (50, 92, 42, 84), 56, 86, 8, ink)
    b.limb([(40, 44), (64, 48), (92, 47)], [30, 27, 27], ink)
    b.limb([(42, 42), (32, 32), (28, 28)], [24, 22, 22], ink)
    b.ellipse(27, 26, 15, 14, ink)
    b.limb([(22, 31), (14, 33), (9, 33)], [14, 12, 10], light(ink, 0.14))
    b.ellipse(6, 31, 3.6, 3.2, BLACK)
    b.blob([(31, 13), (41, 16), (43, 34), (36, 38), (31, 26)], dark(ink, 0.35))
    b.ellipse(20, 24, 2.2, 2.4, BLACK)
    b.line([(40, 32), (34, 46)], 4, (200, 50, 50))


def _cat(b: Brush, style: Style) -> None:
    ink = style.ink
    b.limb([(62, 88), (84, 86), (84, 62)], [9, 9, 7], dark(ink, 0.15))
    b.blob([(26, 50), (44, 46), (60, 52), (72, 80), (66, 98), (20, 98), (14, 80)], ink)
    for x in (32, 52):
        b.limb([(x, 66), (x, 84), (x - 1, 95)], [11, 10, 11], light(ink, 0.1))
    for side in (-1, 1):
        x = 42 + side * 15
        b.polygon([(x - 10, 24), (x + side * 5, 2), (x + 10, 24)], ink)
        b.polygon([(x - 4, 22), (x + side * 3, 8), (x + 5, 22)], (232, 160, 156))
    b.ellipse(42, 34, 26, 21, ink)
    b.ellipse(42, 43, 12, 8, light(ink, 0.35))
    for x in (32, 52):
        b.ellipse(x, 32, 4.6, 5.2, (190, 214, 90))
        b.ellipse(x, 32, 1.8, 4.6, BLACK)
    b.polygon([(39, 40), (45, 40), (42, 44)], (220, 110, 110))
    whisker = light(ink, 0.7) if sum(ink) < 300 else dark(ink, 0.5)
    for side in (-1, 1):
        for rise in (-3, 1, 5):
            b.line([(42 + side * 8, 43), (42 + side * 30, 41 + rise)], 0.8, whisker)


def _horse(b: Brush, style: Style) -> None:
    ink, mane = style.ink, dark(style.ink, 0.55)
    b.limb([(120, 48), (134, 60), (132, 92)], [10, 10, 4], mane)
    _four_legs(b, (60, 110, 50, 118), 66, 122, 8, ink)
    for x in (60, 110, 50, 118):
        b.box(x - 5, 118, x + 5, 124, BLACK, 1)
    b.limb([(52, 56), (84, 60), (114, 54)], [34, 32, 34], ink)
    b.limb([(52, 52), (40, 34), (32, 18)], [30, 22, 18], ink)
    b.limb([(32, 16), (20, 24), (8, 33)], [19, 15, 12], ink)
    b.limb([(36, 8), (48, 26), (56, 46)], [8, 10, 7], mane)
    b.polygon([(30, 9), (34, -1), (39, 9)], ink)
    b.ellipse(23, 18, 2.2, 2.4, BLACK)
    b.ellipse(5, 33, 1.8, 1.8, BLACK)


def _cow(b: Brush, style: Style) -> None:
    ink = style.ink
    pale = sum(ink) > 420
    patch = (52, 44, 42) if pale else light(ink, 0.85)
    b.line([(126, 34), (134, 50), (132, 72)], 3, dark(ink, 0.2), smooth=True)
    _four_legs(b, (52, 108, 44, 118), 64, 98, 10, ink)
    b.box(36, 26, 128, 72, ink, 16)
    b.ellipse(100, 72, 11, 8, (238, 170, 170))
    b.glaze([(58, 26), (84, 26), (88, 46), (72, 56), (56, 44)], patch, 0.95)
    b.glaze([(100, 34), (126, 28), (130, 54), (112, 60)], patch, 0.95)
    b.limb([(44, 40), (34, 34), (26, 34)], [30, 26, 24], ink)
    for side in (-1, 1):
        b.limb([(25 + side * 8, 18), (25 + side * 13, 13), (25 + side * 12, 7)], [4, 3.4, 2], (232, 222, 196))
        b.ellipse(25 + side * 15, 25, 7, 4, dark(ink, 0.12), side * 20)
    b.blob([(14, 20), (36, 20), (37, 38), (32, 50), (18, 50), (13, 38)], ink)
    b.glaze([(13, 18), (22, 18), (22, 36), (13, 36)], patch, 0.9)
    b.ellipse(25, 48, 12, 8.5, (240, 184, 180))
    for x in (20, 30):
        b.ellipse(x, 48, 1.8, 2.2, (120, 70, 70))
        b.ellipse(x, 32, 2.2, 2.6, BLACK)


def _sheep(b: Brush, style: Style) -> None:
    wool = style.ink
    face = (54, 48, 48) if sum(wool) > 300 else light(wool, 0.55)
    _four_legs(b, (52, 88, 44, 94), 58, 88, 6, face)
    puffs = [(44, 36), (58, 26), (74, 24), (90, 28), (102, 40), (98, 56), (82, 62), (64, 62), (48, 54)]
    for x, y in puffs:
        b.ellipse(x, y, 14, 13, wool)
    b.ellipse(72, 44, 32, 22, wool)
    for x, y in ((62, 36), (80, 40), (68, 52), (92, 48)):
        b.line([(x - 5, y), (x, y + 4), (x + 5, y)], 1.6, dark(wool, 0.16), smooth=True)
    b.ellipse(36, 26, 8, 4.4, face, 20)
    b.ellipse(26, 36, 13, 16, face, 14)
    b.ellipse(30, 22, 12, 8, wool)
    b.ellipse(22, 33, 2.2, 2.6, (250, 250, 250))
    b.ellipse(22, 33, 1.1, 1.4, BLACK)


def _hen(b: Brush, style: Style) -> None:
    ink = style.ink
    for x in (40, 50):
        b.line([(x, 62), (x, 76), (x - 7, 78)], 2.4, _BEAK)
        b.line([(x, 76), (x + 5, 78)], 2.4, _BEAK)
    for tip in ((78, 14), (84, 24), (80, 36)):
        b.limb([(58, 46), (70, 34), tip], [18, 14, 6], dark(ink, 0.2))
    b.blob([(20, 34), (30, 30), (50, 36), (70, 40), (66, 58), (46, 68), (26, 60)], ink)
    b.limb([(30, 44), (24, 30), (24, 20)], [24, 18, 17], ink)
    for x, y in ((19, 8), (25, 5), (31, 9)):
        b.ellipse(x, y, 4.4, 5, (214, 40, 40))
    b.ellipse(24, 18, 9.5, 9.5, ink)
    b.polygon([(15, 16), (5, 20), (15, 23)], _BEAK)
    b.ellipse(16, 28, 3, 5, (214, 40, 40))
    b.ellipse(20, 16, 1.8, 1.8, BLACK)
    b.blob([(40, 44), (58, 44), (62, 54), (48, 58)], dark(ink, 0.16))


def _duck(b: Brush, style: Style) -> None:
    ink = style.ink
    b.blob([(12, 44), (30, 40), (56, 42), (80, 34), (90, 28), (86, 50), (70, 62), (34, 64), (16, 58)], ink)
    b.blob([(38, 46), (62, 44), (78, 42), (64, 56), (46, 56)], dark(ink, 0.18))
    b.limb([(22, 48), (20, 34), (22, 22)], [20, 15, 14], ink)
    head = (32, 110, 66) if sum(ink) < 520 else ink
    b.ellipse(22, 18, 12.5, 12, head)
    b.limb([(14, 20), (7, 21), (2, 21)], [8, 6.4, 5], _BEAK)
    b.ellipse(18, 15, 2, 2.2, BLACK)


def _bird(b: Brush, style: Style) -> None:
    ink = style.ink
    lift = style.about(6, 0.6)
    b.blob([(50, 30), (34, lift + 6), (4, lift), (24, 20), (44, 37)], dark(ink, 0.1))
    b.blob([(52, 30), (66, lift + 4), (98, lift - 2), (78, 19), (60, 37)], mix(ink, BLACK, 0.25))
    b.limb([(38, 31), (54, 34), (74, 37)], [11, 12, 4], ink)
    b.ellipse(36, 29, 6.6, 6, ink)
    b.polygon([(31, 27), (22, 31), (32, 32)], _BEAK)
    b.ellipse(34, 27.5, 1.3, 1.3, BLACK)


DRAWINGS: dict[str, Drawing] = {
    "dog": Drawing(120, 92, _dog),
    "cat": Drawing(92, 100, _cat),
    "horse": Drawing(140, 126, _horse),
    "cow": Drawing(140, 104, _cow),
    "sheep": Drawing(120, 92, _sheep),
    "hen": Drawing(90, 82, _hen),
    "duck": Drawing(96, 66, _duck),
    "bird": Drawing(102, 44, _bird),
}
