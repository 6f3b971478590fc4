"""A description as a page."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from saywhere.core.description import NOTHING_SURE, DescribedSentence, DescribedThing, Description
from saywhere.plots.description import description_page

WHITE = Image.new("RGB", (200, 100), "white")
TOLD = Description(
    (
        DescribedSentence("A <dog>."),
        DescribedSentence("There are two dogs.", (0, 1)),
        DescribedSentence("A cup.", (2,)),
    ),
    tuple(DescribedThing("a dog", (x, 0.2, x + 0.1, 0.4)) for x in (0.1, 0.5, 0.9)),
    "tiny",
)


def test_the_page_needs_nothing_else_and_is_the_same_again(tmp_path: Path) -> None:
    for name in ("one.html", "two.html"):
        description_page(WHITE, TOLD, tmp_path / name, "a & b.jpg")
    page = (tmp_path / "one.html").read_text()
    assert page == (tmp_path / "two.html").read_text()
    assert "http" not in page.replace("http-equiv", "")
    assert "a &amp; b.jpg" in page
    assert "Machine-written, by tiny" in page


def test_those_who_do_not_see_the_photo_hear_its_alt_text_and_each_sentence_once(tmp_path: Path) -> None:
    description_page(WHITE, TOLD, tmp_path / "page.html", "dogs")
    page = (tmp_path / "page.html").read_text()
    assert 'role="img" aria-labelledby="alt"' in page
    assert '<span id="alt">A &lt;dog&gt;.</span>' in page
    assert [line for line in page.splitlines() if line.startswith("<li>")] == [
        "<li>There are two dogs.</li>",
        "<li>A cup.</li>",
    ]


def test_every_thing_has_its_box_and_the_number_of_its_sentence(tmp_path: Path) -> None:
    description_page(WHITE, TOLD, tmp_path / "page.html", "dogs")
    page = (tmp_path / "page.html").read_text()
    assert page.count('<rect class="lit" x="100.0" y="100.0" width="100.0" height="100.0"') == 1
    assert [page.count(f">{number}</text>") for number in (1, 2, 3)] == [2, 1, 0]


def test_where_nothing_is_sure_or_the_photo_is_gone_the_page_says_so(tmp_path: Path) -> None:
    description_page(None, Description(), tmp_path / "page.html", "gone")
    page = (tmp_path / "page.html").read_text()
    assert page.count(NOTHING_SURE) == 2
    assert "no photo found" in page
