"""What was told about a video is corrected: words, times, strokes on their frames; and every version comes back."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from PIL import Image

from saywhere.formats.video_narratives import VideoNarrative, read

from ..conftest import encoded
from .handling import DASH, axe_violations, expect, fetched, go, press, sent
from .running import draw
from .test_access import SMALL_TARGETS

NAMES = ["frame_00000000", "frame_00000400", "frame_00000800"]
WORDS = [
    {"text": "a", "start_s": 0.1, "end_s": 0.3},
    {"text": "red", "start_s": 0.3, "end_s": 0.7},
    {"text": "square", "start_s": 1.5, "end_s": 2.1},
]
POINTS = [[0.1, 0.4, 0.2], [0.2, 0.5, 0.6], [0.3, 0.5, 0.7], [0.3, 0.6, 0.9], [0.4, 0.5, 1.2], [0.5, 0.5, 1.4]]


@pytest.fixture
def told(page: Any, address: str) -> dict[str, Any]:
    return edited(page, address)


def edited(page: Any, address: str) -> dict[str, Any]:
    """What the Studio has of a video, open for editing: two strokes on the first frame, one on the second."""
    made = film(address)
    go(page, "video")
    press(page, "Edit")
    expect(page.locator(".mark-stroke")).to_have_count(3)
    return made


def film(address: str) -> dict[str, Any]:
    footage = sent(address + "api/footage", {"name": "square.webm"})
    for i, name in enumerate(NAMES):
        shot = Image.new("RGB", (128, 72), (230, 230, 220))
        shot.paste((200, 30, 30), (8 + 30 * i, 24, 32 + 30 * i, 48))
        headers = {"Content-Type": "image/png", "X-File-Name": f"{name}.png"}
        urlopen(Request(f"{address}api/footage/{footage['id']}/frames", encoded(shot), headers)).close()
    about = {"footage": footage["id"], "actor": "Square", "frames": NAMES, "stroke_frames": [0, 0, 1]}
    trace = {"points": POINTS, "starts": [0, 2, 4]}
    text = {"text": "a red square", "words": WORDS, "trace": trace, "timed_by": "keys", "annotator": "ada"}
    return dict(sent(address + "api/video-narratives", about | text))


def kept(address: str, told: dict[str, Any]) -> dict[str, Any]:
    return dict(fetched(f"{address}api/video-narratives/{told['id']}"))


def save(page: Any) -> None:
    press(page, "Save")
    expect(page.get_by_role("heading", name="Videos")).to_be_visible()


def in_sight(page: Any, frame: int) -> None:
    expect(page.locator(".strip:visible [aria-current]")).to_have_attribute("title", NAMES[frame])
    expect(page.locator(".pad img")).to_have_attribute("src", re.compile(f"/{NAMES[frame]}$"))


def test_strokes_are_drawn_moved_and_put_on_their_frames(page: Any, address: str, told: dict[str, Any], tmp_path: Path):
    page.locator(".mark-stroke").nth(2).click()
    in_sight(page, 1)
    expect(page.locator(".editing .line")).to_have_count(2)
    page.get_by_role("button", name="Frame 3 of 3").click()
    in_sight(page, 2)
    expect(page.locator(".editing .line")).to_have_count(0)  # The stroke is not on this frame.
    press(page, "Put it on this frame")
    expect(page.locator(".editing .line")).to_have_count(2)
    press(page, "Move it")
    draw(page, [(0.5, 0.5), (0.6, 0.4)])
    page.locator(".mark-stroke").first.click()
    in_sight(page, 0)
    press(page, "Delete stroke")
    expect(page.locator(".mark-stroke")).to_have_count(2)
    page.locator(".mark-word").nth(2).click()
    in_sight(page, 2)
    page.keyboard.press("PageUp")
    in_sight(page, 1)
    press(page, "Draw where it is")
    draw(page, DASH)
    in_sight(page, 1)
    save(page)
    now = kept(address, told)
    assert (now["stroke_frames"], now["frames"], now["version"]) == ([0, 2, 1], NAMES, 2)
    points, starts = now["trace"]["points"], now["trace"]["starts"]
    assert starts == [0, 2, 4]
    assert points[2][:2] == pytest.approx([0.5, 0.4], abs=0.005)
    assert (points[4][2], points[-1][2]) == (1.5, 2.1)
    assert points[-1][:2] == pytest.approx(DASH[-1], abs=0.005)
    assert now["word_frames"] == [None, None, 1]
    [video] = exported(address, told, tmp_path)
    assert video.actors[0].keyframes[:4] == (0, 0, 2, 2)
    assert set(video.actors[0].keyframes[4:]) == {1}


def exported(address: str, told: dict[str, Any], folder: Path) -> list[VideoNarrative]:
    with urlopen(f"{address}api/footage/{told['footage']}/export") as reply:
        (folder / "told.jsonl").write_bytes(reply.read())
    found = list(read(folder / "told.jsonl"))
    assert all(isinstance(one, VideoNarrative) for one in found)
    return found  # type: ignore[return-value]


def test_words_actor_and_language_are_corrected_with_history(
    page: Any, address: str, told: dict[str, Any], tmp_path: Path
):
    page.fill("#edited", "A dark red square")
    page.locator(".mark-word").nth(3).focus()
    page.keyboard.press("Shift+ArrowRight")
    page.get_by_label("Language spoken").select_option("English")
    page.fill("#edited-actor", " ")
    press(page, "Save")
    expect(page.locator(".problem")).to_contain_text("Say whom it is about")
    page.fill("#edited-actor", "Red square")
    save(page)
    now = kept(address, told)
    assert [word["text"] for word in now["words"]] == ["A", "dark", "red", "square"]
    assert (now["words"][3]["start_s"], now["timed_by"], now["language"]) == (1.55, "hand", "en")
    assert (now["actor"], now["trace"], now["stroke_frames"]) == ("Red square", told["trace"], [0, 0, 1])
    [video] = exported(address, told, tmp_path)
    assert video.actors[0].narrative.caption == "A dark red square"
    page.locator(".versions summary").click()
    press(page, "See version 1")
    expect(page.locator(".said:visible")).to_contain_text("a red square")
    press(page, "Show the newest")
    expect(page.locator(".said:visible")).to_contain_text("A dark red square")
    page.locator(".versions summary").click()
    press(page, "Restore version 1")
    expect(page.locator(".said:visible")).to_contain_text("a red square")
    after = kept(address, told)
    assert after == told | {"version": 3, "changed": after["changed"]}


def test_undo_and_redo_are_each_others_inverse_and_changes_survive_a_crash(
    page: Any, address: str, told: dict[str, Any]
):
    page.locator(".mark-stroke").nth(2).click()
    page.get_by_role("button", name="Frame 1 of 3").click()
    press(page, "Put it on this frame")
    page.fill("#edited-actor", "Block")
    page.locator(".mark-stroke").first.click()
    press(page, "Delete stroke")
    for _ in range(3):
        press(page, "Undo")
    expect(page.locator(".mark-stroke")).to_have_count(3)
    expect(page.locator("#edited-actor")).to_have_value("Square")
    expect(page.get_by_role("button", name="Undo", exact=True)).to_be_disabled()
    for _ in range(3):
        press(page, "Redo")
    expect(page.locator("#edited-actor")).to_have_value("Block")
    expect(page.get_by_role("button", name="Redo", exact=True)).to_be_disabled()
    page.wait_for_timeout(200)
    page.reload()
    page.wait_for_selector("html[data-started]")
    press(page, "Edit")
    expect(page.locator("#edited-actor")).to_have_value("Block")
    expect(page.locator(".mark-stroke")).to_have_count(2)
    page.keyboard.press("Control+s")
    expect(page.get_by_role("heading", name="Videos")).to_be_visible()
    now = kept(address, told)
    assert (now["actor"], now["stroke_frames"], now["version"]) == ("Block", [0, 0], 2)


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (360, "dark")])
def test_axe_finds_nothing_where_videos_are_edited(open_page: Callable[..., Any], address: str, width: int, theme: str):
    page = open_page(width, color_scheme=theme, reduced_motion="reduce")
    edited(page, address)
    found = {"words": axe_violations(page)}
    page.locator(".mark-stroke").nth(2).click()
    page.get_by_role("button", name="Frame 1 of 3").click()
    found["a stroke of another frame"] = axe_violations(page)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.fill("#edited", "a tall square")
    save(page)
    page.locator("details.versions summary").click()
    found["versions"] = axe_violations(page)
    assert {state: broken for state, broken in found.items() if broken} == {}
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_fingers_edit_a_video(open_page: Callable[..., Any], address: str):
    page = open_page(360, 740, has_touch=True, is_mobile=True)
    edited(page, address)
    page.locator(".mark-stroke").nth(2).tap()
    page.get_by_role("button", name="Frame 1 of 3").tap()
    # In time, a mark is as long as what it stands for.
    low = page.evaluate(
        "[...document.querySelectorAll('.mark-word, .mark-stroke')].filter((one) => one.offsetHeight < 44).length"
    )
    small = [one for one in page.evaluate(SMALL_TARGETS) if not one.startswith("mark-")]
    assert (low, small) == (0, [])
    page.get_by_role("button", name="Draw it anew").tap()
    box = page.locator(".pad").bounding_box()  # What is drawn on has come into sight.
    assert 0 <= box["y"] < box["y"] + box["height"] <= 740
