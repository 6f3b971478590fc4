"""A measure as an amount changes: a line with a band for each row, and the paper's own line beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from saywhere.core.types import Floats
from saywhere.plots.palette import LEGEND_LINE_IN, Palette, add_sample, decorate, legend_spots, line_styles
from saywhere.plots.sheet import MARGIN_IN, Place, add_axes, font_settings, new_sheet, write
from saywhere.plots.text import drawable, shortened
from saywhere.reproduce._cells import PAPER_ROW
from saywhere.reproduce._pictures import WIDTH_IN
from saywhere.reproduce.results import Sweep

_PLOT_IN, _AXIS_IN, _LEFT_IN = 2.5, 0.52, 0.42
_PAPER_IN, _GAP_IN = 1.75, 0.6
_TEXT_PT = 8.5


def draw_sweep(sweep: Sweep, palette: Palette) -> Figure:
    """Ours at the left, with 95 % intervals as bands; the paper's at the right, on an axis of its own.

    Its numbers come from other data: beside ours, one would compare heights, which mean nothing.
    """
    points = {name: _points(series) for name, series in sweep.series.items()}
    printed = _finite(np.array(sweep.paper, dtype=np.float64).reshape(-1, 2))
    inner = WIDTH_IN - 2 * MARGIN_IN
    width = inner - _LEFT_IN - (_PAPER_IN + _GAP_IN if len(printed) else 0.1)
    names = [drawable(shortened(name, 60)) for name in points]
    spots, n_lines = legend_spots(names, width, _TEXT_PT)
    top = MARGIN_IN + 0.28 + n_lines * LEGEND_LINE_IN
    figure = new_sheet(WIDTH_IN, top + _PLOT_IN + _AXIS_IN + 0.08)
    figure.set_facecolor(palette.paper)
    left = MARGIN_IN + _LEFT_IN
    write(figure, shortened(sweep.measure, 60), left, MARGIN_IN + 0.12, size=9, colour=palette.quiet)
    for name, style, (line, x) in zip(names, line_styles(palette, len(names)), spots, strict=True):
        add_sample(figure, left + x, MARGIN_IN + 0.36 + line * LEGEND_LINE_IN, name, style, palette, _TEXT_PT)
    span = _amounts([*points.values(), printed])
    axes = add_axes(figure, Place(left, top, width, _PLOT_IN))
    _draw_series(axes, points, span, palette)
    if len(printed):
        place = Place(left + width + _GAP_IN, top, _PAPER_IN, _PLOT_IN)
        write(figure, PAPER_ROW, place.x, top - 0.14, size=_TEXT_PT, colour=palette.quiet)
        _draw_paper(add_axes(figure, place), printed, span, palette)
    height = figure.get_size_inches()[1]
    across = f"across: {shortened(sweep.across, 70)}"
    write(figure, across, left, height - MARGIN_IN, size=8, colour=palette.quiet)
    return figure


def _draw_series(axes: Axes, points: Mapping[str, Floats], span: tuple[float, float], palette: Palette) -> None:
    everything = np.concatenate([*points.values(), np.empty((0, 4))])
    shown = everything[:, 1:][np.isfinite(everything[:, 1:])]
    _set_limits(axes, span, shown)
    for style, curve in zip(line_styles(palette, len(points)), points.values(), strict=True):
        x, mean, low, high = curve.T
        known = np.isfinite(low) & np.isfinite(high)
        axes.fill_between(x, low, high, where=known, color=style["color"], alpha=0.16, lw=0, zorder=2)
        axes.plot(x, mean, mec=palette.paper, mew=0.8, clip_on=False, zorder=4, **style)
    if not len(everything):
        axes.text(0.5, 0.5, "no values", ha="center", transform=axes.transAxes, **font_settings(8.5, palette.quiet))
    decorate(axes, palette, "both")
    amounts = np.unique(everything[:, 0])
    if 1 < len(amounts) <= 9:
        axes.set_xticks(amounts, [f"{x:g}" for x in amounts])


def _draw_paper(axes: Axes, printed: Floats, span: tuple[float, float], palette: Palette) -> None:
    _set_limits(axes, span, printed[:, 1])
    axes.plot(*printed.T, "o--", color=palette.quiet, mfc=palette.paper, lw=1.4, ms=5, clip_on=False, zorder=4)
    decorate(axes, palette, "both")


def _set_limits(axes: Axes, span: tuple[float, float], values: Floats) -> None:
    axes.set_xlim(*span)
    if len(values):
        low, high = float(values.min()), float(values.max())
        room = 0.08 * (high - low) or 0.06 * max(abs(high), 1.0)
        axes.set_ylim(low - room, high + room)


def _amounts(groups: Sequence[Floats]) -> tuple[float, float]:
    """From the least to the largest amount of all lines, with a little room."""
    amounts = np.concatenate([group[:, 0] for group in groups])
    low, high = (float(amounts.min()), float(amounts.max())) if len(amounts) else (0.0, 1.0)
    room = 0.03 * (high - low) or 1.0
    return low - room, high + room


def _points(series: Sequence[tuple[float, float, float, float]]) -> Floats:
    """(n, 4) x, mean, low and high, by x, without those whose mean is no number."""
    points = np.array(series, dtype=np.float64).reshape(-1, 4)
    points = points[np.isfinite(points[:, :2]).all(axis=1)]
    return points[np.argsort(points[:, 0], kind="stable")]


def _finite(points: Floats) -> Floats:
    return points[np.isfinite(points).all(axis=1)]
