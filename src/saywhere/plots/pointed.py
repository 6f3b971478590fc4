"""All that an answer points out, on the photo: masks and boxes each in a colour, traces coloured by time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from saywhere.core import Mask, Trace
from saywhere.core.regions import Point, Region
from saywhere.plots.colour import TimeScale
from saywhere.plots.cut_out import add_mask
from saywhere.plots.heatmap import NO_TRACE
from saywhere.plots.palette import LIGHT
from saywhere.plots.photo import PhotoLike, load_photo
from saywhere.plots.sheet import MARGIN_IN, PAPER, Rect, add_photo, new_sheet, photo_height_in
from saywhere.plots.trace import WIDTH_IN, add_trace

_LINE_PT, _CASING_PT = 2.0, 4.0


def draw_pointed(photo: PhotoLike, regions: Sequence[Region]) -> Figure:
    """The photo with some regions on it."""
    loaded = load_photo(photo)
    inner = WIDTH_IN - 2 * MARGIN_IN
    height = photo_height_in(loaded, NO_TRACE, inner)
    figure = new_sheet(WIDTH_IN, height + 2 * MARGIN_IN)
    axes = add_photo(figure, Rect(MARGIN_IN, MARGIN_IN, inner, height), loaded, NO_TRACE)
    for order, region in enumerate(regions):
        _add_region(axes, region, LIGHT.series[order % len(LIGHT.series)])
    return figure


def _add_region(axes: Axes, region: Region, colour: str) -> None:
    if isinstance(region, Mask):
        add_mask(axes, region.values > 0, colour)
    elif isinstance(region, Trace):
        add_trace(axes, region, TimeScale.of((), region))
    elif isinstance(region, Point):
        axes.plot([region.x], [region.y], "o", color=colour, markeredgecolor=PAPER, markersize=8, zorder=4)
    else:
        for outline in region.outlines():
            closed = np.concatenate([outline, outline[:1]])
            axes.plot(*closed.T, color=PAPER, linewidth=_CASING_PT, zorder=3)
            axes.plot(*closed.T, color=colour, linewidth=_LINE_PT, zorder=4)
