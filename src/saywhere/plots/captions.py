"""What a model said about a photo on one sheet: captions of regions, along traces, a grounded text, a narrative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Polygon

from saywhere.core import Caption, Grounded, Narrative, Trace
from saywhere.core.regions import corners
from saywhere.core.types import Floats
from saywhere.plots.colour import TimeScale, hex_colours, inks
from saywhere.plots.facts import word_time_s
from saywhere.plots.photo import Photo, load_photo
from saywhere.plots.seen import ShownPhoto, own_colours, phrase_colours
from saywhere.plots.sheet import (
    FAINT,
    INK,
    MARGIN_IN,
    QUIET,
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
from saywhere.plots.trace import add_trace

_PANEL_IN, _GUTTER_IN = 6.2, 0.3
_HEADING_IN, _HEADING_PT = 0.3, 11.0
_TEXT_PT, _LINE_IN, _CHIP_IN, _PAD_IN, _SPACE_IN = 10.5, 0.265, 0.21, 0.045, 0.05
_LONGEST_WORD, _MOST_WORDS = 40, 400
_NO_TRACE = Trace.from_segments([])


@dataclass(frozen=True, slots=True)
class _Chip:
    """A word. colour: of its ground; none if empty."""

    text: str
    colour: str = ""
    ink: str = INK


@dataclass(frozen=True, slots=True, eq=False)
class _Panel:
    """A photo with marks and a trace on it and lines of words beneath."""

    heading: str
    rows: list[list[_Chip]]
    trace: Trace = _NO_TRACE
    scale: TimeScale | None = None
    marks: list[_Mark] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class _Mark:
    """An outline: (n, 2) in fractions of the photo."""

    points_xy: Floats
    colour: str
    ink: str
    label: str = ""


def draw_seen(seen: ShownPhoto) -> Figure:
    """The photo once for its regions and once for each trace, the grounded text and the narrative, words beneath.

    A caption that the model is not sure of says so. A photo that is absent or damaged gives a grey canvas.
    """
    photo = load_photo(seen.photo)
    panels = _panels(seen)
    columns = min(2, len(panels)) or 1
    inner = columns * _PANEL_IN + (columns - 1) * _GUTTER_IN
    title = wrap(shortened(seen.title, 200), inner, 13)
    top = MARGIN_IN + 0.26 * len(title) + (0.22 if seen.about else 0) + 0.12
    heights = [_height(panel, photo) for panel in panels]
    rows = [max(heights[i : i + columns]) for i in range(0, len(panels), columns)]
    figure = new_sheet(inner + 2 * MARGIN_IN, top + sum(rows) + MARGIN_IN)
    for i, line in enumerate(title):
        write(figure, line, MARGIN_IN, MARGIN_IN + 0.17 + 0.26 * i, size=13, bold=True)
    if seen.about:
        write(figure, shortened(seen.about, 110), MARGIN_IN, top - 0.18, size=9, colour=QUIET)
    for i, panel in enumerate(panels):
        x = MARGIN_IN + (i % columns) * (_PANEL_IN + _GUTTER_IN)
        _add_panel(figure, panel, photo, x, top + sum(rows[: i // columns]))
    return figure


def _panels(seen: ShownPhoto) -> list[_Panel]:
    panels = []
    traced = [caption for caption in seen.regions if isinstance(caption.region, Trace)]
    others = [caption for caption in seen.regions if not isinstance(caption.region, Trace)]
    if seen.whole is not None or seen.levels or others:
        panels.append(_region_panel(seen, others))
    panels += [_trace_panel(caption) for caption in traced]
    if seen.grounded is not None:
        panels.append(_grounded_panel(seen.grounded))
    if seen.narrated is not None:
        panels.append(_narrated_panel(seen.narrated))
    return panels


def _region_panel(seen: ShownPhoto, regions: Sequence[Caption]) -> _Panel:
    wholes = [*([] if seen.whole is None else [seen.whole]), *seen.levels]
    rows = [[*([_Chip(f"{one.level}:", ink=QUIET)] if seen.levels else []), *_sentence(one)] for one in wholes]
    marks = []
    for number, (caption, colour, ink) in enumerate(zip(regions, *own_colours(len(regions)), strict=True), 1):
        marks += [_Mark(points, colour, ink, str(number)) for points in caption.region.outlines()]
        rows.append([_Chip(str(number), colour, ink), *_sentence(caption)])
    return _Panel("The photo and its regions" if regions else "The whole photo", rows, marks=marks)


def _trace_panel(caption: Caption) -> _Panel:
    trace = caption.region if isinstance(caption.region, Trace) else _NO_TRACE
    return _Panel("Along a trace", [_sentence(caption)], trace, TimeScale.of((), trace))


def _grounded_panel(grounded: Grounded) -> _Panel:
    phrases = grounded.phrases()
    row, marks = [], []
    for phrase, colours in zip(phrases, phrase_colours(phrases), strict=True):
        words = phrase.text.split()
        if colours is None or phrase.box_xyxy is None:
            row += [_Chip(word, ink=QUIET) for word in words]
            continue
        marks.append(_Mark(corners(phrase.box_xyxy), *colours))
        row += [_Chip(word, *colours) for word in words]
    found = "A text, found in the photo" if marks else "A text that was not found in the photo"
    return _Panel(found, [row], marks=marks)


def _narrated_panel(narrative: Narrative) -> _Panel:
    words, scale = narrative.words, TimeScale.of_narrative(narrative)
    shares = scale.shares([word_time_s(word) for word in words])
    located = narrative.word_boxes().located.tolist()
    row = [
        _Chip(word.text, colour, ink) if here else _Chip(word.text, ink=QUIET)
        for word, colour, ink, here in zip(words, hex_colours(shares), inks(shares), located, strict=True)
    ]
    return _Panel("Narrated from the photo alone", [row], narrative.trace, scale)


def _sentence(caption: Caption) -> list[_Chip]:
    unsure = [] if caption.sure else [_Chip("unsure", FAINT)]
    return [_Chip(word, ink=INK if caption.sure else QUIET) for word in caption.text.split()] + unsure


def _set(chips: Sequence[_Chip]) -> tuple[list[tuple[_Chip, float, tuple[int, float]]], int]:
    """Chips with drawable texts, their widths and places, and how many lines they take."""
    shown = [_Chip(drawable(shortened(one.text, _LONGEST_WORD)), one.colour, one.ink) for one in chips[:_MOST_WORDS]]
    if len(chips) > _MOST_WORDS:
        shown.append(_Chip(f"… and {len(chips) - _MOST_WORDS:,} more", ink=QUIET))
    widths = [text_width_in(chip.text, _TEXT_PT) + 2 * _pad_in(chip) for chip in shown]
    spots, lines = flow(widths, _PANEL_IN, _SPACE_IN)
    return list(zip(shown, widths, spots, strict=True)), lines


def _pad_in(chip: _Chip) -> float:
    return _PAD_IN if chip.colour else 0.0


def _height(panel: _Panel, photo: Photo) -> float:
    lines = sum(_set(row)[1] for row in panel.rows)
    return _HEADING_IN + photo_height_in(photo, panel.trace, _PANEL_IN) + 0.1 + lines * _LINE_IN + 0.22


def _add_panel(figure: Figure, panel: _Panel, photo: Photo, x: float, y: float) -> None:
    write(figure, panel.heading, x, y + 0.19, size=_HEADING_PT, colour=QUIET)
    height = photo_height_in(photo, panel.trace, _PANEL_IN)
    place = Rect(x, y + _HEADING_IN, _PANEL_IN, height)
    axes = add_photo(figure, place, photo, panel.trace, fade=0.08 if panel.marks or len(panel.trace) else 0.0)
    if panel.scale is not None:
        add_trace(axes, panel.trace, panel.scale)
    for mark in panel.marks:
        _add_mark(axes, mark)
    top = y + _HEADING_IN + height + 0.1
    for row in panel.rows:
        chips, lines = _set(row)
        for chip, width, (line, left) in chips:
            _add_chip(figure, chip, Rect(x + left, top + line * _LINE_IN, width, _CHIP_IN))
        top += lines * _LINE_IN


def _add_mark(axes: Axes, mark: _Mark) -> None:
    for edge, width, order in (("white", 4.0, 3), (mark.colour, 2.2, 4)):
        axes.add_patch(Polygon(mark.points_xy, fill=False, ec=edge, lw=width, zorder=order, joinstyle="round"))
    if mark.label:
        at = mark.points_xy[np.argmin(mark.points_xy.sum(axis=1))]
        backing = {"fc": mark.colour, "ec": "white", "lw": 0.8, "boxstyle": "round,pad=0.25"}
        style = font_settings(9, mark.ink, bold=True) | {"va": "top"}
        axes.text(at[0] + 0.012, at[1] + 0.016, mark.label, zorder=6, bbox=backing, **style)


def _add_chip(figure: Figure, chip: _Chip, place: Rect) -> None:
    if chip.colour:
        sheet_height = figure.get_size_inches()[1]
        patch = FancyBboxPatch(
            (place.x + 0.03, sheet_height - place.y - place.height + 0.03),
            place.width - 0.06,
            place.height - 0.06,
            boxstyle="round,pad=0.03,rounding_size=0.045",
            fc=chip.colour,
            ec="none",
            transform=figure.dpi_scale_trans,
        )
        figure.add_artist(patch)
    write(figure, chip.text, place.x + _pad_in(chip), place.y + 0.152, size=_TEXT_PT, colour=chip.ink)
