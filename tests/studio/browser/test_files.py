"""The files of the page: few bytes, no inline code, nobody else's host."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from saywhere.studio.app import PAGE


def files() -> list[Path]:
    return sorted(PAGE.iterdir())


def test_the_page_is_small():
    assert sum(len(gzip.compress(file.read_bytes())) for file in files()) < 60_000


def test_the_page_asks_nothing_of_other_hosts_and_holds_no_inline_code():
    markup = (PAGE / "index.html").read_text("utf-8")
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
    apart = {"main.js", "theme.js", "capture.js"}  # The first two are scripts of the page; the last is for sound alone.
    assert named == {file.name for file in files() if file.suffix == ".js"} - apart
