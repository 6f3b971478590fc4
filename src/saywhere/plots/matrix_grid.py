"""Where the cells of an attention matrix stand, span by span, and how they are painted and named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from saywhere.core import InvalidValue
from saywhere.core.types import Floats
from saywhere.plots.colour import time_colours
from saywhere.plots.labels import fitting_step, spread
from saywhere.plots.palette import Palette
from saywhere.plots.sheet import font_settings, text_width_in
from saywhere.plots.text import drawable, shortened

TEXT_PT = 9.0
GAP_IN = 0.07
"""Between spans."""
_LABEL_IN = 0.152
_LONGEST_LABEL = 16
_BEFORE_IN = 0.3  # How far labels may stand before the first row or column, so that fewer must give way.
_NAME_IN = 0.21  # Between spans, with room for the names of blocks.
Label = tuple[float, str]
"""Where on an edge something stands, in inches, and its text."""


@dataclass(frozen=True, slots=True)
class MatrixSpan:
    """Rows, and the same columns, of a matrix that belong together: all tags, all regions, or one [SEP].

    labels: one for each row, in order. every: only each so many-th is written: 5 for numbers of regions, for instance.
    """

    name: str
    labels: tuple[str, ...]
    every: int = 1

    def __post_init__(self) -> None:
        if self.every < 1:
            raise InvalidValue("span", f"writes each {self.every}-th label", "take 1 for all")


@dataclass(frozen=True, slots=True)
class MatrixBlock:
    """A part of a matrix to be outlined and named. rows, columns: names of spans; attention goes from row to column."""

    name: str
    rows: str
    columns: str


def short(label: str) -> str:
    """A label as it is drawn."""
    return drawable(shortened(label, _LONGEST_LABEL))


def checked_matrix(matrix: ArrayLike, spans: Sequence[MatrixSpan]) -> Floats:
    """(n, n) at least 0, or NaN where there is nothing; n is the number of labels of all spans."""
    values = np.asarray(matrix, dtype=np.float64)
    n = sum(len(span.labels) for span in spans)
    if values.shape != (n, n) or n == 0:
        raise InvalidValue("attention matrix", f"has shape {values.shape}, but there are {n} labels")
    if np.isinf(values).any() or (values < 0).any():
        raise InvalidValue("attention matrix", "has values below 0 or without end")
    return values


@dataclass(frozen=True, slots=True, eq=False)
class MatrixGrid:
    """The places of all cells, in inches from the upper left corner of the matrix. Spans without labels are left out.

    lefts, tops: of each span. names: what to write over each block.
    """

    spans: tuple[MatrixSpan, ...]
    blocks: tuple[MatrixBlock, ...]
    names: Mapping[MatrixBlock, str]
    cell: float
    lefts: tuple[float, ...]
    tops: tuple[float, ...]

    @classmethod
    def of(
        cls, spans: Sequence[MatrixSpan], blocks: Sequence[MatrixBlock], width_in: float, gap_in: float = GAP_IN
    ) -> MatrixGrid:
        """Cells are squares that fill this width. Names of blocks become letters if one is too long for its block."""
        shown = tuple(span for span in spans if span.labels)
        known = [span.name for span in spans]
        if len(set(known)) < len(known):
            raise InvalidValue("spans", f"have a name twice: {', '.join(known)}")
        for block in blocks:
            if not {block.rows, block.columns} <= set(known):
                raise InvalidValue("block", f"{block.name!r} is of {block.rows!r} and {block.columns!r}, not spans")
        there = {span.name for span in shown}
        drawn = tuple(block for block in blocks if {block.rows, block.columns} <= there)
        cell = (width_in - gap_in * (len(shown) - 1)) / sum(len(span.labels) for span in shown)
        sizes = [cell * len(span.labels) for span in shown]
        named = {block.rows for block in drawn}
        above = [_NAME_IN if span.name in named else gap_in if i else 0.0 for i, span in enumerate(shown)]
        lefts = accumulate([0.0, *(size + gap_in for size in sizes[:-1])])
        tops = accumulate([above[0], *(size + gap for size, gap in zip(sizes, above[1:], strict=False))])
        widths = dict(zip((span.name for span in shown), sizes, strict=True))
        fits = all(text_width_in(drawable(block.name), TEXT_PT) <= widths[block.columns] for block in drawn)
        names = {block: block.name if fits else chr(ord("A") + i) for i, block in enumerate(drawn)}
        return cls(shown, drawn, names, cell, tuple(lefts), tuple(tops))

    @property
    def width(self) -> float:
        return self.lefts[-1] + self.cell * len(self.spans[-1].labels)

    @property
    def height(self) -> float:
        return self.tops[-1] + self.cell * len(self.spans[-1].labels)

    def key(self) -> str:
        """What the letters mean; empty if names stand in their place."""
        return " · ".join(f"{name} {block.name}" for block, name in self.names.items() if name != block.name)

    def item_labels(self, starts: Sequence[float]) -> list[Label]:
        """As many labels of rows or columns as fit. starts: `lefts` or `tops`."""
        return [
            (start + (i + 0.5) * self.cell, short(span.labels[i]))
            for span, start in zip(self.spans, starts, strict=True)
            for i in range(0, len(span.labels), span.every * self.step)
        ]

    @property
    def step(self) -> int:
        """Of the labels to be written, each so many-th has room."""
        counts = [-(-len(span.labels) // span.every) for span in self.spans]
        return fitting_step(counts, _LABEL_IN, self.width + _BEFORE_IN)

    def span_labels(self, starts: Sequence[float]) -> list[Label]:
        """The name of each span, at its middle."""
        return [
            (start + self.cell * len(span.labels) / 2, short(span.name))
            for span, start in zip(self.spans, starts, strict=True)
        ]

    def paint(self, axes: Axes, x: float, y: float, values: Floats, highest: float, palette: Palette) -> None:
        """The matrix on axes in inches, with the outlines and names of its blocks."""
        ends = [0, *accumulate(len(span.labels) for span in self.spans)]
        outlined = {(block.rows, block.columns): block for block in self.blocks}
        for i, rows in enumerate(self.spans):
            for j, columns in enumerate(self.spans):
                part = values[ends[i] : ends[i + 1], ends[j] : ends[j + 1]]
                left, top = x + self.lefts[j], y + self.tops[i]
                right, bottom = left + self.cell * part.shape[1], top + self.cell * part.shape[0]
                extent = (left, right, bottom, top)
                axes.imshow(cell_colours(part, highest), extent=extent, interpolation="nearest", aspect="auto")
                block = outlined.get((rows.name, columns.name))
                edge, width = (palette.ink, 1.6) if block else (palette.line, 0.6)
                frame = Rectangle((left, top), right - left, bottom - top, fill=False, ec=edge, lw=width, zorder=3)
                axes.add_patch(frame)
                if block:
                    text = drawable(self.names[block])
                    axes.text(left, top - 0.055, text, **font_settings(TEXT_PT, palette.ink, bold=len(text) == 1))


def add_row_labels(
    axes: Axes, x: float, y: float, labels: Sequence[Label], grid: MatrixGrid, palette: Palette, leader: float
) -> None:
    """Labels left of a matrix whose upper left corner is at (x, y), each joined to its place by a line, its leader."""
    places = spread([place for place, _ in labels], [_LABEL_IN] * len(labels), -_BEFORE_IN, grid.height)
    for (place, text), shifted in zip(labels, places, strict=True):
        bend = ([x - 0.03, x - 0.09, x - leader + 0.07, x - leader + 0.04], [y + place] * 2 + [y + shifted] * 2)
        axes.plot(*bend, color=palette.quiet, lw=0.6, zorder=2)
        settings = {**font_settings(TEXT_PT, palette.ink), "va": "center_baseline"}
        axes.text(x - leader, y + shifted, text, ha="right", **settings)


def add_column_labels(
    axes: Axes, x: float, y: float, labels: Sequence[Label], grid: MatrixGrid, palette: Palette, leader: float
) -> None:
    """The same beneath a matrix: on end, or level where there is room for that."""
    level = _are_level(labels, grid)
    sizes = [text_width_in(text, TEXT_PT) + 0.06 if level else _LABEL_IN for _, text in labels]
    places = spread([place for place, _ in labels], sizes, -_BEFORE_IN, grid.width)
    below = y + grid.height
    for (place, text), shifted in zip(labels, places, strict=True):
        down = [below + 0.03, below + 0.09, below + leader - 0.07, below + leader - 0.04]
        bend = ([x + place] * 2 + [x + shifted] * 2, down)
        axes.plot(*bend, color=palette.quiet, lw=0.6, zorder=2)
        settings = {**font_settings(TEXT_PT, palette.ink), "va": "top", "rotation": 0 if level else 90}
        axes.text(x + shifted, below + leader, text, ha="center", **settings)


def column_labels_in(labels: Sequence[Label], grid: MatrixGrid) -> float:
    """How high the labels beneath a matrix are."""
    return _LABEL_IN if _are_level(labels, grid) else max(text_width_in(text, TEXT_PT) for _, text in labels)


def _are_level(labels: Sequence[Label], grid: MatrixGrid) -> bool:
    return sum(text_width_in(text, TEXT_PT) + 0.06 for _, text in labels) <= 0.8 * grid.width


def cell_colours(values: ArrayLike, highest: float) -> Floats:
    """(…, 4) sRGB and opacity: by the square root, so that weak attention is seen, too. NaN: nothing is painted."""
    given = np.asarray(values, dtype=np.float64)
    known = np.isfinite(given)
    shares = np.sqrt(np.where(known, given, 0) / highest) if highest > 0 else np.zeros_like(given)
    return np.concatenate([time_colours(shares), known[..., None].astype(np.float64)], axis=-1)
