"""Describe, Find and Narrate, by hand and by keys; refusals; the shelf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .handling import LOOP, add_photo, expect, fetched, go, press, record
from .running import Talker, draw


def test_every_tool_gives_its_region_a_card_and_undo_takes_it_away(page: Any, seer: Talker):
    add_photo(page)
    go(page, "describe")
    regions: list[dict[str, Any]] = []
    page.on("request", lambda one: regions.extend(one.post_data_json["regions"] if "/captions" in one.url else []))
    for key, line in [("t", LOOP), ("b", [(0.2, 0.3), (0.6, 0.7)]), ("p", [(0.75, 0.25)]), ("l", LOOP)]:
        page.keyboard.press(key)
        draw(page, line)
    page.keyboard.press("w")
    expect(page.locator(".caption")).to_have_count(5)
    assert [region["kind"] for region in regions] == ["trace", "box", "point", "polygon", "whole"]
    assert regions[1]["xyxy"] == pytest.approx([0.2, 0.3, 0.6, 0.7], abs=2e-3)
    assert (regions[2]["x"], regions[2]["y"]) == pytest.approx((0.75, 0.25), abs=2e-3)
    page.keyboard.press("Control+z")
    expect(page.locator(".card")).to_have_count(4)
    page.keyboard.press("Control+Shift+Z")
    expect(page.locator(".card")).to_have_count(5)
    press(page, "Remove region 2")
    expect(page.locator(".card")).to_have_count(4)
    press(page, "Undo")
    expect(page.locator(".card")).to_have_count(5)


def test_a_caption_shows_whether_it_is_sure_where_it_comes_from_and_what_counted(page: Any, seer: Talker):
    seer.unsure, seer.says = True, ["a tall red wall"]
    add_photo(page)
    go(page, "describe")
    page.keyboard.press("b")
    draw(page, [(0.05, 0.05), (0.45, 0.45)])
    expect(page.locator(".caption")).to_contain_text("a tall red wall")
    expect(page.locator(".unsure")).to_be_visible()
    page.locator(".why summary").click()
    expect(page.locator(".near")).to_contain_text("a tall red wall")
    press(page, "Heat map")
    expect(page.locator("canvas.heat")).to_be_visible()
    image = page.locator("canvas.heat").evaluate(
        "c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]"
    )
    assert image[3] > image[-1]  # Less is seen through the first patch than through the last.
    page.keyboard.press("Escape")
    expect(page.locator("canvas.heat")).to_be_hidden()


def test_describe_works_with_keys_alone(page: Any):
    add_photo(page)
    regions: list[dict[str, Any]] = []
    page.on("request", lambda one: regions.extend(one.post_data_json["regions"] if "/captions" in one.url else []))

    def tab_to(selector: str) -> None:
        for _ in range(30):
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"Tab never reaches {selector}")

    tab_to("#tab-record")
    page.keyboard.press("ArrowRight")
    tab_to(".pad")
    page.keyboard.press("b")
    for keys in (["Shift+ArrowLeft"] * 4, ["Space"], ["Shift+ArrowDown"] * 3, ["ArrowRight"] * 5, ["Space"]):
        for key in keys:
            page.keyboard.press(key)
    expect(page.locator(".caption")).to_have_count(1)
    assert regions[0]["xyxy"] == pytest.approx([0.3, 0.5, 0.35, 0.65])
    assert "1: " in page.locator("#says").inner_text()
    page.keyboard.press("p")
    page.keyboard.press("Enter")
    expect(page.locator(".caption")).to_have_count(2)
    assert regions[1] == {"kind": "point", "x": 0.35, "y": 0.65}
    page.keyboard.press("Space")
    page.keyboard.press("Control+z")
    expect(page.locator(".card.chosen")).to_have_count(1)  # Chosen again, as it was before the second.
    tab_to(".number")
    page.keyboard.press("Enter")
    expect(page.locator(".card.chosen")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.locator(".card.chosen")).to_have_count(1)


def test_a_recording_can_be_drawn_with_keys_alone(page: Any):
    add_photo(page)
    record(page, sound=False)
    page.locator(".pad").focus()
    for key in ("Space", "ArrowRight", "ArrowDown", "Space", "ArrowLeft", "Space", "ArrowUp", "Space", "Escape"):
        page.keyboard.press(key)
    expect(page.locator(".paper > .hint")).to_contain_text("2 strokes · 7 points")


def test_every_word_that_is_found_lights_up_its_box(page: Any):
    add_photo(page)
    go(page, "find")
    page.fill("#sentence", "the red wall")
    page.keyboard.press("Enter")
    expect(page.locator(".word")).to_have_text(["the", "red", "wall"])
    expect(page.locator(".word.nowhere")).to_have_text(["the"])
    page.locator(".word").nth(1).hover()
    expect(page.locator(".wordbox.lit")).to_have_count(1)
    page.locator(".word").nth(0).focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".word:focus")).to_have_text("red")
    expect(page.locator(".wordbox.lit")).to_have_count(1)
    assert page.locator(".piece").count() > 3


def test_what_the_model_narrates_can_be_kept_and_replayed(page: Any):
    add_photo(page)
    go(page, "narrate")
    page.locator("#most").fill("2")
    press(page, "Narrate")
    expect(page.locator(".said:visible")).to_contain_text("A thing. Another. Another.")
    press(page, "Keep")
    go(page, "replay")
    expect(page.locator(".narratives li")).to_contain_text("written by a model")


def test_a_model_that_lacks_a_skill_says_so_and_how_to_get_it(page: Any, open_page: Callable[..., Any], seer: Talker):
    seer.skills = ("caption",)  # type: ignore[misc]
    page = open_page()
    add_photo(page)
    go(page, "narrate")
    expect(page.locator(".gentle")).to_contain_text("cannot tell a photo")
    expect(page.get_by_role("button", name="Narrate", exact=True)).to_be_disabled()
    page.locator("#model summary").click()
    expect(page.locator(".skills .has")).to_have_count(1)


def test_a_refusal_is_shown_with_its_reason_and_can_be_tried_again(page: Any):
    add_photo(page)
    said = {"error": {"code": "busy", "message": "too many requests wait", "hint": "try again in a second"}}
    page.route("**/ground", lambda route: route.fulfill(status=429, json=said))
    go(page, "find")
    page.fill("#sentence", "a wall")
    press(page, "Show me")
    expect(page.locator(".problem")).to_contain_text("Too many requests wait.")
    expect(page.locator(".problem")).to_contain_text("Try again in a second.")
    page.unroute("**/ground")
    press(page, "Try again")
    expect(page.locator(".word")).to_have_count(2)


def test_a_deleted_photo_comes_back_by_undo_and_goes_for_good_when_the_page_is_left(page: Any, address: str):
    add_photo(page)
    add_photo(page, "second.png")
    page.locator(".shelf li").nth(1).hover()
    press(page, "Delete second.png")
    expect(page.locator(".thumb")).to_have_count(1)
    press(page, "Undo")
    expect(page.locator(".thumb")).to_have_count(2)
    press(page, "Delete second.png")
    expect(page.locator(".thumb")).to_have_count(1)
    page.reload()
    expect(page.locator(".thumb")).to_have_count(1)
    assert [photo["name"] for photo in fetched(address + "api/photos")["photos"]] == ["kitchen.png"]


def test_a_file_that_is_no_photo_is_refused_calmly(page: Any):
    page.set_input_files("input[type=file]", [{"name": "x.png", "mimeType": "image/png", "buffer": b"no photo"}])
    expect(page.locator(".toast.problem")).to_contain_text("x.png")
    expect(page.locator(".thumb")).to_have_count(0)
    expect(page.get_by_role("button", name="Choose photos")).to_be_visible()


def test_the_address_leads_to_a_mode_and_to_a_photo(page: Any, address: str):
    add_photo(page)
    add_photo(page, "second.png")
    first, second = fetched(address + "api/photos")["photos"]
    page.goto(f"{address}#find/{first['id']}")
    expect(page.locator("#tab-find")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".pad img")).to_have_attribute("alt", "kitchen.png")
    page.evaluate(f"location.hash = 'describe/{second['id']}'")
    expect(page.locator("#tab-describe")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".pad img")).to_have_attribute("alt", "second.png")
    page.evaluate("location.hash = 'narrate'")
    expect(page.locator("#tab-narrate")).to_have_attribute("aria-selected", "true")
    page.evaluate("location.hash = 'nowhere'")
    page.wait_for_function(f"location.hash === '#narrate/{second['id']}'")
    page.goto("about:blank")
    page.goto(f"{address}#replay")
    expect(page.locator("#tab-replay")).to_have_attribute("aria-selected", "true")


def test_another_level_renews_the_captions_that_are_there(open_page: Callable[..., Any], seer: Talker):
    seer.skills, seer.levels = ("caption", "scene"), ("object", "scene")  # type: ignore[misc, assignment]
    page = open_page()
    add_photo(page)
    go(page, "describe")
    asked: list[tuple[int, str]] = []
    page.on("request", lambda one: asked.append(counted(one.post_data_json)) if "/captions" in one.url else None)
    seer.says = ["a wall", "a floor", "in a kitchen", "in a hall"]
    draw(page, LOOP)
    expect(page.locator(".caption")).to_have_text(["a wall"])
    draw(page, [(0.7, 0.2), (0.9, 0.3)])
    expect(page.locator(".caption")).to_have_text(["a floor", "a wall"])
    page.get_by_role("button", name="scene", exact=True).click()
    expect(page.locator(".caption")).to_have_text(["in a hall", "in a kitchen"])
    assert asked == [(1, "object"), (1, "object"), (2, "scene")]


def counted(sent: dict[str, Any]) -> tuple[int, str]:
    return len(sent["regions"]), sent["level"]
