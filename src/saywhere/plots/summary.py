"""Distributions of a data set on one sheet."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from saywhere.core import InvalidValue
from saywhere.plots.colour import time_colours
from saywhere.plots.sheet import INK, MARGIN_IN, QUIET, Rect, add_axes, font_settings, new_sheet, write
from saywhere.plots.text import drawable

_WIDTH_IN, _PANEL_IN, _ACROSS = 10.0, 2.0, 3
_GAP_IN, _LABELS_IN = 0.45, 0.62


def draw_summary(columns: Mapping[str, ArrayLike], title: str) -> Figure:
    """A panel for each column: a histogram of numbers, (n,), or a heat map of a grid laid over images, (rows, cols)."""
    if not columns:
        raise InvalidValue("summary", "has no columns to draw")
    rows = -(-len(columns) // _ACROSS)
    figure = new_sheet(_WIDTH_IN, 2 * MARGIN_IN + 0.35 + rows * (_PANEL_IN + _LABELS_IN))
    write(figure, title, MARGIN_IN, MARGIN_IN + 0.15, size=12, bold=True)
    width = (_WIDTH_IN - 2 * MARGIN_IN - (_ACROSS - 1) * _GAP_IN) / _ACROSS
    for i, (name, values) in enumerate(columns.items()):
        x = MARGIN_IN + (i % _ACROSS) * (width + _GAP_IN)
        y = MARGIN_IN + 0.65 + (i // _ACROSS) * (_PANEL_IN + _LABELS_IN)
        array = np.asarray(values, dtype=np.float64)
        write(figure, name, x, y - 0.08, size=9, colour=INK)
        if array.ndim == 1 and len(array):
            label = write(figure, f"median {np.median(array):.3g}", x + width, y - 0.08, size=8, colour=QUIET)
            label.set_horizontalalignment("right")
        axes = add_axes(figure, Rect(x, y, width, _PANEL_IN))
        if array.ndim == 2:
            axes.imshow(time_colours(array / max(array.max(), 1e-12)), aspect="auto", interpolation="nearest")
        else:
            _histogram(axes, array)
    return figure


def _histogram(axes: Axes, values: np.ndarray) -> None:
    if not len(values):
        axes.text(0.5, 0.5, drawable("no values"), ha="center", transform=axes.transAxes, **font_settings(9, QUIET))
        return
    bins = min(40, max(8, int(np.sqrt(len(values)))))
    axes.hist(values, bins=bins, color=time_colours([0.35])[0], edgecolor="white", linewidth=0.4)
    axes.set_axis_on()
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(QUIET)
    axes.tick_params(axis="x", labelsize=7.5, colors=QUIET, length=3)
    axes.set_yticks([])
    axes.axvline(float(np.median(values)), color=INK, linewidth=1)
