"""Colours that have a name, and what may be done to them."""

from __future__ import annotations

Ink = tuple[int, int, int]
"""Red, green, blue, each 0 … 255."""

PALETTE: dict[str, Ink] = {
    "red": (204, 44, 40),
    "orange": (238, 132, 34),
    "yellow": (246, 208, 62),
    "green": (66, 150, 70),
    "blue": (48, 100, 192),
    "purple": (124, 70, 162),
    "pink": (240, 142, 174),
    "brown": (132, 86, 50),
    "black": (46, 46, 50),
    "white": (240, 240, 236),
    "gray": (142, 146, 152),
}

BLACK: Ink = (30, 30, 34)
WHITE: Ink = (246, 246, 244)
STEEL: Ink = (120, 126, 134)
WOOD: Ink = (150, 102, 60)
GLASS: Ink = (176, 214, 236)
LEAF: Ink = (62, 132, 58)
RUBBER: Ink = (40, 40, 44)


def mix(a: Ink, b: Ink, share: float) -> Ink:
    """`a` with `share` (0 … 1) of `b` in it."""
    return (
        round(a[0] + (b[0] - a[0]) * share),
        round(a[1] + (b[1] - a[1]) * share),
        round(a[2] + (b[2] - a[2]) * share),
    )


def dark(ink: Ink, share: float = 0.3) -> Ink:
    return mix(ink, (10, 10, 20), share)


def light(ink: Ink, share: float = 0.3) -> Ink:
    return mix(ink, (255, 255, 250), share)
