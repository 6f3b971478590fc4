"""A collection as an annotator meets it: words, how sure, keys alone, corrections, reloads, two browsers at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from saywhere.studio.app import create_collect_app
from saywhere.studio.collect import asked_levels
from saywhere.studio.settings import StudioSettings

from ..collecting import make_collection
from ..conftest import ScenicSeer
from ..logs import log_lines
from .handling import add_photo, axe_violations, expect, go, press
from .payloads import PAYLOADS
from .running import WATCH, serving
from .test_attacks import nothing_ran


@contextmanager
def collecting(folder: Path) -> Iterator[str]:
    """A collection on a free port. Gives its address."""
    app = create_collect_app(StudioSettings(folder, port=0, collection=folder))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", ws="none", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(10)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_collection(tmp_path / "collection")


@pytest.fixture
def collect_address(folder: Path, browser: Any) -> Iterator[str]:
    with collecting(folder) as address:
        yield address


@pytest.fixture
def take_part(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens the page: take_part(address, width=…, …). What goes wrong in it is an error of the test."""
    opened: list[Any] = []
    wrong: list[str] = []

    def start(address: str, width: int = 1280, height: int = 800, **how: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, **how)
        context.set_default_timeout(15_000)
        context.add_init_script(WATCH.split("const note")[0])
        opened.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(address)
        page.wait_for_selector("html[data-started]")
        return page

    yield start
    for context in opened:
        context.close()
    assert wrong == []


def begin(page: Any, code: str = "a1") -> None:
    page.fill("#code", code)
    page.keyboard.press("Enter")
    ready(page, 0)


def ready(page: Any, done: int) -> None:
    """The next photo is there, and an answer is taken."""
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", str(done))
    page.wait_for_selector(".ask[data-open=true]")


def shown(page: Any) -> str:
    return str(page.locator(".frame img").get_attribute("src"))


def kept(folder: Path) -> list[tuple[str, str, int]]:
    return [(line["annotator"], line["text"], line["confidence"]) for line in log_lines(folder, "answers")]


def test_a_collection_is_answered_by_keys_alone_and_a_reload_loses_nothing(
    collect_address: str, folder: Path, take_part: Callable[..., Any]
):
    page = take_part(collect_address)
    expect(page.get_by_role("heading", name="Describe these pictures")).to_be_visible()
    expect(page.locator("#code")).to_be_focused()
    begin(page)
    expect(page.get_by_role("textbox", name="Where is the picture taken?")).to_be_focused()
    seen = []
    for done, key in enumerate("1354"):
        ready(page, done)
        seen.append(shown(page))
        page.keyboard.type(f"place number {done}")
        page.keyboard.press("Enter")
        page.keyboard.press(key)
        expect(page.get_by_role("radio", name=key)).to_be_checked()
        if done == 2:
            page.reload()
            ready(page, 2)
            assert shown(page) == seen[2]
            expect(page.locator("#said")).to_have_value("place number 2")
            expect(page.get_by_role("radio", name=key)).to_be_checked()
            expect(page.locator("#said")).to_be_focused()
        page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    assert len(set(seen)) == 4
    assert kept(folder) == [("A1", f"place number {i}", int(key)) for i, key in enumerate("1354")]


def test_the_last_answer_can_be_corrected_by_key_and_after_the_end_too(
    collect_address: str, folder: Path, take_part: Callable[..., Any]
):
    page = take_part(collect_address)
    begin(page)
    expect(page.get_by_role("button", name="Correct last answer")).to_be_hidden()
    first = shown(page)
    answer(page, "in a bar", 2)
    ready(page, 1)
    second = shown(page)
    page.keyboard.press("ArrowUp")  # The field is empty.
    expect(page.locator("#said")).to_have_value("in a bar")
    expect(page.get_by_role("radio", name="2")).to_be_checked()
    assert shown(page) == first
    page.wait_for_selector(".ask[data-open=true]")
    page.keyboard.press("Escape")
    expect(page.locator("#said")).to_have_value("")
    assert shown(page) == second
    ready(page, 1)
    page.fill("#said", "half a")  # What is typed waits while the last answer is corrected.
    press(page, "Correct last answer")
    page.wait_for_selector(".ask[data-open=true]")
    answer(page, "in a pub", 3)
    ready(page, 1)
    expect(page.locator("#said")).to_have_value("half a")
    assert kept(folder) == [("A1", "in a bar", 2), ("A1", "in a pub", 3)]
    for done in (1, 2, 3):
        ready(page, done)
        answer(page, "in a park", 5)
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    page.keyboard.press("Backspace")
    expect(page.locator("#said")).to_have_value("in a park")
    page.wait_for_selector(".ask[data-open=true]")
    answer(page, "in a garden", 1)
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    assert kept(folder)[-1] == ("A1", "in a garden", 1)
    press(page, "Next annotator")
    expect(page.locator("#code")).to_have_value("")


def answer(page: Any, text: str, sure: int) -> None:
    page.fill("#said", text)
    page.get_by_role("radio", name=str(sure)).check(force=True)
    page.keyboard.press("Enter")


def test_what_is_missing_is_asked_for_and_what_is_refused_can_be_mended(
    collect_address: str, folder: Path, take_part: Callable[..., Any]
):
    page = take_part(collect_address)
    begin(page)
    page.keyboard.type("   ")
    page.keyboard.press("Enter")
    expect(page.locator(".problem")).to_contain_text("Write a few words first")
    expect(page.locator("#said")).to_be_focused()
    page.fill("#said", "?!")
    page.keyboard.press("Enter")
    expect(page.get_by_role("radio", name="1")).to_be_focused()
    assert kept(folder) == []
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    expect(page.locator(".problem")).to_contain_text("no letter")
    expect(page.locator("#said")).to_have_value("?!")
    page.keyboard.press("End")
    page.keyboard.type(" a bar")
    page.keyboard.press("Enter")
    ready(page, 1)
    assert kept(folder) == [("A1", "?! a bar", 3)]
    page.fill("#said", "x" * 400)  # No more can be typed than is taken.
    assert len(page.locator("#said").input_value()) == 300


def test_a_held_or_doubled_enter_answers_one_photo(collect_address: str, folder: Path, take_part: Callable[..., Any]):
    page = take_part(collect_address)
    begin(page)
    page.keyboard.type("in a bar")
    page.keyboard.press("Enter")
    page.keyboard.press("4")
    for _ in range(4):
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    page.keyboard.press("Enter")
    ready(page, 1)
    assert len(kept(folder)) == 1


def test_an_answer_that_does_not_arrive_is_sent_again_and_kept_once(
    collect_address: str, folder: Path, take_part: Callable[..., Any]
):
    page = take_part(collect_address)
    loses = {"replies": False}

    def carry(route: Any) -> None:
        if loses["replies"]:
            route.fetch()
            route.abort()
        else:
            route.continue_()

    page.route("**/answers", carry)
    begin(page)
    loses["replies"] = True
    answer(page, "in a bar", 4)
    expect(page.locator(".problem")).to_contain_text("does not answer")
    loses["replies"] = False
    press(page, "Try again")
    ready(page, 1)
    assert kept(folder) == [("A1", "in a bar", 4)]


def test_two_browsers_do_not_get_the_last_place_together(tmp_path: Path, browser: Any, take_part: Callable[..., Any]):
    folder = make_collection(tmp_path / "one", 1, annotators=1)
    with collecting(folder) as address:
        page, other = take_part(address), take_part(address)
        begin(page, "a")
        other.fill("#code", "b")
        other.keyboard.press("Enter")
        expect(other.get_by_role("heading", name="Nothing left for now")).to_be_visible()
        answer(page, "in a bar", 4)
        expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
        press(other, "Look again")
        expect(other.get_by_role("heading", name="Thank you")).to_be_visible()
    assert kept(folder) == [("A", "in a bar", 4)]


def test_a_photo_that_is_broken_can_be_passed_over(collect_address: str, folder: Path, take_part: Callable[..., Any]):
    for path in (folder / "photos").glob("*.png"):
        path.write_bytes(b"\x89PNG\r\n\x1a\n broken")
    page = take_part(collect_address)
    page.fill("#code", "a1")
    page.keyboard.press("Enter")
    for _ in range(4):
        expect(page.locator(".problem")).to_contain_text("The photo does not come")
        before = shown(page)
        press(page, "Go on without it")
        page.wait_for_selector(f"main:not(:has(img[src='{before}']))")
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    assert kept(folder) == []


def test_without_a_collection_the_page_says_how_to_open_one(address: str, take_part: Callable[..., Any]):
    page = take_part(address + "collect")
    expect(page.get_by_role("heading", name="No collection is open here")).to_be_visible()
    expect(page.locator("pre")).to_have_text("saywhere collect serve DIR --photos PHOTOS")


def test_the_page_works_at_360_px_by_touch_and_is_never_wider(
    collect_address: str, folder: Path, take_part: Callable[..., Any]
):
    page = take_part(collect_address, 360, 740, has_touch=True, is_mobile=True)
    begin(page)
    expect(page.locator("#said")).not_to_be_focused()  # The keyboard would cover the photo.
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.get_by_role("button", name="Next").bounding_box()["y"] < 740 - 40
    page.locator("#said").tap()
    page.keyboard.type("in a bar")
    page.locator(".step").nth(4).tap()
    page.get_by_role("button", name="Next").tap()
    ready(page, 1)
    assert kept(folder) == [("A1", "in a bar", 5)]


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (360, "dark")])
def test_axe_finds_nothing_in_any_state_of_a_collection(
    collect_address: str, take_part: Callable[..., Any], width: int, theme: str
):
    page = take_part(collect_address, width, color_scheme=theme, reduced_motion="reduce")
    found: dict[str, list[str]] = {}

    def check(state: str) -> None:
        found.update({f"{state}: {rule}": places for rule, places in axe_violations(page).items()})

    check("welcome")
    begin(page)
    check("first photo")
    page.keyboard.press("Enter")
    expect(page.locator(".problem")).to_be_visible()
    check("words wanted")
    answer(page, "in a bar", 4)
    ready(page, 1)
    page.keyboard.press("ArrowUp")
    expect(page.locator("#said")).to_have_value("in a bar")
    page.wait_for_selector(".ask[data-open=true]")
    check("correcting")
    page.keyboard.press("Escape")
    for done in (1, 2, 3):
        ready(page, done)
        answer(page, "in a bar", 4)
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    check("thanks")
    assert found == {}


def test_no_text_of_a_collection_ever_runs(tmp_path: Path, take_part: Callable[..., Any], browser: Any):
    texts = [payload.replace("\u0000", "") for payload in PAYLOADS]
    question = next(text for text in texts if "<img" in text)
    levels = asked_levels([], [f"scene={question}", f"mood={texts[-1][:200]} ?"])
    folder = make_collection(tmp_path / "bad", 1, levels=levels, title=question[:200])
    with collecting(folder) as address:
        page = take_part(address)
        begin(page)
        answer(page, f"{question} a"[:300], 1)
        ready(page, 1)
        page.keyboard.press("ArrowUp")
        expect(page.locator("#said")).to_have_value(" ".join(f"{question} a"[:300].split()))
        nothing_ran(page)


def test_captions_of_regions_are_asked_for_at_the_level_chosen(
    tmp_path: Path, browser: Any, take_part: Callable[..., Any]
):
    with serving(tmp_path / "studio", ScenicSeer()) as address:
        page = take_part(address)
        add_photo(page)
        go(page, "describe")
        levels = page.get_by_role("group", name="Level of captions").get_by_role("button")
        assert [text.lower() for text in levels.all_inner_texts()] == ["object", "scene", "action"]
        expect(levels.nth(0)).to_have_attribute("aria-pressed", "true")
        page.get_by_role("button", name="Whole", exact=True).click()
        expect(page.locator(".card .caption")).to_contain_text("24 patches")
        levels.nth(1).click()
        expect(levels.nth(1)).to_have_attribute("aria-pressed", "true")
        expect(levels.nth(1)).to_be_focused()
        # What is there already is told at the new level, and so is what comes.
        expect(page.locator(".card .caption").first).to_contain_text("scene of 24 patches")
        expect(page.locator(".card .head").first).to_contain_text("scene")
        levels.nth(0).click()
        expect(page.locator(".card .caption").first).not_to_contain_text("scene")
        expect(page.locator(".card .head").first).not_to_contain_text("scene")


def test_a_model_without_levels_offers_none(page: Any):
    add_photo(page)
    go(page, "describe")
    expect(page.get_by_role("group", name="Level of captions")).to_be_hidden()
    page.get_by_role("button", name="Whole", exact=True).click()
    expect(page.locator(".card .caption")).to_contain_text("24 patches")
