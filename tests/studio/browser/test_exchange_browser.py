"""Files come in by the page and everything goes out by it; and a narrative costs three clicks at most."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from saywhere.formats import localized_narratives

from ..conftest import narrative
from ..test_exchange import COCO_NAME, TOLD
from .handling import LOOP, add_photo, axe_violations, expect, fetched, go, press, sent
from .running import draw

# Counts what a person clicks, apart from what is drawn on the photo; and lets seconds pass that nobody waits for.
COUNT = """
window.clicks = [];
addEventListener("click", ({ target }) => { if (!target.closest(".pad")) clicks.push(target.textContent); }, true);
window.later = 0;
const now = performance.now.bind(performance);
performance.now = () => now() + window.later;
const { get } = Object.getOwnPropertyDescriptor(Event.prototype, "timeStamp");
Object.defineProperty(Event.prototype, "timeStamp", { get() { return get.call(this) + window.later; } });
"""


def choose(page: Any, name: str, data: bytes) -> None:
    with page.expect_file_chooser() as chooser:
        press(page, "Import …")
    chooser.value.set_files([{"name": name, "mimeType": "application/json", "buffer": data}])


def test_a_file_is_taken_and_its_bad_lines_are_named(page: Any, address: str):
    add_photo(page, COCO_NAME)
    go(page, "replay")
    choose(page, "told.jsonl", localized_narratives.encoded(TOLD) + b'\n{"image_id": 3}\n')
    state = page.locator(".exchange [role=status]")
    expect(state).to_contain_text("told.jsonl: 1 narrative taken, 1 without their recording, 1 passed over.")
    expect(state.locator("li")).to_have_count(1)
    expect(state.locator("li")).to_contain_text("told.jsonl:2: the key `caption` is missing")
    expect(page.locator(".said")).to_contain_text("a red wall")
    (kept,) = fetched(address + "api/narratives")["narratives"]
    assert kept["trace"]["points"] == TOLD.trace.points.tolist()
    choose(page, "told.jsonl", localized_narratives.encoded(TOLD))
    expect(state).to_contain_text("0 narratives taken, 1 here already")
    choose(page, "notes.json", json.dumps({"a": 1}).encode())
    expect(state.locator(".problem")).to_contain_text("is in no format that saywhere knows")


def test_everything_is_downloaded_as_one_zip(page: Any, address: str):
    add_photo(page, COCO_NAME)
    (photo,) = fetched(address + "api/photos")["photos"]
    sent(address + "api/narratives", narrative(photo["id"]))
    go(page, "replay")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export everything").click()
    assert download.value.suggested_filename == "saywhere-studio.zip"
    with zipfile.ZipFile(io.BytesIO(Path(download.value.path()).read_bytes())) as packed:
        assert packed.testzip() is None
        assert f"photos/{COCO_NAME}" in packed.namelist()
        (line,) = packed.read("localized_narratives.jsonl").splitlines()
    assert (json.loads(line)["image_id"], json.loads(line)["caption"]) == ("139", "a red wall")


def test_the_strip_shows_thumbnails(page: Any):
    add_photo(page, width=1_600, height=1_200)
    picture = page.locator(".thumb img")
    assert picture.get_attribute("src").endswith("/thumbnail")
    expect(picture).to_have_js_property("naturalWidth", 224)


def test_a_narrative_of_20_s_is_recorded_corrected_and_saved_with_three_clicks(page: Any, address: str):
    """Record, Stop, Save and next: what is drawn, spoken and typed is not counted."""
    for name in ("one.png", "two.png"):
        add_photo(page, name)
    page.locator(".thumb").first.click()
    page.evaluate(COUNT)
    page.get_by_role("button", name="Record", exact=True).click()
    expect(page.locator("button.stop")).to_be_visible()
    for _ in range(4):
        draw(page, LOOP)
        page.evaluate("later += 5000")
    draw(page, LOOP)
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.locator("#transcript")).to_be_focused()
    page.keyboard.type("a red wall, and a blue one")
    page.get_by_role("button", name="Save and next", exact=True).click()
    expect(page.locator(".queue")).to_contain_text("2 of 2")
    assert page.evaluate("clicks") == ["Record", "Stop", "Save and next"]
    (told,) = fetched(address + "api/narratives")["narratives"]
    assert told["text"] == "a red wall, and a blue one"
    assert told["audio"]
    assert len(told["trace"]["starts"]) == 5
    assert told["trace"]["points"][-1][2] - told["trace"]["points"][0][2] >= 20


@pytest.mark.parametrize(("width", "theme"), [(1440, "dark"), (360, "light")])
def test_axe_finds_nothing_in_the_exchange(open_page: Callable[..., Any], width: int, theme: str):
    page = open_page(width, color_scheme=theme, reduced_motion="reduce")
    add_photo(page, COCO_NAME)
    go(page, "replay")
    state = page.locator(".exchange [role=status]")
    found = {"nothing told": axe_violations(page)}
    choose(page, "told.jsonl", localized_narratives.encoded(TOLD) + b'\n{"image_id": 3}\n')
    expect(state).to_contain_text("1 passed over")
    found["taken"] = axe_violations(page)
    choose(page, "notes.json", b'{"a": 1}')
    expect(state.locator(".problem")).to_be_visible()
    found["refused"] = axe_violations(page)
    assert {name: broken for name, broken in found.items() if broken} == {}
    assert page.evaluate("document.documentElement.scrollWidth") == width
