"""Plots of a report: the claims' intervals, and how the rows learned. Each on light and on dark paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from saywhere.core.types import Floats
from saywhere.plots.palette import Palette, decorate
from saywhere.plots.sheet import MARGIN_IN, Place, add_axes, font_settings, new_sheet, wrap, write
from saywhere.plots.text import drawable, shortened
from saywhere.reproduce._cells import SYMBOLS, difference, has_interval, mean_difference
from saywhere.reproduce.results import Claim

Curve = Sequence[tuple[int, float]]

WIDTH_IN = 7.6
_INNER_IN = WIDTH_IN - 2 * MARGIN_IN
_HEADING_IN, _CLAIM_IN, _AXIS_IN, _GROUP_IN = 0.27, 0.56, 0.3, 0.34
_ACROSS, _PANEL_IN, _GAP_IN, _TITLE_IN = 3, 1.25, 0.36, 0.17
_STEPS_IN = 0.3
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
        place = Place(MARGIN_IN, top + _GROUP_IN, _INNER_IN, len(group) * _CLAIM_IN)
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
        names = f"{shortened(claim.better, 44)} > {shortened(claim.worse, 44)}"
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
        place = Place(
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
