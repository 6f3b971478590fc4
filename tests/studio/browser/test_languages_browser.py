"""The language of what is told: chosen, remembered or found out, told to spell checkers, and changed later."""

from __future__ import annotations

import json
from typing import Any

from saywhere.language.transcript import ALIGNED_LANGUAGES

from ..conftest import FakeRecogniser, narrative
from .handling import LOOP, add_photo, expect, export, fetched, go, press, record, sent


def told(address: str) -> list[dict[str, Any]]:
    return list(fetched(address + "api/narratives")["narratives"])


def test_a_chosen_language_goes_with_the_narrative_and_with_its_text(page: Any, address: str):
    add_photo(page)
    record(page, LOOP)
    press(page, "Stop")
    text = page.locator("#transcript")
    expect(text).to_have_attribute("lang", "")  # Nobody knows: the page's own language does not count.
    page.get_by_label("Language spoken").select_option("German")
    expect(text).to_have_attribute("lang", "de")
    text.fill("ein rotes Haus")
    press(page, "Save")
    expect(page.get_by_role("heading", name="Saved")).to_be_visible()
    # Nothing is tried that cannot succeed, and the page says why.
    expect(page.locator(".paper")).to_contain_text("Words in German get no times from the voice")
    expect(page.locator(".problem")).to_have_count(0)
    expect(text).to_have_attribute("lang", "de")
    expect(page.locator(".said:visible")).to_have_attribute("lang", "de")
    assert json.loads(export(page, "Web Annotation"))["body"][0]["language"] == "de"
    [kept] = told(address)
    assert (kept["text"], kept["language"], kept["words"]) == ("ein rotes Haus", "de", [])
    press(page, "New recording")
    record(page, LOOP, sound=False)
    expect(page.locator("#typed")).to_have_attribute("lang", "de")
    page.locator("#typed").press_sequentially("ein Haus", delay=20)
    press(page, "Stop")
    expect(page.get_by_label("Language spoken")).to_have_value("de")
    expect(page.locator(".language")).to_contain_text("from the keys, in any language")
    press(page, "Save")
    expect(page.locator(".word")).to_have_text(["ein", "Haus"])
    assert [(one["language"], one["timed_by"]) for one in told(address)] == [("de", None), ("de", "keys")]


def test_a_language_that_was_found_out_is_kept_and_not_taken_for_the_next(
    page: Any, address: str, recogniser: FakeRecogniser
):
    recogniser.text, recogniser.language = "ein Haus", "de"
    add_photo(page)
    record(page, LOOP)
    press(page, "Stop")
    press(page, "Transcribe")
    expect(page.get_by_label("Language spoken")).to_have_value("de")
    expect(page.locator("#transcript")).to_have_attribute("lang", "de")
    page.wait_for_timeout(200)
    page.reload()
    page.wait_for_selector("html[data-started]")
    expect(page.get_by_label("Language spoken")).to_have_value("de")
    press(page, "Save")
    expect(page.get_by_role("heading", name="Saved")).to_be_visible()
    assert [one["language"] for one in told(address)] == ["de"]
    press(page, "New recording")
    record(page, LOOP, sound=False)
    press(page, "Stop")
    expect(page.get_by_label("Language spoken")).to_have_value("")


def test_the_editor_changes_the_language_and_spreads_words_that_have_no_times(page: Any, address: str):
    add_photo(page)
    (photo,) = fetched(address + "api/photos")["photos"]
    about = {"text": "ein rotes Haus", "language": "de-CH", "source": "told.jsonl", "keys": []}
    sent(address + "api/narratives", narrative(photo["id"], **about))
    go(page, "replay")
    expect(page.locator(".excerpt")).to_have_attribute("lang", "de-CH")
    press(page, "Edit")
    choice = page.get_by_label("Language spoken")
    expect(choice).to_have_value("de-CH")
    choice.select_option("Dutch")
    expect(page.locator("#edited")).to_have_attribute("lang", "nl")
    press(page, "Undo")
    expect(choice).to_have_value("de-CH")
    press(page, "Redo")
    press(page, "Spread the words")
    expect(page.locator(".mark-word")).to_have_text(["ein", "rotes", "Haus"])
    press(page, "Save")
    expect(page.get_by_role("heading", name="Replay")).to_be_visible()
    [kept] = told(address)
    assert (kept["language"], kept["version"], kept["timed_by"]) == ("nl", 2, "even")
    assert kept["source"] == "told.jsonl"
    assert [word["start_s"] for word in kept["words"]] == [0.0, 0.3, 0.8]
    assert kept["words"][-1]["end_s"] == 1.2
    page.locator(".versions summary").click()
    expect(page.locator(".versions li")).to_contain_text("German")


def test_page_and_server_agree_on_what_is_aligned(page: Any, address: str):
    aligned = page.evaluate("async () => (await import('/page/languages.js')).ALIGNED")
    assert aligned == list(ALIGNED_LANGUAGES) == fetched(address + "api/status")["transcription"]["aligned"]
