"""The files of the page: few bytes, no inline code, nobody else's host."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from saywhere.studio.app import PAGE

# Fetched when somebody edits a narrative.
EDITING = ("edit.js", "edits.js", "revise.js", "timeline.js")
VIDEOS = ("film.js", "footage.js", "telling.js", "video.js")
FILM_EDITING = "edit_film.js"
PEOPLE = ("annotate.html", "annotate.js", "people.css", "people.js", "review.html", "review.js")


def files() -> list[Path]:
    return sorted(PAGE.iterdir())


def test_the_pages_are_small():
    size = {file.name: len(gzip.compress(file.read_bytes())) for file in files()}
    shared = [size.pop(name) for name in ("visit.css", "visit.js")]
    for page in ("study", "collect"):
        own = [size.pop(f"{page}.{ending}") for ending in ("html", "css", "js")]
        assert sum(own + shared) < 10_000
    # Fetched after the rest, and after a recording with sound.
    assert sum(size.pop(name) for name in VIDEOS) < 11_000
    assert size.pop("transcribe.js") < 3_000
    assert sum(size.pop(name) for name in EDITING) < 10_000
    # Other pages, for annotators and reviewers.
    assert sum(size.pop(name) for name in PEOPLE) < 12_000
    assert sum(size.values()) < 90_000


def test_the_page_asks_nothing_of_other_hosts_and_holds_no_inline_code():
    for page in ("index.html", "study.html", "collect.html", "annotate.html", "review.html"):
        markup = (PAGE / page).read_text("utf-8")
        assert not re.search(r"\son\w+=|\sstyle=|<style|<script>|javascript:", markup)
    for file in files():
        text = file.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://", text), file.name


@pytest.mark.parametrize(
    "word", ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("]
)
def test_no_script_turns_text_into_markup_or_code(word: str):
    assert [file.name for file in files() if file.suffix == ".js" and word in file.read_text("utf-8")] == []


def test_every_module_is_fetched_ahead():
    markup = (PAGE / "index.html").read_text("utf-8")
    named = set(re.findall(r'href="page/(\w+\.js)"', markup))
    # The first two are scripts of the page; then those for sound, transcripts, and the pages of studies.
    apart = {"main.js", "theme.js", "capture.js", "transcribe.js", "study.js", "collect.js", "visit.js"}
    apart |= {*EDITING, *VIDEOS, FILM_EDITING, *PEOPLE}
    assert named == {file.name for file in files() if file.suffix == ".js"} - apart


@pytest.mark.parametrize("page", ["study", "collect"])
def test_every_module_of_a_page_for_participants_is_fetched_ahead(page: str):
    markup = (PAGE / f"{page}.html").read_text("utf-8")
    wanted, todo = set(), [f"{page}.js"]
    while todo:
        found = re.findall(r'from "\./(\w+\.js)"', (PAGE / todo.pop()).read_text("utf-8"))
        todo += sorted(set(found) - wanted)
        wanted |= set(found)
    assert set(re.findall(r'modulepreload" href="page/(\w+\.js)"', markup)) == wanted
