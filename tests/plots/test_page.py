"""The page: self-contained, safe whatever the text, complete, and the same for the same input."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from saywhere.core import Narrative, Utterance
from saywhere.plots import narratives_page
from saywhere.plots.page import LONGEST_PX, page_html
from saywhere.plots.text import printable

from .conftest import NARRATIVES

PAYLOADS = (
    "</script><img/src=x/onerror=alert(1)>",
    "'\"><script>alert(1)</script>",
    "<!--",
    "]]>",
    "${title}$script",
    "&lt;b&gt;",
)


class Reader(HTMLParser):
    """Elements, the text of words and of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[tuple[str | None, str]] = []
        self.styles: list[str] = []
        self.text = ""
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = "word" if "word" in (dict(attrs).get("class") or "").split() else tag
        if self._inside == "word":
            self.words.append("")
        elif tag == "script":
            self.scripts.append((dict(attrs).get("type"), ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._inside == "word":
            self.words[-1] += data
        elif self._inside == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self._inside == "style":
            self.styles.append(data)


def everything(photo: Path) -> list[tuple[Narrative, Path | None]]:
    return [(narrative, photo) for narrative in NARRATIVES.values()] + [(NARRATIVES["ordinary"], None)]


def test_the_page_holds_every_word_of_every_narrative_in_order(photo: Path):
    page = Reader(page_html(everything(photo)))
    assert page.words == [printable(word.text) for narrative, _ in everything(photo) for word in narrative.words]


def test_the_page_loads_nothing_and_runs_nothing_from_elsewhere(photo: Path):
    text = page_html(everything(photo))
    page = Reader(text)
    assert {tag for tag, _ in page.elements}.isdisjoint(
        {"link", "img", "iframe", "object", "embed", "base", "form", "a"}
    )
    for tag, attributes in page.elements:
        assert "src" not in attributes
        assert re.fullmatch(r"#photo-\d+|data:image/jpeg;base64,[\w+/=]+", attributes.get("href") or "#photo-0")
        assert not [name for name in attributes if name.startswith("on")], tag
        assert "style" not in attributes
    without_photos = re.sub(r"data:image/jpeg;base64,[\w+/=]+", "", text)
    assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttpRequest|innerHTML|eval\(", without_photos)


def test_the_policy_allows_exactly_the_pages_own_style_and_script(photo: Path):
    page = Reader(page_html(everything(photo)))
    policy = next(a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    programs = [content for kind, content in page.scripts if kind is None]
    assert len(programs) == len(page.styles) == 1
    for rule, content in (("script-src", programs[0]), ("style-src", page.styles[0])):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in (policy or "").split("; ")
    assert (policy or "").startswith("default-src 'none'; img-src data:; ")


def test_hostile_text_stays_text(photo: Path):
    def page(texts: tuple[str, ...]) -> Reader:
        utterances = tuple(Utterance(text, i, i + 1) for i, text in enumerate(texts))
        name = " ".join(texts)
        tame = replace(NARRATIVES["ordinary"], utterances=utterances, image_id=name, annotator_id=name, dataset_id=name)
        wordless = Narrative(name, " ".join(texts), origin=name)
        return Reader(page_html([(tame, None), (wordless, f"{texts[1]}.jpg")], title=name))

    hostile, harmless = page(PAYLOADS), page(tuple("abcdef"))
    assert hostile.words == list(PAYLOADS)
    assert [(tag, list(a)) for tag, a in hostile.elements] == [(tag, list(a)) for tag, a in harmless.elements]
    assert [kind for kind, _ in hostile.scripts] == [kind for kind, _ in harmless.scripts]
    assert hostile.scripts[-1] == harmless.scripts[-1]


@given(st.lists(st.text(st.characters(exclude_categories=()), min_size=1), max_size=5))
def test_any_text_becomes_a_page_that_can_be_written(texts: list[str]):
    narrative = Narrative("7", " ".join(texts), tuple(Utterance(text, i, i + 1) for i, text in enumerate(texts)))
    text = page_html([(narrative, None)])
    assert text.encode().decode() == text
    assert Reader(text).words == [printable(word.text) for word in narrative.words]


def test_the_data_of_each_narrative_is_numbers_that_match_it(photo: Path):
    page = Reader(page_html(everything(photo)))
    records = [json.loads(content) for kind, content in page.scripts if kind == "application/json"]
    assert len(records) == len(everything(photo))
    for (narrative, _), record in zip(everything(photo), records, strict=True):
        assert record["words"] == [[word.start_s, word.end_s] for word in narrative.words]
        assert [len(stroke) // 3 for stroke in record["strokes"]] == [len(s) for s in narrative.trace.segments]
        assert record["pieces"] == sorted(record["pieces"])
    ordinary = records[0]
    assert ordinary["strokes"][0][:3] == pytest.approx([800, 375, 0.5], abs=0.06)


def test_no_piece_of_the_trace_bridges_a_gap_of_the_pen(photo: Path):
    page = Reader(page_html([(NARRATIVES["ordinary"], photo)]))
    pieces = [a["d"] or "" for _, a in page.elements if (a.get("class") or "").startswith("piece ")]
    assert len(pieces) > 20
    strokes = json.loads(page.scripts[0][1])["strokes"]
    first_end, second_start = (f"{x:.1f} {y:.1f}" for x, y in (strokes[0][-3:-1], strokes[1][:2]))
    assert sum(d.endswith(first_end) for d in pieces) == 1
    assert sum(d.startswith("M" + second_start) for d in pieces) == 1
    assert not [d for d in pieces if first_end in d and second_start in d]
    ghost = next(a["d"] or "" for _, a in page.elements if a.get("class") == "ghost")
    assert ghost.count("M") == 2


def test_boxes_are_drawn_for_located_words_only_and_the_others_are_grey():
    narrative = replace(NARRATIVES["ordinary"], utterances=(Utterance("here", 1, 1.5), Utterance("lost", 90, 91)))
    page = Reader(page_html([(narrative, None)]))
    boxes = [a["data-word"] for _, a in page.elements if (a.get("class") or "").startswith("box ")]
    kinds = [(a.get("class") or "").split()[1] for _, a in page.elements if (a.get("class") or "").startswith("word ")]
    assert boxes == ["0"]
    assert re.fullmatch(r"c\d+", kinds[0])
    assert kinds[1] == "nowhere"


def test_a_shared_photo_is_stored_once_and_shrunk(tmp_path: Path):
    Image.new("RGB", (3000, 1500), "teal").save(tmp_path / "large.png")
    Image.new("RGB", (60, 90), "red").save(tmp_path / "small.png")
    (tmp_path / "copy.png").write_bytes((tmp_path / "small.png").read_bytes())
    shown = [(NARRATIVES["ordinary"], tmp_path / name) for name in ("large.png", "small.png", "large.png", "copy.png")]
    page = Reader(page_html(shown))
    stored = [a["href"] or "" for tag, a in page.elements if tag == "image"]
    used = [a["href"] for tag, a in page.elements if tag == "use"]
    assert used == ["#photo-0", "#photo-1", "#photo-0", "#photo-1"]
    sizes = [Image.open(io.BytesIO(base64.b64decode(href.partition(",")[2]))).size for href in stored]
    assert sizes == [(LONGEST_PX, LONGEST_PX // 2), (60, 90)]


def test_a_missing_photo_is_said_on_its_canvas(tmp_path: Path):
    text = page_html([(NARRATIVES["ordinary"], tmp_path / "gone.jpg"), (NARRATIVES["ordinary"], None)])
    page = Reader(text)
    assert "gone.jpg was not found" in page.text
    assert "no photo found" in page.text
    assert sum(a.get("class") == "canvas" for _, a in page.elements) == 2


def test_everything_that_can_be_operated_has_a_name(photo: Path):
    page = Reader(page_html(everything(photo)))
    controls = [a for tag, a in page.elements if tag in ("button", "select") or a.get("type") == "range"]
    assert len(controls) == 3 * len(everything(photo))
    assert all(a.get("aria-label") for a in controls)
    assert all(a.get("aria-label") or a.get("aria-hidden") for tag, a in page.elements if tag == "svg")
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))


def test_the_same_narratives_give_the_same_bytes(photo: Path, tmp_path: Path):
    for name in ("a.html", "b.html"):
        narratives_page(iter(everything(photo)), tmp_path / name, title="Same")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.html"]


def test_a_page_of_nothing_says_so():
    assert "0 narratives of 0 images" in Reader(page_html([])).text


def test_the_script_is_small():
    assert len(files("saywhere.plots").joinpath("page.js").read_bytes()) < 15_000
