"""Plots of a report that are drawn from its numbers: intervals of claims, sweeps, and how the rows learned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from saywhere.core.types import Floats
from saywhere.plots.palette import LEGEND_LINE_IN, Palette, add_sample, decorate, legend_spots, line_styles
from saywhere.plots.sheet import MARGIN_IN, Rect, add_axes, font_settings, new_sheet, wrap, write
from saywhere.plots.text import drawable, shortened
from saywhere.reproduce._cells import PAPER_ROW, SYMBOLS, difference, has_interval, mean_difference, within
from saywhere.reproduce.claims import Claim
from saywhere.reproduce.results import Sweep

Curve = Sequence[tuple[int, float]]

WIDTH_IN = 7.6
_INNER_IN = WIDTH_IN - 2 * MARGIN_IN
_HEADING_IN, _CLAIM_IN, _AXIS_IN, _GROUP_IN = 0.27, 0.56, 0.3, 0.34
_ACROSS, _PANEL_IN, _GAP_IN, _TITLE_IN = 3, 1.25, 0.36, 0.17
_STEPS_IN = 0.3
_SWEEP_IN, _ACROSS_IN, _LEFT_IN = 2.5, 0.52, 0.42
_PAPER_IN, _PAPER_GAP_IN = 1.75, 0.6
_TEXT_PT = 8.5
_MARKERS = {"held": "o", "not held": "X", "undecided": "D"}


def draw_claims(claims: Sequence[Claim], palette: Palette, heading: str = "") -> Figure:
    """A forest plot: for each claim the mean difference with its interval, and a small tick for each seed.

    Claims about one measure share an axis; measures have different units, so each has its own. heading: whose claims.
    """
    groups = {claim.measure: [c for c in claims if c.measure == claim.measure] for claim in claims}
    heights = [_GROUP_IN + len(group) * _CLAIM_IN + _AXIS_IN for group in groups.values()]
    # Bold letters are wider than `wrap` thinks.
    lines = wrap(shortened(heading, 160), 0.86 * _INNER_IN, 10.5)
    figure = new_sheet(WIDTH_IN, 2 * MARGIN_IN + len(lines) * _HEADING_IN + sum(heights))
    figure.set_facecolor(palette.paper)
    top = MARGIN_IN
    for line in lines:
        write(figure, line, MARGIN_IN, top + 0.14, size=10.5, colour=palette.ink, bold=True)
        top += _HEADING_IN
    for (measure, group), height in zip(groups.items(), heights, strict=True):
        about = f"{shortened(measure, 40)}: difference, positive as claimed"
        write(figure, about, MARGIN_IN, top + 0.14, size=9, colour=palette.quiet)
        place = Rect(MARGIN_IN, top + _GROUP_IN, _INNER_IN, len(group) * _CLAIM_IN)
        _draw_group(add_axes(figure, place), group, palette)
        top += height
    return figure


def _draw_group(axes: Axes, claims: Sequence[Claim], palette: Palette) -> None:
    low, high = _span([_values(claim) for claim in claims])
    axes.set_xlim(low, high)
    axes.set_ylim(len(claims), 0)
    decorate(axes, palette, "x")
    axes.axvline(0, color=palette.quiet, lw=1, ls=(0, (3, 2)), zorder=1)
    for i, claim in enumerate(claims):
        colour, y = palette.verdicts[claim.verdict], i + 0.72
        mean, interval = difference(claim)
        # The margin needs room, too.
        sign, most = (">", 44) if claim.margin is None else ("=", 36)
        names = f"{shortened(claim.better, most)} {sign} {shortened(claim.worse, most)}{within(claim)}"
        left: dict[str, Any] = {
            "transform": axes.get_yaxis_transform(),
            "zorder": 6,
            "bbox": {"fc": palette.paper, "ec": "none", "pad": 1},
        }
        axes.text(0, i + 0.36, drawable(names), **left, **font_settings(8.5, palette.ink))
        verdict = f"{SYMBOLS[claim.verdict]} {claim.verdict}   {mean} ({interval})"
        axes.text(1, i + 0.36, drawable(verdict), ha="right", **left, **font_settings(8.5, colour))
        seeds = [d for d in claim.differences if math.isfinite(d)]
        axes.plot(seeds, [y] * len(seeds), "|", color=palette.quiet, ms=9, mew=1.1, zorder=3)
        if has_interval(claim):
            axes.plot([claim.low, claim.high], [y, y], color=colour, lw=2.4, solid_capstyle="butt", zorder=4)
        if math.isfinite(mean_difference(claim)):
            marker = _MARKERS[claim.verdict]
            axes.plot(mean_difference(claim), y, marker, color=colour, ms=7, mec=palette.paper, mew=1, zorder=5)


def _values(claim: Claim) -> list[float]:
    return [v for v in (*claim.differences, claim.low, claim.high) if math.isfinite(v)]


def _span(groups: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Limits of an axis that shows all values, and 0, with a little room."""
    values = [0.0, *(value for group in groups for value in group)]
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room


def draw_curves(curves: Mapping[str, Curve], palette: Palette) -> Figure:
    """A panel for each row: its own curve, over those of all others in grey; all panels have the same axes."""
    points = {name: _points(curve) for name, curve in curves.items()}
    width = (_INNER_IN - (_ACROSS - 1) * _GAP_IN - 0.35) / _ACROSS
    titles = {name: wrap(shortened(name, 70), width, 8.5) for name in points}
    title_in = 0.08 + _TITLE_IN * max(len(lines) for lines in titles.values())
    rows = -(-len(points) // _ACROSS)
    figure = new_sheet(WIDTH_IN, 2 * MARGIN_IN + rows * (title_in + _PANEL_IN + _STEPS_IN) + 0.12)
    figure.set_facecolor(palette.paper)
    everything = np.concatenate([*points.values(), np.empty((0, 2))])
    for i, name in enumerate(points):
        place = Rect(
            MARGIN_IN + 0.35 + (i % _ACROSS) * (width + _GAP_IN),
            MARGIN_IN + title_in + (i // _ACROSS) * (title_in + _PANEL_IN + _STEPS_IN),
            *(width, _PANEL_IN),
        )
        for j, line in enumerate(reversed(titles[name])):
            write(figure, line, place.x, place.y - 0.07 - j * _TITLE_IN, size=8.5, colour=palette.ink)
        _draw_panel(add_axes(figure, place), points, name, everything, palette)
    height = figure.get_size_inches()[1]
    write(
        figure, "across: step · up: validation measure", MARGIN_IN + 0.35, height - 0.14, size=8, colour=palette.quiet
    )
    return figure


def _draw_panel(axes: Axes, points: Mapping[str, Floats], name: str, everything: Floats, palette: Palette) -> None:
    if len(everything):
        (left, bottom), (right, top) = everything.min(axis=0), everything.max(axis=0)
        axes.set_xlim(left, right if right > left else left + 1)
        room = 0.06 * (top - bottom) or max(abs(top), 1.0) * 0.06
        axes.set_ylim(bottom - room, top + room)
    for other, curve in points.items():
        if other != name:
            axes.plot(*curve.T, color=palette.line, lw=1, zorder=2)
    own = points[name]
    axes.plot(*own.T, color=palette.accent, lw=1.8, zorder=4, clip_on=False)
    if len(own):
        axes.plot(*own[-1], "o", color=palette.accent, ms=4, zorder=5, clip_on=False)
    else:
        axes.text(0.5, 0.5, "no values", ha="center", transform=axes.transAxes, **font_settings(8.5, palette.quiet))
    decorate(axes, palette, "both")


def _points(curve: Curve) -> Floats:
    """(n, 2) step and value, without what is no number."""
    points = np.array(curve, dtype=np.float64).reshape(-1, 2)
    return points[np.isfinite(points).all(axis=1)]


def draw_sweep(sweep: Sweep, palette: Palette) -> Figure:
    """Ours at the left, with 95 % intervals as bands; the paper's at the right, on an axis of its own.

    Its numbers come from other data: beside ours, one would compare heights, which mean nothing.
    """
    points = {name: _sweep_points(series) for name, series in sweep.series.items()}
    printed = _finite(np.array(sweep.paper, dtype=np.float64).reshape(-1, 2))
    inner = WIDTH_IN - 2 * MARGIN_IN
    width = inner - _LEFT_IN - (_PAPER_IN + _PAPER_GAP_IN if len(printed) else 0.1)
    names = [drawable(shortened(name, 60)) for name in points]
    spots, n_lines = legend_spots(names, width, _TEXT_PT)
    top = MARGIN_IN + 0.28 + n_lines * LEGEND_LINE_IN
    figure = new_sheet(WIDTH_IN, top + _SWEEP_IN + _ACROSS_IN + 0.08)
    figure.set_facecolor(palette.paper)
    left = MARGIN_IN + _LEFT_IN
    write(figure, shortened(sweep.measure, 60), left, MARGIN_IN + 0.12, size=9, colour=palette.quiet)
    for name, style, (line, x) in zip(names, line_styles(palette, len(names)), spots, strict=True):
        add_sample(figure, left + x, MARGIN_IN + 0.36 + line * LEGEND_LINE_IN, name, style, palette, _TEXT_PT)
    span = _amounts([*points.values(), printed])
    axes = add_axes(figure, Rect(left, top, width, _SWEEP_IN))
    _draw_series(axes, points, span, palette)
    if len(printed):
        place = Rect(left + width + _PAPER_GAP_IN, top, _PAPER_IN, _SWEEP_IN)
        write(figure, PAPER_ROW, place.x, top - 0.14, size=_TEXT_PT, colour=palette.quiet)
        _draw_paper(add_axes(figure, place), printed, span, palette)
    height = figure.get_size_inches()[1]
    across = f"across: {shortened(sweep.across, 70)}"
    write(figure, across, left, height - MARGIN_IN, size=8, colour=palette.quiet)
    return figure


def _draw_series(axes: Axes, points: Mapping[str, Floats], span: tuple[float, float], palette: Palette) -> None:
    everything = np.concatenate([*points.values(), np.empty((0, 4))])
    shown = everything[:, 1:][np.isfinite(everything[:, 1:])]
    _set_sweep_limits(axes, span, shown)
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
    _set_sweep_limits(axes, span, printed[:, 1])
    axes.plot(*printed.T, "o--", color=palette.quiet, mfc=palette.paper, lw=1.4, ms=5, clip_on=False, zorder=4)
    decorate(axes, palette, "both")


def _set_sweep_limits(axes: Axes, span: tuple[float, float], values: Floats) -> None:
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


def _sweep_points(series: Sequence[tuple[float, float, float, float]]) -> Floats:
    """(n, 4) x, mean, low and high, by x, without those whose mean is no number."""
    points = np.array(series, dtype=np.float64).reshape(-1, 4)
    points = points[np.isfinite(points[:, :2]).all(axis=1)]
    return points[np.argsort(points[:, 0], kind="stable")]


def _finite(points: Floats) -> Floats:
    return points[np.isfinite(points).all(axis=1)]
