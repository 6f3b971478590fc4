"""Annotators and reviewers in the browser: a photo is told, returned with a note, corrected, and accepted."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from saywhere.studio.app import create_people_app
from saywhere.studio.people_desk import PeopleDesk
from saywhere.studio.settings import StudioSettings

from ..conftest import FakeRecogniser, encoded, picture
from ..test_people import desk_of, review, states, tell
from .handling import LOOP, axe_violations, expect, press, record
from .payloads import PAYLOADS
from .test_attacks import nothing_ran
from .test_collect_browser import take_part

__all__ = ["take_part"]
SHOTS = os.environ.get("SAYWHERE_SHOTS", "")


@contextmanager
def serving_people(folder: Path) -> Iterator[str]:
    """A server for people on a free port. Gives its address."""
    app = create_people_app(StudioSettings(folder, port=0), FakeRecogniser())
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
def desk(tmp_path: Path) -> Iterator[PeopleDesk]:
    desk = desk_of(tmp_path / "studio")
    for number in range(2):
        desk.photos.add(encoded(picture(640, 480 + number)), f"{number}.png")
    desk.add("annotator", ["a1", "a2"])
    desk.add("reviewer", ["r1"])
    desk.assign(2)
    yield desk
    desk.log.close()


@pytest.fixture
def people_address(desk: PeopleDesk, browser: Any) -> Iterator[str]:
    with serving_people(desk.log.folder) as address:
        yield address


def enter(page: Any, code: str) -> None:
    page.fill("#code", code)
    page.keyboard.press("Enter")
    page.wait_for_selector("main.studio")


def shot(page: Any, name: str) -> None:
    """A picture of the page for people to look at, if a folder for them is named."""
    if SHOTS:
        page.wait_for_timeout(400)
        page.screenshot(path=f"{SHOTS}/{name}.png")


def test_a_photo_is_told_returned_corrected_and_accepted(
    people_address: str, desk: PeopleDesk, take_part: Callable[..., Any]
):
    annotator = take_part(people_address, permissions=["microphone"])
    enter(annotator, "a1")
    expect(annotator.locator(".progress")).to_contain_text("0 of 2")
    expect(annotator.locator(".pad.loading")).to_have_count(0)
    # The shelf and its pictures come in their own time, after the photo itself.
    expect(annotator.locator(".thumb img")).to_have_count(2)
    for thumbnail in annotator.locator(".thumb img").all():
        expect(thumbnail).not_to_have_js_property("naturalWidth", 0)
    shelf = annotator.evaluate(
        "[...document.querySelectorAll('.thumb img')].map((image) => [image.src, image.naturalWidth])"
    )
    assert all(source.endswith("/thumbnail") and 0 < width <= 224 for source, width in shelf)
    record(annotator, LOOP, sound=False)
    annotator.fill("#typed", "a red wall")
    annotator.locator("button.stop").click()
    expect(annotator.get_by_label("Transcript")).to_have_value("a red wall")
    expect(annotator.locator("#annotator")).to_have_count(0)
    press(annotator, "Save and next")
    expect(annotator.locator(".progress")).to_contain_text("1 of 2")
    expect(annotator.locator(".queue")).to_contain_text("1 done · 1 to go")
    [one] = desk.submissions()
    assert one.telling is not None
    assert (one.annotator, one.telling.text, one.state) == ("A1", "a red wall", "waiting")

    reviewer = take_part(f"{people_address}review")
    enter(reviewer, "r1")
    expect(reviewer.get_by_role("heading", name="A1")).to_be_visible()
    reviewer.keyboard.press("r")
    expect(reviewer.locator(".problem")).to_contain_text("what is to be done otherwise")
    expect(reviewer.locator("#note")).to_be_focused()
    reviewer.keyboard.type("Which red is it?")
    press(reviewer, "Return")
    expect(reviewer.locator(".history")).to_contain_text("Which red is it?")
    expect(reviewer.locator(".progress")).to_contain_text("1 of 1")

    annotator.reload()
    annotator.wait_for_selector("main.studio")  # At once: who was at work goes on.
    annotator.get_by_role("button", name="returned").click()
    expect(annotator.locator(".note")).to_contain_text("Which red is it?")
    press(annotator, "Correct the words")
    expect(annotator.get_by_label("Transcript")).to_be_focused()
    annotator.fill("#transcript", "a dark red wall")
    press(annotator, "Send the correction")
    expect(annotator.locator(".progress")).to_contain_text("1 of 2")
    assert desk.submissions()[0].state == "waiting"

    reviewer.reload()
    reviewer.wait_for_selector("main.studio")
    expect(reviewer.locator(".said")).to_contain_text("dark")
    reviewer.keyboard.press("a")
    expect(reviewer.locator(".list .state")).to_have_text("accepted")
    assert [(said.verdict, said.note) for said in desk.submissions()[0].reviews] == [
        ("return", "Which red is it?"),
        ("accept", ""),
    ]
    assert states(desk, "A1") == {"accepted": 1, "open": 1}


def test_codes_lead_to_the_right_page_and_no_further(people_address: str, take_part: Callable[..., Any]):
    page = take_part(people_address)
    for code, said in (("nobody", "there is no code NOBODY"), ("r1", "This code is a reviewer's")):
        page.fill("#code", code)
        page.keyboard.press("Enter")
        expect(page.locator(".problem")).to_contain_text(said, ignore_case=True)
    enter(page, "a2")
    press(page, "Not you?")
    expect(page.locator("#code")).to_have_value("")


def test_a_photo_is_skipped_with_a_reason_by_keys(people_address: str, desk: PeopleDesk, take_part: Callable[..., Any]):
    page = take_part(people_address)
    enter(page, "a1")
    expect(page.locator(".queue")).to_contain_text("1 of 2")
    page.keyboard.press("x")
    page.keyboard.type("too dark")
    page.keyboard.press("Enter")
    expect(page.locator(".queue")).to_contain_text("1 skipped · 1 to go")
    assert states(desk, "A1") == {"skipped": 1, "open": 1}


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (360, "dark"), (1440, "dark"), (360, "light")])
def test_axe_finds_nothing_and_no_page_is_too_wide(
    people_address: str, desk: PeopleDesk, take_part: Callable[..., Any], width: int, theme: str
):
    first = tell(desk, "A1")
    for code in ("A1", "A2"):
        for task in desk.tasks(code):
            if task.state == "open":
                tell(desk, code, task.photo)
    review(desk, first, "return", "Say which red it is, and point at the whole wall.")
    found: dict[str, list[str]] = {}

    def check(page: Any, state: str) -> None:
        found.update({f"{state}: {rule}": places for rule, places in axe_violations(page).items()})
        assert page.evaluate("document.documentElement.scrollWidth") == width, state
        shot(page, f"{state}-{width}-{theme}")

    how = {"width": width, "height": 900, "color_scheme": theme, "reduced_motion": "reduce"}
    page = take_part(people_address, **how)
    check(page, "annotate-welcome")
    enter(page, "a1")
    expect(page.locator(".note")).to_be_visible()
    check(page, "annotate-returned")
    press(page, "Correct the words")
    expect(page.get_by_label("Transcript")).to_be_focused()
    check(page, "annotate-correct")
    page = take_part(f"{people_address}review", **how)
    check(page, "review-welcome")
    enter(page, "r1")
    expect(page.get_by_role("button", name="Accept")).to_be_visible()
    check(page, "review")
    press(page, "Return")
    check(page, "review-note-wanted")
    press(page, "People")
    expect(page.get_by_role("region", name="Annotators")).to_be_visible()
    check(page, "review-people")
    press(page, "Agreement")
    expect(page.get_by_role("region", name="Agreement of people")).to_be_visible()
    check(page, "review-agreement")
    assert found == {}


def test_no_text_of_people_ever_runs(people_address: str, desk: PeopleDesk, take_part: Callable[..., Any]):
    text = next(payload for payload in PAYLOADS if "<img" in payload).replace("\u0000", "")
    told = tell(desk, "A1", text=text)
    review(desk, told, "return", text[:900])
    page = take_part(f"{people_address}review")
    enter(page, "r1")
    expect(page.locator(".history")).to_contain_text("returned")
    nothing_ran(page)
    page = take_part(people_address)
    enter(page, "a1")
    page.get_by_role("button", name="returned").click()
    expect(page.locator(".note")).to_be_visible()
    nothing_ran(page)
