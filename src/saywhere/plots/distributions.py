"""How values of two or more groups are spread: in two dimensions as densities, in one as boxes, with every point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from saywhere.core import InvalidValue
from saywhere.core.types import Floats, owned
from saywhere.plots.facts import counted
from saywhere.plots.groups import AXIS_IN, LEFT_IN, TEXT_PT, TITLE_IN, GroupSheet
from saywhere.plots.palette import LIGHT, Palette
from saywhere.plots.sheet import MARGIN_IN, Rect, font_settings
from saywhere.plots.text import drawable, shortened

MASSES = (0.25, 0.5, 0.75)
"""Each contour encloses about such a share of its group."""
FEWEST = 5
"""A group of fewer values has points only: no contours, no box."""
_SHEETS_IN = {1: 7.6, 2: 8.8, 3: 11.6}  # Width of a sheet with so many panels in a row.
_BETWEEN_IN, _HIGHEST_IN, _BOXES_IN = 0.22, 3.3, 3.0
_GRID, _ON_ONE_LINE = 120, 1e-6
_GOLDEN = (5**0.5 - 1) / 2
_ABOUT_BOXES = (
    "A box reaches from the lower to the upper quartile, the line in it is the median, the whiskers end at the last "
    "value within 1.5 box lengths; beneath each, how many values."
)


def draw_densities(
    panels: Mapping[str, Mapping[str, ArrayLike]], across: str, up: str, palette: Palette = LIGHT
) -> Figure:
    """A panel for each title: every group's points, contours of its kernel density, and a large mark at its medians.

    panels: title → group → (n, 2) of what `across` and `up` name. Points that are no numbers are left out; a group too
    small, or all on one line, has no contours. The sheet says so.
    """
    if not panels:
        raise InvalidValue("densities", "have no panels")
    found = {title: {name: _pairs(values) for name, values in panel.items()} for title, panel in panels.items()}
    columns = min(3, len(found))
    width = _SHEETS_IN[columns]
    panel_in = (width - 2 * MARGIN_IN - columns * LEFT_IN - (columns - 1) * _BETWEEN_IN) / columns
    height_in = min(panel_in, _HIGHEST_IN)
    row_in = TITLE_IN + height_in + AXIS_IN
    shares = ", ".join(f"{100 * mass:.0f}" for mass in MASSES[:-1])
    held = f"Contours hold {shares} and {100 * MASSES[-1]:.0f} % of a group"
    about = f"{held}; the large mark and those on the axes are medians."
    notes = [about, *(note for title, panel in panels.items() for note in _notes(title, panel, found[title]))]
    names = [name for panel in found.values() for name in panel]
    sheet = GroupSheet.of(names, width, -(-len(found) // columns) * row_in, notes, palette)
    for i, (title, panel) in enumerate(found.items()):
        x = MARGIN_IN + LEFT_IN + (i % columns) * (panel_in + LEFT_IN + _BETWEEN_IN)
        place = Rect(x, sheet.top + TITLE_IN + (i // columns) * row_in, panel_in, height_in)
        _draw_groups(sheet, sheet.panel(place, across, up, title), panel)
    return sheet.figure


def _pairs(values: ArrayLike) -> Floats:
    points = owned(values, "points of a density", (None, 2), finite=False)
    return points[np.isfinite(points).all(axis=1)]


def _notes(title: str, panel: Mapping[str, ArrayLike], found: Mapping[str, Floats]) -> Iterator[str]:
    where = f"{shortened(title, 44)}, " if title else ""
    for name, points in found.items():
        gone = len(np.asarray(panel[name])) - len(points)
        if gone:
            yield f"{where}{shortened(name, 40)}: {counted(gone, 'point')} without a number left out."
        if not _has_density(points):
            why = "too few for contours" if len(points) < FEWEST else "all alike or on one line, so no contours"
            many = counted(len(points), "point") if len(points) else "no points"
            yield f"{where}{shortened(name, 40)}: {many}, {why}."


def _has_density(points: Floats) -> bool:
    """Whether a kernel density can be estimated: enough points that fill a plane."""
    if len(points) < FEWEST:
        return False
    spread = points.std(axis=0)
    # Beside numbers of this size, what is left of the spread is rounding.
    if (spread <= 1e-12 * np.abs(points).max(axis=0)).any():
        return False
    correlation = np.mean(np.prod((points - points.mean(axis=0)) / spread, axis=1))
    return bool(1 - abs(correlation) > _ON_ONE_LINE)


def _draw_groups(sheet: GroupSheet, axes: Axes, panel: Mapping[str, Floats]) -> None:
    everything = np.concatenate([*panel.values(), np.empty((0, 2))])
    if not len(everything):
        sheet.say(axes, "no values")
        return
    low, high = everything.min(axis=0), everything.max(axis=0)
    room = 0.12 * (high - low)
    room[room <= 0] = 0.06 * np.maximum(np.abs(high[room <= 0]), 1.0)
    (left, bottom), (right, top) = low - room, high + room
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    for name, points in panel.items():
        style = sheet.styles[name]
        axes.scatter(
            points[:, 0], points[:, 1], s=11, color=style["color"], marker=style["marker"], alpha=0.38, lw=0, zorder=2
        )
        if _has_density(points):
            _add_contours(axes, points, style)
        if len(points):
            _add_medians(axes, np.median(points, axis=0), style, sheet.palette)


def _add_contours(axes: Axes, points: Floats, style: Mapping[str, Any]) -> None:
    from scipy.stats import gaussian_kde  # slow to import, and not always needed

    # Of standard size: spreads of 1e-6 and of 1e6 are the same to the estimate.
    middle, spread = points.mean(axis=0), points.std(axis=0)
    density = gaussian_kde(((points - middle) / spread).T)
    xs, ys = (np.linspace(start, end, _GRID) for start, end in (axes.get_xlim(), axes.get_ylim()))
    grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
    heights = density(((grid - middle) / spread).T).reshape(_GRID, _GRID)
    own = density(((points - middle) / spread).T)
    levels = np.unique(np.quantile(own, [1 - mass for mass in MASSES]))
    axes.contour(xs, ys, heights, levels, colors=style["color"], linestyles=[style["ls"]], linewidths=1.5, zorder=3)


def _add_medians(axes: Axes, median: Floats, style: Mapping[str, Any], palette: Palette) -> None:
    mark = {"color": style["color"], "mec": palette.paper, "clip_on": False}
    axes.plot(*median, style["marker"], ms=11, mew=1.6, zorder=6, **mark)
    axes.plot(median[0], 0, "^", ms=7, mew=0.8, zorder=5, transform=axes.get_xaxis_transform(), **mark)
    axes.plot(0, median[1], ">", ms=7, mew=0.8, zorder=5, transform=axes.get_yaxis_transform(), **mark)


def draw_spreads(
    values: Mapping[str, Mapping[str, ArrayLike]], up: str, across: str = "", palette: Palette = LIGHT
) -> Figure:
    """Boxes side by side with all their points: for each category along the axis one of each group.

    values: category → group → (n,) of what `up` names; what is no number is left out. Where values lie on both sides
    of 0, a line marks it.
    """
    if not values:
        raise InvalidValue("spreads", "have no categories")
    names = list(dict.fromkeys(name for groups in values.values() for name in groups))
    found = {
        category: {name: _numbers(groups[name]) for name in names if name in groups}
        for category, groups in values.items()
    }
    width = _SHEETS_IN[1] if len(found) * len(names) <= 10 else _SHEETS_IN[3]
    body_in = 0.1 + _BOXES_IN + 0.4 + (0.22 if any(found) else 0) + (0.24 if across else 0)
    sheet = GroupSheet.of(names, width, body_in, [_ABOUT_BOXES], palette)
    place = Rect(MARGIN_IN + LEFT_IN, sheet.top + 0.1, width - 2 * MARGIN_IN - LEFT_IN, _BOXES_IN)
    axes = sheet.panel(place, "", up)
    _set_span(axes, np.concatenate([group for groups in found.values() for group in groups.values()] or [np.empty(0)]))
    axes.set_xlim(-0.5, len(found) - 0.5)
    axes.set_xticks([])
    slot = 0.84 / max(len(names), 1)
    labels: dict[str, Any] = {"ha": "center", "transform": axes.get_xaxis_transform(), "clip_on": False}
    for i, (category, groups) in enumerate(found.items()):
        for j, name in enumerate(names):
            if name in groups:
                x = i + (j - (len(names) - 1) / 2) * slot
                _add_box(axes, x, slot, groups[name], sheet.styles[name], palette)
                count = f"{len(groups[name]):,}"
                axes.text(x, -0.19 / _BOXES_IN, count, **labels, **font_settings(TEXT_PT, palette.quiet))
        text = drawable(shortened(category, 24))
        axes.text(i, -0.42 / _BOXES_IN, text, **labels, **font_settings(TEXT_PT, palette.ink))
    middle: dict[str, Any] = {**labels, "transform": axes.transAxes, **font_settings(TEXT_PT, palette.quiet)}
    axes.text(0.5, -0.66 / _BOXES_IN, drawable(shortened(across, 80)), **middle)
    return sheet.figure


def _numbers(values: ArrayLike) -> Floats:
    numbers = owned(values, "values of a box", (None,), finite=False)
    return numbers[np.isfinite(numbers)]


def _set_span(axes: Axes, values: Floats) -> None:
    if len(values):
        low, high = float(values.min()), float(values.max())
        room = 0.06 * (high - low) or 0.06 * max(abs(high), 1.0)
        axes.set_ylim(low - room, high + room)
        if low < 0 < high:
            axes.axhline(0, color=axes.spines["left"].get_edgecolor(), lw=1, zorder=1)


def _add_box(axes: Axes, x: float, slot: float, values: Floats, style: Mapping[str, Any], palette: Palette) -> None:
    """The points, each a little to the side of the last, then the box over them."""
    colour = style["color"]
    if not len(values):
        where: dict[str, Any] = {"ha": "center", "transform": axes.get_xaxis_transform()}
        axes.text(x, 0.5, "no values", **where, **font_settings(TEXT_PT, palette.quiet))
        return
    # Golden ratio: neighbours never stand in one column, and the same values give the same picture.
    beside = ((np.arange(len(values)) + 1) * _GOLDEN % 1 - 0.5) * 0.62 * slot
    axes.scatter(x + beside, values, s=12, color=colour, marker=style["marker"], alpha=0.45, lw=0, zorder=2)
    half = 0.36 * slot
    if len(values) >= FEWEST:
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        reach = 1.5 * (high - low)
        inside = values[(values >= low - reach) & (values <= high + reach)]
        for start, end in ((low, inside.min()), (high, inside.max())):
            axes.plot([x, x], [start, end], color=colour, lw=1.4, zorder=3)
        box = Rectangle((x - half, low), 2 * half, high - low, fill=False, ec=colour, lw=1.6, ls=style["ls"], zorder=4)
        axes.add_patch(box)
    else:
        middle = np.median(values)
    axes.plot([x - half, x + half], [middle, middle], color=palette.ink, lw=2.2, solid_capstyle="butt", zorder=5)
