"""Plots of an experiment's own, drawn on light and on dark paper for its report."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from matplotlib.figure import Figure as Sheet
from PIL import Image, UnidentifiedImageError

from saywhere.core.errors import InvalidValue
from saywhere.plots.palette import DARK, LIGHT, Palette
from saywhere.plots.sheet import png_bytes
from saywhere.reproduce.results import Figure

_SCREEN_DPI = 96


def drawn(title: str, draw: Callable[[Palette], Sheet], alt: str, caption: str = "", section: str = "") -> Figure:
    """The same plot on both papers. draw: how, on a given one. The rest is as of `Figure`."""
    return Figure(title, png_bytes(draw(LIGHT)), alt, caption, section, png_bytes(draw(DARK)))


def check_figures(figures: Sequence[Figure]) -> None:
    """Each must be a PNG, and say what it shows to those who cannot see it."""
    for figure in figures:
        shown_width_px(figure.png)
        if figure.dark_png is not None:
            shown_width_px(figure.dark_png)
        if not figure.alt.strip():
            raise InvalidValue("figure", f"{figure.title!r} has no alt text", "say in words what it shows")


def shown_width_px(png: bytes) -> int:
    """How wide a page shows it, so that letters of 9 points are 9 points: by the dots per inch it was drawn with."""
    try:
        with Image.open(io.BytesIO(png), formats=["PNG"]) as image:
            dpi = float(image.info.get("dpi", (_SCREEN_DPI, _SCREEN_DPI))[0])
            return round(image.width * _SCREEN_DPI / dpi)
    except UnidentifiedImageError as error:
        raise InvalidValue("figure", "is no PNG picture") from error
