"""Word boxes on their photo: a labelled box for every word that has a place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from saywhere.core import InvalidValue, Trace, Word, WordBoxes
from saywhere.core.types import Floats
from saywhere.plots.colour import TimeScale, hex_colours, inks
from saywhere.plots.facts import drawn_boxes, word_time_s
from saywhere.plots.photo import PhotoLike, load_photo
from saywhere.plots.sheet import (
    MARGIN_IN,
    QUIET,
    SCALE_BAR_IN,
    Rect,
    add_photo,
    add_time_scale,
    font_settings,
    new_sheet,
    photo_height_in,
    text_width_in,
    wrap,
    write,
)
from saywhere.plots.text import drawable, shortened
from saywhere.plots.trace import WIDTH_IN

_LEAST_SIDE = 0.012  # Boxes are drawn at least this large, in fractions of the photo.
_LABEL_PT = 7.5
_LABEL_HEIGHT_IN = 0.145
_LABEL_PAD_IN = 0.035
_LONGEST_LABEL = 24
_NO_TRACE = Trace.from_segments([])


def draw_word_boxes(
    photo: PhotoLike, words: Sequence[Word], boxes: WordBoxes, scale: TimeScale | None = None
) -> Figure:
    """The photo with a labelled box for each word that has a place, and the other words listed beneath.

    scale: which time has which colour; by default the words' own first and last moment.
    """
    _check_lengths(words, boxes)
    loaded = load_photo(photo)
    scale = scale or TimeScale.of(tuple(words), _NO_TRACE)
    inner = WIDTH_IN - 2 * MARGIN_IN
    height = photo_height_in(loaded, _NO_TRACE, inner)
    nowhere = [word.text for word, located in zip(words, boxes.located, strict=True) if not located]
    note = "Without a place: " + ", ".join(shortened(text, 40) for text in nowhere) if nowhere else ""
    lines = wrap(note, inner, 8.5)
    below = MARGIN_IN + height + 0.12
    figure = new_sheet(WIDTH_IN, below + SCALE_BAR_IN + 0.17 * (len(lines) + 1) + 0.1)
    axes = add_photo(figure, Rect(MARGIN_IN, MARGIN_IN, inner, height), loaded, _NO_TRACE, fade=0.25)
    left_out = add_word_boxes(axes, words, boxes, scale)
    add_time_scale(figure, Rect(MARGIN_IN, below, inner, SCALE_BAR_IN), scale, marks=False)
    for i, line in enumerate(lines):
        write(figure, line, MARGIN_IN, below + SCALE_BAR_IN + 0.1 + 0.17 * i, size=8.5, colour=QUIET)
    if left_out:
        write(
            figure, crowded(left_out), MARGIN_IN, below + SCALE_BAR_IN + 0.1 + 0.17 * len(lines), size=7, colour=QUIET
        )
    return figure


def crowded(left_out: int) -> str:
    """Says that boxes stayed without a label."""
    return f"{left_out} box{'es' if left_out > 1 else ''} without a label: no room"


def add_word_boxes(axes: Axes, words: Sequence[Word], boxes: WordBoxes, scale: TimeScale) -> int:
    """Draw the located words' boxes on axes in fractions of the photo; how many labels found no room.

    Labels never cover each other. Long words are placed first, because short ones say less about the place.
    """
    _check_lengths(words, boxes)
    located = np.flatnonzero(boxes.located).tolist()
    if not located:
        return 0
    drawn = drawn_boxes(boxes.boxes_xyxy[located], _LEAST_SIDE)
    shares = scale.shares([word_time_s(words[i]) for i in located])
    colours = hex_colours(shares)
    for (x1, y1, x2, y2), colour in zip(drawn.tolist(), colours, strict=True):
        for edge, width, order in (("white", 3.0, 3), (colour, 1.4, 4)):
            axes.add_patch(
                Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, ec=edge, lw=width, zorder=order, clip_on=False)
            )
    texts = [drawable(shortened(words[i].text, _LONGEST_LABEL)) for i in located]
    spots = _label_spots(axes, drawn, texts)
    for spot, text, colour, ink in zip(spots, texts, colours, inks(shares), strict=True):
        if spot is not None:
            _add_label(axes, spot, text, colour, ink)
    return sum(spot is None for spot in spots)


def _check_lengths(words: Sequence[Word], boxes: WordBoxes) -> None:
    if len(words) != len(boxes):
        raise InvalidValue("word boxes", f"{len(boxes)} boxes for {len(words)} words")


@dataclass(frozen=True, slots=True)
class _Rect:
    """In inches from the panel's top left corner."""

    x: float
    y: float
    width: float
    height: float

    def touches(self, other: _Rect) -> bool:
        return (
            self.x < other.x + other.width
            and other.x < self.x + self.width
            and self.y < other.y + other.height
            and other.y < self.y + self.height
        )

    def within(self, width: float, height: float) -> bool:
        return self.x >= 0 and self.y >= 0 and self.x + self.width <= width and self.y + self.height <= height


def _label_spots(axes: Axes, boxes_xyxy: Floats, texts: Sequence[str]) -> list[_Rect | None]:
    """Where each label goes, or None if there is no room near its box."""
    figure = axes.get_figure(root=True)
    if figure is None:
        raise InvalidValue("axes", "belong to no figure")
    bounds = axes.get_position()
    width, height = (np.array([bounds.width, bounds.height]) * figure.get_size_inches()).tolist()
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    to_in = np.array([width / (right - left), height / (bottom - top)])
    corners = ((boxes_xyxy.reshape(-1, 2, 2) - (left, top)) * to_in).reshape(-1, 4)
    spots: list[_Rect | None] = [None] * len(texts)
    taken: list[_Rect] = []
    for i in sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i)):
        label_width = text_width_in(texts[i], _LABEL_PT) + 2 * _LABEL_PAD_IN
        for x, y in _candidates(corners[i], label_width):
            rect = _Rect(x, y, label_width, _LABEL_HEIGHT_IN)
            if rect.within(width, height) and not any(rect.touches(other) for other in taken):
                spots[i] = rect
                taken.append(rect)
                break
    return spots


def _candidates(box: Floats, width: float) -> Iterator[tuple[float, float]]:
    """Top left corners for a label, best first: on the box's edges, sliding along them, then just inside."""
    x1, y1, x2, y2 = box.tolist()
    slides = np.linspace(0, 1, 5)
    for y in (y1 - _LABEL_HEIGHT_IN, y2, y1, y2 - _LABEL_HEIGHT_IN):
        for slide in slides:
            yield x1 + slide * max(0.0, x2 - x1 - width), y
    for x in (x2, x1 - width):
        for slide in slides:
            yield x, y1 + slide * max(0.0, y2 - y1 - _LABEL_HEIGHT_IN)
    for x in (x2 - width, x1):
        yield x, y1 - _LABEL_HEIGHT_IN
        yield x, y2


def _add_label(axes: Axes, spot: _Rect, text: str, colour: str, ink: str) -> None:
    figure = axes.get_figure(root=True)
    if figure is None:
        raise InvalidValue("axes", "belong to no figure")
    bounds = axes.get_position()
    width, height = (np.array([bounds.width, bounds.height]) * figure.get_size_inches()).tolist()
    axes.add_patch(
        FancyBboxPatch(
            (spot.x / width, 1 - (spot.y + spot.height) / height),
            spot.width / width,
            spot.height / height,
            boxstyle="square,pad=0",
            fc=colour,
            ec="white",
            lw=0.5,
            transform=axes.transAxes,
            zorder=6,
        )
    )
    x, y = (spot.x + _LABEL_PAD_IN) / width, 1 - (spot.y + spot.height - 0.04) / height
    axes.text(x, y, text, transform=axes.transAxes, zorder=7, **font_settings(_LABEL_PT, ink))
