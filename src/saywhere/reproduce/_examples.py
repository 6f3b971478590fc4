"""Examples of a report: what was said and pointed at, and what each model made of it, side by side."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from saywhere.core import Narrative, Trace, Word
from saywhere.core.narrative import HUMAN
from saywhere.plots.colour import TimeScale, hex_colours
from saywhere.plots.facts import counted, notes_on, word_time_s
from saywhere.plots.photo import Photo, load_photo
from saywhere.plots.sheet import (
    INK,
    MARGIN_IN,
    QUIET,
    SCALE_BAR_IN,
    Place,
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
from saywhere.reproduce.results import Example

MOST_WORDS = 200
"""Captions are cut after so many words, and say so."""
LONGEST_WORD = 40
PANEL_IN = 3.1
_ACROSS, _GAP_IN = 4, 0.26
_TITLE_PT, _TITLE_IN = 10, 0.2
_WORD_PT, _LINE_IN, _SPACE_IN = 9.5, 0.235, 0.055
_NOTE_PT, _NOTE_IN = 8.5, 0.18
_FADE = 0.12
_PAGE_DPI = 220


@dataclass(frozen=True, slots=True)
class Panel:
    """One narrative of an example. words: as many as are shown; located: whether each has a place."""

    title: str
    narrative: Narrative
    words: tuple[Word, ...]
    located: list[bool]
    notes: list[str]

    @classmethod
    def of(cls, title: str, narrative: Narrative) -> Panel:
        words = narrative.words
        left_out = len(words) - MOST_WORDS
        notes = [f"… and {counted(left_out, 'more word')}."] if left_out > 0 else []
        located = narrative.word_boxes().located[:MOST_WORDS].tolist()
        return cls(title, narrative, words[:MOST_WORDS], located, [*notes, *notes_on(narrative)])


@dataclass(frozen=True, slots=True)
class Scene:
    """An example ready to be drawn: all its panels share one photo, one view and one scale of time."""

    photo: Photo
    panels: list[Panel]
    scale: TimeScale
    view: Trace

    @classmethod
    def of(cls, example: Example, folder: Path) -> Scene:
        """folder: where the report is, and the photo beside it."""
        who = "person" if example.truth.origin == HUMAN else "truth"
        narratives = [(who, example.truth), *example.made.items()]
        scales = [TimeScale.of_narrative(n) for _, n in narratives if n.words or len(n.trace)]
        scale = TimeScale(min((s.start_s for s in scales), default=0.0), max((s.end_s for s in scales), default=0.0))
        # Only the outline of all traces together counts for the view, not their times.
        everywhere = np.concatenate([n.trace.points * (1, 1, 0) for _, n in narratives])
        photo = load_photo(folder / example.photo if example.photo else None)
        return cls(photo, [Panel.of(*both) for both in narratives], scale, Trace(everywhere))

    def height_in(self, width_in: float) -> float:
        return photo_height_in(self.photo, self.view, width_in)


def panel_webp(scene: Scene, panel: Panel) -> bytes:
    """The photo with one trace, for the page; the words stand beneath it as text."""
    figure = new_sheet(PANEL_IN, scene.height_in(PANEL_IN))
    place = Place(0, 0, PANEL_IN, scene.height_in(PANEL_IN))
    add_trace(add_photo(figure, place, scene.photo, scene.view, _FADE), panel.narrative.trace, scene.scale)
    return webp(figure)


def webp(figure: Figure) -> bytes:
    """A picture for the page. Nothing beside the photo, where a trace leaves it: the page may be light or dark."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="webp", dpi=_PAGE_DPI, facecolor="none", pil_kwargs={"quality": 88})
    return buffer.getvalue()


def draw_example(scene: Scene) -> Figure:
    """All panels on one sheet, each with its words beneath, and one scale of time for all."""
    across = min(_ACROSS, len(scene.panels))
    lines = [scene.panels[i : i + across] for i in range(0, len(scene.panels), across)]
    photo_in = scene.height_in(PANEL_IN)
    titles_in = [0.1 + _TITLE_IN * max(len(_title_lines(panel)) for panel in line) for line in lines]
    texts_in = [max(_text_height_in(panel) for panel in line) for line in lines]
    heights = [title + photo_in + text for title, text in zip(titles_in, texts_in, strict=True)]
    width = 2 * MARGIN_IN + across * PANEL_IN + (across - 1) * _GAP_IN
    figure = new_sheet(width, 2 * MARGIN_IN + sum(heights) + 0.12 + SCALE_BAR_IN)
    top = MARGIN_IN
    for line, title_in, height in zip(lines, titles_in, heights, strict=True):
        for i, panel in enumerate(line):
            place = Place(MARGIN_IN + i * (PANEL_IN + _GAP_IN), top + title_in, PANEL_IN, photo_in)
            add_trace(add_photo(figure, place, scene.photo, scene.view, _FADE), panel.narrative.trace, scene.scale)
            for j, text in enumerate(reversed(_title_lines(panel))):
                write(figure, text, place.x, place.y - 0.09 - j * _TITLE_IN, size=_TITLE_PT, bold=True)
            _add_words(figure, panel, scene.scale, place.x, place.y + photo_in + 0.12)
        top += height
    bar_in = min(width - 2 * MARGIN_IN, 2 * PANEL_IN + _GAP_IN)
    add_time_scale(figure, Place(MARGIN_IN, top + 0.17, bar_in, SCALE_BAR_IN), scene.scale)
    return figure


def _text_height_in(panel: Panel) -> float:
    _, n_lines = _set(_texts(panel.words))
    return 0.12 + n_lines * _LINE_IN + len(_note_lines(panel)) * _NOTE_IN + 0.16


def _texts(words: Sequence[Word]) -> list[str]:
    return [drawable(shortened(word.text, LONGEST_WORD)) for word in words]


def _set(texts: Sequence[str]) -> tuple[list[tuple[int, float]], int]:
    return flow([text_width_in(text, _WORD_PT) for text in texts], PANEL_IN, _SPACE_IN)


def _note_lines(panel: Panel) -> list[str]:
    return [line for note in panel.notes for line in wrap(shortened(note, 400), PANEL_IN, _NOTE_PT)]


def _title_lines(panel: Panel) -> list[str]:
    # Bold letters are wider than `wrap` thinks.
    return wrap(shortened(panel.title, 90), PANEL_IN * 0.86, _TITLE_PT)


def _add_words(figure: Figure, panel: Panel, scale: TimeScale, x: float, below: float) -> None:
    """The caption, each word that has a place underlined in the colour of its time; then the notes."""
    texts = _texts(panel.words)
    spots, n_lines = _set(texts)
    colours = hex_colours(scale.shares([word_time_s(word) for word in panel.words]))
    sheet_in = figure.get_size_inches()[1]
    for text, (line, left), located, colour in zip(texts, spots, panel.located, colours, strict=True):
        baseline = below + line * _LINE_IN + 0.12
        write(figure, text, x + left, baseline, size=_WORD_PT, colour=INK if located else QUIET)
        if located:
            corner = (x + left, sheet_in - baseline - 0.062)
            bar = Rectangle(corner, text_width_in(text, _WORD_PT), 0.03, fc=colour, ec="none")
            bar.set_transform(figure.dpi_scale_trans)
            figure.add_artist(bar)
    for i, line_text in enumerate(_note_lines(panel)):
        baseline = below + n_lines * _LINE_IN + 0.13 + i * _NOTE_IN
        write(figure, line_text, x, baseline, size=_NOTE_PT, colour=QUIET)
