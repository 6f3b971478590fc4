"""An attention map as heat over its photo."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from saywhere.core import AttentionMap, Trace
from saywhere.core.types import Floats
from saywhere.plots.colour import STEPS, time_colours
from saywhere.plots.photo import Photo, PhotoLike, load_photo
from saywhere.plots.sheet import (
    MARGIN_IN,
    QUIET,
    SCALE_BAR_IN,
    Rect,
    add_axes,
    add_photo,
    new_sheet,
    photo_height_in,
    write,
)
from saywhere.plots.trace import WIDTH_IN

NO_TRACE = Trace.from_segments([])
_STRONGEST = 0.82


def draw_heatmap(photo: PhotoLike, attention: AttentionMap) -> Figure:
    """The photo in grey under the map: no colour where nobody looked, yellow where most did.

    The scale beneath is relative to the map's highest value, because only ratios mean something.
    """
    loaded = load_photo(photo)
    inner = WIDTH_IN - 2 * MARGIN_IN
    height = photo_height_in(loaded, NO_TRACE, inner)
    figure = new_sheet(WIDTH_IN, height + 2 * MARGIN_IN + 0.1 + SCALE_BAR_IN)
    axes = add_grey_photo(figure, Rect(MARGIN_IN, MARGIN_IN, inner, height), loaded)
    add_heat(axes, attention)
    add_heat_scale(figure, Rect(MARGIN_IN, MARGIN_IN + height + 0.14, inner, SCALE_BAR_IN))
    return figure


def add_grey_photo(figure: Figure, place: Rect, photo: Photo) -> Axes:
    """The photo without its colours, which would mix with the heat's; else as `add_photo`."""
    grey = photo if photo.image is None else Photo(photo.image.convert("L").convert("RGB"))
    return add_photo(figure, place, grey, NO_TRACE, fade=0.05)


def add_heat(axes: Axes, attention: AttentionMap) -> None:
    """Lay the map, relative to its highest value, over axes in fractions of the photo."""
    share = attention.values / attention.values.max()
    heat = np.concatenate([time_colours(share), _opacity(share)[..., None]], axis=-1)
    axes.imshow(heat, extent=(0, 1, 1, 0), interpolation="bilinear", aspect="auto", zorder=1)


def heat_colours(shares: ArrayLike) -> Floats:
    """(…, 3) sRGB in [0, 1]: how shares of the highest value look on a light grey photo."""
    opacity = _opacity(np.asarray(shares, dtype=np.float64))[..., None]
    colours: Floats = time_colours(shares) * opacity + 0.75 * (1 - opacity)
    return colours


def add_heat_scale(figure: Figure, place: Rect) -> None:
    """A strip with the colour of every share of the highest value, and what its ends mean beneath."""
    strip = add_axes(figure, Rect(place.x, place.y, place.width, 0.1))
    strip.imshow(heat_colours(np.linspace(0, 1, STEPS))[None], aspect="auto")
    write(figure, "no attention", place.x, place.y + 0.27, size=7.5, colour=QUIET)
    write(
        figure, "most attention", place.x + place.width, place.y + 0.27, size=7.5, colour=QUIET
    ).set_horizontalalignment("right")


def _opacity(share: Floats) -> Floats:
    """Rises faster than the value at first, so that weak attention is seen, too."""
    opacity: Floats = _STRONGEST * share**0.4
    return opacity
