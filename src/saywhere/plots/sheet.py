"""A sheet of paper to draw on: a matplotlib figure laid out in inches, with photos, text and the scale of time."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.textpath import text_to_path
from PIL import Image

from saywhere.atomic import write_atomic
from saywhere.core import Trace
from saywhere.plots.colour import STEPS, TimeScale, time_colours
from saywhere.plots.photo import Photo, view_xyxy
from saywhere.plots.text import drawable, font, seconds, shortened

INK, QUIET, FAINT, PAPER = "#1d1d1f", "#6e6e73", "#b0b0b6", "#ffffff"
MARGIN_IN = 0.22
SCALE_BAR_IN = 0.42
"""Height that the scale of time takes."""
_DPI = 150
_NARROWEST = 1 / 4  # Photos narrower or flatter than 4 : 1 are stretched to that, or nothing could be seen on them.


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle on the sheet, in inches from its top left corner."""

    x: float
    y: float
    width: float
    height: float


def new_sheet(width_in: float, height_in: float) -> Figure:
    """White paper of this size. It belongs to no window and to none of pyplot's lists."""
    figure = Figure(figsize=(width_in, height_in), dpi=_DPI, facecolor=PAPER)
    FigureCanvasAgg(figure)
    return figure


def add_axes(figure: Figure, place: Rect) -> Axes:
    """Axes without any decoration."""
    width, height = figure.get_size_inches()
    bottom = height - place.y - place.height
    axes = figure.add_axes((place.x / width, bottom / height, place.width / width, place.height / height))
    axes.set_axis_off()
    return axes


def write(figure: Figure, text: str, x: float, y: float, *, size: float, colour: str = INK, bold: bool = False) -> Text:
    """One line of text whose baseline starts at (x, y) inches from the top left."""
    width, height = figure.get_size_inches()
    return figure.text(x / width, 1 - y / height, drawable(text), **font_settings(size, colour, bold))


def font_settings(size: float, colour: str, bold: bool = False) -> dict[str, Any]:
    """What every text needs, so that nobody's matplotlib settings, TeX or `$` can change it."""
    return {
        "fontproperties": font(bold),
        "fontsize": size,
        "color": colour,
        "parse_math": False,
        "usetex": False,
        "va": "baseline",
    }


@lru_cache(maxsize=4096)
def text_width_in(text: str, size: float) -> float:
    """How wide `drawable` text of this size (points) is, in inches; never too little."""
    prop = font().copy()
    prop.set_size(size)
    # On pixels, letters are set a little wider than their outlines say.
    return 1.02 * float(text_to_path.get_text_width_height_descent(text, prop, ismath=False)[0]) / 72


def photo_height_in(photo: Photo, trace: Trace, width_in: float) -> float:
    """How high the photo, and what the trace shows beside it, is if it is this wide."""
    x1, y1, x2, y2 = view_xyxy(trace)
    ratio = photo.size[1] * (y2 - y1) / (photo.size[0] * (x2 - x1))
    return width_in * min(max(ratio, _NARROWEST), 1 / _NARROWEST)


def add_photo(figure: Figure, place: Rect, photo: Photo, trace: Trace, fade: float = 0.0) -> Axes:
    """Axes in fractions of the photo, y down, showing it or, if it is missing, a grey canvas and the reason.

    fade: how much of the photo is washed out, 0 to 1, so that what is drawn on it stands out.
    """
    axes = add_axes(figure, place)
    x1, y1, x2, y2 = view_xyxy(trace)
    if photo.image is not None:
        # Twice what the sheet can show is enough; large photos would make drawing slow.
        shown = photo.shrunk(round(2 * max(place.width, place.height) * figure.dpi)).image or photo.image
        faded = Image.blend(shown, Image.new("RGB", shown.size, PAPER), fade)
        axes.imshow(np.asarray(faded), extent=(0, 1, 1, 0), interpolation="antialiased", aspect="auto", zorder=0)
    else:
        canvas = np.full((1, 1, 3), 0.94)
        axes.imshow(canvas, extent=(0, 1, 1, 0), aspect="auto", zorder=0)
        reason = drawable(shortened(photo.missing, 70))
        backing = {"fc": "0.94", "ec": "none", "pad": 2}
        # Hung from the top, not set on a line: on a low canvas it would stand out above.
        axes.text(0.015, 0.025, reason, zorder=8, bbox=backing, **{**font_settings(8, QUIET), "va": "top"})
    axes.set_xlim(x1, x2)
    axes.set_ylim(y2, y1)
    return axes


def add_time_scale(figure: Figure, place: Rect, scale: TimeScale, marks: bool = True) -> None:
    """A strip with the colour of every moment, and seconds beneath. marks: explain the signs of start and end, too."""
    strip = add_axes(figure, Rect(place.x, place.y, place.width, 0.1))
    strip.imshow(time_colours(np.linspace(0, 1, STEPS))[None], aspect="auto", interpolation="bilinear")
    baseline = place.y + 0.1 + 0.17
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        time_s = scale.start_s * (1 - share) + scale.end_s * share
        label = write(figure, seconds(time_s), place.x + share * place.width, baseline, size=7.5, colour=QUIET)
        label.set_horizontalalignment("left" if share == 0 else "right" if share == 1 else "center")
    if marks:
        text = "time   ○ first point   ■ last point"
        write(figure, text, place.x, place.y - 0.07, size=7.5, colour=QUIET)


def flow(widths_in: Sequence[float], line_in: float, space_in: float) -> tuple[list[tuple[int, float]], int]:
    """Words set one after another: the line and the left edge of each, and how many lines there are."""
    spots: list[tuple[int, float]] = []
    line, x = 0, 0.0
    for width in widths_in:
        if x > 0 and x + width > line_in:
            line, x = line + 1, 0.0
        spots.append((line, x))
        x += width + space_in
    return spots, line + 1 if spots else 0


def wrap(text: str, line_in: float, size: float) -> list[str]:
    """Lines of `drawable` text, none wider than `line_in` unless one word is."""
    words = drawable(" ".join(text.split())).split()
    spots, n_lines = flow([text_width_in(word, size) for word in words], line_in, text_width_in(" ", size))
    lines: list[list[str]] = [[] for _ in range(n_lines)]
    for word, (line, _) in zip(words, spots, strict=True):
        lines[line].append(word)
    return [" ".join(line) for line in lines]


def save_png(figure: Figure, path: str | Path, dpi: float | None = None) -> None:
    """Write the figure as PNG, whole or not at all. The same figure gives the same bytes."""
    content = png_bytes(figure, dpi)
    with write_atomic(path) as file:
        file.write(content)


def png_bytes(figure: Figure, dpi: float | None = None) -> bytes:
    """The figure as PNG. The same figure gives the same bytes."""
    buffer = io.BytesIO()
    figure.savefig(
        buffer, format="png", dpi=dpi or figure.dpi, facecolor=figure.get_facecolor(), metadata={"Software": None}
    )
    return buffer.getvalue()
