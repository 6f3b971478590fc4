"""A mask over its photo: what is cut out in its colours, with an outline; the rest pale and grey."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from saywhere.core import Mask
from saywhere.core.regions import Box, Point, Region
from saywhere.core.trace import Trace
from saywhere.plots.heatmap import NO_TRACE, add_grey_photo
from saywhere.plots.photo import PhotoLike, load_photo
from saywhere.plots.sheet import MARGIN_IN, PAPER, Rect, new_sheet, photo_height_in
from saywhere.plots.trace import WIDTH_IN

_INSIDE, _POINTED = "#e0218a", "#1d1d1f"
_PALE = 0.55


def draw_cut_out(photo: PhotoLike, mask: Mask, pointed: Region | None = None) -> Figure:
    """pointed: what was pointed at, if it is to be seen, too."""
    loaded = load_photo(photo)
    inner = WIDTH_IN - 2 * MARGIN_IN
    height = photo_height_in(loaded, NO_TRACE, inner)
    figure = new_sheet(WIDTH_IN, height + 2 * MARGIN_IN)
    axes = add_grey_photo(figure, Rect(MARGIN_IN, MARGIN_IN, inner, height), loaded)
    inside = mask.values > 0
    axes.imshow(np.full((1, 1, 4), (1, 1, 1, _PALE)), extent=(0, 1, 1, 0), aspect="auto", zorder=1)
    if loaded.image is not None:
        shown = loaded.image.resize(inside.shape[::-1])
        colours = np.dstack([np.asarray(shown), np.where(inside, 255, 0).astype(np.uint8)])
        axes.imshow(colours, extent=(0, 1, 1, 0), interpolation="nearest", aspect="auto", zorder=2)
    # A border of nothing closes outlines at the photo's edges.
    edged = np.pad(inside, 1).astype(float)
    rows, cols = ((np.arange(n + 2) - 0.5) / n for n in inside.shape)
    for colour, width in ((PAPER, 3.2), (_INSIDE, 1.6)):
        axes.contour(cols, rows, edged, levels=[0.5], colors=colour, linewidths=width, zorder=3)
    _add_pointed(axes, pointed)
    return figure


def _add_pointed(axes: object, pointed: Region | None) -> None:
    style = {"color": _POINTED, "linewidth": 1.2, "zorder": 4}
    if isinstance(pointed, Point):
        axes.plot([pointed.x], [pointed.y], marker="o", markerfacecolor=PAPER, markersize=6, **style)  # type: ignore[attr-defined]
    elif isinstance(pointed, Trace):
        axes.plot(*pointed.xy.T, **style)  # type: ignore[attr-defined]
    elif isinstance(pointed, Box) or pointed is not None:
        for outline in pointed.outlines():
            closed = np.concatenate([outline, outline[:1]])
            axes.plot(*closed.T, linestyle=(0, (4, 3)), **style)  # type: ignore[attr-defined]
