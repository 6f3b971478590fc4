"""A kitchen table by a window, drawn from scratch: the picture that the example narratives describe."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFilter

WIDTH, HEIGHT = 960, 720
_SCALE = 3  # Drawn larger and shrunk once: that is all the anti-aliasing there is.

# Where things are, as x1, y1, x2, y2 fractions of the picture. Narrators point at these.
PLACES: dict[str, tuple[float, float, float, float]] = {
    "window": (0.095, 0.055, 0.565, 0.495),
    "hills": (0.12, 0.27, 0.54, 0.46),
    "sun": (0.395, 0.105, 0.465, 0.20),
    "tree": (0.155, 0.21, 0.25, 0.40),
    "wall": (0.59, 0.05, 0.97, 0.30),
    "clock": (0.745, 0.075, 0.87, 0.24),
    "plant": (0.585, 0.30, 0.69, 0.505),
    "cat": (0.69, 0.315, 0.90, 0.755),
    "face": (0.70, 0.35, 0.84, 0.495),
    "tail": (0.87, 0.56, 0.95, 0.76),
    "table": (0.01, 0.635, 0.99, 0.93),
    "plate": (0.06, 0.73, 0.36, 0.885),
    "apple": (0.10, 0.645, 0.188, 0.775),
    "bananas": (0.16, 0.64, 0.325, 0.80),
    "orange": (0.175, 0.72, 0.25, 0.825),
    "cup": (0.415, 0.585, 0.57, 0.795),
    "steam": (0.435, 0.49, 0.515, 0.60),
    "spoon": (0.555, 0.80, 0.70, 0.865),
}

Colour = tuple[int, int, int] | tuple[int, int, int, int]
Points = Sequence[tuple[float, float]]


class _Brush:
    """Shapes in picture pixels (960 × 720), each laid over what is there, with alpha if its colour has one."""

    def __init__(self) -> None:
        self.image = Image.new("RGB", (WIDTH * _SCALE, HEIGHT * _SCALE), (0, 0, 0))

    def polygon(self, points: Points, colour: Colour, blur: float = 0.0) -> None:
        mask, corner = self._mask(points, colour[3] if len(colour) == 4 else 255, 3 * blur)
        if blur:
            mask = mask.filter(ImageFilter.GaussianBlur(blur * _SCALE))
        self.image.paste(colour[:3], (*corner, corner[0] + mask.width, corner[1] + mask.height), mask)

    def gradient(self, points: Points, top: Colour, bottom: Colour) -> None:
        """A shape that changes evenly from its top colour to its bottom colour."""
        mask, corner = self._mask(points, 255)
        ramp = Image.new("RGB", (1, mask.height))
        for row in range(mask.height):
            u = row / max(1, mask.height - 1)
            ramp.putpixel((0, row), tuple(round(a + u * (b - a)) for a, b in zip(top[:3], bottom[:3], strict=True)))
        self.image.paste(ramp.resize(mask.size), corner, mask)

    def _mask(self, points: Points, alpha: int, margin: float = 0.0) -> tuple[Image.Image, tuple[int, int]]:
        """The shape in a patch just large enough, and where on the large picture the patch lies."""
        xs, ys = [x for x, _ in points], [y for _, y in points]
        left, top = (math.floor((min(v) - margin) * _SCALE) for v in (xs, ys))
        right, bottom = (math.ceil((max(v) + margin) * _SCALE) + 1 for v in (xs, ys))
        mask = Image.new("L", (right - left, bottom - top), 0)
        ImageDraw.Draw(mask).polygon([(x * _SCALE - left, y * _SCALE - top) for x, y in points], fill=alpha)
        return mask, (left, top)

    def box(self, x1: float, y1: float, x2: float, y2: float, colour: Colour, radius: float = 0.0) -> None:
        corners = [(x2 - radius, y1 + radius), (x2 - radius, y2 - radius), (x1 + radius, y2 - radius)]
        corners.append((x1 + radius, y1 + radius))
        points = []
        for (x, y), quarter in zip(corners, (3, 0, 1, 2), strict=True):
            angles = [(quarter + i / 8) * math.pi / 2 for i in range(9)]
            points += [(x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles]
        self.polygon(points, colour)

    def ellipse(
        self, x: float, y: float, rx: float, ry: float, colour: Colour, *, tilt: float = 0.0, blur: float = 0.0
    ) -> None:
        self.polygon(_ellipse(x, y, rx, ry, tilt), colour, blur)

    def blob(self, points: Points, colour: Colour, blur: float = 0.0) -> None:
        """A smooth closed shape through the points."""
        self.polygon(_spline(points, closed=True), colour, blur)

    def stroke(self, points: Points, widths: Sequence[float], colour: Colour, blur: float = 0.0) -> None:
        """A smooth line through the points, as wide at each as `widths` says, with round ends."""
        path = _spline(points, closed=False)
        last = len(widths) - 1
        sides: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
        for i, (x, y) in enumerate(path):
            (ax, ay), (bx, by) = path[max(0, i - 1)], path[min(len(path) - 1, i + 1)]
            length = math.hypot(bx - ax, by - ay) or 1.0
            at = i / (len(path) - 1) * last
            low = min(int(at), last - 1)
            half = (widths[low] + (at - low) * (widths[low + 1] - widths[low])) / 2
            nx, ny = -(by - ay) / length * half, (bx - ax) / length * half
            sides[0].append((x + nx, y + ny))
            sides[1].append((x - nx, y - ny))
        self.polygon(sides[0] + sides[1][::-1], colour, blur)
        if not blur:
            for (x, y), width in ((path[0], widths[0]), (path[-1], widths[-1])):
                self.ellipse(x, y, width / 2, width / 2, colour)


def _ellipse(x: float, y: float, rx: float, ry: float, tilt: float = 0.0) -> list[tuple[float, float]]:
    c, s = math.cos(tilt), math.sin(tilt)
    turn = [(rx * math.cos(a / 60 * math.pi), ry * math.sin(a / 60 * math.pi)) for a in range(120)]
    return [(x + u * c - v * s, y + u * s + v * c) for u, v in turn]


def _spline(points: Points, *, closed: bool, steps: int = 16) -> list[tuple[float, float]]:
    """A Catmull–Rom curve through the points."""
    n = len(points)
    pieces = n if closed else n - 1
    curve = []
    for i in range(pieces):
        if closed:
            a, b, c, d = (points[(i + k) % n] for k in (-1, 0, 1, 2))
        else:
            a, b, c, d = (points[min(max(i + k, 0), n - 1)] for k in (-1, 0, 1, 2))
        for step in range(steps):
            u = step / steps
            curve.append(tuple(_catmull_rom(a[k], b[k], c[k], d[k], u) for k in (0, 1)))
    if not closed:
        curve.append(tuple(points[-1]))
    return [(x, y) for x, y in curve]


def _catmull_rom(a: float, b: float, c: float, d: float, u: float) -> float:
    return b + 0.5 * u * (c - a + u * (2 * a - 5 * b + 4 * c - d + u * (3 * (b - c) + d - a)))


def draw() -> Image.Image:
    """The picture, 960 × 720, RGB. The same on every run."""
    brush = _Brush()
    _wall(brush)
    _window(brush)
    _clock(brush)
    _plant(brush)
    _table(brush)
    _cat(brush)
    _fruit(brush)
    _cup(brush)
    _spoon(brush)
    return brush.image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


def _wall(brush: _Brush) -> None:
    brush.gradient([(0, 0), (960, 0), (960, 480), (0, 480)], (238, 222, 196), (247, 235, 214))
    for x in range(30, 960, 60):
        brush.box(x, 0, x + 2, 460, (228, 208, 178, 90))
    brush.ellipse(330, 200, 420, 260, (255, 250, 232, 90), blur=60)


def _window(brush: _Brush) -> None:
    brush.box(84, 46, 552, 366, (120, 96, 70, 70), radius=8)
    brush.box(90, 38, 544, 358, (252, 250, 245), radius=6)
    brush.gradient([(110, 58), (524, 58), (524, 338), (110, 338)], (126, 190, 232), (226, 242, 246))
    brush.ellipse(413, 110, 62, 62, (255, 244, 196, 120), blur=14)
    brush.ellipse(413, 110, 29, 29, (255, 222, 110))
    for x, y, r in ((205, 104, 20), (232, 96, 26), (262, 104, 21), (234, 110, 34)):
        brush.ellipse(x, y, r * 1.25, r * 0.62, (255, 255, 255, 235))
    hill = [(110, 250), (180, 226), (260, 250), (350, 214), (440, 234), (524, 206), (524, 338), (110, 338)]
    brush.gradient(_clip(hill), (150, 196, 150), (120, 178, 118))
    near = [(110, 292), (200, 268), (300, 290), (400, 268), (524, 284), (524, 338), (110, 338)]
    brush.gradient(_clip(near), (116, 176, 96), (86, 150, 78))
    brush.box(189, 236, 197, 288, (122, 86, 56))
    for x, y, r in ((193, 196, 34), (172, 216, 24), (216, 214, 25), (194, 226, 30)):
        brush.ellipse(x, y, r, r * 0.95, (62, 128, 76))
    brush.ellipse(184, 188, 18, 15, (96, 160, 96, 160), blur=4)
    brush.box(311, 56, 323, 340, (252, 250, 245))
    brush.box(108, 192, 526, 203, (252, 250, 245))
    brush.polygon([(124, 58), (196, 58), (110, 170), (110, 78)], (255, 255, 255, 40))
    brush.box(72, 352, 660, 374, (240, 234, 222), radius=5)
    brush.box(72, 368, 660, 379, (206, 192, 168), radius=4)
    for left, inner in ((78, 150), (556, 484)):
        _curtain(brush, left, inner)
    brush.box(58, 24, 576, 33, (128, 92, 62), radius=4)
    for x in (58, 576):
        brush.ellipse(x, 28, 9, 9, (108, 76, 50))


def _clip(points: Points) -> list[tuple[float, float]]:
    """A hill's smooth ridge with the straight foot of the window pane (the last two points)."""
    return [*_spline(points[:-2], closed=False), *points[-2:]]


def _curtain(brush: _Brush, outer: float, inner: float) -> None:
    way = 1 if inner > outer else -1
    edge = [(inner, 30), (inner - 4 * way, 120), (inner - 34 * way, 230), (outer + 10 * way, 330)]
    shape = [(outer - 12 * way, 30), *_spline(edge, closed=False), (outer - 12 * way, 330)]
    brush.gradient(shape, (226, 122, 96), (206, 96, 78))
    for share in (0.25, 0.5, 0.75):
        fold = [(outer - 12 * way + (x - outer + 12 * way) * share, y) for x, y in edge]
        brush.stroke(fold, (5, 2), (176, 76, 62, 90), blur=1.5)


def _clock(brush: _Brush) -> None:
    brush.ellipse(782, 122, 60, 60, (110, 84, 56, 80), blur=7)
    brush.ellipse(775, 114, 58, 58, (62, 92, 108))
    brush.ellipse(775, 114, 49, 49, (253, 250, 243))
    for hour in range(12):
        a = hour * math.pi / 6
        inner = 37 if hour % 3 == 0 else 41
        ends = [(775 + r * math.sin(a), 114 - r * math.cos(a)) for r in (inner, 45)]
        brush.stroke(ends, (4, 4) if hour % 3 == 0 else (2.4, 2.4), (84, 92, 100))
    for a, r, width in ((-0.9, 25, 6), (0.95, 36, 4)):
        brush.stroke([(775, 114), (775 + r * math.sin(a), 114 - r * math.cos(a))], (width, width - 1), (48, 56, 66))
    brush.ellipse(775, 114, 5, 5, (206, 84, 66))


def _plant(brush: _Brush) -> None:
    brush.ellipse(612, 362, 40, 5, (120, 96, 70, 120), blur=3)
    stems = ((-50, 62, 18), (-24, 96, 20), (4, 108, 21), (30, 88, 20), (52, 54, 17))
    for dx, up, width in stems:
        tip = (612 + dx, 320 - up + 8)
        brush.stroke([(612, 326), (612 + dx * 0.25, 320 - up * 0.45), tip], (5, width, 1), (66, 138, 84))
        brush.stroke([(612, 324), (612 + dx * 0.25, 320 - up * 0.45), tip], (1, 2, 0.6), (124, 184, 120))
    brush.gradient([(582, 318), (642, 318), (634, 362), (590, 362)], (214, 130, 88), (178, 96, 64))
    brush.box(578, 308, 646, 324, (222, 140, 98), radius=4)


def _table(brush: _Brush) -> None:
    brush.gradient([(0, 456), (960, 456), (960, 676), (0, 676)], (204, 152, 100), (182, 126, 78))
    brush.box(0, 452, 960, 458, (226, 180, 130))
    for y, start in ((478, 0), (506, 120), (540, 40), (582, 300), (618, 80), (650, 420)):
        grain = [(start - 40 + i * 130, y + 5 * math.sin(i * 1.7 + y)) for i in range(8)]
        brush.stroke(grain, (2, 2), (150, 98, 58, 90))
    brush.polygon([(150, 458), (500, 458), (640, 676), (130, 676)], (255, 236, 196, 60), blur=10)
    brush.gradient([(0, 674), (960, 674), (960, 720), (0, 720)], (140, 92, 56), (112, 72, 44))
    brush.box(0, 672, 960, 677, (214, 164, 112))


def _cat(brush: _Brush) -> None:
    fur, dark, pale = (232, 150, 78), (196, 110, 50), (252, 234, 208)
    brush.ellipse(768, 536, 138, 18, (86, 52, 28, 120), blur=9)
    brush.stroke(
        [(820, 520), (872, 534), (898, 506), (880, 468), (858, 440), (876, 412)], (30, 30, 27, 24, 20, 15), fur
    )
    for x, y, tilt in ((893, 520, 0.9), (884, 474, 0.35), (862, 440, 0.1)):
        brush.ellipse(x, y, 14, 4.5, dark, tilt=tilt)
    body = [(742, 345), (698, 372), (672, 440), (664, 508), (690, 536), (770, 540), (846, 534), (858, 490)]
    brush.blob([*body, (838, 412), (800, 356)], fur)
    brush.blob([(720, 366), (704, 400), (722, 440), (741, 466), (760, 440), (776, 400), (762, 366)], pale)
    for y, reach in ((400, 816), (432, 828), (464, 838)):
        brush.stroke([(reach + 18, y + 4), (reach - 4, y - 4), (reach - 26, y + 2)], (9, 8, 2), dark)
    for x in (716, 764):
        brush.blob([(x - 16, 440), (x - 20, 500), (x - 22, 532), (x + 20, 534), (x + 19, 500), (x + 14, 440)], fur)
        brush.ellipse(x - 1, 526, 23, 13, pale)
        for toe in (-8, 6):
            brush.stroke([(x + toe, 521), (x + toe, 532)], (2, 2), (206, 164, 120))
    brush.stroke([(741, 472), (740, 518)], (1.5, 3), dark)
    for side in (696, 786):
        brush.stroke([(side, 452), (side - 2, 486), (side, 518)], (1, 2.5, 1), dark)
    brush.ellipse(832, 528, 28, 13, pale)
    _cat_head(brush, fur, dark, pale)


def _cat_head(brush: _Brush, fur: Colour, dark: Colour, pale: Colour) -> None:
    for way in (-1, 1):
        ear = [(738 + way * 22, 268), (738 + way * 50, 226), (738 + way * 62, 296)]
        brush.polygon(_spline([*ear, (738 + way * 30, 300)], closed=True), fur)
        inner = [(738 + way * 34, 268), (738 + way * 49, 244), (738 + way * 54, 284)]
        brush.polygon(inner, (240, 178, 158))
    brush.blob([(738, 252), (690, 268), (670, 312), (692, 346), (738, 356), (784, 346), (806, 312), (786, 268)], fur)
    for x, top in ((738, 255), (720, 259), (756, 259)):
        brush.stroke([(x, top), (x + (738 - x) * 0.15, top + 24)], (8, 2), dark)
    for way in (-1, 1):
        for y in (312, 326):
            brush.stroke([(738 + way * 64, y), (738 + way * 44, y + 3)], (6, 1.5), dark)
        brush.ellipse(738 + way * 15, 333, 21, 16, pale)
        brush.ellipse(738 + way * 27, 303, 13, 14, (98, 158, 92))
        brush.ellipse(738 + way * 27, 303, 5.5, 12, (34, 40, 36))
        brush.ellipse(738 + way * 27 - 4, 297, 3.4, 3.4, (255, 255, 255))
        for dy in (-5, 3, 11):
            whisker = [(738 + way * 26, 334 + dy * 0.4), (738 + way * 58, 330 + dy), (738 + way * 88, 328 + dy * 1.9)]
            brush.stroke(whisker, (1.8, 1.4, 0.8), (255, 250, 240, 220))
    brush.polygon(_spline([(728, 320), (748, 320), (738, 331)], closed=True), (222, 122, 112))
    for way in (-1, 1):
        smile = [(738, 331), (738 + way * 4, 340), (738 + way * 15, 340)]
        brush.stroke(smile, (2.4, 2.2, 1.4), (136, 78, 54))


def _fruit(brush: _Brush) -> None:
    brush.ellipse(206, 598, 152, 46, (86, 52, 28, 120), blur=9)
    brush.ellipse(202, 582, 145, 50, (222, 228, 232))
    brush.ellipse(202, 577, 145, 49, (250, 251, 250))
    brush.ellipse(202, 576, 112, 35, (232, 238, 240))
    brush.ellipse(202, 579, 112, 33, (246, 248, 248))
    brush.ellipse(208, 584, 92, 20, (110, 100, 90, 90), blur=7)
    for lift, colour in ((0, (232, 184, 50)), (20, (248, 208, 76))):
        banana = [(158, 556 - lift), (214, 574 - lift * 1.1), (268, 546 - lift), (298, 486 - lift * 0.3)]
        brush.stroke(banana, (12, 36, 36, 10), colour)
        inner = [(172, 553 - lift), (216, 566 - lift * 1.1), (260, 540 - lift), (287, 500 - lift * 0.3)]
        brush.stroke(inner, (1.5, 4, 4, 1.5), (255, 232, 138, 170), blur=1)
    brush.stroke([(297, 490), (304, 470)], (10, 8), (120, 92, 44))
    apple = [(137, 488), (112, 478), (97, 504), (106, 540), (130, 556), (150, 554), (172, 536), (177, 500), (160, 479)]
    brush.blob(apple, (206, 58, 52))
    brush.blob([(118, 494), (106, 512), (116, 538), (122, 514)], (240, 128, 110, 170), blur=3)
    brush.stroke([(138, 492), (141, 474), (148, 464)], (4, 4, 5), (98, 68, 42))
    brush.blob([(145, 476), (160, 462), (180, 464), (166, 478)], (98, 158, 80))
    brush.ellipse(203, 559, 36, 35, (240, 142, 48))
    brush.ellipse(192, 546, 16, 12, (255, 188, 104, 190), tilt=-0.6, blur=4)
    brush.ellipse(209, 532, 4, 2.6, (110, 128, 56))


def _cup(brush: _Brush) -> None:
    brush.ellipse(466, 566, 78, 16, (86, 52, 28, 130), blur=8)
    brush.stroke([(500, 462), (534, 466), (538, 506), (498, 528)], (14, 14, 14, 14), (52, 104, 148))
    brush.gradient([*_ellipse(456, 556, 46, 14)], (40, 86, 126), (34, 76, 114))
    brush.gradient([(402, 440), (510, 440), (502, 558), (410, 558)], (78, 138, 184), (50, 104, 150))
    brush.ellipse(456, 557, 46, 13, (48, 100, 146))
    brush.polygon([(414, 446), (430, 448), (432, 560), (420, 556)], (160, 202, 230, 120), blur=3)
    for x in range(422, 500, 19):
        brush.ellipse(x, 506, 4.5, 5, (246, 240, 226))
    brush.ellipse(456, 440, 54, 15, (104, 160, 202))
    brush.ellipse(456, 441, 47, 11, (66, 40, 26))
    brush.ellipse(446, 439, 26, 4, (128, 84, 54, 160), blur=2)
    for x, bend in ((440, 9), (470, -9)):
        wisp = [(x, 428), (x + bend, 408), (x - bend, 386), (x + bend * 0.6, 362)]
        brush.stroke(wisp, (3, 9, 8, 1), (255, 255, 255, 190), blur=3)


def _spoon(brush: _Brush) -> None:
    brush.stroke([(548, 617), (600, 610), (668, 592)], (12, 12, 12), (86, 52, 28, 110), blur=4)
    brush.stroke([(566, 606), (610, 597), (668, 584)], (6, 7, 12), (186, 194, 202))
    brush.stroke([(572, 603), (612, 595), (664, 583)], (1.5, 2, 3), (240, 244, 248))
    brush.ellipse(556, 608, 24, 13, (176, 186, 194), tilt=-0.2)
    brush.ellipse(555, 607, 19, 9, (214, 222, 228), tilt=-0.2)
    brush.ellipse(549, 604, 8, 3.4, (250, 252, 254), tilt=-0.2)
