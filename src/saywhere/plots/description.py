"""A photo with its description on one page that needs nothing else: for people who see it, and for those who do not."""

from __future__ import annotations

from pathlib import Path
from string import Template

from saywhere.atomic import write_atomic
from saywhere.core.description import DescribedSentence, Description
from saywhere.core.places import BoxXyxy
from saywhere.plots.page import _asset
from saywhere.plots.photo import PhotoLike
from saywhere.plots.shown import WIDTH, Album, Picture
from saywhere.plots.text import digest, safe, shortened

_BADGE = 22.0
"""Radius of a number on the photo, in drawing units."""


def description_page(photo: PhotoLike, described: Description, path: str | Path, title: str) -> None:
    """Write one self-contained HTML page, whole or not at all. The same description gives the same bytes."""
    html = description_html(photo, described, title)
    with write_atomic(path) as file:
        file.write(html.encode("utf-8"))


def description_html(photo: PhotoLike, described: Description, title: str) -> str:
    """The page as text; see `description_page`. Numbers on the photo are those of the sentences."""
    album = Album()
    picture = album.add(photo)
    style = _asset("page.css") + _asset("description.css")
    policy = f"default-src 'none'; img-src data:; style-src {digest(style)}; base-uri 'none'; form-action 'none'"
    told = described.sentences or (DescribedSentence(described.text),)
    whole = [one for one in told if not one.things]
    parts = [one for one in told if one.things]
    missing = f'<p class="note">{safe(shortened(picture.missing, 120))}</p>' if picture.missing else ""
    return Template(_asset("description.html")).substitute(
        title=safe(title),
        policy=policy,
        style=style,
        photos="\n".join(album.images),
        about=safe(f"Machine-written, by {described.origin}" if described.origin else "Machine-written"),
        drawing=_drawing(described, parts, picture),
        missing=missing,
        alt=safe(described.alt_text),
        whole="".join(f"<p>{safe(one.text)}</p>" for one in whole),
        parts="\n".join(f"<li>{safe(one.text)}</li>" for one in parts),
    )


def _drawing(described: Description, parts: list[DescribedSentence], picture: Picture) -> str:
    """The photo, with the boxes of each sentence under its number."""
    drawn = [
        f'<use href="#{picture.name}"/>'
        if picture.name
        else f'<rect class="canvas" width="{WIDTH:g}" height="{picture.height:.1f}"/>'
    ]
    boxes = [
        (number, described.things[thing].box_xyxy) for number, one in enumerate(parts, start=1) for thing in one.things
    ]
    drawn += [_box(box, picture.height) for _, box in boxes]
    drawn += [_number(number, box, picture.height) for number, box in boxes]
    return f'<svg viewBox="0 0 {WIDTH:g} {picture.height:.1f}" role="img" aria-labelledby="alt">{"".join(drawn)}</svg>'


def _box(box_xyxy: BoxXyxy, height: float) -> str:
    x1, y1, x2, y2 = (value * side for value, side in zip(box_xyxy, (WIDTH, height) * 2, strict=True))
    size = f'x="{x1:.1f}" y="{y1:.1f}" width="{x2 - x1:.1f}" height="{y2 - y1:.1f}" rx="6"'
    return f'<rect class="lit under" {size}/><rect class="lit" {size}/>'


def _number(number: int, box_xyxy: BoxXyxy, height: float) -> str:
    x = min(max(box_xyxy[0] * WIDTH, _BADGE), WIDTH - _BADGE)
    y = min(max(box_xyxy[1] * height, _BADGE), height - _BADGE)
    return (
        f'<g class="number"><circle cx="{x:.1f}" cy="{y:.1f}" r="{_BADGE:g}"/>'
        f'<text x="{x:.1f}" y="{y:.1f}">{number}</text></g>'
    )
