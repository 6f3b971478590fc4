"""Videos in the Studio: frames, trace, words and voice together; missing frames are named and it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.videos import NAMES, write_video

from .handling import add_photo, axe_violations, expect, go, press
from .running import Talker, serving


@pytest.fixture
def address(tmp_path: Path, seer: Talker, browser: Any) -> Iterator[str]:
    with serving(tmp_path / "studio", seer, videos=write_video(tmp_path / "videos", frames=(0, 1))) as address:
        yield address


def opened(page: Any) -> None:
    go(page, "video")
    expect(page.locator(".said:visible .word")).to_have_text(["A", "cat", "sleeps."])


def state(page: Any) -> tuple[str, list[str], int]:
    """The frame in sight, the words being said, and how many pieces of the trace are drawn."""
    words = page.locator(".word.now").all_text_contents()
    drawn = page.locator(".replay .piece:not(.elsewhere, .later)").count()
    return page.locator(".strip [aria-current]").get_attribute("title"), words, drawn


def test_frames_trace_and_words_go_together(page: Any) -> None:
    opened(page)
    scrub = page.get_by_role("slider", name="Time")
    scrub.fill("-0.05")
    assert state(page) == (NAMES[0], [], 1)
    scrub.fill("0.7")
    frame, words, drawn = state(page)
    assert (frame, words) == (NAMES[2], ["cat"])
    assert drawn >= 1
    scrub.fill("1.3")
    assert state(page)[:2] == (NAMES[0], ["sleeps."])
    expect(page.locator(".pad img")).to_have_attribute("src", "/api/videos/0/frames/0")
    assert scrub.get_attribute("aria-valuetext") == "1.3 s, sleeps."


def test_missing_frames_are_named_and_the_replay_goes_on(page: Any) -> None:
    opened(page)
    expect(page.locator(".result:visible")).to_contain_text(f"Missing key frames: {NAMES[2]}.")
    page.get_by_role("slider", name="Time").fill("0.7")
    expect(page.locator(".lack")).to_have_text(f"{NAMES[2]} is missing: it has no file")
    expect(page.locator(".pad img")).to_be_hidden()
    assert page.locator(".replay .piece:not(.elsewhere)").count() >= 1
    page.get_by_role("slider", name="Time").fill("1.3")
    expect(page.locator(".lack")).to_have_text("")
    expect(page.locator(".pad img")).to_be_visible()


def test_the_voice_is_the_clock(page: Any) -> None:
    opened(page)
    press(page, "Play")
    expect(page.locator(f".strip button[title={NAMES[2]}]")).to_have_attribute("aria-current", "true")
    heard = page.evaluate("seen.sounds.at(-1).currentTime")
    shown = float(page.get_by_role("slider", name="Time").input_value())
    assert heard > 0.5
    assert abs(heard - shown) < 0.5
    expect(page.get_by_role("button", name="Play")).to_be_visible()  # It has come to its end.
    assert page.evaluate("seen.sounds.at(-1).paused")


def test_a_frame_and_a_word_bring_each_other_into_sight(page: Any) -> None:
    opened(page)
    page.locator(".strip button").nth(1).click()
    expect(page.locator(".strip [aria-current]")).to_have_attribute("title", NAMES[1])
    page.locator(".word").nth(1).hover()
    expect(page.locator(".strip [aria-current]")).to_have_attribute("title", NAMES[2])
    expect(page.locator(".wordbox.lit:not(.elsewhere)")).to_have_count(1)
    page.locator(".word").nth(0).focus()
    expect(page.locator(".strip [aria-current]")).to_have_attribute("title", NAMES[0])
    page.keyboard.press("ArrowRight")
    expect(page.locator(".word:focus")).to_have_text("cat")
    expect(page.locator(".strip [aria-current]")).to_have_attribute("title", NAMES[2])


def test_another_narrative_can_be_chosen_and_the_photo_comes_back(page: Any) -> None:
    add_photo(page)
    opened(page)
    page.get_by_role("button", name="background").click()
    expect(page.locator(".said:visible")).to_have_text("A room.")
    expect(page.locator(".result:visible")).to_contain_text("The words have no times.")
    expect(page.locator(".result:visible")).to_contain_text("The voice is not here")
    expect(page.locator(".pad img")).to_have_attribute("src", "/api/videos/0/frames/1")
    go(page, "describe")
    expect(page.locator(".pad img")).to_have_attribute("alt", "kitchen.png")
    go(page, "video")
    expect(page.locator(".pad img")).to_have_attribute("src", "/api/videos/0/frames/1")


def test_tabs_go_round_with_and_without_videos(page: Any) -> None:
    page.locator("#tab-record").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#tab-video")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-record")).to_be_focused()


@pytest.mark.parametrize(("width", "theme"), [(1440, "dark"), (360, "light")])
def test_axe_finds_nothing_in_a_video(open_page: Callable[..., Any], width: int, theme: str) -> None:
    page = open_page(width, color_scheme=theme, reduced_motion="reduce")
    opened(page)
    page.get_by_role("slider", name="Time").fill("0.7")
    assert axe_violations(page) == {}
    assert page.evaluate("document.documentElement.scrollWidth") == width
