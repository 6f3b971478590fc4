"""What is drawn and said is what is saved, replayed and exported, and nothing is lost."""

from __future__ import annotations

import io
import json
import wave
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest

from .handling import DASH, LOOP, add_photo, expect, export, fetched, go, press, record, sent
from .running import draw

# The frames of sound at which a recording starts and stops.
NOTE_FRAMES = """async () => {
  const { Microphone } = await import("/page/microphone.js");
  const { frameNow } = Microphone.prototype;
  seen.frames = [];
  Microphone.prototype.frameNow = function () { seen.frames.push(frameNow.call(this)); return seen.frames.at(-1); };
}"""

# The voice goes on for ever, and says what time it is when it is told.
HAND_TURNED = """() => {
  seen.moment = 0;
  const sound = seen.sounds.at(-1);
  sound.loop = true;
  Object.defineProperty(sound, "currentTime", { get: () => seen.moment, set() {} });
}"""

# Waits until the browser's storage holds so many points of a recording, which it gets every second.
KEPT_POINTS = """async (wanted) => {
  const base = await new Promise((resolve, reject) => {
    const request = indexedDB.open("saywhere-studio");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  for (let tries = 0; ; tries += 1) {
    const request = base.transaction("pieces").objectStore("pieces").getAll();
    const pieces = await new Promise((resolve) => { request.onsuccess = () => resolve(request.result); });
    const kept = pieces.reduce((sum, piece) => sum + piece.points.length, 0);
    if ((kept >= wanted && pieces.some((piece) => piece.sound.length)) || tries === 600) { base.close(); return kept; }
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
}"""


def test_what_is_exported_is_what_was_drawn_in_order_and_time(page: Any, address: str):
    add_photo(page)
    record(page, LOOP, DASH, [(0.5, 0.9)])
    press(page, "Stop")
    page.fill("#transcript", "a red wall beside a blue one")
    page.fill("#annotator", "ada")
    press(page, "Save")
    expect(page.get_by_role("heading", name="Saved")).to_be_visible()
    expect(page.locator(".busy")).to_have_count(0)
    [written] = [json.loads(line) for line in export(page, "Localized Narratives").splitlines()]
    seen = page.evaluate("seen")
    drawn = [np.array(stroke) - [0, 0, seen["began"]] for stroke in seen["strokes"]]
    got = [np.array([[point["x"], point["y"], 1000 * point["t"]] for point in stroke]) for stroke in written["traces"]]
    assert [len(stroke) for stroke in got] == [len(stroke) for stroke in drawn]
    assert len(got) == 3
    apart = np.concatenate(got) - np.concatenate(drawn)
    assert np.abs(apart[:, :2]).max() < 1e-3
    assert np.abs(apart[:, 2]).max() < 1
    assert (written["caption"], written["annotator_id"]) == ("a red wall beside a blue one", "ada")


def test_the_sound_is_kept_as_plain_wav_as_long_as_the_recording(page: Any, address: str):
    page.evaluate(NOTE_FRAMES)
    add_photo(page)
    record(page, LOOP)
    press(page, "Stop")
    expect(page.locator(".paper > .hint")).to_contain_text("with sound")
    first, last = page.evaluate("seen.frames")
    press(page, "Save")
    expect(page.get_by_role("heading", name="Saved")).to_be_visible()
    [narrative] = fetched(address + "api/narratives")["narratives"]
    assert narrative["audio"]
    with urlopen(f"{address}api/narratives/{narrative['id']}/audio") as reply:
        data = reply.read()
    with wave.open(io.BytesIO(data)) as sound:
        kind, rate = (sound.getnchannels(), sound.getsampwidth()), sound.getframerate()
        samples = np.frombuffer(sound.readframes(sound.getnframes()), "<i2")
    assert kind == (1, 2)
    # What the device had not handed on yet when the recording stopped is not in it.
    assert 0 <= last - first - len(samples) < 0.5 * rate
    assert np.abs(samples).max() > 500


def test_sound_that_is_missing_becomes_silence_so_that_the_rest_keeps_its_time(page: Any):
    heard = page.evaluate(
        """async () => {
          const { Microphone } = await import("/page/microphone.js");
          const microphone = new Microphone(), pieces = [];
          Object.assign(microphone, { from: 10, until: 34, hear: (samples) => pieces.push(...samples) });
          for (const frame of [0, 8, 24, 32]) microphone.heard({ frame, samples: new Float32Array(8).fill(0.5) });
          return pieces;
        }"""
    )
    assert len(heard) == 34 - 10
    assert [sample != 0 for sample in heard] == [True] * 6 + [False] * 8 + [True] * 10


def test_a_saved_recording_is_replayed_after_a_reload_with_words_trace_and_sound_in_time(page: Any):
    add_photo(page)
    record(page, LOOP, sound=False)
    page.locator("#typed").press_sequentially("red wall here", delay=40)
    draw(page, DASH)
    page.keyboard.press("Escape")
    press(page, "Save")
    expect(page.locator(".word")).to_have_text(["red", "wall", "here"])
    expect(page.locator(".paper")).to_contain_text("from the key presses")
    page.reload()
    go(page, "replay")
    expect(page.locator(".word")).to_have_count(3)
    scrub = page.locator(".player input")
    words = fetched(page.url.split("#")[0] + "api/narratives")["narratives"][0]["words"]
    assert all(a["start_s"] <= b["start_s"] for a, b in pairwise(words))
    middle = (words[1]["start_s"] + words[1]["end_s"]) / 2
    scrub.evaluate("(input, t) => { input.value = t; input.dispatchEvent(new Event('input')); }", middle)
    expect(page.locator(".word.now")).to_have_text(["wall"])
    expect(page.locator(".word.later")).to_have_text(["here"])
    page.select_option(".player select", "4")
    press(page, "Play")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(page.locator(".word.later")).to_have_count(0)


def test_the_voice_is_the_clock_of_the_replay(page: Any):
    add_photo(page)
    record(page, LOOP, DASH)
    press(page, "Stop")
    press(page, "Save")
    expect(page.get_by_role("heading", name="Saved")).to_be_visible()
    go(page, "replay")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    page.evaluate(HAND_TURNED)
    press(page, "Play")
    for moment in ("0.2", "0.1"):
        page.evaluate(f"seen.moment = {moment}")
        expect(page.locator(".player input")).to_have_value(moment)
    press(page, "Pause")
    assert page.evaluate("seen.sounds.at(-1).paused")


def test_all_formats_are_downloaded(page: Any, address: str):
    add_photo(page)
    [photo] = fetched(address + "api/photos")["photos"]
    words = [{"text": "red", "start_s": 0, "end_s": 1}, {"text": "wall", "start_s": 1, "end_s": 2}]
    trace = {"points": [[0.1, 0.1, 0], [0.5, 0.5, 1], [0.7, 0.5, 2]], "starts": [0]}
    sent(address + "api/narratives", {"photo": photo["id"], "text": "red wall", "words": words, "trace": trace})
    go(page, "replay")
    signs = {
        "Localized Narratives": b"timed_caption",
        "Web Annotation": b"@context",
        "COCO": b"annotations",
        "Alt text": b"",
    }
    for name, sign in signs.items():
        data = export(page, name)
        assert b"red wall" in data
        assert sign in data


def test_a_recording_survives_the_death_of_its_page_and_a_server_that_does_not_answer(page: Any, address: str):
    add_photo(page)
    record(page, LOOP)
    points = sum(len(stroke) for stroke in page.evaluate("seen.strokes"))
    assert page.evaluate(KEPT_POINTS, points) == points
    again = page.context.new_page()
    page.close()
    again.goto(address)
    expect(again.locator(".toast")).to_contain_text("Your recording is back")
    expect(again.locator(".paper > .hint")).to_contain_text(f"1 stroke · {points} points · with sound")
    again.fill("#transcript", "kept")
    again.route("**/api/narratives", lambda route: route.abort())
    press(again, "Save")
    expect(again.locator(".problem")).to_contain_text("safe in this browser")
    again.unroute("**/api/narratives")
    again.reload()
    expect(again.locator("#transcript")).to_have_value("kept")
    press(again, "Save")
    expect(again.get_by_role("heading", name="Saved")).to_be_visible()
    [narrative] = fetched(address + "api/narratives")["narratives"]
    assert len(narrative["trace"]["points"]) == points
    again.reload()
    expect(again.get_by_role("button", name="Record", exact=True)).to_be_visible()
    expect(again.locator(".list li")).to_have_count(0)


def test_sending_again_after_the_sound_was_lost_makes_no_second_narrative(page: Any, address: str):
    add_photo(page)
    record(page, LOOP)
    press(page, "Stop")
    page.route("**/audio", lambda route: route.abort())
    press(page, "Save")
    expect(page.locator(".problem")).to_be_visible()
    page.unroute("**/audio")
    press(page, "Try again")
    expect(page.get_by_role("heading", name="Saved")).to_be_visible()
    [narrative] = fetched(address + "api/narratives")["narratives"]
    assert narrative["audio"]


def test_a_stroke_can_be_undone_and_a_discarded_recording_comes_back(page: Any):
    add_photo(page)
    record(page, LOOP, DASH, sound=False)
    press(page, "Stop")
    expect(page.locator(".paper > .hint")).to_contain_text("2 strokes")
    press(page, "Undo stroke")
    expect(page.locator(".paper > .hint")).to_contain_text("1 stroke ·")
    press(page, "Discard")
    expect(page.get_by_role("button", name="Record", exact=True)).to_be_visible()
    press(page, "Undo")
    expect(page.locator(".paper > .hint")).to_contain_text("1 stroke ·")
    page.reload()
    expect(page.locator(".paper > .hint")).to_contain_text("1 stroke ·")
    press(page, "Discard")
    expect(page.locator(".toast", has_text="discarded")).to_be_visible()
    page.reload()
    page.wait_for_selector("html[data-started]")
    expect(page.get_by_role("button", name="Record", exact=True)).to_be_visible()
    assert page.evaluate("indexedDB.databases().then(all => all.length)") == 1
    expect(page.locator(".toast")).to_have_count(0)


def test_a_recording_stops_before_it_is_too_long_to_be_saved(
    open_page: Callable[..., Any], address: str, monkeypatch: pytest.MonkeyPatch
):
    for module in ("studio.app", "language.sound"):
        monkeypatch.setattr(f"saywhere.{module}.LONGEST_S", 3.0)
    page = open_page()
    add_photo(page)
    record(page, LOOP)
    expect(page.locator(".toasts")).to_contain_text("The recording stops by itself in 2 seconds.")
    expect(page.locator(".toasts")).to_contain_text("as long as it may be")
    press(page, "Save")
    expect(page.get_by_role("heading", name="Saved")).to_be_visible()
    assert fetched(address + "api/narratives")["narratives"][0]["audio"]
