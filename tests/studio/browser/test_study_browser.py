"""The trust study as a participant meets it: keys, progress, undo, reload, thanks."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import uvicorn

from saywhere.studio.app import create_study_app
from saywhere.studio.settings import StudioSettings
from saywhere.studio.study import write_study

from ..studies import MODELS, item, make_study
from .handling import axe_violations, expect, press
from .payloads import PAYLOADS
from .running import WATCH
from .test_attacks import nothing_ran


@contextmanager
def studying(folder: Path) -> Iterator[str]:
    """A study on a free port. Gives its address."""
    app = create_study_app(StudioSettings(folder, port=0, study=folder))
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
def study_address(tmp_path: Path, browser: Any) -> Iterator[str]:
    with studying(make_study(tmp_path / "study")) as address:
        yield address


@pytest.fixture
def take_part(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens the page of a study: take_part(address, width=…, …). What goes wrong in it is an error of the test."""
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


class Line:
    """The way to the server, on which replies to ratings may get lost.

    Made before anything is rated: a browser may send what follows at once past a route that was only just laid.
    """

    def __init__(self, page: Any) -> None:
        self.loses_replies = False
        page.route("**/ratings", self.carry)

    def carry(self, route: Any) -> None:
        if self.loses_replies:
            route.fetch()
            route.abort()
        else:
            route.continue_()


def begin(page: Any, code: str = "p1") -> None:
    page.fill("#code", code)
    page.keyboard.press("Enter")
    ready(page, 0)


def ready(page: Any, done: int) -> None:
    """The next pair is there, and an answer is taken."""
    expect(page.locator(".progress .hint")).to_have_text(f"{done} of 4")
    page.wait_for_selector(".scale[data-open=true]")


def shown_left(page: Any) -> str:
    """Whose map is on the left, going by the pixels: model "plain" looks at the top left corner."""
    first, last = page.locator(".heat").first.evaluate(
        """canvas => {
          const at = (x, y) => canvas.getContext("2d").getImageData(x, y, 1, 1).data[3];
          return [at(0, 0), at(canvas.width - 1, canvas.height - 1)];
        }"""
    )
    assert first != last
    return "plain" if first > last else "hinted"


def results(address: str) -> list[dict[str, str]]:
    with urlopen(address + "api/study/results") as reply:
        return list(csv.DictReader(io.TextIOWrapper(reply, "utf-8")))


def test_a_study_is_done_by_keys_alone_and_a_reload_goes_on_where_it_was(
    study_address: str, take_part: Callable[..., Any]
):
    page = take_part(study_address + "study")
    expect(page.get_by_role("heading", name="Where do they look?")).to_be_visible()
    expect(page.locator("#code")).to_be_focused()
    begin(page)
    left, words = [], []
    for done, key in enumerate("1245"):
        ready(page, done)
        left.append(shown_left(page))
        words.append(page.locator(".prompt mark").inner_text())
        if done == 2:
            page.reload()
            ready(page, 2)
            assert shown_left(page) == left[2]
        page.keyboard.press(key)
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "4")
    rows = results(study_address)
    assert [row["left"] for row in rows] == left
    assert [row["word"] for row in rows] == words
    assert [row["rating"] for row in rows] == ["-2", "-1", "1", "2"]
    for row in rows:
        assert row["preferred"] == (row["left"] if int(row["rating"]) < 0 else row["right"])
    assert sorted(left) == ["hinted", "hinted", "plain", "plain"]
    assert {row["participant"] for row in rows} == {"P1"}


def test_an_answer_can_be_undone_by_key_and_after_the_last_one_too(study_address: str, take_part: Callable[..., Any]):
    page = take_part(study_address)
    begin(page)
    expect(page.get_by_role("button", name="Undo last answer")).to_be_disabled()
    first = page.locator(".prompt").inner_text(), shown_left(page)
    page.keyboard.press("1")
    ready(page, 1)
    page.keyboard.press("Backspace")
    ready(page, 0)
    assert (page.locator(".prompt").inner_text(), shown_left(page)) == first
    assert results(study_address) == []
    for done in range(4):
        ready(page, done)
        page.get_by_role("button", name="Both are equally reasonable").click()
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    press(page, "Undo last answer")
    ready(page, 3)
    page.keyboard.press("5")
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    assert [row["rating"] for row in results(study_address)] == ["0", "0", "0", "2"]
    press(page, "Next participant")
    expect(page.locator("#code")).to_have_value("")
    page.reload()
    expect(page.locator("#code")).to_have_value("")


def test_a_held_or_doubled_key_answers_one_pair(study_address: str, take_part: Callable[..., Any]):
    page = take_part(study_address)
    begin(page)
    page.keyboard.down("2")
    for _ in range(5):
        page.keyboard.down("2")
    page.keyboard.up("2")
    page.keyboard.press("2")
    ready(page, 1)
    assert len(results(study_address)) == 1


def test_an_answer_that_does_not_arrive_is_sent_again_and_kept_once(study_address: str, take_part: Callable[..., Any]):
    page = take_part(study_address)
    line = Line(page)
    begin(page)
    line.loses_replies = True
    page.keyboard.press("4")
    expect(page.locator(".problem")).to_contain_text("does not answer")
    assert len(results(study_address)) == 1
    line.loses_replies = False
    press(page, "Try again")
    ready(page, 1)
    assert len(results(study_address)) == 1


def test_two_windows_of_one_participant_do_not_undo_each_other(study_address: str, take_part: Callable[..., Any]):
    page = take_part(study_address)
    begin(page)
    other = page.context.new_page()
    other.goto(study_address)
    begin(other)
    page.keyboard.press("1")
    ready(page, 1)
    other.keyboard.press("5")
    expect(other.locator(".problem")).to_contain_text("rated already")
    press(other, "Try again")
    ready(other, 1)
    assert [row["rating"] for row in results(study_address)] == ["-2"]


def test_the_colours_can_be_taken_away_to_see_the_photo(study_address: str, take_part: Callable[..., Any]):
    page = take_part(study_address)
    begin(page)
    expect(page.locator(".heat:visible")).to_have_count(2)
    page.keyboard.press("h")
    expect(page.locator(".heat:visible")).to_have_count(0)
    page.keyboard.press("3")
    ready(page, 1)
    expect(page.locator(".heat:visible")).to_have_count(2)


def test_an_odd_code_is_refused_calmly_and_one_in_the_link_is_taken(study_address: str, take_part: Callable[..., Any]):
    page = take_part(study_address)
    page.fill("#code", "ann & bob")
    page.keyboard.press("Enter")
    expect(page.locator(".problem")).to_contain_text("Participant code")
    expect(page.locator("#code")).to_have_value("ann & bob")
    page.goto(study_address + "#P42")
    expect(page.locator("#code")).to_have_value("P42")
    for broken in ("#%E0%A4%A", "#<img src=x onerror=alert(1)>"):
        page.goto(study_address + broken)
        expect(page.locator(".problem")).to_contain_text("Participant code")
    nothing_ran(page)


def test_without_a_study_the_page_says_how_to_open_one(address: str, take_part: Callable[..., Any]):
    page = take_part(address + "study")
    expect(page.get_by_role("heading", name="No study is open here")).to_be_visible()
    expect(page.locator("pre")).to_have_text("saywhere study serve FOLDER")


def test_the_page_works_at_360_px_by_touch_and_is_never_wider(study_address: str, take_part: Callable[..., Any]):
    page = take_part(study_address, 360, 740, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    begin(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    left, right = (page.locator(".pad").nth(i).bounding_box() for i in (0, 1))
    assert left["y"] == right["y"]
    assert left["width"] == right["width"] > 120
    page.get_by_role("button", name="The right is slightly more reasonable").tap()
    ready(page, 1)
    assert [row["rating"] for row in results(study_address)] == ["1"]


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (360, "dark")])
def test_axe_finds_nothing_in_any_state_of_a_study(
    study_address: str, take_part: Callable[..., Any], width: int, theme: str
):
    page = take_part(study_address, width, color_scheme=theme, reduced_motion="reduce")
    found: dict[str, list[str]] = {}

    def check(state: str) -> None:
        found.update({f"{state}: {rule}": places for rule, places in axe_violations(page).items()})

    line = Line(page)
    check("welcome")
    page.fill("#code", "?")
    page.keyboard.press("Enter")
    expect(page.locator(".problem")).to_be_visible()
    check("refused")
    begin(page)
    check("first pair")
    page.keyboard.press("1")
    ready(page, 1)
    line.loses_replies = True
    page.keyboard.press("1")
    expect(page.locator(".problem")).to_be_visible()
    check("offline")
    line.loses_replies = False
    press(page, "Try again")
    for done in (2, 3):
        ready(page, done)
        page.keyboard.press("1")
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    check("thanks")
    assert found == {}


def test_no_text_of_a_study_ever_runs(tmp_path: Path, take_part: Callable[..., Any], browser: Any):
    texts = [payload.replace("\u0000", "") for payload in PAYLOADS]
    prompts = [" ".join(texts[i::4]) for i in range(4)]
    items = [item(0, id=f"q{i}", prompt=prompt, word=texts[i]) for i, prompt in enumerate(prompts)]
    write_study(tmp_path / "bad", texts[3], MODELS, items, question=texts[4])
    with studying(tmp_path / "bad") as address:
        page = take_part(address)
        begin(page)
        for done in range(4):
            ready(page, done)
            assert page.locator(".prompt").inner_text().split() in [prompt.split() for prompt in prompts]
            page.keyboard.press("3")
        expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
        nothing_ran(page)
