"""What a model said, as a figure and as a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Polygon as DrawnPolygon

from saywhere.core import (
    Box,
    BoxSet,
    Caption,
    Grounded,
    Mask,
    Nearest,
    Patch,
    Point,
    Polygon,
    Region,
    WholeImage,
    WordBoxes,
)
from saywhere.plots.captions import draw_seen
from saywhere.plots.gallery import gallery_html, gallery_page
from saywhere.plots.seen import ShownPhoto, own_colours, phrase_colours
from saywhere.plots.sheet import save_png
from tests.plots.conftest import NARRATIVES, ODD_WORDS, TWO_STROKES

LEFT, RIGHT = (0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 0.5)
NAN = (np.nan,) * 4
PLACED = Grounded(("so", "a", "cat", "and", "a", "dog"), WordBoxes([NAN, LEFT, LEFT, LEFT, RIGHT, RIGHT]))


def _caption(region: Region, text: str, nearest: Sequence[str] = (), **more: Any) -> Caption:
    return Caption(text, -0.5, region, nearest=tuple(Nearest(one, 0.5) for one in nearest), **more)


def _seen(photo: Path | None, **changes: object) -> ShownPhoto:
    values = {
        "whole": _caption(WholeImage(), "a cat and a dog"),
        "regions": (
            _caption(Box(*LEFT), "a cat"),
            _caption(Point(0.9, 0.9), "a <b>cup</b>", sure=False, nearest=("a blue & white cup",)),
            _caption(TWO_STROKES, "along the trace"),
        ),
        "grounded": PLACED,
        "narrated": NARRATIVES["ordinary"],
    }
    return ShownPhoto(photo, "pets.jpg", "by nobody", **(values | changes))  # type: ignore[arg-type]


def test_runs_of_words_in_one_box_are_a_phrase() -> None:
    phrases = PLACED.phrases()
    assert [(phrase.text, phrase.box_xyxy) for phrase in phrases] == [
        ("so", None),
        ("a cat and", LEFT),
        ("a dog", RIGHT),
    ]
    colours = phrase_colours(phrases)
    assert colours[0] is None
    assert colours[1] != colours[2]


def test_things_side_by_side_have_colours_of_their_own() -> None:
    for count in range(8):
        colours, inks = own_colours(count)
        assert len(set(colours)) == len(inks) == count


@pytest.mark.parametrize(
    ("region", "name", "bounds"),
    [
        (WholeImage(), "whole photo", None),
        (Box(0.1, 0.2, 0.5, 1.5), "box 0.1,0.2,0.5,1.5", (0.1, 0.2, 0.5, 1.0)),
        (Point(0.5, 0.5), "point 0.5,0.5", (0.47, 0.47, 0.53, 0.53)),
        (Polygon([(0, 0), (1, 0), (0.5, 0.4)]), "polygon of 3 points", (0, 0, 1, 0.4)),
        (Mask([[0, 1], [0, 0]]), "mask", (0.5, 0, 1, 0.5)),
        (BoxSet((Box(0, 0, 0.2, 0.2), Box(0.5, 0.5, 1, 1))), "2 boxes", (0, 0, 1, 1)),
        (Patch(1, 2), "patch 1,2", None),
        (TWO_STROKES, f"trace of {len(TWO_STROKES)} points", None),
    ],
)
def test_every_region_has_a_name_and_an_outline(
    region: Region, name: str, bounds: tuple[float, float, float, float] | None
) -> None:
    assert region.name == name
    drawn = region.outlines()
    if bounds is None:
        assert drawn == []
    else:
        points = np.concatenate(drawn)
        assert (*points.min(axis=0), *points.max(axis=0)) == pytest.approx(bounds)


def _texts(seen: ShownPhoto) -> str:
    return " ".join(text.get_text() for text in draw_seen(seen).texts)


def test_the_sheet_shows_every_part_and_marks_doubt(photo: Path, tmp_path: Path) -> None:
    seen = _seen(photo)
    figure = draw_seen(seen)
    photos = [axes for axes in figure.axes if axes.images]
    assert len(photos) == 4
    # A white casing and a coloured line for a box and a point, then for two phrases.
    assert [len([p for p in axes.patches if isinstance(p, DrawnPolygon)]) for axes in photos] == [4, 0, 4, 0]
    texts = _texts(seen)
    for part in (
        "pets.jpg",
        "by nobody",
        "a cat and a dog",
        "along the trace",
        "<b>cup</b> unsure",
        "so a cat and a dog",
    ):
        assert part in texts
    save_png(figure, tmp_path / "seen.png")
    save_png(draw_seen(seen), tmp_path / "again.png")
    assert (tmp_path / "seen.png").read_bytes() == (tmp_path / "again.png").read_bytes()


def test_only_what_was_asked_for_is_drawn(photo: Path) -> None:
    only = _seen(photo, regions=(), grounded=None, narrated=None)
    assert len(draw_seen(only).axes) == 1
    assert "unsure" not in _texts(only)
    nothing = _seen(photo, whole=None, regions=(), grounded=None, narrated=None)
    assert draw_seen(nothing).axes == []


def test_captions_above_objects_stand_with_their_level_beside_that_of_objects(photo: Path) -> None:
    levels = (
        _caption(WholeImage(), "in a <b>garden</b>", level="scene"),
        _caption(WholeImage(), "playing", sure=False, nearest=("a cat",), level="action"),
    )
    told = _seen(photo, regions=(), grounded=None, narrated=None, levels=levels)
    assert "object: a cat and a dog scene: in a <b>garden</b> action: playing unsure" in _texts(told)
    assert "object" not in _texts(_seen(photo, regions=(), grounded=None, narrated=None))
    alone = _seen(photo, whole=None, regions=(), grounded=None, narrated=None, levels=levels[:1])
    assert len(draw_seen(alone).axes) == 1
    page = gallery_html([told])
    assert "<dt>scene</dt>" in page
    assert "in a &lt;b&gt;garden&lt;/b&gt;" in page
    assert page.index("a cat and a dog") < page.index("<dt>scene</dt>") < page.index("<dt>action</dt>")
    assert '<dl class="levels">' not in gallery_html([_seen(photo)])


def test_a_text_that_is_nowhere_says_so(photo: Path) -> None:
    nowhere = Grounded(("a", "unicorn"), WordBoxes([NAN, NAN]))
    assert "not found" in _texts(_seen(photo, grounded=nowhere))
    assert "not found" in gallery_html([_seen(photo, grounded=nowhere)])


def test_odd_words_very_long_texts_and_no_photo_are_drawn(tmp_path: Path) -> None:
    odd = " ".join(ODD_WORDS)
    regions = tuple(_caption(Box(*LEFT), odd, sure=False, nearest=ODD_WORDS) for _ in range(3))
    seen = _seen(
        None, whole=_caption(WholeImage(), "word " * 900), regions=regions, narrated=NARRATIVES["odd characters"]
    )
    save_png(draw_seen(seen), tmp_path / "odd.png")
    assert (tmp_path / "odd.png").stat().st_size > 1000
    assert "… and 500 more" in _texts(seen)
    assert "no photo found" in gallery_html([seen])


class _Reader(HTMLParser):
    """Elements that were opened and not closed, and all ids."""

    void = frozenset({"meta", "input", "img", "br", "use", "rect", "path", "image"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [str(value) for name, value in attrs if name == "id"]
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.void:
            assert self.open.pop() == tag


def test_the_page_is_whole_safe_and_alone(photo: Path, tmp_path: Path) -> None:
    entries = [_seen(photo), _seen(photo), _seen(None)]
    gallery_page(entries, tmp_path / "page.html", "A <title>", "by nobody", {"torn.jpg": "is not <an> image"})
    page = (tmp_path / "page.html").read_text()
    reader = _Reader()
    reader.feed(page)
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))
    assert page.count("data:image/jpeg") == 1
    assert "&lt;b&gt;cup&lt;/b&gt;" in page
    assert "A &lt;title&gt;" in page
    assert "torn.jpg: is not &lt;an&gt; image" in page
    assert re.search(r"https?://", page) is None
    assert page == gallery_html(entries, "A <title>", "by nobody", {"torn.jpg": "is not <an> image"})


def test_every_colour_that_the_page_names_has_a_style(photo: Path) -> None:
    page = gallery_html([_seen(photo)])
    named = set(re.findall(r'class="[^"]*\b(own-\d+)\b', page))
    assert named
    assert all(f".{name} {{ --own: #" in page for name in named)


def test_doubt_is_marked_with_the_nearest_sentences_and_certainty_is_not(photo: Path) -> None:
    sure = gallery_html([_seen(photo, regions=(_caption(Box(*LEFT), "a cat", nearest=("a tabby cat",)),))])
    assert ">unsure<" not in sure
    assert "a tabby cat" not in sure
    doubted = gallery_html([_seen(photo)])
    assert doubted.count(">unsure<") == 1
    assert "a blue &amp; white cup" in doubted


def test_a_page_without_photos_still_says_so(tmp_path: Path) -> None:
    gallery_page([], tmp_path / "page.html")
    assert "0 photos" in (tmp_path / "page.html").read_text()
