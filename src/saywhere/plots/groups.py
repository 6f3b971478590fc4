"""A sheet for plots that compare groups: whose colour is whose at the top, the plots, and how to read them beneath."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from saywhere.plots.palette import LEGEND_LINE_IN, SAMPLE_IN, Palette, add_sample, decorate, legend_spots, line_styles
from saywhere.plots.sheet import MARGIN_IN, Rect, add_axes, font_settings, new_sheet, wrap, write
from saywhere.plots.text import drawable, shortened

TEXT_PT, TITLE_PT = 9.0, 10.0
LEFT_IN, AXIS_IN, TITLE_IN = 0.8, 0.56, 0.3
"""Room left of a panel for its numbers and their name, beneath it for the same, and above it for its title."""
_LINE_IN = 0.19
_HATCHES = ("", "////", "....", "xxxx")
_DASHES = ("-", (0, (4, 1.6)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))


@dataclass(frozen=True, slots=True, eq=False)
class GroupSheet:
    """figure: with legend and notes. top: where the plots begin, inches. styles: group → colour, marker, line."""

    figure: Figure
    top: float
    styles: dict[str, dict[str, Any]]
    palette: Palette

    @classmethod
    def of(
        cls,
        groups: Iterable[str],
        width_in: float,
        body_in: float,
        notes: Sequence[str],
        palette: Palette,
        bars: bool = False,
    ) -> GroupSheet:
        """body_in: how high all plots are together. Groups differ by marker and line, too, not by colour alone.

        bars: the plots have bars, not lines; these differ by their hatching.
        """
        names = list(dict.fromkeys(groups))
        styles = {
            name: {**style, "ls": _DASHES[i % len(_DASHES)]}
            for i, (name, style) in enumerate(zip(names, line_styles(palette, len(names)), strict=True))
        }
        inner = width_in - 2 * MARGIN_IN
        texts = [drawable(shortened(name, 60)) for name in names]
        spots, n_lines = legend_spots(texts, inner, TEXT_PT)
        top = MARGIN_IN + n_lines * LEGEND_LINE_IN + 0.06
        lines = [line for note in notes for line in wrap(note, inner, TEXT_PT)]
        figure = new_sheet(width_in, top + body_in + len(lines) * _LINE_IN + MARGIN_IN)
        figure.set_facecolor(palette.paper)
        for i, (text, style, (line, x)) in enumerate(zip(texts, styles.values(), spots, strict=True)):
            left, baseline = MARGIN_IN + x, MARGIN_IN + 0.1 + line * LEGEND_LINE_IN
            if bars:
                _add_swatch(figure, left, baseline, text, bar_style(style["color"], i, palette), palette)
            else:
                add_sample(figure, left, baseline, text, style, palette, TEXT_PT)
        for i, text in enumerate(lines):
            baseline = top + body_in + (i + 0.75) * _LINE_IN
            write(figure, text, MARGIN_IN, baseline, size=TEXT_PT, colour=palette.quiet)
        return cls(figure, top, styles, palette)

    def panel(self, place: Rect, across: str, up: str, title: str = "") -> Axes:
        """Axes with the names of both directions, and a title over them."""
        axes = add_axes(self.figure, place)
        decorate(axes, self.palette, "both", TEXT_PT)
        quiet = font_settings(TEXT_PT, self.palette.quiet)
        below = -0.42 / place.height
        axes.text(
            0.5, below, drawable(shortened(across, 60)), ha="center", clip_on=False, transform=axes.transAxes, **quiet
        )
        beside = -(LEFT_IN - 0.1) / place.width
        turned = {**quiet, "va": "center", "ha": "center", "rotation": 90, "transform": axes.transAxes}
        axes.text(beside, 0.5, drawable(shortened(up, 44)), clip_on=False, **turned)
        if title:
            ink = self.palette.ink
            write(self.figure, shortened(title, 44), place.x, place.y - 0.12, size=TITLE_PT, colour=ink, bold=True)
        return axes

    def say(self, axes: Axes, text: str) -> None:
        """A word in the middle of an empty panel, whose numbers would mean nothing."""
        axes.set_xticks([])
        axes.set_yticks([])
        settings = font_settings(TEXT_PT, self.palette.quiet)
        axes.text(0.5, 0.5, drawable(text), ha="center", transform=axes.transAxes, **settings)


def bar_style(colour: str, i: int, palette: Palette) -> dict[str, Any]:
    """Of the bars of the i-th group."""
    return {"fc": colour, "ec": palette.paper, "hatch": _HATCHES[i % len(_HATCHES)], "lw": 0}


def _add_swatch(figure: Figure, x: float, y: float, name: str, style: dict[str, Any], palette: Palette) -> None:
    """A piece of a bar, and whose it is. x, y: inches from the top left, y of the baseline."""
    height = figure.get_size_inches()[1]
    corner = (x, height - y - 0.02)
    figure.add_artist(Rectangle(corner, SAMPLE_IN - 0.08, 0.13, transform=figure.dpi_scale_trans, **style))
    write(figure, name, x + SAMPLE_IN, y, size=TEXT_PT, colour=palette.ink)
