"""Photos that were found, with the place in each lit: on one sheet, or on one page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline

from saywhere.atomic import write_atomic
from saywhere.core import Trace
from saywhere.core.regions import corners
from saywhere.plots.facts import counted
from saywhere.plots.page import _asset, _style
from saywhere.plots.photo import PhotoLike, load_photo
from saywhere.plots.sheet import INK, MARGIN_IN, QUIET, Rect, add_photo, new_sheet, photo_height_in, wrap, write
from saywhere.plots.shown import WIDTH, Album
from saywhere.plots.text import digest, safe, shortened

_COLUMNS, _CELL_IN, _GUTTER_IN, _LINE_IN = 4, 2.9, 0.18, 0.19
_SHADE = 0.55
"""How dark a photo is around the place that was found."""
_NO_TRACE = Trace.from_segments([])
_FRAME = corners((0.0, 0.0, 1.0, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class ShownHit:
    """A photo that was found. title, about: beneath it. box_xyxy: what is lit, in fractions; None for all of it."""

    photo: PhotoLike
    title: str
    about: str = ""
    box_xyxy: tuple[float, float, float, float] | None = None


def draw_hits(hits: Sequence[ShownHit], title: str) -> Figure:
    """All photos in rows of four, best first."""
    columns = max(1, min(_COLUMNS, len(hits)))
    inner = columns * _CELL_IN + (columns - 1) * _GUTTER_IN
    heading = wrap(shortened(title, 200), inner, 13)
    top = MARGIN_IN + 0.26 * len(heading) + 0.1
    photos = [load_photo(hit.photo) for hit in hits]
    texts = [
        (wrap(shortened(hit.title, 90), _CELL_IN, 9), wrap(shortened(hit.about, 160), _CELL_IN, 8)) for hit in hits
    ]
    heights = [
        photo_height_in(photo, _NO_TRACE, _CELL_IN) + _LINE_IN * (len(one) + len(two)) + 0.25
        for photo, (one, two) in zip(photos, texts, strict=True)
    ]
    rows = [max(heights[first : first + columns]) for first in range(0, len(hits), columns)]
    figure = new_sheet(inner + 2 * MARGIN_IN, top + sum(rows) + MARGIN_IN)
    for line, words in enumerate(heading):
        write(figure, words, MARGIN_IN, MARGIN_IN + 0.17 + 0.26 * line, size=13, bold=True)
    for number, (hit, photo, (one, two)) in enumerate(zip(hits, photos, texts, strict=True)):
        x = MARGIN_IN + (number % columns) * (_CELL_IN + _GUTTER_IN)
        y = top + sum(rows[: number // columns])
        height = photo_height_in(photo, _NO_TRACE, _CELL_IN)
        _light(add_photo(figure, Rect(x, y, _CELL_IN, height), photo, _NO_TRACE), hit)
        for line, words in enumerate([*one, *two]):
            is_title = line < len(one)
            size, colour = (9, INK) if is_title else (8, QUIET)
            write(figure, words, x, y + height + _LINE_IN * (line + 1), size=size, colour=colour)
    return figure


def _light(axes: Axes, hit: ShownHit) -> None:
    if hit.box_xyxy is None:
        return
    box = corners(hit.box_xyxy)
    # The frame one way round and the box the other: what lies between is shaded.
    around = Outline.make_compound_path(Outline(_FRAME, closed=False), Outline(box[::-1], closed=False))
    axes.add_patch(PathPatch(around, facecolor="black", edgecolor="none", alpha=_SHADE, zorder=3))
    for colour, width in (("white", 3.0), ("#111111", 1.0)):
        axes.add_patch(PathPatch(Outline([*box, box[0]]), fill=False, edgecolor=colour, linewidth=width, zorder=4))


def hits_page(hits: Sequence[ShownHit], path: str | Path, title: str, about: str = "") -> None:
    """Write one self-contained HTML page, whole or not at all. The same hits give the same bytes."""
    album = Album()
    figures = [_figure(hit, album) for hit in hits]
    style = _style() + "\n" + _asset("hits.css")
    policy = f"default-src 'none'; img-src data:; style-src {digest(style)}; base-uri 'none'; form-action 'none'"
    html = Template(_asset("hits.html")).substitute(
        title=safe(title),
        policy=policy,
        style=style,
        photos="\n".join(album.images),
        about=safe(" · ".join([counted(len(figures), "photo"), *([about] if about else [])])),
        figures="\n".join(figures),
    )
    with write_atomic(path) as file:
        file.write(html.encode("utf-8"))


def _figure(hit: ShownHit, album: Album) -> str:
    picture = album.add(hit.photo)
    height = picture.height
    drawn = [
        f'<use href="#{picture.name}"/>'
        if picture.name
        else f'<rect class="canvas" width="{WIDTH:g}" height="{height:.1f}"/>'
    ]
    if hit.box_xyxy is not None:
        x1, y1, x2, y2 = (value * side for value, side in zip(hit.box_xyxy, (WIDTH, height) * 2, strict=True))
        box = f"M{x1:.1f} {y1:.1f}V{y2:.1f}H{x2:.1f}V{y1:.1f}Z"
        drawn.append(f'<path class="shade" d="M0 0H{WIDTH:g}V{height:.1f}H0Z{box}"/>')
        drawn.append(f'<path class="lit under" d="{box}"/><path class="lit" d="{box}"/>')
    label = safe(f"{hit.title}: {hit.about}")
    missing = f'<p class="note">{safe(shortened(picture.missing, 120))}</p>' if picture.missing else ""
    drawing = f'<svg viewBox="0 0 {WIDTH:g} {height:.1f}" role="img" aria-label="{label}">{"".join(drawn)}</svg>'
    told = f'<figcaption><b>{safe(hit.title)}</b><span dir="auto">{safe(hit.about)}</span></figcaption>'
    return f'<figure class="hit">{drawing}{missing}{told}</figure>'
