"""Attention matrices: of one image by several models side by side, or layer by layer, all in one scale of colours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from saywhere.core import InvalidValue
from saywhere.core.types import Floats
from saywhere.plots.colour import STEPS, time_colours
from saywhere.plots.matrix_grid import (
    TEXT_PT,
    MatrixBlock,
    MatrixGrid,
    MatrixSpan,
    add_column_labels,
    add_row_labels,
    checked_matrix,
    column_labels_in,
    short,
)
from saywhere.plots.palette import LIGHT, Palette
from saywhere.plots.sheet import MARGIN_IN, Rect, add_axes, new_sheet, text_width_in, wrap, write
from saywhere.plots.text import shortened

__all__ = ["WIDE_IN", "MatrixBlock", "MatrixSpan", "draw_layers", "draw_matrices"]

WIDE_IN = 11.6
"""Width of a sheet for two large matrices."""
_INNER_IN = WIDE_IN - 2 * MARGIN_IN
_TITLE_PT, _TITLE_IN, _BOLD = 11.0, 0.22, 1.16  # Bold letters are wider than `wrap` thinks.
_BETWEEN_IN, _LARGEST_IN, _LEADER_IN = 0.4, 5.4, 0.4
_LAYER_PT, _LAYERS_ACROSS, _LAYER_IN, _LAYER_GAP_IN, _LAYER_LEADER_IN = 9.5, 4, 2.6, 0.25, 0.22
_STRIP_IN, _SCALE_IN, _NOTE_IN = 3.4, 0.62, 0.19
_ABOUT = (
    "attention from each row to each column, one scale for all; colours follow its square root, so that weak attention "
    "shows"
)


def draw_matrices(
    matrices: Mapping[str, ArrayLike],
    spans: Sequence[MatrixSpan],
    blocks: Sequence[MatrixBlock] = (),
    palette: Palette = LIGHT,
) -> Figure:
    """Matrices of one image, two in a row, each under its title, all in one scale of colours.

    matrices: title → (n, n) attention from each row to each column, at least 0; NaN where there is nothing. spans: what
    the rows, and the columns, are, in order: n labels in all.
    """
    values = _checked(matrices, spans)
    across = min(2, len(values))
    left = _widest(label for span in spans for label in span.labels) + _LEADER_IN
    side = min(_LARGEST_IN, (_INNER_IN - left - (across - 1) * _BETWEEN_IN) / across)
    grid = MatrixGrid.of(spans, blocks, side)
    rows, columns = grid.item_labels(grid.tops), grid.item_labels(grid.lefts)
    below = _LEADER_IN + column_labels_in(columns, grid)
    titles = {title: wrap(_title(title), side / _BOLD, _TITLE_PT) for title in values}
    title_in = 0.1 + _TITLE_IN * max(len(lines) for lines in titles.values())
    row_in = title_in + grid.height + below + 0.25
    width = 2 * MARGIN_IN + left + across * side + (across - 1) * _BETWEEN_IN
    figure, axes, end = _new_sheet(width, -(-len(values) // across) * row_in, _notes(grid), palette)
    highest = _highest(values.values())
    for i, (title, matrix) in enumerate(values.items()):
        x = MARGIN_IN + left + (i % across) * (side + _BETWEEN_IN)
        y = MARGIN_IN + title_in + (i // across) * row_in
        for j, line in enumerate(reversed(titles[title])):
            write(figure, line, x, y - 0.1 - j * _TITLE_IN, size=_TITLE_PT, colour=palette.ink, bold=True)
        grid.paint(axes, x, y, matrix, highest, palette)
        add_column_labels(axes, x, y, columns, grid, palette, _LEADER_IN)
        if i % across == 0:
            add_row_labels(axes, x, y, rows, grid, palette, _LEADER_IN)
    _add_scale(figure, end, highest, palette)
    return figure


def draw_layers(
    layers: Mapping[str, Mapping[str, ArrayLike]], spans: Sequence[MatrixSpan], palette: Palette = LIGHT
) -> Figure:
    """Small matrices, four in a row: for each model, under its name, one for each layer; all in one scale of colours.

    layers: model → name of a layer → (n, n) as for `draw_matrices`. Only the names of spans are written.
    """
    values = {model: _checked(matrices, spans) for model, matrices in layers.items()}
    if not values:
        raise InvalidValue("layers", "are of no model")
    most = max(len(matrices) for matrices in values.values())
    # As many in a row as leave the fewest places empty.
    across = min(range(min(most, _LAYERS_ACROSS), min(most, 3) - 1, -1), key=lambda n: -most % n)
    left = _widest(span.name for span in spans) + _LAYER_LEADER_IN
    side = min(_LAYER_IN, (_INNER_IN - left - (across - 1) * _LAYER_GAP_IN) / across)
    grid = MatrixGrid.of(spans, (), side, 0.035)
    lines = {model: -(-len(matrices) // across) for model, matrices in values.items()}
    row_in = 0.26 + grid.height + _LAYER_LEADER_IN + 0.28
    width = 2 * MARGIN_IN + left + across * side + (across - 1) * _LAYER_GAP_IN
    body = sum(lines.values()) * row_in + len(values) * 0.3
    figure, axes, end = _new_sheet(width, body, [], palette)
    highest = _highest(matrix for matrices in values.values() for matrix in matrices.values())
    y = MARGIN_IN
    for model, matrices in values.items():
        write(figure, shortened(model, 100), MARGIN_IN, y + 0.16, size=_TITLE_PT, colour=palette.ink, bold=True)
        y += 0.3
        for i, (layer, matrix) in enumerate(matrices.items()):
            x, top = MARGIN_IN + left + (i % across) * (side + _LAYER_GAP_IN), y + 0.26 + (i // across) * row_in
            write(figure, shortened(layer, 30), x, top - 0.08, size=_LAYER_PT, colour=palette.ink)
            grid.paint(axes, x, top, matrix, highest, palette)
            add_column_labels(axes, x, top, grid.span_labels(grid.lefts), grid, palette, _LAYER_LEADER_IN)
            if i % across == 0:
                add_row_labels(axes, x, top, grid.span_labels(grid.tops), grid, palette, _LAYER_LEADER_IN)
        y += lines[model] * row_in
    _add_scale(figure, end, highest, palette)
    return figure


def _checked(matrices: Mapping[str, ArrayLike], spans: Sequence[MatrixSpan]) -> dict[str, Floats]:
    if not matrices:
        raise InvalidValue("attention matrices", "are none")
    return {title: checked_matrix(matrix, spans) for title, matrix in matrices.items()}


def _new_sheet(width_in: float, body_in: float, notes: Sequence[str], palette: Palette) -> tuple[Figure, Axes, float]:
    """A sheet for the body, the notes and the scale; axes over all of it, in inches; and where the scale begins."""
    lines = [line for note in [*notes, _ABOUT] for line in wrap(note, width_in - 2 * MARGIN_IN, TEXT_PT)]
    end = MARGIN_IN + body_in + len(lines) * _NOTE_IN + 0.06
    figure = new_sheet(width_in, end + _SCALE_IN)
    figure.set_facecolor(palette.paper)
    axes = add_axes(figure, Rect(0, 0, width_in, end + _SCALE_IN))
    axes.set_autoscale_on(False)
    axes.set_xlim(0, width_in)
    axes.set_ylim(end + _SCALE_IN, 0)
    for i, line in enumerate(lines):
        baseline = MARGIN_IN + body_in + (i + 0.7) * _NOTE_IN
        write(figure, line, MARGIN_IN, baseline, size=TEXT_PT, colour=palette.quiet)
    return figure, axes, end


def _title(text: str) -> str:
    """Not too long, and with no word wider than a small matrix."""
    return " ".join(shortened(word, 22) for word in shortened(text, 120).split())


def _notes(grid: MatrixGrid) -> list[str]:
    notes = [grid.key()] if grid.key() else []
    return [*notes, f"one label in {grid.step} has room"] if grid.step > 1 else notes


def _add_scale(figure: Figure, y: float, highest: float, palette: Palette) -> None:
    """The colour of every value, with round places on the strip and the values there."""
    strip = add_axes(figure, Rect(MARGIN_IN, y, _STRIP_IN, 0.12))
    strip.imshow(time_colours(np.linspace(0, 1, STEPS))[None], aspect="auto", interpolation="bilinear")
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        text = f"{highest * share**2:.2g}"
        label = write(figure, text, MARGIN_IN + share * _STRIP_IN, y + 0.3, size=TEXT_PT, colour=palette.quiet)
        label.set_horizontalalignment("left" if share == 0 else "right" if share == 1 else "center")


def _highest(matrices: Iterable[Floats]) -> float:
    """Of all that is a number; 0 if nothing is."""
    known = [matrix[np.isfinite(matrix)] for matrix in matrices]
    return max((float(values.max()) for values in known if len(values)), default=0.0)


def _widest(labels: Iterable[str]) -> float:
    return max((text_width_in(short(label), TEXT_PT) for label in labels), default=0.0)
