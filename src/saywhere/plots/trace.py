"""A trace on its photo, coloured by time."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from saywhere.core import Trace
from saywhere.plots.colour import TimeScale
from saywhere.plots.photo import PhotoLike, load_photo, near_strokes
from saywhere.plots.sheet import (
    MARGIN_IN,
    SCALE_BAR_IN,
    Rect,
    add_photo,
    add_time_scale,
    new_sheet,
    photo_height_in,
)

WIDTH_IN = 7.4
_LINE_PT, _CASING_PT = 2.2, 4.4


def draw_trace(photo: PhotoLike, trace: Trace, scale: TimeScale | None = None) -> Figure:
    """The photo with the trace on it and a scale of seconds beneath.

    scale: which time has which colour; by default the trace's own first and last moment.
    """
    loaded = load_photo(photo)
    scale = scale or TimeScale.of((), trace)
    inner = WIDTH_IN - 2 * MARGIN_IN
    height = photo_height_in(loaded, trace, inner)
    figure = new_sheet(WIDTH_IN, height + 2 * MARGIN_IN + 0.22 + SCALE_BAR_IN)
    axes = add_photo(figure, Rect(MARGIN_IN, MARGIN_IN, inner, height), loaded, trace, fade=0.15)
    add_trace(axes, trace, scale)
    add_time_scale(figure, Rect(MARGIN_IN, MARGIN_IN + height + 0.28, inner, SCALE_BAR_IN), scale)
    return figure


def add_trace(axes: Axes, trace: Trace, scale: TimeScale) -> None:
    """Draw the trace on axes in fractions of the photo: a line for each stroke, nothing where the pen was up.

    A white casing keeps it visible on any photo; a ring marks the first point, a square the last.
    """
    strokes = near_strokes(trace)
    if not strokes:
        return
    lines = [stroke for stroke in strokes if len(stroke) > 1]
    # Single points, too, were pointed at: dots.
    dots = np.concatenate([stroke for stroke in strokes if len(stroke) == 1] or [np.empty((0, 3))])
    casing = LineCollection(
        [line[:, :2] for line in lines], colors="white", linewidths=_CASING_PT, alpha=0.9, capstyle="round", zorder=3
    )
    steps = np.concatenate([np.stack([line[:-1], line[1:]], axis=1) for line in lines] or [np.empty((0, 2, 3))])
    middles_s = steps[:, 0, 2] / 2 + steps[:, 1, 2] / 2
    coloured = LineCollection(
        list(steps[:, :, :2]), colors=scale.colours(middles_s), linewidths=_LINE_PT, capstyle="round", zorder=4
    )
    for collection in (casing, coloured):
        collection.set_joinstyle("round")
        axes.add_collection(collection, autolim=False)
    axes.scatter(dots[:, 0], dots[:, 1], s=22, c=scale.colours(dots[:, 2]), edgecolors="white", linewidths=1, zorder=4)
    first, last = strokes[0][0], strokes[-1][-1]
    start, end = scale.colours([first[2], last[2]])
    axes.scatter(last[0], last[1], s=64, marker="s", color=[end], edgecolors="white", linewidths=1.4, zorder=6)
    axes.scatter(first[0], first[1], s=72, marker="o", color="white", edgecolors=[start], linewidths=2.6, zorder=6)
