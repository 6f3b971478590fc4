"""Photos explored by finger, mouse and keys: what was spoken is recorded and compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..conftest import ExploredSeer
from .handling import add_photo, axe_violations, expect, go
from .running import place, serving
from .test_access import SMALL_TARGETS

# The browser's voice, which writes down what it is told instead; and the time one has to stay, which passes by hand.
VOICE = """
const [later, never] = [setTimeout, clearTimeout], DWELL_MS = 700, STAYING = -7;
window.stayed = null;
const stay = (act) => { stayed = act; return STAYING; };
window.setTimeout = (act, ms, ...rest) => (ms === DWELL_MS ? stay(act) : later(act, ms, ...rest));
window.clearTimeout = (id) => { if (id === STAYING) stayed = null; else never(id); };
window.spoken = [];
window.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
Object.defineProperty(window, "speechSynthesis", { value: {
  speaking: false, pending: false,
  speak(words) { spoken.push({ text: words.text, rate: words.rate, lang: words.lang }); this.speaking = true; },
  cancel() { spoken.push({ text: "(cut off)" }); this.speaking = false; },
} });
"""
COUCH, CAT, CUP, NOWHERE = (0.45, 0.8), (0.25, 0.5), (0.77, 0.5), (0.6, 0.1)
ABOUT_CAT = "A black cat. On the left. Right of it: a cup."


@pytest.fixture
def seer() -> ExploredSeer:
    return ExploredSeer()


@pytest.fixture
def address(tmp_path: Path, seer: ExploredSeer, browser: Any) -> Iterator[str]:
    with serving(tmp_path / "studio", seer) as address:
        yield address


@pytest.fixture
def explore(open_page: Callable[..., Any]) -> Callable[..., Any]:
    """A page in Explore with a photo that was looked at; spoken() gives what was said since it was last asked."""

    def start(*size: int, **how: Any) -> Any:
        page = open_page(*size, **how)
        page.context.add_init_script(VOICE)
        page.reload()
        page.wait_for_selector("html[data-started]")
        add_photo(page)
        go(page, "explore")
        expect(page.locator(".thing")).to_have_count(3)
        assert spoken(page)[0].startswith("Ready: 3 things.")
        return page

    return start


def spoken(page: Any) -> list[str]:
    return [one["text"] for one in page.evaluate("spoken.splice(0)") if one["text"] != "(cut off)"]


def rest(page: Any) -> None:
    """Stay where the finger is until more is said."""
    page.evaluate("stayed()")


def test_the_mouse_hears_coarse_things_first_and_details_when_it_stays(explore: Callable[..., Any]) -> None:
    page = explore()
    page.mouse.move(*place(page, CAT))
    rest(page)
    assert spoken(page) == ["A couch.", f"A cat. {ABOUT_CAT}"]
    page.mouse.move(*place(page, (0.26, 0.5)))
    page.mouse.move(*place(page, COUCH))
    page.mouse.move(*place(page, CAT))
    page.mouse.move(*place(page, NOWHERE))
    page.mouse.move(*place(page, CUP))
    assert spoken(page) == ["A couch.", "A cat.", "Nothing sure here.", "A cup."]
    expect(page.locator(".explored .shape")).to_have_count(2)


def test_edges_of_the_photo_are_said(explore: Callable[..., Any]) -> None:
    page = explore()
    page.mouse.move(*place(page, NOWHERE))
    page.mouse.move(*place(page, (0.6, -0.02)))
    assert spoken(page) == ["Nothing sure here.", "Top edge of the photo."]


def test_a_finger_hears_what_it_slides_over_and_cuts_off_what_was_being_said(explore: Callable[..., Any]) -> None:
    page = explore(360, 740, has_touch=True)
    touch = page.context.new_cdp_session(page)
    for kind, at in [("touchStart", CUP), ("touchMove", COUCH), ("touchMove", (1.2, 0.8))]:
        x, y = place(page, at)
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": min(x, 359), "y": y}]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    said = [one["text"] for one in page.evaluate("spoken")]
    assert said == ["(cut off)", "A cup.", "(cut off)", "A couch.", "(cut off)", "Right edge of the photo."]
    assert page.evaluate("scrollY") == 0


def test_keys_alone_reach_everything(explore: Callable[..., Any]) -> None:
    page = explore()
    page.locator("#tab-explore").focus()
    for _ in range(9):
        if page.evaluate("document.activeElement.matches('.pad')"):
            break
        page.keyboard.press("Tab")
    assert page.locator(".pad").get_attribute("role") == "application"
    assert "arrow keys" in page.locator(".pad").get_attribute("aria-label")
    keys = {
        "n": "A couch.",
        "Shift+ArrowRight": "A cup.",
        "Shift+ArrowDown": "Nothing below it.",
        "ArrowUp": "",
        "Space": "A cup.",
        "p": "A cat.",
    }
    for key, says in keys.items():
        page.keyboard.press(key)
        assert "".join(spoken(page)) == says, key
    page.keyboard.press("d")
    assert spoken(page) == [ABOUT_CAT]
    page.keyboard.press("w")
    [whole] = spoken(page)
    assert whole == page.locator(".told-all").inner_text()
    assert whole.startswith("A cat on a couch. The eye goes first to a couch")


def test_arrows_step_over_the_photo_to_its_edge(explore: Callable[..., Any]) -> None:
    page = explore()
    page.locator(".pad").focus()
    for _ in range(14):
        page.keyboard.press("ArrowRight")
    assert spoken(page) == [
        "Nothing sure here.",
        "A cup.",
        "Nothing sure here.",
        "Right edge of the photo.",
    ]
    page.keyboard.press("Shift+ArrowLeft")
    assert spoken(page) == ["A cup."]


def test_a_screen_reader_reads_the_same_without_the_voice(explore: Callable[..., Any]) -> None:
    page = explore()
    heard = page.locator("[aria-live=assertive]")
    page.keyboard.press("v")
    expect(page.get_by_role("button", name="Voice")).to_have_attribute("aria-pressed", "false")
    spoken(page)
    page.keyboard.press("n")
    expect(heard).to_have_text("A couch.")
    rest(page)
    expect(heard).to_contain_text("With it: a cat.")
    assert spoken(page) == []
    page.reload()
    go(page, "explore")
    expect(page.get_by_role("button", name="Voice")).to_have_attribute("aria-pressed", "false")


def test_the_list_tells_each_thing_in_the_order_of_looking(explore: Callable[..., Any]) -> None:
    page = explore()
    assert page.locator(".thing > span").all_inner_texts() == ["a couch", "a cat", "a cup"]
    page.get_by_label("Speed of the voice").select_option("2")
    page.locator(".thing").nth(1).click()
    said = page.evaluate("spoken.splice(0)")
    assert [one["text"] for one in said if one["text"] != "(cut off)"] == ["A cat.", ABOUT_CAT]
    assert {one.get("rate") for one in said} <= {None, 2}
    page.keyboard.press("Escape")
    assert page.evaluate("spoken.at(-1).text") == "(cut off)"


def test_nothing_is_asked_of_the_server_while_a_finger_moves(explore: Callable[..., Any]) -> None:
    page = explore()
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    for at in (COUCH, CAT, CUP, NOWHERE):
        page.mouse.move(*place(page, at))
    page.keyboard.press("w")
    assert len(spoken(page)) == 5
    assert asked == []


def test_the_description_is_saved_as_texts_and_as_a_page(explore: Callable[..., Any]) -> None:
    page = explore()
    for name, start in (("Alt text", b"Photo: kitchen.png"), ("Page", b"<!DOCTYPE html>")):
        page.locator(".explore .export summary").click()
        with page.expect_download() as download:
            page.locator(".explore .export button", has_text=name).click()
        assert Path(download.value.path()).read_bytes().startswith(start)


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (360, "dark")])
def test_axe_finds_nothing_and_fingers_find_targets(explore: Callable[..., Any], width: int, theme: str) -> None:
    small = width < 1000
    page = explore(width, 800, color_scheme=theme, reduced_motion="reduce", has_touch=small, is_mobile=small)
    page.keyboard.press("n")
    assert axe_violations(page) == {}
    assert page.evaluate("document.documentElement.scrollWidth") == width
    if small:
        assert page.evaluate(SMALL_TARGETS) == []
