"""Many narratives on one page that needs nothing else: photos, styles and script are inside it.

The trace, the words and their boxes are plain SVG and HTML, readable without the script; the script adds pointing at
words and playing. All text is escaped; what the script reads is numbers only; a policy in the page forbids everything
that is not in it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from string import Template

import numpy as np

from saywhere.core import Narrative, Word, WordBoxes
from saywhere.plots._files import write_whole
from saywhere.plots.colour import Floats, TimeScale, hex_colours
from saywhere.plots.facts import counted, drawn_boxes, notes_on, summary, word_time_s
from saywhere.plots.photo import Photo, PhotoLike, load_photo, near_strokes, view_xyxy
from saywhere.plots.text import printable, shortened

LONGEST_PX = 1024
"""Photos are shrunk to this."""
_WIDTH = 1000.0  # Width of every drawing, in its own units.
_LEAST_SIDE = 0.025  # Boxes are shown at least this large, in fractions of the photo.
_N_COLOURS = 64
_PIECE_S, _MOST_PIECES = 0.1, 240
_ICONS = '<path class="go" d="M5 3l12 7-12 7z"/><path class="pause" d="M5 3h4v14H5zM11 3h4v14h-4z"/>'
_SPEEDS = ((0.5, "½×"), (1, "1×"), (2, "2×"), (4, "4×"))


def narratives_page(items: Iterable[tuple[Narrative, PhotoLike]], path: str | Path, title: str = "Narratives") -> None:
    """Write one self-contained HTML page with these narratives, each over its photo, whole or not at all.

    items: a narrative with its photo's file (or image); None, or a photo that is absent or damaged, gives a grey
        canvas that says so. A photo shared by several narratives is stored once. The same items give the same bytes.
    """
    write_whole(path, page_html(items, title).encode("utf-8"))


def page_html(items: Iterable[tuple[Narrative, PhotoLike]], title: str = "Narratives") -> str:
    """The page as text; see `narratives_page`."""
    album = _Album()
    shown = [(narrative, album.add(photo)) for narrative, photo in items]
    n_images = len({(narrative.dataset_id, narrative.image_id) for narrative, _ in shown})
    style, script = _style(), _asset("page.js")
    policy = f"default-src 'none'; img-src data:; style-src {_digest(style)}; script-src {_digest(script)}"
    return Template(_asset("page.html")).substitute(
        title=_safe(title),
        policy=f"{policy}; base-uri 'none'; form-action 'none'",
        style=style,
        script=script,
        photos="\n".join(album.images),
        count=f"{counted(len(shown), 'narrative')} of {counted(n_images, 'image')}",
        articles="\n".join(_article(i, narrative, picture) for i, (narrative, picture) in enumerate(shown)),
    )


@dataclass(frozen=True, slots=True)
class _Picture:
    """A photo of the page: its name there, empty if it is missing for the reason given; its height in drawing units."""

    name: str
    height: float
    missing: str


class _Album:
    """The photos of a page, each once."""

    def __init__(self) -> None:
        self.images: list[str] = []
        self._by_file: dict[str, _Picture] = {}
        self._by_content: dict[str, _Picture] = {}

    def add(self, photo: PhotoLike) -> _Picture:
        if not isinstance(photo, str | Path):
            return self._store(load_photo(photo))
        if str(photo) not in self._by_file:
            self._by_file[str(photo)] = self._store(load_photo(photo))
        return self._by_file[str(photo)]

    def _store(self, photo: Photo) -> _Picture:
        width, height = photo.size
        if photo.image is None:
            return _Picture("", _WIDTH * height / width, photo.missing)
        jpeg = photo.shrunk(LONGEST_PX).jpeg()
        digest = hashlib.sha256(jpeg).hexdigest()
        if digest not in self._by_content:
            picture = _Picture(f"photo-{len(self.images)}", _WIDTH * height / width, "")
            self.images.append(
                f'<image id="{picture.name}" width="{_WIDTH:g}" height="{picture.height:.1f}" '
                f'preserveAspectRatio="none" href="data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"/>'
            )
            self._by_content[digest] = picture
        return self._by_content[digest]


def _article(number: int, narrative: Narrative, picture: _Picture) -> str:
    words, boxes = narrative.words, narrative.word_boxes()
    scale = TimeScale.of(words, narrative.trace)
    strokes = [stroke * (_WIDTH, picture.height, 1) for stroke in near_strokes(narrative.trace)]
    pieces = _pieces(strokes, scale)
    who = f"annotator {narrative.annotator_id}" if narrative.annotator_id else ""
    about = " · ".join(part for part in (narrative.dataset_id, who, summary(narrative, boxes)) if part)
    label = f"{narrative.image_id}, with the trace of {who or 'the speaker'}"
    data = {
        "span": [scale.start_s, scale.end_s],
        "strokes": [_rounded(stroke) for stroke in strokes],
        "words": [[word.start_s, word.end_s] for word in words],
        "pieces": [start_s for start_s, _ in pieces],
    }
    return f"""<article class="narrative" aria-labelledby="title-{number}">
<header><h2 id="title-{number}">{_safe(narrative.image_id)}</h2><p class="about">{_safe(about)}</p></header>
<div class="stage">
{_drawing(picture, narrative, strokes, pieces, label, scale)}
{_player(scale, f"Time, {who or 'narrative'} on {narrative.image_id}")}
</div>
<div class="text">
{_caption(words, boxes, scale)}{_notes(narrative)}<p class="spoken" aria-live="polite"></p>
</div>
<script type="application/json" class="data">{json.dumps(data, separators=(",", ":"), allow_nan=False)}</script>
</article>"""


def _drawing(
    picture: _Picture,
    narrative: Narrative,
    strokes: Sequence[Floats],
    pieces: Sequence[tuple[float, str]],
    label: str,
    scale: TimeScale,
) -> str:
    x1, y1, x2, y2 = np.array(view_xyxy(narrative.trace)) * [_WIDTH, picture.height, _WIDTH, picture.height]
    view = f"{x1:.1f} {y1:.1f} {x2 - x1:.1f} {y2 - y1:.1f}"
    lines = [f'<svg viewBox="{view}" role="img" aria-label="{_safe(label)}">']
    if picture.name:
        lines.append(f'<use href="#{picture.name}"/>')
    else:
        lines.append(f'<rect class="canvas" width="{_WIDTH:g}" height="{picture.height:.1f}"/>')
    if strokes:
        lines.append(f'<path class="ghost" d="{"".join(_path(stroke) for stroke in strokes)}"/>')
        lines.append('<g class="trace">' + "".join(line for _, line in pieces) + "</g>")
        (bx, by, bt), (ex, ey, et) = strokes[0][0].tolist(), strokes[-1][-1].tolist()
        end, begin = _colour(scale, et), _colour(scale, bt)
        for kind, x, y in (
            ("square under", ex, ey),
            (f"square {end}", ex, ey),
            (begin, bx, by),
            ("core", bx, by),
        ):
            lines.append(f'<path class="dot {kind}" d="M{x:.1f} {y:.1f}h.01"/>')
    lines.append("<g>" + "".join(_boxes(narrative, picture.height, scale)) + "</g>")
    lines.append(
        '<path class="said under"/><path class="said"/><path class="dot head"/><path class="dot head core"/></svg>'
    )
    if not picture.name:
        lines.append(f'<p class="missing">{_safe(shortened(picture.missing, 120))}</p>')
    return "\n".join(lines)


def _pieces(strokes: Sequence[Floats], scale: TimeScale) -> list[tuple[float, str]]:
    """The trace cut into short lines of one colour: the start of each, and the SVG."""
    step_s = max(_PIECE_S, (scale.end_s - scale.start_s) / _MOST_PIECES)
    pieces = []
    for stroke in strokes:
        bins = np.floor((stroke[:, 2] - scale.start_s) / step_s)
        cuts = [0, *(np.flatnonzero(np.diff(bins)) + 1).tolist(), len(stroke)]
        for a, b in pairwise(cuts):
            # One point on, so that pieces join.
            piece = stroke[a : b + 1]
            middle_s = piece[0, 2] / 2 + piece[-1, 2] / 2
            line = f'<path class="piece {_colour(scale, middle_s)}" d="{_path(piece)}"/>'
            pieces.append((round(float(piece[0, 2]), 3), line))
    return pieces


def _boxes(narrative: Narrative, height: float, scale: TimeScale) -> Iterable[str]:
    words, boxes = narrative.words, narrative.word_boxes()
    located = np.flatnonzero(boxes.located).tolist()
    drawn = drawn_boxes(boxes.boxes_xyxy[located], _LEAST_SIDE) * (_WIDTH, height, _WIDTH, height)
    for i, (x1, y1, x2, y2) in zip(located, drawn.tolist(), strict=True):
        colour = _colour(scale, word_time_s(words[i]))
        yield (
            f'<rect class="box {colour}" data-word="{i}" data-colour="{colour}" '
            f'x="{x1:.1f}" y="{y1:.1f}" width="{x2 - x1:.1f}" height="{y2 - y1:.1f}"/>'
        )


def _player(scale: TimeScale, label: str) -> str:
    speeds = "".join(f'<option value="{n}"{" selected" * (n == 1)}>{text}</option>' for n, text in _SPEEDS)
    return f"""<div class="player" hidden>
<button type="button" class="play" aria-label="Play"><svg viewBox="0 0 20 20" aria-hidden="true">{_ICONS}</svg></button>
<input type="range" class="scrub" aria-label="{_safe(label)}" min="{scale.start_s}" max="{scale.end_s}" step="0.01">
<span class="clock"></span>
<select class="speed" aria-label="Speed">{speeds}</select>
<label><input type="checkbox" class="every"> all boxes</label>
</div>"""


def _caption(words: Sequence[Word], boxes: WordBoxes, scale: TimeScale) -> str:
    if not words:
        return ""
    spans = []
    for word, located in zip(words, boxes.located.tolist(), strict=True):
        kind = _colour(scale, word_time_s(word)) if located else "nowhere"
        spans.append(f'<span class="word {kind}">{_safe(word.text)}</span>')
    return f'<p class="caption" dir="auto" tabindex="0" role="group" aria-label="Caption" aria-describedby="how">{" ".join(spans)}</p>\n'


def _notes(narrative: Narrative) -> str:
    return "".join(f'<p class="note" dir="auto">{_safe(note)}</p>\n' for note in notes_on(narrative))


def _path(points: Floats) -> str:
    """SVG path data through (n, ≥ 2) points; a single point becomes a dot."""
    steps = [f"{x:.1f} {y:.1f}" for x, y in points[:, :2].tolist()]
    return "M" + "L".join(steps if len(steps) > 1 else steps * 2)


def _rounded(stroke: Floats) -> list[float]:
    """x, y, t, x, y, t …: positions to a tenth of a unit, times to a millisecond."""
    rounded: list[float] = np.column_stack([stroke[:, :2].round(1), stroke[:, 2].round(3)]).ravel().tolist()
    return rounded


def _colour(scale: TimeScale, time_s: float) -> str:
    """The name of a time's colour in the page's style."""
    return f"c{round(float(scale.shares(time_s)) * (_N_COLOURS - 1))}"


def _style() -> str:
    colours = hex_colours(np.linspace(0, 1, _N_COLOURS))
    ramp = f":root {{ --ramp: {', '.join(colours[::7])}; }}\n"
    return _asset("page.css") + ramp + "\n".join(f".c{i} {{ --c: {colour}; }}" for i, colour in enumerate(colours))


def _asset(name: str) -> str:
    return files("saywhere.plots").joinpath(name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    """How a content security policy names one inline style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _safe(text: str) -> str:
    """Any text as text of the page, inside elements and quoted attributes."""
    return escape(printable(text), quote=True)
