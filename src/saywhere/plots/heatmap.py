"""An attention map as heat over its photo."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from saywhere.core import AttentionMap, Trace
from saywhere.plots.colour import STEPS, Floats, time_colours
from saywhere.plots.photo import PhotoLike, load_photo
from saywhere.plots.sheet import (
    MARGIN_IN,
    QUIET,
    SCALE_BAR_IN,
    Place,
    add_axes,
    add_photo,
    new_sheet,
    photo_height_in,
    write,
)
from saywhere.plots.trace import WIDTH_IN

_NO_TRACE = Trace.from_segments([])
_STRONGEST = 0.82


def draw_heatmap(photo: PhotoLike, attention: AttentionMap) -> Figure:
    """The photo in grey under the map: no colour where nobody looked, yellow where most did.

    The scale beneath is relative to the map's highest value, because only ratios mean something.
    """
    loaded = load_photo(photo)
    inner = WIDTH_IN - 2 * MARGIN_IN
    height = photo_height_in(loaded, _NO_TRACE, inner)
    figure = new_sheet(WIDTH_IN, height + 2 * MARGIN_IN + 0.1 + SCALE_BAR_IN)
    if loaded.image is not None:
        loaded = load_photo(loaded.image.convert("L").convert("RGB"))
    axes = add_photo(figure, Place(MARGIN_IN, MARGIN_IN, inner, height), loaded, _NO_TRACE, fade=0.05)
    share = attention.values / attention.values.max()
    heat = np.concatenate([time_colours(share), _opacity(share)[..., None]], axis=-1)
    axes.imshow(heat, extent=(0, 1, 1, 0), interpolation="bilinear", aspect="auto", zorder=1)
    _add_scale(figure, Place(MARGIN_IN, MARGIN_IN + height + 0.14, inner, SCALE_BAR_IN))
    return figure


def _opacity(share: Floats) -> Floats:
    """Rises faster than the value at first, so that weak attention is seen, too."""
    opacity: Floats = _STRONGEST * share**0.4
    return opacity


def _add_scale(figure: Figure, place: Place) -> None:
    shares = np.linspace(0, 1, STEPS)
    strip = add_axes(figure, Place(place.x, place.y, place.width, 0.1))
    opacity = _opacity(shares)[:, None]
    strip.imshow((time_colours(shares) * opacity + 0.75 * (1 - opacity))[None], aspect="auto")
    write(figure, "no attention", place.x, place.y + 0.27, size=7.5, colour=QUIET)
    write(
        figure, "most attention", place.x + place.width, place.y + 0.27, size=7.5, colour=QUIET
    ).set_horizontalalignment("right")
