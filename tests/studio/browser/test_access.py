"""Small screens, fingers, themes, and those who do not see the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .handling import LOOP, add_photo, axe_violations, expect, go, press, record
from .running import Talker, draw, place


def test_the_page_works_at_360_px_by_touch(open_page: Callable[..., Any]):
    page = open_page(360, 740, has_touch=True)
    add_photo(page)
    for mode in ("record", "describe", "find", "narrate", "replay"):
        go(page, mode)
        assert page.evaluate("document.documentElement.scrollWidth") == 360
    go(page, "describe")
    page.get_by_role("button", name="Point", exact=True).tap()
    page.touchscreen.tap(*place(page, (0.5, 0.5)))
    expect(page.locator(".caption")).to_have_count(1)
    go(page, "record")
    record(page, LOOP, sound=True)
    inside = "e => { const b = e.getBoundingClientRect(); return b.left >= 0 && b.right <= 360 && b.width > 40; }"
    assert page.locator("button.stop").evaluate(inside)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    press(page, "Stop")
    expect(page.locator("#transcript")).to_be_visible()


def test_a_chosen_theme_is_remembered(open_page: Callable[..., Any]):
    page = open_page(color_scheme="light")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    press(page, "Use dark colours")
    dark = page.evaluate(colour)
    page.reload()
    assert light != dark == page.evaluate(colour)


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (360, "dark")])
def test_axe_finds_nothing_in_any_state(open_page: Callable[..., Any], seer: Talker, width: int, theme: str):
    page = open_page(width, color_scheme=theme, reduced_motion="reduce")
    found: dict[str, list[str]] = {}

    def check(state: str) -> None:
        found.update({f"{state}: {rule}": places for rule, places in axe_violations(page).items()})

    check("empty")
    add_photo(page)
    check("ready to record")
    record(page, LOOP, sound=False)
    check("recording")
    press(page, "Stop")
    page.fill("#transcript", "a red wall")
    check("review")
    press(page, "Save")
    expect(page.get_by_role("heading", name="Saved")).to_be_visible()
    page.locator(".export summary").click()
    check("saved, with the menu")
    go(page, "describe")
    seer.unsure = True
    draw(page, LOOP)
    expect(page.locator(".caption")).to_have_count(1)
    page.locator(".why summary").click()
    press(page, "Heat map")
    check("described")
    go(page, "find")
    page.fill("#sentence", "the red wall")
    press(page, "Show me")
    expect(page.locator(".word")).to_have_count(3)
    check("found")
    go(page, "narrate")
    check("narrate")
    go(page, "replay")
    page.locator("#model summary").click()
    check("replay, with the skills")
    assert found == {}


SMALL_TARGETS = """() => {
  const targets = [...document.querySelectorAll("button, summary, select, input:not([type=file], [type=checkbox]), a")];
  return targets.map((one) => [one, one.getBoundingClientRect()])
    .filter(([one, { width }]) => width && !one.matches(".word, .because, .skip, .unseen"))
    .filter(([, { width, height }]) => width < 43.9 || height < 43.9)
    .map(([one, { width, height }]) => `${one.className || one.id || one.tagName}: ${width} x ${height}`);
}"""


def test_fingers_find_targets_of_44_px(open_page: Callable[..., Any]):
    page = open_page(360, 740, has_touch=True, is_mobile=True)
    add_photo(page)
    add_photo(page, "second.png")
    small = {"record": page.evaluate(SMALL_TARGETS)}
    press(page, "Skip …")
    small["skip"] = page.evaluate(SMALL_TARGETS)
    press(page, "Do not skip")
    record(page, LOOP)
    small["recording"] = page.evaluate(SMALL_TARGETS)
    press(page, "Stop")
    expect(page.get_by_role("button", name="Transcribe", exact=True)).to_be_visible()
    small["review"] = page.evaluate(SMALL_TARGETS)
    press(page, "Discard")
    for mode in ("describe", "ask", "find", "narrate", "replay"):
        go(page, mode)
        if mode == "describe":
            page.get_by_role("button", name="Whole", exact=True).click()
            expect(page.locator(".caption")).to_have_count(1)
        small[mode] = page.evaluate(SMALL_TARGETS)
    assert {where: found for where, found in small.items() if found} == {}
