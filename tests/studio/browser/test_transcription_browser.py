"""The voice is written down after a recording, to be corrected."""

from __future__ import annotations

import json
import threading
from typing import Any
from urllib.request import Request, urlopen

import pytest

from saywhere.language.sound import read_wav

from ..conftest import FakeRecogniser, wav
from .handling import LOOP, add_photo, expect, fetched, press, record


def test_a_recording_is_written_down_corrected_and_saved(page: Any, address: str, recogniser: FakeRecogniser):
    add_photo(page)
    record(page, LOOP)
    press(page, "Stop")
    press(page, "Transcribe")
    expect(page.locator("#transcript")).to_have_value("a red wall")
    expect(page.locator("#transcript")).to_be_focused()
    expect(page.locator(".transcribe")).to_contain_text("Heard English. Correct what was misheard.")
    page.fill("#transcript", "a tall red wall")
    press(page, "Transcribe")
    expect(page.locator("#transcript")).to_have_value("a red wall")
    press(page, "Undo")
    expect(page.locator("#transcript")).to_have_value("a tall red wall")
    press(page, "Save")
    expect(page.get_by_role("heading", name="Saved")).to_be_visible()
    [narrative] = fetched(address + "api/narratives")["narratives"]
    assert narrative["text"] == "a tall red wall"
    [(seconds, language), _] = recogniser.asked
    assert seconds > 0.1
    assert language is None


def test_a_transcription_shows_how_far_it_is_and_can_be_stopped(page: Any, recogniser: FakeRecogniser):
    recogniser.hold.clear()
    add_photo(page)
    record(page, LOOP)
    press(page, "Stop")
    press(page, "Transcribe")
    expect(page.locator(".transcribe progress")).to_have_js_property("value", 3)
    press(page, "Cancel transcription")
    expect(page.get_by_role("button", name="Transcribe", exact=True)).to_be_visible()
    assert recogniser.stopped.wait(10)
    expect(page.locator("#transcript")).to_have_value("")


def test_what_a_language_gets_is_said_and_the_choice_is_remembered(page: Any, recogniser: FakeRecogniser):
    add_photo(page)
    record(page, LOOP)
    press(page, "Stop")
    expect(page.locator(".language")).to_contain_text("as if it spoke English")
    page.get_by_label("Language spoken").select_option("German")
    expect(page.locator(".language")).to_contain_text(
        "Words in German get no times from the voice: only English is aligned"
    )
    page.get_by_label("Always, after each recording").check()
    press(page, "Discard")
    recogniser.text = "ein Haus"
    record(page, LOOP)
    press(page, "Stop")
    expect(page.locator("#transcript")).to_have_value("ein Haus")
    expect(page.locator(".transcribe")).to_contain_text("Heard German.")
    assert recogniser.asked[-1][1] == "de"


def test_a_silent_recording_is_told_calmly(page: Any, recogniser: FakeRecogniser):
    recogniser.text = ""
    add_photo(page)
    record(page, LOOP)
    press(page, "Stop")
    press(page, "Transcribe")
    expect(page.locator(".transcribe .problem")).to_contain_text("silent")
    expect(page.get_by_role("button", name="Transcribe", exact=True)).to_be_enabled()


def test_a_transcription_that_waits_says_so(page: Any, address: str, recogniser: FakeRecogniser):
    recogniser.hold.clear()
    with urlopen(Request(f"{address}api/transcriptions", wav(), {"Content-Type": "audio/wav"})) as reply:
        assert json.load(reply)["job"]
    add_photo(page)
    record(page, LOOP)
    press(page, "Stop")
    press(page, "Transcribe")
    expect(page.locator(".transcribe .busy")).to_have_text("Waiting for another transcription …")
    recogniser.hold.set()
    expect(page.locator("#transcript")).to_have_value("a red wall")


def test_a_transcription_that_is_stopped_before_it_began_does_not_go_on(
    page: Any, recogniser: FakeRecogniser, monkeypatch: pytest.MonkeyPatch
):
    sent = threading.Event()

    def slowly(data: bytes) -> Any:
        sent.wait(10)
        return read_wav(data)

    monkeypatch.setattr("saywhere.studio.routes_transcription.read_wav", slowly)
    recogniser.hold.clear()
    add_photo(page)
    record(page, LOOP)
    press(page, "Stop")
    press(page, "Transcribe")
    expect(page.locator(".transcribe .busy")).to_have_text("Sending the recording …")
    press(page, "Cancel transcription")
    expect(page.get_by_role("button", name="Transcribe", exact=True)).to_be_visible()
    sent.set()
    assert recogniser.stopped.wait(10)
