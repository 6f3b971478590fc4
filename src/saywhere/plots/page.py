"""Many narratives on one page that needs nothing else: photos, styles and script are inside it.

The trace, the words and their boxes are plain SVG and HTML, readable without the script; the script adds pointing at
words and playing. All text is escaped; what the script reads is numbers only; a policy in the page forbids everything
that is not in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from string import Template

import numpy as np

from saywhere.atomic import write_atomic
from saywhere.core import Narrative
from saywhere.core.types import Floats
from saywhere.plots.colour import hex_colours
from saywhere.plots.facts import counted, drawn_boxes, notes_on, summary, word_time_s
from saywhere.plots.photo import PhotoLike, view_xyxy
from saywhere.plots.shown import LONGEST_PX, N_COLOURS, WIDTH, Album, Film, ShownNarrative, ghost, path_data, sound_url
from saywhere.plots.text import digest, safe, shortened

__all__ = ["LONGEST_PX", "narratives_page", "page_html"]

_LEAST_SIDE = 0.025  # Boxes are shown at least this large, in fractions of the photo.
_PIECE_S, _MOST_PIECES = 0.1, 240
_ICONS = '<path class="go" d="M5 3l12 7-12 7z"/><path class="pause" d="M5 3h4v14H5zM11 3h4v14h-4z"/>'
_SPEEDS = ((0.5, "½×"), (1, "1×"), (2, "2×"), (4, "4×"))

Item = tuple[Narrative, PhotoLike] | Film
"""What a page shows: a narrative with its photo, or one of a video with its frames."""


def narratives_page(items: Iterable[Item], path: str | Path, title: str = "Narratives") -> None:
    """Write one self-contained HTML page with these narratives, each over its photo, whole or not at all.

    items: a narrative with its photo's file (or image); None, or a photo that is absent or damaged, gives a grey
        canvas that says so. Or a `Film`, over the frames of a video and with its voice. A photo shared by several
        narratives is stored once. The same items give the same bytes.
    """
    with write_atomic(path) as file:
        file.write(page_html(items, title).encode("utf-8"))


def page_html(items: Iterable[Item], title: str = "Narratives") -> str:
    """The page as text; see `narratives_page`."""
    album = Album()
    shown = [
        ShownNarrative.of_film(item, album)
        if isinstance(item, Film)
        else ShownNarrative.of_photo(item[0], album.add(item[1]))
        for item in items
    ]
    films = any(one.film for one in shown)
    n_images = len({(one.narrative.dataset_id, one.narrative.image_id) for one in shown})
    style = _style() + (_asset("film.css") if films else "")
    script = _asset("page.js") + (_asset("film.js") if films else "")
    media = " media-src data:;" if films else ""
    policy = f"default-src 'none'; img-src data:;{media} style-src {digest(style)}; script-src {digest(script)}"
    return Template(_asset("page.html")).substitute(
        title=safe(title),
        policy=f"{policy}; base-uri 'none'; form-action 'none'",
        style=style,
        script=script,
        photos="\n".join(album.images),
        count=f"{counted(len(shown), 'narrative')} of {counted(n_images, 'video' if films else 'image')}",
        articles="\n".join(_article(i, one) for i, one in enumerate(shown)),
    )


def _article(number: int, scene: ShownNarrative) -> str:
    narrative, film = scene.narrative, scene.film
    pieces = {frame: _pieces(scene, scene.strokes_on(frame)) for frame in scene.frames}
    who = scene.who if narrative.annotator_id else ""
    title = f"{narrative.image_id}: {film.title}" if film else narrative.image_id
    about = " · ".join(part for part in (narrative.dataset_id, who, summary(narrative, scene.boxes)) if part)
    data = {
        "span": [scene.scale.start_s, scene.scale.end_s],
        "strokes": [_rounded(stroke) for stroke in scene.strokes],
        "words": [[word.start_s, word.end_s] for word in scene.words],
        "pieces": [start_s for each in pieces.values() for start_s, _ in each],
    }
    data |= {"strokeFrames": scene.stroke_frames, "wordFrames": scene.word_frames} if film else {}
    return f"""<article class="narrative{" film" if film else ""}" aria-labelledby="title-{number}">
<header><h2 id="title-{number}">{safe(title)}</h2><p class="about">{safe(about)}</p></header>
<div class="stage">
{_drawing(scene, pieces)}
{_missing(scene)}{_player(scene)}{_strip(scene, film) if film else ""}
</div>
<div class="text">
{_caption(scene)}{_notes(scene)}<p class="spoken" aria-live="polite"></p>
</div>
<script type="application/json" class="data">{json.dumps(data, separators=(",", ":"), allow_nan=False)}</script>
</article>"""


def _drawing(scene: ShownNarrative, pieces: dict[int, list[tuple[float, str]]]) -> str:
    height = scene.height
    x1, y1, x2, y2 = np.array(view_xyxy(scene.narrative.trace)) * [WIDTH, height, WIDTH, height]
    view = f"{x1:.1f} {y1:.1f} {x2 - x1:.1f} {y2 - y1:.1f}"
    label = safe(f"{scene.narrative.image_id}, with the trace of {scene.who}")
    lines = [f'<svg viewBox="{view}" role="img" aria-label="{label}">']
    # A frame that nobody pointed at can be looked at, too.
    shown = [*scene.frames, *(i for i in range(len(scene.pictures)) if i not in scene.frames)]
    for frame in shown:
        lines.append(f'<g class="frame{" shown" * (frame == shown[0])}" data-frame="{frame}">{_canvas(scene, frame)}')
        if strokes := scene.strokes_on(frame):
            lines.append(ghost(strokes))
            lines.append(f'<g class="trace">{"".join(line for _, line in pieces[frame])}</g>')
            lines += _markers(scene, strokes)
        lines.append("<g>" + "".join(_boxes(scene, frame)) + "</g></g>")
    lines.append('<path class="said under"/><path class="said"/>')
    lines.append('<path class="dot head"/><path class="dot head core"/></svg>')
    return "\n".join(lines)


def _canvas(scene: ShownNarrative, frame: int) -> str:
    """The photo, or where it would be."""
    picture = scene.pictures[frame] if scene.pictures else None
    if picture is not None and picture.name:
        return f'<use href="#{picture.name}"/>'
    return f'<rect class="canvas" width="{WIDTH:g}" height="{scene.height:.1f}"/>'


def _missing(scene: ShownNarrative) -> str:
    """What is not there, each over its own canvas."""
    lines = []
    for frame, picture in enumerate(scene.pictures):
        if picture.missing:
            kind = f' data-frame="{frame}"' if scene.film else ""
            hidden = " hidden" if scene.film and frame != scene.frames[0] else ""
            lines.append(f'<p class="missing"{kind}{hidden}>{safe(shortened(picture.missing, 120))}</p>')
    return "".join(lines)


def _strip(scene: ShownNarrative, film: Film) -> str:
    """All frames, small, each with what was drawn on it; and the voice."""
    items = []
    for frame, name in enumerate(film.names):
        strokes = scene.strokes_on(frame)
        when = f", pointed at from {strokes[0][0, 2]:.1f} s" if strokes else ", nobody pointed at it"
        absent = ", missing" if scene.pictures[frame].missing else ""
        label = safe(f"Key frame {frame + 1} of {len(film.names)}, {name}{absent}{when}")
        view = f'viewBox="0 0 {WIDTH:g} {scene.height:.1f}" aria-hidden="true"'
        drawn = ghost(strokes) + "".join(line for _, line in _pieces(scene, strokes)) if strokes else ""
        current = ' aria-current="true"' if frame == scene.frames[0] else ""
        items.append(
            f'<li><button type="button" data-frame="{frame}" aria-label="{label}"{current}'
            f"{'' if strokes else ' class=bare'}><svg {view}>{_canvas(scene, frame)}{drawn}</svg></button></li>"
        )
    voice = f'<audio preload="auto" src="{sound_url(*film.sound)}"></audio>' if film.sound else ""
    return f'<ol class="strip">{"".join(items)}</ol>{voice}'


def _markers(scene: ShownNarrative, strokes: list[Floats]) -> list[str]:
    """A square on the last point and a ring on the first."""
    first, last = strokes[0][0], strokes[-1][-1]
    kinds = [("square under", last), (f"square {scene.colour(last[2])}", last)]
    kinds += [(scene.colour(first[2]), first), ("core", first)]
    return [f'<path class="dot {kind}" d="M{point[0]:.1f} {point[1]:.1f}h.01"/>' for kind, point in kinds]


def _pieces(scene: ShownNarrative, strokes: list[Floats]) -> list[tuple[float, str]]:
    """The trace cut into short lines of one colour: when each starts, and its SVG."""
    start_s, end_s = scene.scale.start_s, scene.scale.end_s
    step_s = max(_PIECE_S, (end_s - start_s) / _MOST_PIECES)
    pieces = []
    for stroke in strokes:
        bins = np.floor((stroke[:, 2] - start_s) / step_s)
        # No cut before the last point: it would be a piece of its own.
        cuts = [0, *(np.flatnonzero(np.diff(bins[:-1])) + 1).tolist(), len(stroke)]
        for a, b in pairwise(cuts):
            piece = stroke[a : b + 1]  # With the next one's first point, so that they join.
            colour = scene.colour(piece[0, 2] / 2 + piece[-1, 2] / 2)
            pieces.append((round(float(piece[0, 2]), 3), f'<path class="piece {colour}" d="{path_data(piece)}"/>'))
    return pieces


def _boxes(scene: ShownNarrative, frame: int) -> Iterator[str]:
    located = [i for i, on in enumerate(scene.word_frames) if on == frame]
    size = (WIDTH, scene.height)
    drawn = drawn_boxes(scene.boxes.boxes_xyxy[located], _LEAST_SIDE) * (*size, *size)
    for i, (x1, y1, x2, y2) in zip(located, drawn.tolist(), strict=True):
        colour = scene.colour(word_time_s(scene.words[i]))
        yield (
            f'<rect class="box {colour}" data-word="{i}" data-colour="{colour}" '
            f'x="{x1:.1f}" y="{y1:.1f}" width="{x2 - x1:.1f}" height="{y2 - y1:.1f}"/>'
        )


def _player(scene: ShownNarrative) -> str:
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


def _caption(scene: ShownNarrative) -> str:
    if not scene.words:
        return ""
    spans = []
    for word, located in zip(scene.words, scene.boxes.located.tolist(), strict=True):
        kind = scene.colour(word_time_s(word)) if located else "nowhere"
        spans.append(f'<span class="word {kind}">{safe(word.text)}</span>')
    role = 'tabindex="0" role="group" aria-label="Caption" aria-describedby="how"'
    return f'<p class="caption" dir="auto" {role}>{" ".join(spans)}</p>\n'


def _notes(scene: ShownNarrative) -> str:
    notes = notes_on(scene.narrative)
    if scene.film:
        absent = [name for name, one in zip(scene.film.names, scene.pictures, strict=True) if one.missing]
        notes += [f"Missing key frames: {', '.join(absent)}."] if absent else []
        notes += [] if scene.film.sound else ["The voice is not here; the words are lit without it."]
    return "".join(f'<p class="note" dir="auto">{safe(note)}</p>\n' for note in notes)


def _rounded(stroke: Floats) -> list[float]:
    """x, y, t, x, y, t …: positions to a tenth of a unit, times to a millisecond."""
    rounded: list[float] = np.column_stack([stroke[:, :2].round(1), stroke[:, 2].round(3)]).ravel().tolist()
    return rounded


def _style() -> str:
    colours = hex_colours(np.linspace(0, 1, N_COLOURS))
    ramp = f":root {{ --ramp: {', '.join(colours[::7])}; }}\n"
    return _asset("page.css") + ramp + "\n".join(f".c{i} {{ --c: {colour}; }}" for i, colour in enumerate(colours))


def _asset(name: str) -> str:
    return files("saywhere.plots").joinpath(name).read_text(encoding="utf-8")
