"""Colours of plots on light and on dark paper, and how axes and lines look on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from saywhere.plots.sheet import flow, text_width_in, write
from saywhere.plots.text import font


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours of one paper, as in the page's style. verdicts: a colour for each. series: for lines in one plot."""

    paper: str
    ink: str
    quiet: str
    line: str
    accent: str
    verdicts: Mapping[str, str]
    series: tuple[str, ...]


LIGHT = Palette(
    *("#ffffff", "#1f1e1c", "#6a675f", "#d9d5cc", "#6b2fb3"),
    {"held": "#0b6b4f", "not held": "#b3261e", "undecided": "#6a675f"},
    ("#6b2fb3", "#c2571a", "#0b7a75", "#2b6cb0", "#b0246e", "#7a7414"),
)
DARK = Palette(
    *("#1e1d20", "#edebe6", "#a39f97", "#48464e", "#c79bf2"),
    {"held": "#5fd0a5", "not held": "#ff9a8f", "undecided": "#a39f97"},
    ("#c79bf2", "#f2a36b", "#58cfc6", "#86b7f0", "#f08fbe", "#cfc76a"),
)
PALETTES = {"light": LIGHT, "dark": DARK}

LEGEND_LINE_IN, SAMPLE_IN = 0.22, 0.34
"""Height of a line of a legend, and width of the sample before a name."""
_MARKERS, _DASHES = "os^DvP", ("-", (0, (5, 1.5)), (0, (2, 1.2)))


def decorate(axes: Axes, palette: Palette, which: str, size: float = 7.5) -> None:
    """Quiet axes. which: "x" if only the lower one means something, or "both". size: of the numbers, in points."""
    axes.set_axis_on()
    axes.set_facecolor(palette.paper)
    for side in ("top", "right", *(["left"] if which == "x" else [])):
        axes.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set_color(palette.line)
    axes.xaxis.set_major_locator(MaxNLocator(5 if which == "x" else 3))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    if which == "x":
        axes.set_yticks([])
    axes.tick_params(labelsize=size, labelfontfamily=font().get_name(), colors=palette.quiet, length=3, width=0.8)


def line_styles(palette: Palette, count: int) -> list[dict[str, Any]]:
    """Colour, marker and dashes of each line: told apart without colours, too."""
    return [
        {
            "color": palette.series[i % len(palette.series)],
            "marker": _MARKERS[i % len(_MARKERS)],
            "ls": _DASHES[(i // len(palette.series)) % len(_DASHES)],
            "lw": 1.8,
            "ms": 5,
        }
        for i in range(count)
    ]


def legend_spots(names: Sequence[str], width_in: float, size: float) -> tuple[list[tuple[int, float]], int]:
    """Where each `drawable` name of a legend stands (line, left edge), and how many lines there are."""
    return flow([SAMPLE_IN + text_width_in(name, size) for name in names], width_in, 0.22)


def add_sample(
    figure: Figure, x: float, y: float, name: str, style: dict[str, Any], palette: Palette, size: float
) -> None:
    """A piece of a line, and whose it is. x, y: inches from the top left, y of the baseline."""
    height = figure.get_size_inches()[1]
    xs, ys = [x, x + SAMPLE_IN / 2, x + SAMPLE_IN - 0.09], [height - y + 0.04] * 3
    figure.add_artist(Line2D(xs, ys, transform=figure.dpi_scale_trans, markevery=[1], **style))
    write(figure, name, x + SAMPLE_IN, y, size=size, colour=palette.ink)
