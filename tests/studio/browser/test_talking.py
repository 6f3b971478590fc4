"""A conversation about a photo: pointing, asking, following up; by hand and by keys; what the model points out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .handling import LOOP, add_photo, axe_violations, expect, go, press
from .running import Talker, draw


@pytest.fixture
def seer() -> Talker:
    talker = Talker()
    talker.skills = ("caption", "ground", "narrate", "answer", "segment", "chat")  # type: ignore[misc, assignment]
    return talker


def begin(page: Any) -> list[list[dict[str, Any]]]:
    """A photo to talk about. Gives the turns of every request from now on."""
    add_photo(page)
    go(page, "ask")
    asked: list[list[dict[str, Any]]] = []
    page.on("request", lambda one: asked.append(one.post_data_json["turns"]) if one.url.endswith("/chat") else None)
    return asked


def ask(page: Any, question: str) -> None:
    page.fill("#question", question)
    page.keyboard.press("Enter")
    last = page.locator(".turn").last
    expect(last.locator(".asked")).to_contain_text(question)
    expect(last.locator(".caption")).to_contain_text("Pointed at:")
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()


def test_a_conversation_goes_on_and_remembers_what_was_pointed_at(page: Any):
    asked = begin(page)
    page.keyboard.press("b")
    draw(page, [(0.1, 0.1), (0.5, 0.6)])
    ask(page, "what is this?")
    expect(page.locator(".caption")).to_have_text("Turn 1: what is this? Pointed at: box.")
    expect(page.locator(".pointed")).to_contain_text("The model remembers turn 1: box, ")
    expect(page.locator("#question")).to_have_value("")
    expect(page.locator("#question")).to_be_focused()
    ask(page, "and why?")
    expect(page.locator(".caption").last).to_have_text("Turn 2: and why? Pointed at: box.")
    page.get_by_role("button", name="Trace", exact=True).click()
    draw(page, LOOP)
    ask(page, "and along here, so oddly?")
    last = page.locator(".turn").last
    expect(last).to_contain_text("Pointed at: box, trace.")
    expect(last).to_contain_text("the first 2 messages were left out")
    expect(last).to_contain_text("Lost of the answer: box 2: no two corners")
    assert [len(turns) for turns in asked] == [1, 2, 3]
    assert [turn["region"] and turn["region"]["kind"] for turn in asked[2]] == ["box", None, "trace"]


def test_what_the_model_points_out_lights_up_by_hand_and_by_keys(page: Any):
    begin(page)
    ask(page, "where is it?")
    expect(page.locator(".regions .told")).to_have_count(2)
    expect(page.locator(".chip.told")).to_have_text(["box, centre", "trace, middle right"])
    expect(page.locator("#says")).to_contain_text("Pointed out: box, centre; trace, middle right")
    page.locator(".chip.told").nth(1).hover()
    expect(page.locator(".regions .chosen")).to_have_count(1)
    expect(page.locator(".regions .chosen path")).to_have_count(2)
    page.mouse.move(5, 5)
    expect(page.locator(".regions .chosen")).to_have_count(0)
    ask(page, "thanks")
    expect(page.locator(".regions .told")).to_have_count(0)
    page.locator("#question").focus()
    for _ in range(2):
        page.keyboard.press("Shift+Tab")
    expect(page.locator(".chip:focus")).to_have_text("box, centre")
    expect(page.locator(".regions .told.chosen rect")).to_have_count(2)


def test_masks_are_drawn_where_they_are(page: Any):
    begin(page)
    expect(page.get_by_role("button", name="Cut it out")).to_be_disabled()
    draw(page, [(0.5, 0.5)])
    press(page, "Cut it out")
    expect(page.locator(".chip.told")).to_have_text(["cut-out, centre"])
    image = page.locator(".regions image.cut")
    shown = """async (image) => {
      const picture = new Image();
      picture.src = image.getAttribute("href");
      await picture.decode();
      const canvas = Object.assign(document.createElement("canvas"), { width: picture.width, height: picture.height });
      const context = canvas.getContext("2d");
      context.drawImage(picture, 0, 0);
      const at = (x, y) => context.getImageData(x, y, 1, 1).data[3];
      return [picture.width, picture.height, at(40, 30), at(5, 5), at(40, 11), at(40, 9)];
    }"""
    width, height, inside, outside, edge, beyond = image.evaluate(shown)
    assert (width, height, outside, beyond) == (80, 60, 0, 0)
    assert edge > inside > 0
    page.mouse.move(5, 5)  # What the pointer rests on is lit as well.
    ask(page, "cut it out, please")
    expect(page.locator(".regions image.cut")).to_have_count(1)


def test_each_photo_has_its_conversation_and_a_new_one_can_be_begun_and_undone(page: Any):
    asked = begin(page)
    ask(page, "what is this?")
    add_photo(page, "second.png")
    expect(page.locator(".turn")).to_have_count(0)
    ask(page, "and this?")
    page.locator(".thumb").first.click()
    expect(page.locator(".turn")).to_have_count(1)
    expect(page.locator(".turn")).to_contain_text("what is this?")
    press(page, "New conversation")
    expect(page.locator(".turn")).to_have_count(0)
    expect(page.locator("#question")).to_be_focused()
    press(page, "Undo")
    expect(page.locator(".turn")).to_have_count(1)
    press(page, "New conversation")
    ask(page, "again")
    assert [len(turns) for turns in asked] == [1, 1, 1]


def test_words_come_while_they_are_written(page: Any, seer: Talker):
    begin(page)
    chunks = ['event: words\ndata: {"text": "A red"}\n\n', "event: words\ndata: "]
    page.evaluate(
        """(chunks) => {
          const real = window.fetch;
          window.fetch = (address, how) => {
            if (!String(address).endsWith("/chat")) return real(address, how);
            const body = new ReadableStream({ start(stream) { window.feed = stream; } });
            return Promise.resolve(new Response(body.pipeThrough(new TextEncoderStream())));
          };
          window.chunks = chunks;
        }""",
        chunks,
    )
    page.fill("#question", "what is this?")
    page.keyboard.press("Enter")
    expect(page.locator(".turn .busy")).to_be_visible()
    page.evaluate("chunks.forEach((chunk) => feed.enqueue(chunk))")  # which break in the middle of an event
    expect(page.locator(".caption")).to_have_text("A red")
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_disabled()
    page.evaluate("""feed.enqueue('{"text": " wall."}\\n\\n')""")
    expect(page.locator(".caption")).to_have_text("A red wall.")
    page.evaluate("feed.close()")
    expect(page.locator(".turn .problem")).to_contain_text("The answer broke off.")


def test_a_turn_that_failed_can_be_tried_again_and_does_not_count(page: Any):
    asked = begin(page)
    said = {"error": {"code": "busy", "message": "too many requests wait", "hint": "try again in a second"}}
    page.route("**/chat", lambda route: route.fulfill(status=429, json=said))
    page.fill("#question", "what is this?")
    page.keyboard.press("Enter")
    expect(page.locator(".turn .problem")).to_contain_text("Too many requests wait.")
    page.unroute("**/chat")
    ask(page, "and that?")
    assert len(asked[-1]) == 1
    press(page, "Try again")
    expect(page.locator(".turn .problem")).to_have_count(0)
    expect(page.locator(".caption").first).to_contain_text("what is this?")


def test_a_conversation_is_held_with_keys_alone(page: Any):
    asked = begin(page)
    page.locator(".pad").focus()
    for key in ("b", *["Shift+ArrowLeft"] * 4, "Space", *["Shift+ArrowDown"] * 3, *["ArrowRight"] * 5, "Space"):
        page.keyboard.press(key)
    expect(page.locator("#says")).to_contain_text("Pointed at: box")
    for _ in range(10):
        if page.evaluate("document.activeElement.id === 'question'"):
            break
        page.keyboard.press("Tab")
    page.keyboard.type("what is this?")
    page.keyboard.press("Enter")
    expect(page.locator("#says")).to_contain_text("Turn 1: what is this?")
    assert asked[0][0]["region"]["xyxy"] == pytest.approx([0.3, 0.5, 0.35, 0.65])
    page.keyboard.press("Escape")
    expect(page.locator(".turn")).to_have_count(1)


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (360, "dark")])
def test_axe_finds_nothing_in_a_conversation(open_page: Callable[..., Any], width: int, theme: str):
    page = open_page(width, color_scheme=theme, reduced_motion="reduce")
    begin(page)
    draw(page, [(0.5, 0.5)])
    ask(page, "where is it?")
    ask(page, "and so oddly?")
    ask(page, "cut it out")
    assert axe_violations(page) == {}
    assert page.evaluate("document.documentElement.scrollWidth") == width
