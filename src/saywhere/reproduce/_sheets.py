"""Pictures of a report that show photos or were drawn by an experiment: each becomes a file and what is said of it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Sheet
from matplotlib.patches import Polygon, Rectangle
from PIL import Image, UnidentifiedImageError

from saywhere.core import InvalidValue, Narrative, Trace, Word
from saywhere.core.narrative import HUMAN
from saywhere.core.regions import corners
from saywhere.plots.colour import TimeScale, hex_colours
from saywhere.plots.facts import counted, notes_on, word_time_s
from saywhere.plots.heatmap import NO_TRACE
from saywhere.plots.heats import draw_heats, heading_words
from saywhere.plots.palette import DARK, LIGHT, Palette
from saywhere.plots.photo import Photo, load_photo
from saywhere.plots.seen import own_colours
from saywhere.plots.sheet import (
    INK,
    MARGIN_IN,
    PAPER,
    QUIET,
    SCALE_BAR_IN,
    Rect,
    add_photo,
    add_time_scale,
    flow,
    font_settings,
    new_sheet,
    photo_height_in,
    png_bytes,
    text_width_in,
    wrap,
    write,
)
from saywhere.plots.text import drawable, shortened
from saywhere.plots.trace import add_trace
from saywhere.reproduce.results import Example, Figure, HeatExample, Illustration, LevelExample, Line, NamedBox, Results

PICTURES = "pictures"
"""Folder beside the report with what it shows."""
MOST_WORDS = 200
"""Captions are cut after so many words, and say so."""
LONGEST_WORD = 40
PANEL_IN = 3.1
_ACROSS, _GAP_IN = 4, 0.26
_TITLE_PT, _TITLE_IN = 10, 0.2
_WORD_PT, _LINE_IN, _SPACE_IN = 9.5, 0.235, 0.055
_NOTE_PT, _NOTE_IN = 8.5, 0.18
_FADE = 0.12
_PHOTOS_DPI, _WEBP_DPI, _SCREEN_DPI = 110, 220, 96
_LEVEL_IN = 4.4
_EDGE = 0.008

Files = dict[str, bytes]
"""Name in the folder of pictures → content."""


def illustrate(results: Results, folder: Path) -> Iterator[tuple[Illustration, Files]]:
    """Draw every picture. folder: where the report is to be; photos are looked up from there, and one that is absent
    gives a grey canvas that says so."""
    for i, figure in enumerate(results.figures, 1):
        yield _figure(figure, f"figure-{i}")
    for i, example in enumerate(results.examples, 1):
        yield _traces(TraceSheet.of(example, folder), i)
    for i, level in enumerate(results.levels, 1):
        yield _levels(level, folder, f"levels-{i}.webp")
    for i, heat in enumerate(results.heats, 1):
        yield _heats(heat, folder, f"heats-{i}.png")


def check_pictures(results: Results) -> None:
    """Each figure must be a PNG and say what it shows to those who cannot see it; marked words must be there."""
    for figure in results.figures:
        shown_width_px(figure.png)
        if figure.dark_png is not None:
            shown_width_px(figure.dark_png)
        if not figure.alt.strip():
            raise InvalidValue("figure", f"{figure.title!r} has no alt text", "say in words what it shows")
    for heat in results.heats:
        heading_words(heat.heading, heat.marked)


def drawn(title: str, draw: Callable[[Palette], Sheet], alt: str, caption: str = "", section: str = "") -> Figure:
    """The same plot on both papers. draw: how, on a given one. The rest is as of `Figure`."""
    return Figure(title, png_bytes(draw(LIGHT)), alt, caption, section, png_bytes(draw(DARK)))


def shown_width_px(png: bytes) -> int:
    """How wide a page shows it, so that letters of 9 points are 9 points: by the dots per inch it was drawn with."""
    try:
        with Image.open(io.BytesIO(png), formats=["PNG"]) as image:
            dpi = float(image.info.get("dpi", (_SCREEN_DPI, _SCREEN_DPI))[0])
            return round(image.width * _SCREEN_DPI / dpi)
    except UnidentifiedImageError as error:
        raise InvalidValue("figure", "is no PNG picture") from error


def _figure(figure: Figure, name: str) -> tuple[Illustration, Files]:
    files = {f"{name}-light.png": figure.png}
    if figure.dark_png is not None:
        files[f"{name}-dark.png"] = figure.dark_png
    light, *dark = (f"{PICTURES}/{file}" for file in files)
    text, section = figure.caption, figure.section
    return (
        Illustration("figures", light, figure.alt, figure.title, caption=text, section=section, dark="".join(dark)),
        files,
    )


def _heats(example: HeatExample, folder: Path, name: str) -> tuple[Illustration, Files]:
    """The photo, then where each model and people looked."""
    sheet = draw_heats(_path(example.photo, folder), example.panels, example.heading, example.marked)
    alt = "; ".join(["The photo", *(panel.described() for panel in example.panels)])
    lines = tuple(Line(panel.title, panel.note) for panel in example.panels if panel.note)
    marked = example.marked
    shown = Illustration(
        *("heats", f"{PICTURES}/{name}", alt, example.heading, marked.start if marked else None),
        lines=lines,
        section=example.section,
        marked_words=max(1, len(marked)),
    )
    return shown, {name: png_bytes(sheet, _PHOTOS_DPI)}


def _levels(example: LevelExample, folder: Path, name: str) -> tuple[Illustration, Files]:
    names = ", ".join(dict.fromkeys(box.name for box in example.removed))
    removed = f"taken away, outlined: {names}" if example.removed else ""
    alt = "; ".join(part for part in (f"Photo: {example.heading}" if example.heading else "The photo", removed) if part)
    shown = Illustration(
        *("levels", f"{PICTURES}/{name}", alt, example.heading),
        caption=removed,
        lines=example.lines,
        section=example.section,
    )
    return shown, {name: webp(draw_levels(example, folder))}


def _path(photo: str, folder: Path) -> Path | None:
    return folder / photo if photo else None


def webp(figure: Sheet) -> bytes:
    """Nothing beside the photo: the page may be light or dark."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="webp", dpi=_WEBP_DPI, facecolor="none", pil_kwargs={"quality": 88})
    return buffer.getvalue()


def draw_levels(example: LevelExample, folder: Path) -> Sheet:
    """The photo, with each thing that was taken away under an outline with its name."""
    photo = load_photo(_path(example.photo, folder))
    place = Rect(0, 0, _LEVEL_IN, photo_height_in(photo, NO_TRACE, _LEVEL_IN))
    figure = new_sheet(place.width, place.height)
    axes = add_photo(figure, place, photo, NO_TRACE)
    names = list(dict.fromkeys(box.name for box in example.removed))
    colours = dict(zip(names, zip(*own_colours(len(names)), strict=True), strict=True))
    for box in example.removed:
        _add_outline(axes, box, colours[box.name][0])
    # After all outlines, so that none crosses a name; once each, because a thing may have many regions.
    taken: list[tuple[float, float, float, float]] = []
    for name, first in {box.name: box for box in reversed(example.removed)}.items():
        _add_name(axes, place, first, *colours[name], taken)
    return figure


def _add_outline(axes: Axes, box: NamedBox, colour: str) -> None:
    """In a light casing, because the photo may be of any colour beneath; hatched, because it is taken away."""
    points = corners(np.clip(box.box_xyxy, _EDGE, 1 - _EDGE).tolist())
    axes.add_patch(Polygon(points, fill=False, ec=colour, lw=0, hatch="///", alpha=0.55, zorder=2))
    for edge, width, order in ((PAPER, 4.0, 3), (colour, 2.0, 4)):
        axes.add_patch(Polygon(points, fill=False, ec=edge, lw=width, zorder=order, joinstyle="miter"))


def _add_name(
    axes: Axes, place: Rect, box: NamedBox, colour: str, ink: str, taken: list[tuple[float, float, float, float]]
) -> None:
    """Inside the upper left corner of its box, or further down where another name stands."""
    text = drawable(shortened(box.name, 24))
    wide, high = (text_width_in(text, _WORD_PT) + 0.1) / place.width, 0.2 / place.height
    x = float(np.clip(box.box_xyxy[0], _EDGE, max(_EDGE, 1 - _EDGE - wide)))
    y = float(np.clip(box.box_xyxy[1], _EDGE, max(_EDGE, 1 - _EDGE - high)))
    while any(x < x2 and x + wide > x1 and y < y2 and y + high > y1 for x1, y1, x2, y2 in taken) and y + high < 1:
        y += high / 4
    taken.append((x, y, x + wide, y + high))
    axes.add_patch(Polygon(corners((x, y, x + wide, y + high)), fc=colour, ec=PAPER, lw=0.8, zorder=6))
    settings = {**font_settings(_WORD_PT, ink), "va": "center_baseline"}
    axes.text(x + 0.05 / place.width, y + high / 2, text, zorder=7, **settings)


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
class TraceSheet:
    """An example ready to be drawn: all its panels share one photo, one view and one scale of time."""

    photo: Photo
    panels: list[Panel]
    scale: TimeScale
    view: Trace

    @classmethod
    def of(cls, example: Example, folder: Path) -> TraceSheet:
        """folder: where the report is, and the photo beside it."""
        who = "person" if example.truth.origin == HUMAN else "truth"
        narratives = [(who, example.truth), *example.made.items()]
        scales = [TimeScale.of_narrative(n) for _, n in narratives if n.words or len(n.trace)]
        scale = TimeScale(min((s.start_s for s in scales), default=0.0), max((s.end_s for s in scales), default=0.0))
        # Only the outline of all traces together counts for the view, not their times.
        everywhere = np.concatenate([n.trace.points * (1, 1, 0) for _, n in narratives])
        photo = load_photo(_path(example.photo, folder))
        return cls(photo, [Panel.of(*both) for both in narratives], scale, Trace(everywhere))

    def height_in(self, width_in: float) -> float:
        return photo_height_in(self.photo, self.view, width_in)


def _traces(sheet: TraceSheet, number: int) -> tuple[Illustration, Files]:
    name = f"traces-{number}.png"
    alt = f"Example {number}: traces of {', '.join(panel.title for panel in sheet.panels)}"
    lines = tuple(Line(panel.title, panel.narrative.caption) for panel in sheet.panels)
    notes = tuple(f"{panel.title}: {note}" for panel in sheet.panels for note in panel.notes)
    illustration = Illustration("examples", f"{PICTURES}/{name}", alt, lines=lines, notes=notes)
    return illustration, {name: png_bytes(draw_traces(sheet))}


def draw_traces(scene: TraceSheet) -> Sheet:
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
            place = Rect(MARGIN_IN + i * (PANEL_IN + _GAP_IN), top + title_in, PANEL_IN, photo_in)
            add_trace(add_photo(figure, place, scene.photo, scene.view, _FADE), panel.narrative.trace, scene.scale)
            for j, text in enumerate(reversed(_title_lines(panel))):
                write(figure, text, place.x, place.y - 0.09 - j * _TITLE_IN, size=_TITLE_PT, bold=True)
            _add_words(figure, panel, scene.scale, place.x, place.y + photo_in + 0.12)
        top += height
    bar_in = min(width - 2 * MARGIN_IN, 2 * PANEL_IN + _GAP_IN)
    add_time_scale(figure, Rect(MARGIN_IN, top + 0.17, bar_in, SCALE_BAR_IN), scene.scale)
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


def _add_words(figure: Sheet, panel: Panel, scale: TimeScale, x: float, below: float) -> None:
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
