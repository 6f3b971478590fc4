"""What several looked at on one photo, side by side: the photo itself, then a heat map for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from numpy.typing import ArrayLike

from saywhere.core import AttentionMap, InvalidValue
from saywhere.core.regions import corners
from saywhere.core.types import Floats, owned
from saywhere.plots.heatmap import NO_TRACE, add_grey_photo, add_heat, add_heat_scale
from saywhere.plots.photo import Photo, PhotoLike, load_photo
from saywhere.plots.sheet import (
    INK,
    MARGIN_IN,
    QUIET,
    SCALE_BAR_IN,
    Rect,
    add_photo,
    flow,
    font_settings,
    new_sheet,
    photo_height_in,
    text_width_in,
    wrap,
    write,
)
from saywhere.plots.text import drawable, shortened

MOST_WORDS = 60
"""Headings are cut after so many words."""
PHOTO_TITLE = "photo"
NO_ATTENTION = "no attention"
_PANEL_IN, _GAP_IN, _ACROSS = 2.45, 0.2, 4
_HEADING_PT, _HEADING_IN, _SPACE_IN = 11, 0.25, 0.05
_TITLE_PT, _TITLE_IN = 9.5, 0.19
_NOTE_PT, _NOTE_IN = 9, 0.185
_EDGE = 0.012
# Bold letters are wider than `text_width_in` thinks.
_BOLD = 1.16


@dataclass(frozen=True, slots=True, eq=False)
class HeatPanel:
    """Where one model, or people, looked. title: who. attention: None if there is none, which is then said.

    boxes_xyxy: (n, 4) boxes to outline, for instance the most important regions, in fractions of the photo.
    note: beneath the picture, for instance the answer and whether it is right.
    """

    title: str
    attention: AttentionMap | None
    boxes_xyxy: Floats
    note: str

    def __init__(
        self, title: str, attention: AttentionMap | None, boxes_xyxy: ArrayLike | None = None, note: str = ""
    ) -> None:
        boxes = np.empty((0, 4)) if boxes_xyxy is None else boxes_xyxy
        object.__setattr__(self, "title", title)
        object.__setattr__(self, "attention", attention)
        object.__setattr__(self, "boxes_xyxy", owned(boxes, "boxes to outline", (None, 4)))
        object.__setattr__(self, "note", note)

    def described(self) -> str:
        """What the picture shows, for those who cannot see it."""
        n_boxes = len(self.boxes_xyxy)
        outlined = f", {n_boxes} {'box' if n_boxes == 1 else 'boxes'} outlined" if n_boxes else ""
        if self.attention is None:
            return f"{self.title}: {NO_ATTENTION}{outlined}"
        density = self.attention.density
        # Where several places have the most, as in a box, their middle stands for them.
        y, x = ((np.argwhere(density >= density.max() * 0.999) + 0.5) / density.shape).mean(axis=0)
        where = _place_name(x, y)
        falling = np.cumsum(np.sort(density, axis=None)[::-1])
        half = (int(np.searchsorted(falling, 0.5 - 1e-12)) + 1) / density.size
        least = "less than 1" if half < 0.01 else f"{half:.0%}".removesuffix("%")
        return f"{self.title}: most attention {where}, half of it on {least} % of the photo{outlined}"


def draw_heats(photo: PhotoLike, panels: Sequence[HeatPanel], heading: str, marked: range = range(0)) -> Figure:
    """The photo, then a heat map for each panel, each relative to its own highest value; a heading above them all.

    heading: the question and its true answer, or a caption. marked: which of its words (split at spaces) are in bold:
    those explained.
    """
    loaded = load_photo(photo)
    words = _drawn_words(heading, marked)
    cells: list[HeatPanel | None] = [None, *panels]
    lines = [cells[i : i + _ACROSS] for i in range(0, len(cells), _ACROSS)]
    across = len(lines[0])
    inner = across * _PANEL_IN + (across - 1) * _GAP_IN
    spots, n_headings = flow([_word_width_in(*word) for word in words], inner, _SPACE_IN)
    photo_in = photo_height_in(loaded, NO_TRACE, _PANEL_IN)
    titles_in = [0.08 + _TITLE_IN * max(len(_title_lines(cell)) for cell in line) for line in lines]
    notes_in = [0.16 + _NOTE_IN * max(len(_note_lines(cell)) for cell in line) for line in lines]
    top = MARGIN_IN + n_headings * _HEADING_IN
    body_in = sum(titles_in) + sum(notes_in) + len(lines) * photo_in
    figure = new_sheet(2 * MARGIN_IN + inner, top + body_in + SCALE_BAR_IN + 0.06)
    _add_heading(figure, words, spots)
    for line_cells, title_in, note_in in zip(lines, titles_in, notes_in, strict=True):
        for i, cell in enumerate(line_cells):
            place = Rect(MARGIN_IN + i * (_PANEL_IN + _GAP_IN), top + title_in, _PANEL_IN, photo_in)
            _add_panel(figure, place, loaded, cell)
            _add_texts(figure, place, cell)
        top += title_in + photo_in + note_in
    scale_in = min(inner, 2 * _PANEL_IN + _GAP_IN)
    add_heat_scale(figure, Rect(MARGIN_IN, top, scale_in, SCALE_BAR_IN))
    return figure


def heading_words(heading: str, marked: range) -> list[tuple[str, bool]]:
    """The words of a heading, and whether each is a marked one."""
    words = heading.split()
    for number in marked:
        if not 0 <= number < len(words):
            raise InvalidValue("marked word", f"is {number}, but the heading has {len(words)} words")
    return [(word, i in marked) for i, word in enumerate(words)]


def draw_panel(photo: Photo, panel: HeatPanel | None, width_in: float) -> Figure:
    """One picture without any text around it; None: the photo itself."""
    place = Rect(0, 0, width_in, photo_height_in(photo, NO_TRACE, width_in))
    figure = new_sheet(place.width, place.height)
    _add_panel(figure, place, photo, panel)
    return figure


def _add_panel(figure: Figure, place: Rect, photo: Photo, panel: HeatPanel | None) -> None:
    if panel is None:
        add_photo(figure, place, photo, NO_TRACE)
        return
    axes = add_grey_photo(figure, place, photo)
    if panel.attention is not None:
        add_heat(axes, panel.attention)
    else:
        backing = {"fc": "white", "ec": "none", "pad": 3, "alpha": 0.9}
        axes.text(0.5, 0.5, NO_ATTENTION, ha="center", zorder=8, bbox=backing, **font_settings(9, INK))
    _add_outlines(axes, panel.boxes_xyxy)


def _add_outlines(axes: Axes, boxes_xyxy: Floats) -> None:
    """White in a dark casing, because heat may be of any colour beneath; whole at the photo's edges, too."""
    for box in np.clip(boxes_xyxy, _EDGE, 1 - _EDGE):
        for edge, width, order in ((INK, 3.0, 3), ("white", 1.5, 4)):
            outline = Polygon(corners(box), fill=False, ec=edge, lw=width, zorder=order, joinstyle="miter")
            axes.add_patch(outline)


def _add_heading(figure: Figure, words: Sequence[tuple[str, bool]], spots: Sequence[tuple[int, float]]) -> None:
    for (text, bold), (line, left) in zip(words, spots, strict=True):
        baseline = MARGIN_IN + line * _HEADING_IN + 0.14
        write(figure, text, MARGIN_IN + left, baseline, size=_HEADING_PT, bold=bold)


def _add_texts(figure: Figure, place: Rect, panel: HeatPanel | None) -> None:
    """The title above the picture and the note beneath."""
    for i, line in enumerate(reversed(_title_lines(panel))):
        write(figure, line, place.x, place.y - 0.08 - i * _TITLE_IN, size=_TITLE_PT, bold=True)
    for i, line in enumerate(_note_lines(panel)):
        baseline = place.y + place.height + 0.19 + i * _NOTE_IN
        write(figure, line, place.x, baseline, size=_NOTE_PT, colour=QUIET)


def _drawn_words(heading: str, marked: range) -> list[tuple[str, bool]]:
    words = heading_words(heading, marked)
    drawn = [(drawable(shortened(word, 24)), bold) for word, bold in words[:MOST_WORDS]]
    return [*drawn, ("…", False)] if len(words) > MOST_WORDS else drawn


def _word_width_in(text: str, bold: bool) -> float:
    return text_width_in(text, _HEADING_PT) * (_BOLD if bold else 1)


def _title_lines(panel: HeatPanel | None) -> list[str]:
    return wrap(shortened(panel.title if panel else PHOTO_TITLE, 80), _PANEL_IN / _BOLD, _TITLE_PT)


def _note_lines(panel: HeatPanel | None) -> list[str]:
    return wrap(shortened(panel.note, 240), _PANEL_IN, _NOTE_PT) if panel else []


def _place_name(x: float, y: float) -> str:
    """In words, of nine places: "at the top left", "in the middle" …"""
    across = ("left", "", "right")[min(int(x * 3), 2)]
    down = ("top", "", "bottom")[min(int(y * 3), 2)]
    return f"at the {f'{down} {across}'.strip()}" if across or down else "in the middle"
