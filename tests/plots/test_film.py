"""Narratives of videos on a page: every frame with its own trace, the voice in it, and what is missing named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from saywhere.cli.films import film_of
from saywhere.formats.video_files import VideoFiles
from saywhere.formats.video_narratives import VideoNarrative, read
from saywhere.plots.page import page_html
from saywhere.plots.shown import Film
from tests.plots.test_page import Reader
from tests.studio.browser.handling import expect
from tests.videos import NAMES, write_video


def films(path: Path) -> list[Film]:
    files = VideoFiles(path.parent)
    videos = [one for one in read(path) if isinstance(one, VideoNarrative)]
    return [film_of(video, actor, files) for video in videos for actor in video.actors]


def test_every_frame_holds_its_own_part_of_the_trace(tmp_path: Path) -> None:
    text = page_html(films(write_video(tmp_path)))
    cat = text.partition("</article>")[0].partition('<div class="player"')[0]
    groups = {int(part[0]): part for part in cat.split('data-frame="')[1:]}
    assert sorted(groups) == [0, 1, 2]
    assert [groups[i].count('class="ghost"') for i in range(3)] == [1, 0, 1]
    assert re.findall(r'data-word="(\d)"', groups[0]) == ["0", "2"]
    assert re.findall(r'data-word="(\d)"', groups[2]) == ["1"]
    data = json.loads(Reader(text).scripts[0][1])
    assert (data["strokeFrames"], data["wordFrames"]) == ([0, 2, 0], [0, 2, 0])


def test_the_voice_and_the_frames_are_in_the_page_and_nothing_else_is_let_in(tmp_path: Path) -> None:
    page = Reader(page_html(films(write_video(tmp_path))))
    sounds = [attributes["src"] or "" for tag, attributes in page.elements if tag == "audio"]
    assert len(sounds) == 1
    assert sounds[0].startswith("data:audio/wav;base64,")
    policy = next(a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert "media-src data:" in str(policy)
    assert len([tag for tag, _ in page.elements if tag == "image"]) == 3
    controls = [a for tag, a in page.elements if tag == "button"]
    assert all(a.get("aria-label") for a in controls)


def test_missing_frames_and_voices_are_named(tmp_path: Path) -> None:
    text = page_html(films(write_video(tmp_path, frames=(1,), voice=False)))
    page = Reader(text)
    assert f"Missing key frames: {NAMES[0]}, {NAMES[2]}." in page.text
    assert "The voice is not here" in page.text
    assert f"{NAMES[0]}: no photo found" in page.text
    # What is missing has the shape of what is there.
    assert set(re.findall(r'class="canvas" width="1000" height="([\d.]+)"', text)) == {"562.5"}


def test_a_video_without_any_frame_is_shown(tmp_path: Path) -> None:
    assert "Missing key frames" in Reader(page_html(films(write_video(tmp_path, frames=(), voice=False)))).text


def test_real_videos_become_a_page(shared: Callable[[str], Path]) -> None:
    made = films(shared("data/video_narratives/OVIS_train_sample.jsonl"))
    assert len(made) == 7
    assert all(film.sound is not None and None not in film.frames for film in made)
    assert set(made[0].stroke_frames) == {5, 6, 8}


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    from tests.studio.browser.running import browser_path

    path = browser_path()
    (tmp_path / "page.html").write_text(page_html(films(write_video(tmp_path, frames=(0, 1)))), encoding="utf-8")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--headless=new"])
        page = browser.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto((tmp_path / "page.html").as_uri())
        yield page
        browser.close()
    assert wrong == []


STATE = """(film) => ({
  frame: Number(film.querySelector(".frame.shown").dataset.frame),
  missing: [...film.querySelectorAll(".missing:not([hidden])")].map((one) => one.textContent),
  now: [...film.querySelectorAll(".word.now")].map((word) => word.textContent),
  marked: Number(film.querySelector(".strip [aria-current]").dataset.frame),
})"""


def test_frames_trace_and_words_go_together_in_a_browser(page: Any) -> None:
    film = page.locator(".film").first
    scrub = film.locator(".scrub")
    for time, frame, word, missing in [("-0.05", 0, [], 0), ("0.7", 2, ["cat"], 1), ("1.3", 0, ["sleeps."], 0)]:
        scrub.fill(time)
        state = film.evaluate(STATE)
        assert (state["frame"], state["marked"], state["now"]) == (frame, frame, word)
        assert len(state["missing"]) == missing
    # A frame that is missing is named, and the trace is drawn on its canvas.
    film.locator(".strip button").nth(2).click()
    assert film.evaluate(STATE)["missing"] == [f"{NAMES[2]}: no photo found"]
    assert film.locator(".frame.shown .piece").count() > 0
    film.locator(".word").nth(0).hover()
    assert film.evaluate(STATE)["frame"] == 0
    film.locator(".play").click()
    expect(film.locator(".frame.shown")).to_have_attribute("data-frame", "2")
    heard, shown = page.evaluate(
        "[document.querySelector('audio').currentTime, Number(document.querySelector('.scrub').value)]"
    )
    assert heard > 0.5  # The voice is the clock: when the third frame came, it had been heard so long.
    assert abs(heard - shown) < 0.5
    expect(film.locator(".play")).to_have_attribute("aria-label", "Play")
    assert film.evaluate("(film) => film.querySelector('audio').paused")
