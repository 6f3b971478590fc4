"""A whole narrative on one sheet: where they pointed, where each word is, and what was said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from saywhere.core import Narrative, Word, WordBoxes
from saywhere.plots.colour import TimeScale, hex_colours, inks
from saywhere.plots.facts import counted, notes_on, summary, word_time_s
from saywhere.plots.photo import Photo, PhotoLike, load_photo
from saywhere.plots.sheet import (
    MARGIN_IN,
    QUIET,
    SCALE_BAR_IN,
    Rect,
    add_photo,
    add_time_scale,
    flow,
    new_sheet,
    photo_height_in,
    text_width_in,
    wrap,
    write,
)
from saywhere.plots.text import drawable, shortened
from saywhere.plots.trace import add_trace
from saywhere.plots.words import add_word_boxes, crowded

_WIDTH_IN = 13.0
_INNER_IN = _WIDTH_IN - 2 * MARGIN_IN
_GUTTER_IN = 0.24
_PANEL_IN = (_INNER_IN - _GUTTER_IN) / 2
_PANELS_TOP_IN = MARGIN_IN + 0.5
_WORD_PT, _WORD_IN, _LINE_IN, _SPACE_IN, _PAD_IN = 11.5, 0.235, 0.3, 0.04, 0.06
_NOTE_PT, _NOTE_IN = 9.5, 0.2
_LONGEST_WORD = 60
_MOST_WORDS = 1500
"""More would make a picture that no program opens; how many are left out is said."""


def draw_narrative(photo: PhotoLike, narrative: Narrative) -> Figure:
    """The photo with the trace, again with a box for each word, and the caption beneath in the colours of time.

    photo: None, or a file that is absent or damaged, gives a grey canvas that says so. Words without a place are grey.
    """
    loaded = load_photo(photo)
    words, boxes = narrative.words, narrative.word_boxes()
    scale = TimeScale.of(words, narrative.trace)
    below = _PANELS_TOP_IN + photo_height_in(loaded, narrative.trace, _PANEL_IN) + 0.3
    caption = _set_caption(words, below + SCALE_BAR_IN + 0.06)
    notes = [line for note in [*_left_out(words), *notes_on(narrative)] for line in wrap(note, _INNER_IN, _NOTE_PT)]
    figure = new_sheet(_WIDTH_IN, caption.bottom_in + (0.06 + len(notes) * _NOTE_IN if notes else 0) + MARGIN_IN)
    write(figure, shortened(narrative.id, 80), MARGIN_IN, MARGIN_IN + 0.14, size=12, bold=True)
    write(figure, summary(narrative, boxes), MARGIN_IN, MARGIN_IN + 0.36, size=_NOTE_PT, colour=QUIET)
    _add_panels(figure, loaded, narrative, words, boxes, scale)
    add_time_scale(figure, Rect(MARGIN_IN, below, _INNER_IN, SCALE_BAR_IN), scale)
    _add_caption(figure, caption, words, boxes, scale)
    for i, line in enumerate(notes):
        write(figure, line, MARGIN_IN, caption.bottom_in + 0.2 + _NOTE_IN * i, size=_NOTE_PT, colour=QUIET)
    return figure


def _left_out(words: Sequence[Word]) -> list[str]:
    return [f"… and {counted(len(words) - _MOST_WORDS, 'more word')}."] if len(words) > _MOST_WORDS else []


def _add_panels(
    figure: Figure, photo: Photo, narrative: Narrative, words: Sequence[Word], boxes: WordBoxes, scale: TimeScale
) -> None:
    height = photo_height_in(photo, narrative.trace, _PANEL_IN)
    places = [Rect(MARGIN_IN + i * (_PANEL_IN + _GUTTER_IN), _PANELS_TOP_IN, _PANEL_IN, height) for i in (0, 1)]
    add_trace(add_photo(figure, places[0], photo, narrative.trace, fade=0.15), narrative.trace, scale)
    left_out = add_word_boxes(add_photo(figure, places[1], photo, narrative.trace, fade=0.3), words, boxes, scale)
    if left_out:
        at = (_WIDTH_IN - MARGIN_IN, _PANELS_TOP_IN + height + 0.23)
        write(figure, crowded(left_out), *at, size=7.5, colour=QUIET).set_horizontalalignment("right")


@dataclass(frozen=True, slots=True)
class _Caption:
    """Words set in lines: the drawable text and the place of each, and where the last line ends."""

    texts: list[str]
    places: list[Rect]
    bottom_in: float


def _set_caption(words: Sequence[Word], top_in: float) -> _Caption:
    texts = [drawable(shortened(word.text, _LONGEST_WORD)) for word in words[:_MOST_WORDS]]
    widths = [text_width_in(text, _WORD_PT) + 2 * _PAD_IN for text in texts]
    spots, n_lines = flow(widths, _INNER_IN, _SPACE_IN)
    places = [
        Rect(MARGIN_IN + x, top_in + line * _LINE_IN, width, _WORD_IN)
        for (line, x), width in zip(spots, widths, strict=True)
    ]
    return _Caption(texts, places, top_in + n_lines * _LINE_IN)


def _add_caption(figure: Figure, caption: _Caption, words: Sequence[Word], boxes: WordBoxes, scale: TimeScale) -> None:
    shares = scale.shares([word_time_s(word) for word in words])
    sheet_height = figure.get_size_inches()[1]
    rows = zip(caption.texts, caption.places, boxes.located, hex_colours(shares), inks(shares), strict=False)
    for text, place, located, colour, ink in rows:
        if located:
            patch = FancyBboxPatch(
                (place.x + 0.03, sheet_height - place.y - place.height + 0.03),
                place.width - 0.06,
                place.height - 0.06,
                boxstyle="round,pad=0.03,rounding_size=0.05",
                fc=colour,
                ec="none",
                transform=figure.dpi_scale_trans,
            )
            figure.add_artist(patch)
        write(figure, text, place.x + _PAD_IN, place.y + 0.165, size=_WORD_PT, colour=ink if located else QUIET)
