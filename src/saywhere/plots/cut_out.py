"""Masks over their photos: one that is cut out, with an outline; or all masks of several photos, each in a colour."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from saywhere.core import Mask, Trace
from saywhere.core.regions import Point, Region
from saywhere.core.types import Bools
from saywhere.plots.heatmap import NO_TRACE, add_grey_photo
from saywhere.plots.palette import LIGHT
from saywhere.plots.photo import PhotoLike, load_photo
from saywhere.plots.sheet import MARGIN_IN, PAPER, Rect, add_photo, new_sheet, photo_height_in
from saywhere.plots.trace import WIDTH_IN

_INSIDE, _POINTED = "#e0218a", "#1d1d1f"
_PALE = 0.55
_COLUMNS, _GAP_IN = 4, 0.08
_TINT = 0.45


def draw_cut_out(photo: PhotoLike, mask: Mask, pointed: Region | None = None) -> Figure:
    """What is cut out in its colours, the rest pale and grey. pointed: what was pointed at, if it is to be seen."""
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
    _add_outline(axes, inside, PAPER, 3.2)
    _add_outline(axes, inside, _INSIDE, 1.6)
    _add_pointed(axes, pointed)
    return figure


def draw_cut_outs(photos: Sequence[tuple[PhotoLike, Sequence[Bools]]]) -> Figure:
    """Photos side by side, each with its masks (h, w)."""
    side = (WIDTH_IN - 2 * MARGIN_IN - (_COLUMNS - 1) * _GAP_IN) / _COLUMNS
    rows = -(-len(photos) // _COLUMNS)
    figure = new_sheet(WIDTH_IN, 2 * MARGIN_IN + rows * (side + _GAP_IN) - _GAP_IN)
    for number, (photo, masks) in enumerate(photos):
        row, col = divmod(number, _COLUMNS)
        place = Rect(MARGIN_IN + col * (side + _GAP_IN), MARGIN_IN + row * (side + _GAP_IN), side, side)
        axes = add_photo(figure, place, load_photo(photo), NO_TRACE)
        for order, inside in enumerate(masks):
            add_mask(axes, inside, LIGHT.series[order % len(LIGHT.series)])
    return figure


def add_mask(axes: Axes, inside: Bools, colour: str) -> None:
    """A mask (h, w) on axes in fractions of the photo: its inside tinted, its outline in full colour."""
    tint = np.zeros((*inside.shape, 4))
    tint[inside] = (*_rgb(colour), _TINT)
    axes.imshow(tint, extent=(0, 1, 1, 0), interpolation="nearest", aspect="auto", zorder=2)
    _add_outline(axes, inside, colour, 1.0)


def _rgb(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))


def _add_outline(axes: Axes, inside: Bools, colour: str, width: float) -> None:
    # A border of nothing closes outlines at the photo's edges.
    edged = np.pad(inside, 1).astype(float)
    rows, cols = ((np.arange(n + 2) - 0.5) / n for n in inside.shape)
    axes.contour(cols, rows, edged, levels=[0.5], colors=colour, linewidths=width, zorder=3)


def _add_pointed(axes: Axes, pointed: Region | None) -> None:
    if isinstance(pointed, Point):
        axes.plot([pointed.x], [pointed.y], "o", color=_POINTED, markerfacecolor=PAPER, markersize=6, zorder=4)
    elif isinstance(pointed, Trace):
        axes.plot(*pointed.xy.T, color=_POINTED, linewidth=1.2, zorder=4)
    elif pointed is not None:
        for outline in pointed.outlines():
            closed = np.concatenate([outline, outline[:1]])
            axes.plot(*closed.T, color=_POINTED, linewidth=1.2, linestyle=(0, (4, 3)), zorder=4)
