"""Photos and what a model said about them, on one page that needs nothing else.

Regions and found texts are plain SVG and HTML; a narrative plays as it does on the page of narratives, whose parts and
script are used here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import Template

from saywhere.atomic import write_atomic
from saywhere.core import Caption, Grounded, Trace
from saywhere.core.regions import corners
from saywhere.core.types import Floats
from saywhere.plots.colour import TimeScale
from saywhere.plots.facts import counted
from saywhere.plots.page import _article, _asset, _style
from saywhere.plots.photo import near_strokes, view_xyxy
from saywhere.plots.seen import ShownPhoto, own_colours, phrase_colours
from saywhere.plots.shown import N_COLOURS, WIDTH, Album, Picture, ShownNarrative, ghost, path_data
from saywhere.plots.text import digest, safe, shortened

_MOST_PIECES = 120
_TAB = 44.0  # Side of a number's square on a photo, in drawing units.
_LONGEST_REASON = 300


def gallery_page(
    entries: Iterable[ShownPhoto],
    path: str | Path,
    title: str = "Gallery",
    about: str = "",
    failed: Mapping[str, str] | None = None,
) -> None:
    """Write one self-contained HTML page, whole or not at all. failed: photos that could not be shown, and why."""
    with write_atomic(path) as file:
        file.write(gallery_html(entries, title, about, failed).encode("utf-8"))


def gallery_html(
    entries: Iterable[ShownPhoto], title: str = "Gallery", about: str = "", failed: Mapping[str, str] | None = None
) -> str:
    """The page as text; see `gallery_page`. The same entries give the same text."""
    page = _Page()
    shown = [page.entry(seen) for seen in entries]
    style, script = page.style(), _asset("page.js")
    policy = f"default-src 'none'; img-src data:; style-src {digest(style)}; script-src {digest(script)}"
    facts = [counted(len(shown), "photo"), *([about] if about else [])]
    return Template(_asset("gallery.html")).substitute(
        title=safe(title),
        policy=f"{policy}; base-uri 'none'; form-action 'none'",
        style=style,
        script=script,
        photos="\n".join(page.album.images),
        about=safe(" · ".join(facts)),
        entries="\n".join([*shown, _failed(failed or {})]),
    )


class _Page:
    """What the entries of a page share: photos, each stored once, and colours, each a class of the style."""

    def __init__(self) -> None:
        self.album = Album()
        self._colours: dict[tuple[str, str], str] = {}
        self._entries = 0

    def entry(self, seen: ShownPhoto) -> str:
        number, self._entries = self._entries, self._entries + 1
        picture = self.album.add(seen.photo)
        traced = [caption for caption in seen.regions if isinstance(caption.region, Trace)]
        others = [caption for caption in seen.regions if not isinstance(caption.region, Trace)]
        parts = [self._regions(seen, picture, others)]
        parts += [self._traced(seen, picture, caption) for caption in traced]
        parts += [self._grounded(seen, picture, seen.grounded)] if seen.grounded is not None else []
        whole = f'<p class="whole" dir="auto">{_caption(seen.whole)}</p>' if seen.whole else ""
        whole += _levels(seen.levels) + (_nearest(seen.whole) if seen.whole else "")
        missing = f'<p class="note">{safe(shortened(picture.missing, 120))}</p>' if picture.missing else ""
        narrated = ""
        if seen.narrated is not None:
            named = replace(seen.narrated, image_id="Narrated from the photo alone")
            narrated = _article(number, ShownNarrative.of_photo(named, picture))
        return f"""<section class="entry" aria-labelledby="entry-{number}">
<header><h2 id="entry-{number}">{safe(seen.title)}</h2>
<p class="about">{safe(seen.about)}</p>{whole}{missing}</header>
<div class="parts">
{"".join(parts)}
</div>
{narrated}
</section>"""

    def style(self) -> str:
        """All styles, with the colours that entries have asked for."""
        own = (f".{name} {{ --own: {colour}; --ink-on: {ink}; }}\n" for (colour, ink), name in self._colours.items())
        return _style() + "\n" + _asset("gallery.css") + "".join(own)

    def _colour(self, colour: str, ink: str) -> str:
        return self._colours.setdefault((colour, ink), f"own-{len(self._colours)}")

    def _regions(self, seen: ShownPhoto, picture: Picture, regions: Sequence[Caption]) -> str:
        marks, items = [], []
        for number, (caption, *colours) in enumerate(zip(regions, *own_colours(len(regions)), strict=True), 1):
            name = self._colour(*colours)
            for points in caption.region.outlines():
                marks += [_outline(points, picture, name), _tab(points, picture, name, number)]
            items.append(
                f'<li><span class="number {name}">{number}</span>'
                f'<span class="said-text" dir="auto">{_caption(caption)}</span>{_nearest(caption)}</li>'
            )
        label = f"{seen.title}, with {counted(len(regions), 'region')} marked"
        listed = f'<ol class="said-list">{"".join(items)}</ol>' if items else ""
        return _part("Regions" if regions else "The photo", _drawing(picture, label, marks), listed)

    def _traced(self, seen: ShownPhoto, picture: Picture, caption: Caption) -> str:
        trace = caption.region if isinstance(caption.region, Trace) else Trace.from_segments([])
        scale = TimeScale.of((), trace)
        strokes = [stroke * (WIDTH, picture.height, 1) for stroke in near_strokes(trace)]
        lines = [ghost(strokes)] if strokes else []
        for stroke in strokes:
            step = max(1, len(stroke) // _MOST_PIECES)
            for i in range(0, max(1, len(stroke) - 1), step):
                piece = stroke[i : i + step + 1]
                colour = round((N_COLOURS - 1) * float(scale.shares(piece[0, 2])))
                lines.append(f'<path class="piece c{colour}" d="{path_data(piece)}"/>')
        drawing = _drawing(picture, f"{seen.title}, with {trace.name}", lines, trace)
        text = f'<p class="phrases" dir="auto">{_caption(caption)}</p>{_nearest(caption)}'
        return _part("Along a trace", drawing, text)

    def _grounded(self, seen: ShownPhoto, picture: Picture, grounded: Grounded) -> str:
        phrases = grounded.phrases()
        marks, spans = [], []
        for phrase, colours in zip(phrases, phrase_colours(phrases), strict=True):
            if phrase.box_xyxy is None or colours is None:
                spans.append(f'<span class="doubt">{safe(phrase.text)}</span>')
                continue
            name = self._colour(*colours)
            marks.append(_outline(corners(phrase.box_xyxy), picture, name))
            spans.append(f'<span class="phrase {name}">{safe(phrase.text)}</span>')
        heading = "A text, found in the photo" if marks else "A text that was not found in the photo"
        drawing = _drawing(picture, f"{seen.title}, with the places of: {shortened(grounded.text, 200)}", marks)
        return _part(heading, drawing, f'<p class="phrases" dir="auto">{" ".join(spans)}</p>')


def _part(heading: str, drawing: str, text: str) -> str:
    return f'<figure class="part"><h3>{safe(heading)}</h3>{drawing}<figcaption>{text}</figcaption></figure>\n'


def _drawing(picture: Picture, label: str, marks: Sequence[str], trace: Trace | None = None) -> str:
    x1, y1, x2, y2 = view_xyxy(trace) if trace is not None else (0.0, 0.0, 1.0, 1.0)
    height = picture.height
    view = f"{x1 * WIDTH:.1f} {y1 * height:.1f} {(x2 - x1) * WIDTH:.1f} {(y2 - y1) * height:.1f}"
    ground = f'<rect class="canvas" width="{WIDTH:g}" height="{height:.1f}"/>'
    photo = f'<use href="#{picture.name}"/>' if picture.name else ground
    return f'<svg viewBox="{view}" role="img" aria-label="{safe(label)}">{photo}{"".join(marks)}</svg>'


def _outline(points_xy: Floats, picture: Picture, name: str) -> str:
    path = path_data(points_xy * (WIDTH, picture.height)) + "Z"
    return f'<path class="outline under" d="{path}"/><path class="outline {name}" d="{path}"/>'


def _tab(points_xy: Floats, picture: Picture, name: str, number: int) -> str:
    x, y = points_xy[points_xy.sum(axis=1).argmin()] * (WIDTH, picture.height)
    x, y = min(max(x, 0), WIDTH - _TAB), min(max(y, 0), max(0.0, picture.height - _TAB))
    square = f'<rect class="tab {name}" x="{x:.1f}" y="{y:.1f}" width="{_TAB:g}" height="{_TAB:g}" rx="6"/>'
    middle = f'x="{x + _TAB / 2:.1f}" y="{y + _TAB / 2:.1f}"'
    return f'{square}<text class="tab-text {name}" {middle} aria-hidden="true">{number}</text>'


def _caption(caption: Caption) -> str:
    if caption.sure:
        return safe(caption.text)
    return f'<span class="doubt">{safe(caption.text)}</span><span class="unsure">unsure</span>'


def _levels(levels: Sequence[Caption]) -> str:
    """What is told of the whole photo above objects, level by level."""
    rows = "".join(f'<div><dt>{safe(one.level)}</dt><dd dir="auto">{_caption(one)}</dd></div>' for one in levels)
    return f'<dl class="levels">{rows}</dl>' if rows else ""


def _nearest(caption: Caption) -> str:
    """What it may have meant, for captions to be doubted."""
    if caption.sure or not caption.nearest:
        return ""
    items = "".join(f"<li>{safe(near.sentence)}</li>" for near in caption.nearest)
    return f"<details><summary>nearest sentences it knows</summary><ul>{items}</ul></details>"


def _failed(failed: Mapping[str, str]) -> str:
    if not failed:
        return ""
    items = "".join(
        f"<li>{safe(name)}: {safe(shortened(reason, _LONGEST_REASON))}</li>" for name, reason in failed.items()
    )
    return f'<section class="failed"><h2>Not shown</h2><ul>{items}</ul></section>'
