"""Why this word? And questions: by hand and by keys, with their maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .handling import add_photo, axe_violations, expect, go, press
from .running import Talker, draw

HEAT = "canvas.heat"


@pytest.fixture
def seer() -> Talker:
    talker = Talker()
    talker.skills = ("caption", "ground", "narrate", "answer")  # type: ignore[misc, assignment]
    return talker


def heat(page: Any) -> list[int]:
    """The opacity of every patch."""
    data: list[int] = page.locator(HEAT).evaluate(
        "c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]"
    )
    return data[3::4]


def described(page: Any, seer: Talker) -> None:
    seer.says = ["a tall red wall"]
    add_photo(page)
    go(page, "describe")
    page.keyboard.press("w")
    expect(page.locator(".caption")).to_contain_text("a tall red wall")


def test_a_word_shows_where_it_came_from_in_three_ways(page: Any, seer: Talker):
    described(page, seer)
    page.locator(".because").nth(2).click()
    expect(page.locator(".trust")).to_contain_text("Why “red”? This map explains the model's choice well: 1.00.")
    expect(page.locator(".reason .hint")).to_contain_text("63 % less likely")
    expect(page.locator(HEAT)).to_be_visible()
    opacity = heat(page)
    assert opacity[0] > opacity[-1]
    press(page, "Attention")
    expect(page.locator(".trust")).to_contain_text("does not say where")
    assert len(set(heat(page))) == 1
    press(page, "Occlusion")
    expect(page.locator(".trust")).to_contain_text("Measured")
    expect(page.get_by_role("button", name="Occlusion", exact=True)).to_be_focused()
    press(page, "Gradient")
    expect(page.locator(".trust")).to_contain_text("well: 1.00")
    page.locator(".because").nth(2).click()
    expect(page.locator(HEAT)).to_be_hidden()
    expect(page.locator(".reason")).to_have_count(0)


def test_words_are_asked_about_with_keys_alone(page: Any, seer: Talker):
    described(page, seer)
    for _ in range(30):
        if page.evaluate("document.activeElement.matches('.because')"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".because:focus")).to_have_text("wall")
    page.keyboard.press("Enter")
    expect(page.locator(".trust strong")).to_have_text("Why “wall”?")
    expect(page.locator(".because:focus")).to_have_text("wall")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".trust")).to_contain_text("All parts count the same")
    expect(page.locator("#says")).to_contain_text("Why wall?")


def test_each_map_is_asked_for_once_and_the_way_is_remembered(page: Any, seer: Talker):
    described(page, seer)
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.post_data_json["method"]) if one.url.endswith("/why") else None)
    page.locator(".because").nth(0).click()
    for way in ("Occlusion", "Gradient", "Occlusion"):
        press(page, way)
        expect(page.locator(".trust")).to_be_visible()
    page.locator(".because").nth(1).click()
    expect(page.locator(".trust strong")).to_have_text("Why “tall”?")
    assert asked == ["gradient", "occlusion", "occlusion"]


def test_the_heat_map_of_the_region_and_that_of_a_word_take_turns(page: Any, seer: Talker):
    described(page, seer)
    press(page, "Heat map")
    assert len(set(heat(page))) == 1
    page.locator(".because").nth(1).click()
    expect(page.locator(".trust")).to_be_visible()
    assert len(set(heat(page))) > 1
    press(page, "Heat map")
    assert len(set(heat(page))) == 1
    expect(page.locator(".reason")).to_have_count(0)


def test_a_reason_that_comes_late_does_not_take_another_mode_s_stage(page: Any, seer: Talker):
    described(page, seer)
    waiting: list[Any] = []
    page.route("**/why", lambda route: waiting.append(route))
    page.locator(".because").nth(1).click()
    expect(page.locator(".busy")).to_be_visible()
    go(page, "ask")
    with page.expect_response("**/why"):
        waiting[0].continue_()
    page.wait_for_timeout(100)
    expect(page.locator(HEAT)).to_be_hidden()
    expect(page.locator(".badge")).to_have_count(0)
    go(page, "describe")
    expect(page.locator(HEAT)).to_be_visible()


def test_a_refused_reason_can_be_asked_for_again(page: Any, seer: Talker):
    described(page, seer)
    said = {"error": {"code": "busy", "message": "too many requests wait", "hint": "try again in a second"}}
    page.route("**/why", lambda route: route.fulfill(status=429, json=said))
    page.locator(".because").nth(1).click()
    expect(page.locator(".problem")).to_contain_text("Too many requests wait.")
    page.unroute("**/why")
    press(page, "Try again")
    expect(page.locator(".trust strong")).to_have_text("Why “tall”?")


def test_questions_are_answered_one_by_one_and_what_is_pointed_at_stays(page: Any):
    add_photo(page)
    go(page, "ask")
    expect(page.locator(".talk > .hint")).to_contain_text("answers each question by itself")
    asked: list[dict[str, Any]] = []
    page.on("request", lambda one: asked.append(one.post_data_json) if "answer" in one.url else None)
    page.fill("#question", "is there a flurb?")
    page.keyboard.press("Enter")
    expect(page.locator(".answer .caption")).to_have_text("yes")
    expect(page.locator(".sureness")).to_have_text("70 % sure")
    expect(page.locator(".answer .near li")).to_have_text(["no25 %", "25 %"])
    expect(page.locator(".answer")).to_contain_text("Not known to this model: flurb")
    expect(page.locator(".answer")).to_contain_text("It learnt to answer: is there a …?")
    page.get_by_role("button", name="Box", exact=True).click()
    draw(page, [(0.1, 0.1), (0.5, 0.6)])
    expect(page.locator(".pointed")).to_contain_text("Pointed at: box, ")
    for question in ("and here?", "is it red?"):
        page.fill("#question", question)
        page.keyboard.press("Enter")
        expect(page.locator(".turn").last).to_contain_text(question)
        expect(page.locator(".turn").last.locator(".caption")).to_have_text("here")
    expect(page.locator(".turn")).to_have_count(3)
    assert asked[0] == {"question": "is there a flurb?", "region": None}
    assert asked[1]["region"]["xyxy"] == pytest.approx([0.1, 0.1, 0.5, 0.6], abs=5e-3)
    assert asked[2]["region"] == asked[1]["region"]
    press(page, "Point at nothing")
    page.fill("#question", "is there a cup?")
    page.keyboard.press("Enter")
    expect(page.locator(".turn").last.locator(".caption")).to_have_text("yes")
    expect(page.locator(".region")).to_have_count(0)


def test_an_answer_shows_why_and_goes_on_to_with_the_next_question(page: Any):
    add_photo(page)
    go(page, "ask")
    page.fill("#question", "is there a cup?")
    press(page, "Ask")
    press(page, "Why?")
    expect(page.locator(".trust")).to_contain_text("Why “yes”? This map explains the model's choice well: 1.00.")
    opacity = heat(page)
    assert opacity[0] > opacity[-1]
    press(page, "Occlusion")
    expect(page.locator(".trust")).to_contain_text("Measured")
    page.locator(".pad").focus()
    page.keyboard.press("Space")
    page.fill("#question", "what is it?")
    page.keyboard.press("Enter")
    expect(page.locator(".trust strong")).to_have_text("Why “here”?")
    page.get_by_role("button", name="Why?").click()
    expect(page.locator(HEAT)).to_be_hidden()
    go(page, "describe")
    expect(page.locator(".pointed")).to_have_count(0)
    expect(page.locator(HEAT)).to_be_hidden()


def test_a_model_that_cannot_answer_says_what_is_missing(open_page: Callable[..., Any], seer: Talker):
    seer.skills = ("caption",)  # type: ignore[misc, assignment]
    page = open_page()
    add_photo(page)
    go(page, "ask")
    expect(page.locator(".gentle")).to_contain_text("cannot answer questions about a photo")
    expect(page.locator(".gentle")).to_contain_text("saywhere studio --model NAME")
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_disabled()


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (360, "dark")])
def test_axe_finds_nothing_in_reasons_and_answers(open_page: Callable[..., Any], seer: Talker, width: int, theme: str):
    page = open_page(width, color_scheme=theme, reduced_motion="reduce")
    found: dict[str, list[str]] = {}

    def check(state: str) -> None:
        found.update({f"{state}: {rule}": places for rule, places in axe_violations(page).items()})
        assert page.evaluate("document.documentElement.scrollWidth") == width

    described(page, seer)
    page.locator(".because").nth(1).click()
    expect(page.locator(".trust")).to_be_visible()
    check("why this word")
    go(page, "ask")
    check("ask")
    page.fill("#question", "is there a cup?")
    press(page, "Ask")
    press(page, "Why?")
    expect(page.locator(".trust")).to_be_visible()
    page.locator(".pad").scroll_into_view_if_needed()
    draw(page, [(0.3, 0.3)])
    page.fill("#question", "what is it?")
    press(page, "Ask")
    expect(page.locator(".answer .caption").last).to_have_text("here")
    expect(page.locator(".trust")).to_be_visible()
    check("answered, with why")
    assert found == {}
