"""Many narratives on one page that needs nothing else: photos, styles and script are inside it.

The trace, the words and their boxes are plain SVG and HTML, readable without the script; the script adds pointing at
words and playing. All text is escaped; what the script reads is numbers only; a policy in the page forbids everything
that is not in it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from string import Template

import numpy as np

from saywhere.atomic import write_atomic
from saywhere.core import Narrative, Word, WordBoxes, word_boxes
from saywhere.core.types import Floats
from saywhere.plots.colour import TimeScale, hex_colours
from saywhere.plots.facts import counted, drawn_boxes, notes_on, summary, word_time_s
from saywhere.plots.photo import Photo, PhotoLike, load_photo, near_strokes, view_xyxy
from saywhere.plots.text import digest, safe, shortened

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
    with write_atomic(path) as file:
        file.write(page_html(items, title).encode("utf-8"))


def page_html(items: Iterable[tuple[Narrative, PhotoLike]], title: str = "Narratives") -> str:
    """The page as text; see `narratives_page`."""
    album = _Album()
    shown = [(narrative, album.add(photo)) for narrative, photo in items]
    n_images = len({(narrative.dataset_id, narrative.image_id) for narrative, _ in shown})
    style, script = _style(), _asset("page.js")
    policy = f"default-src 'none'; img-src data:; style-src {digest(style)}; script-src {digest(script)}"
    return Template(_asset("page.html")).substitute(
        title=safe(title),
        policy=f"{policy}; base-uri 'none'; form-action 'none'",
        style=style,
        script=script,
        photos="\n".join(album.images),
        count=f"{counted(len(shown), 'narrative')} of {counted(n_images, 'image')}",
        articles="\n".join(_article(i, _ShownNarrative.of(*both)) for i, both in enumerate(shown)),
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


@dataclass(frozen=True, slots=True)
class _ShownNarrative:
    """A narrative as it is drawn. strokes: each (n, 3) x, y in drawing units, t in seconds."""

    narrative: Narrative
    picture: _Picture
    words: tuple[Word, ...]
    boxes: WordBoxes
    scale: TimeScale
    strokes: list[Floats]

    @classmethod
    def of(cls, narrative: Narrative, picture: _Picture) -> _ShownNarrative:
        words = narrative.words
        strokes = [stroke * (_WIDTH, picture.height, 1) for stroke in near_strokes(narrative.trace)]
        scale = TimeScale.of(words, narrative.trace)
        return cls(narrative, picture, words, word_boxes(words, narrative.trace), scale, strokes)

    @property
    def who(self) -> str:
        return f"annotator {self.narrative.annotator_id}" if self.narrative.annotator_id else "the speaker"

    def colour(self, time_s: float) -> str:
        """The name of a time's colour in the page's style."""
        return f"c{round(float(self.scale.shares(time_s)) * (_N_COLOURS - 1))}"


def _article(number: int, scene: _ShownNarrative) -> str:
    narrative = scene.narrative
    pieces = _pieces(scene)
    who = scene.who if narrative.annotator_id else ""
    about = " · ".join(part for part in (narrative.dataset_id, who, summary(narrative, scene.boxes)) if part)
    missing = scene.picture.missing
    data = {
        "span": [scene.scale.start_s, scene.scale.end_s],
        "strokes": [_rounded(stroke) for stroke in scene.strokes],
        "words": [[word.start_s, word.end_s] for word in scene.words],
        "pieces": [start_s for start_s, _ in pieces],
    }
    return f"""<article class="narrative" aria-labelledby="title-{number}">
<header><h2 id="title-{number}">{safe(narrative.image_id)}</h2><p class="about">{safe(about)}</p></header>
<div class="stage">
{_drawing(scene, [line for _, line in pieces])}
{f'<p class="missing">{safe(shortened(missing, 120))}</p>' if missing else ""}{_player(scene)}
</div>
<div class="text">
{_caption(scene)}{_notes(narrative)}<p class="spoken" aria-live="polite"></p>
</div>
<script type="application/json" class="data">{json.dumps(data, separators=(",", ":"), allow_nan=False)}</script>
</article>"""


def _drawing(scene: _ShownNarrative, pieces: Sequence[str]) -> str:
    height = scene.picture.height
    x1, y1, x2, y2 = np.array(view_xyxy(scene.narrative.trace)) * [_WIDTH, height, _WIDTH, height]
    view = f"{x1:.1f} {y1:.1f} {x2 - x1:.1f} {y2 - y1:.1f}"
    label = safe(f"{scene.narrative.image_id}, with the trace of {scene.who}")
    lines = [f'<svg viewBox="{view}" role="img" aria-label="{label}">']
    if scene.picture.name:
        lines.append(f'<use href="#{scene.picture.name}"/>')
    else:
        lines.append(f'<rect class="canvas" width="{_WIDTH:g}" height="{height:.1f}"/>')
    if scene.strokes:
        lines.append(f'<path class="ghost" d="{"".join(_path(stroke) for stroke in scene.strokes)}"/>')
        lines.append(f'<g class="trace">{"".join(pieces)}</g>')
        lines += _markers(scene)
    lines.append("<g>" + "".join(_boxes(scene)) + "</g>")
    lines.append('<path class="said under"/><path class="said"/>')
    lines.append('<path class="dot head"/><path class="dot head core"/></svg>')
    return "\n".join(lines)


def _markers(scene: _ShownNarrative) -> list[str]:
    """A square on the last point and a ring on the first."""
    first, last = scene.strokes[0][0], scene.strokes[-1][-1]
    kinds = [("square under", last), (f"square {scene.colour(last[2])}", last)]
    kinds += [(scene.colour(first[2]), first), ("core", first)]
    return [f'<path class="dot {kind}" d="M{point[0]:.1f} {point[1]:.1f}h.01"/>' for kind, point in kinds]


def _pieces(scene: _ShownNarrative) -> list[tuple[float, str]]:
    """The trace cut into short lines of one colour: when each starts, and its SVG."""
    start_s, end_s = scene.scale.start_s, scene.scale.end_s
    step_s = max(_PIECE_S, (end_s - start_s) / _MOST_PIECES)
    pieces = []
    for stroke in scene.strokes:
        bins = np.floor((stroke[:, 2] - start_s) / step_s)
        # No cut before the last point: it would be a piece of its own.
        cuts = [0, *(np.flatnonzero(np.diff(bins[:-1])) + 1).tolist(), len(stroke)]
        for a, b in pairwise(cuts):
            piece = stroke[a : b + 1]  # With the next one's first point, so that they join.
            colour = scene.colour(piece[0, 2] / 2 + piece[-1, 2] / 2)
            pieces.append((round(float(piece[0, 2]), 3), f'<path class="piece {colour}" d="{_path(piece)}"/>'))
    return pieces


def _boxes(scene: _ShownNarrative) -> Iterator[str]:
    located = np.flatnonzero(scene.boxes.located).tolist()
    size = (_WIDTH, scene.picture.height)
    drawn = drawn_boxes(scene.boxes.boxes_xyxy[located], _LEAST_SIDE) * (*size, *size)
    for i, (x1, y1, x2, y2) in zip(located, drawn.tolist(), strict=True):
        colour = scene.colour(word_time_s(scene.words[i]))
        yield (
            f'<rect class="box {colour}" data-word="{i}" data-colour="{colour}" '
            f'x="{x1:.1f}" y="{y1:.1f}" width="{x2 - x1:.1f}" height="{y2 - y1:.1f}"/>'
        )


def _player(scene: _ShownNarrative) -> str:
    label = safe(f"Time in the narrative of {scene.who} on {scene.narrative.image_id}")
    span = f'min="{scene.scale.start_s}" max="{scene.scale.end_s}"'
    speeds = "".join(f'<option value="{n}"{" selected" * (n == 1)}>{text}</option>' for n, text in _SPEEDS)
    return f"""<div class="player" hidden>
<button type="button" class="play" aria-label="Play"><svg viewBox="0 0 20 20" aria-hidden="true">{_ICONS}</svg></button>
<input type="range" class="scrub" aria-label="{label}" {span} step="0.01">
<span class="clock"></span>
<select class="speed" aria-label="Speed">{speeds}</select>
<label><input type="checkbox" class="every"> all boxes</label>
</div>"""


def _caption(scene: _ShownNarrative) -> str:
    if not scene.words:
        return ""
    spans = []
    for word, located in zip(scene.words, scene.boxes.located.tolist(), strict=True):
        kind = scene.colour(word_time_s(word)) if located else "nowhere"
        spans.append(f'<span class="word {kind}">{safe(word.text)}</span>')
    role = 'tabindex="0" role="group" aria-label="Caption" aria-describedby="how"'
    return f'<p class="caption" dir="auto" {role}>{" ".join(spans)}</p>\n'


def _notes(narrative: Narrative) -> str:
    return "".join(f'<p class="note" dir="auto">{safe(note)}</p>\n' for note in notes_on(narrative))


def _path(points: Floats) -> str:
    """SVG path data through (n, ≥ 2) points; a single point becomes a dot."""
    steps = [f"{x:.1f} {y:.1f}" for x, y in points[:, :2].tolist()]
    return "M" + "L".join(steps if len(steps) > 1 else steps * 2)


def _rounded(stroke: Floats) -> list[float]:
    """x, y, t, x, y, t …: positions to a tenth of a unit, times to a millisecond."""
    rounded: list[float] = np.column_stack([stroke[:, :2].round(1), stroke[:, 2].round(3)]).ravel().tolist()
    return rounded


def _style() -> str:
    colours = hex_colours(np.linspace(0, 1, _N_COLOURS))
    ramp = f":root {{ --ramp: {', '.join(colours[::7])}; }}\n"
    return _asset("page.css") + ramp + "\n".join(f".c{i} {{ --c: {colour}; }}" for i, colour in enumerate(colours))


def _asset(name: str) -> str:
    return files("saywhere.plots").joinpath(name).read_text(encoding="utf-8")
