"""People: a man, a woman, a child, a skier."""

from __future__ import annotations

from dataclasses import dataclass

from saywhere.world.brush import Brush
from saywhere.world.colours import BLACK, Ink, dark, light
from saywhere.world.drawings._style import Drawing, Style

_SKIN: tuple[Ink, ...] = ((244, 206, 172), (226, 174, 132), (176, 122, 84), (122, 82, 58))
_HAIR: tuple[Ink, ...] = ((44, 32, 26), (92, 58, 32), (196, 146, 70), (62, 44, 34))
_TROUSERS: tuple[Ink, ...] = ((52, 62, 96), (70, 70, 76), (104, 86, 64), (38, 42, 54))


@dataclass(frozen=True, slots=True)
class _Body:
    """Heights of one figure, in units from the top of a frame 60 wide."""

    head: float
    head_radius: float
    shoulder: float
    hip: float
    knee: float
    foot: float
    half_shoulder: float
    half_hip: float
    limb: float


_ADULT = _Body(17, 11, 34, 84, 116, 152, 14, 10.5, 10)
_CHILD = _Body(20, 15, 38, 72, 88, 110, 12, 10, 9.5)


def _head(b: Brush, body: _Body, skin: Ink, hair: Ink, *, long_hair: bool) -> None:
    x, y, r = 30.0, body.head, body.head_radius
    if long_hair:
        b.blob(
            [
                (x - r, y - 4),
                (x, y - r - 3),
                (x + r, y - 4),
                (x + r + 3, y + r + 8),
                (x, y + r),
                (x - r - 3, y + r + 8),
            ],
            hair,
        )
    b.box(x - 3.5, y + r - 3, x + 3.5, body.shoulder + 4, dark(skin, 0.12))
    b.ellipse(x, y, r * 0.9, r * 1.12, skin)
    b.pie(x, y - r * 0.15, r * 1.04, r * 1.16, 180, 360, hair)
    if long_hair:
        b.ellipse(x, y + 2, r * 0.78, r * 0.9, skin)
        b.pie(x, y - r * 0.2, r * 0.98, r * 1.0, 195, 345, hair)
    for side in (-1, 1):
        b.ellipse(x + side * r * 0.36, y + r * 0.12, r * 0.11, r * 0.14, BLACK)
    b.line(
        [(x - r * 0.3, y + r * 0.58), (x, y + r * 0.68), (x + r * 0.3, y + r * 0.58)],
        r * 0.1,
        (170, 70, 66),
        smooth=True,
    )


def _arms(b: Brush, body: _Body, shirt: Ink, skin: Ink, pose: str) -> None:
    s, h = body.shoulder, body.hip
    reach = h - s
    for side in (-1, 1):
        x = 30 + side * body.half_shoulder
        if pose == "waving" and side == 1:
            path = [(x - 1, s + 4), (x + 9, s - reach * 0.05), (x + 11, s - reach * 0.62)]
        elif pose == "walking":
            path = [(x, s + 4), (x + side * 4, s + reach * 0.5), (x + 6, s + reach * 0.86)]
        elif pose == "sitting":
            path = [(x, s + 4), (x + side * 3, s + reach * 0.5), (x - side * 4, s + reach * 0.92)]
        else:
            path = [(x, s + 4), (x + side * 4, s + reach * 0.5), (x + side * 3, s + reach * 0.98)]
        b.limb(path, [body.limb * 0.78, body.limb * 0.66, body.limb * 0.56], skin)
        middle = ((path[0][0] + path[1][0]) / 2 + side * 0.6, (path[0][1] + path[1][1]) / 2)
        b.limb([path[0], middle, path[1]], [body.limb * 0.95, body.limb * 0.9, body.limb * 0.8], dark(shirt, 0.1))
        b.ellipse(*path[-1], body.limb * 0.36, body.limb * 0.4, skin)


def _legs(b: Brush, body: _Body, cloth: Ink, pose: str) -> None:
    spread = 13.0 if pose == "walking" else 1.0
    for side in (-1, 1):
        hip_x = 30 + side * body.half_hip * 0.5
        foot_x = hip_x + side * spread
        knee_x = hip_x + side * spread * 0.35
        shade = cloth if side == 1 else dark(cloth, 0.14)
        b.limb(
            [(hip_x, body.hip - 3), (knee_x, body.knee), (foot_x, body.foot - 3)],
            [body.limb * 1.1, body.limb * 0.95, body.limb * 0.75],
            shade,
        )
        toe = 3 if pose == "walking" else side * 1.5
        b.ellipse(foot_x + toe, body.foot, body.limb * 0.62, body.limb * 0.32, BLACK)


def _seated_legs(b: Brush, body: _Body, cloth: Ink) -> None:
    drop = (body.foot - body.hip) * 0.62
    for side in (-1, 1):
        x = 30 + side * body.half_hip * 0.62
        b.box(x - 6, body.hip - 6, x + 6, body.hip + 10, light(cloth, 0.08), 5)
        b.limb([(x, body.hip + 6), (x, body.hip + drop / 2), (x + side, body.hip + drop)], [10.5, 9, 7.5], cloth)
        b.ellipse(x + side * 2, body.hip + drop + 2, 6.4, 3.6, BLACK)


def _torso(b: Brush, body: _Body, shirt: Ink) -> None:
    w, h = body.half_shoulder, body.half_hip
    s, hip = body.shoulder, body.hip
    b.blob(
        [
            (30 - w, s + 2),
            (30, s - 1),
            (30 + w, s + 2),
            (30 + h, (s + hip) / 2),
            (30 + h, hip),
            (30, hip + 2),
            (30 - h, hip),
            (30 - h, (s + hip) / 2),
        ],
        shirt,
    )
    b.polygon([(26, s - 0.5), (34, s - 0.5), (30, s + 6)], light(shirt, 0.35))


def _figure(b: Brush, style: Style, body: _Body, *, long_hair: bool, dress: bool) -> None:
    skin, hair, cloth = style.pick(_SKIN), style.pick(_HAIR), style.pick(_TROUSERS)
    if style.pose == "sitting":
        _seated_legs(b, body, cloth)
    elif dress:
        _legs(b, body, skin, style.pose)
    else:
        _legs(b, body, cloth, style.pose)
    _arms(b, body, style.ink, skin, style.pose)
    _torso(b, body, style.ink)
    if dress and style.pose != "sitting":
        w, top, hem = body.half_hip, (body.shoulder + body.hip) / 2 + 4, body.knee + 2
        b.polygon([(30 - w + 1, top), (30 + w - 1, top), (30 + w + 7, hem), (30 - w - 7, hem)], style.ink)
    _head(b, body, skin, hair, long_hair=long_hair)


def _man(b: Brush, style: Style) -> None:
    _figure(b, style, _ADULT, long_hair=False, dress=False)


def _woman(b: Brush, style: Style) -> None:
    _figure(b, style, _ADULT, long_hair=True, dress=True)


def _child(b: Brush, style: Style) -> None:
    _figure(b, style, _CHILD, long_hair=style.rng.random() < 0.5, dress=False)


def _skier(b: Brush, style: Style) -> None:
    cloth, skin = style.pick(_TROUSERS), _SKIN[0]
    b.line([(4, 124), (104, 126), (114, 120)], 3.2, dark(style.accent, 0.1), smooth=True)
    b.line([(10, 129), (108, 131), (117, 125)], 3.2, style.accent, smooth=True)
    b.limb([(50, 74), (66, 96), (54, 120)], [13, 11, 8], dark(cloth, 0.15))
    b.limb([(52, 74), (72, 98), (60, 124)], [13, 11, 8], cloth)
    b.limb([(72, 34), (58, 52), (50, 76)], [17, 20, 17], style.ink)
    b.limb([(72, 40), (80, 56), (92, 60)], [9, 8, 7], dark(style.ink, 0.15))
    b.line([(93, 54), (70, 128)], 1.8, BLACK)
    b.line([(90, 58), (40, 112)], 1.8, BLACK)
    b.ellipse(92, 60, 4, 4, BLACK)
    b.ellipse(80, 22, 11, 12, skin)
    b.pie(79, 19, 13, 13, 160, 345, style.ink)
    b.ellipse(79, 5, 3.4, 3.4, light(style.ink, 0.5))
    b.limb([(84, 20), (88, 21), (91, 22)], [7, 7, 6], BLACK)


DRAWINGS: dict[str, Drawing] = {
    "man": Drawing(70, 158, _man),
    "woman": Drawing(70, 158, _woman),
    "child": Drawing(70, 116, _child),
    "skier": Drawing(122, 136, _skier),
}
