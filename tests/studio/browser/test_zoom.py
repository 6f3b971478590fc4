"""Closer to the photo by wheel, keys, buttons and two fingers; what is drawn there has the same fractions of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .handling import DASH, add_photo, expect, fetched, go, press, record
from .running import draw, place


@pytest.fixture
def zoomed(page: Any) -> Any:
    """The page with a photo, three times as close by the wheel, at a third of its width."""
    add_photo(page)
    x, y = (round(value) for value in place(page, (0.35, 0.4)))  # The wheel counts in whole pixels.
    before = fraction(page, (x, y))
    page.mouse.move(x, y)
    for _ in range(5):
        page.mouse.wheel(0, -150)
    expect(page.locator(".share")).to_have_text("308 %")
    assert fraction(page, (x, y)) == pytest.approx(before, abs=0.001)
    return page


def fraction(page: Any, at: tuple[float, float]) -> tuple[float, float]:
    """The place of the photo that lies under a pixel of the window."""
    box = page.locator(".pad").bounding_box()
    return (at[0] - box["x"]) / box["width"], (at[1] - box["y"]) / box["height"]


def scale(page: Any) -> float:
    return float(page.locator(".pad").evaluate("pad => pad.style.getPropertyValue('--zoom')"))


def inside(page: Any, at: tuple[float, float]) -> bool:
    room, (x, y) = page.locator(".stage").bounding_box(), place(page, at)
    return bool(room["x"] < x < room["x"] + room["width"] and room["y"] < y < room["y"] + room["height"])


def test_a_trace_drawn_close_has_the_same_fractions(zoomed: Any, address: str):
    page, line = zoomed, [(0.3, 0.35), (0.4, 0.4), (0.37, 0.45)]
    assert all(inside(page, at) for at in line)
    record(page, line, sound=False)
    press(page, "Stop")
    press(page, "Save")
    expect(page.get_by_role("heading", name="Saved")).to_be_visible()
    (told,) = fetched(address + "api/narratives")["narratives"]
    points = told["trace"]["points"]
    # A pixel of the window is less than 0.1 % of the photo.
    assert points[0][:2] == pytest.approx(line[0], abs=0.001)
    assert points[-1][:2] == pytest.approx(line[-1], abs=0.001)
    seen = page.evaluate("seen.strokes.at(-1)")
    assert np.allclose([point[:2] for point in points], [one[:2] for one in seen], rtol=0, atol=2e-5)


def test_the_photo_is_moved_by_keys_and_by_hand_and_never_lost(zoomed: Any):
    page = zoomed
    before = place(page, (0.5, 0.5))
    page.keyboard.press("Control+ArrowLeft")
    assert place(page, (0.5, 0.5)) == pytest.approx((before[0] + 60, before[1]), abs=0.6)
    go(page, "replay")
    page.mouse.move(*place(page, (0.4, 0.4)))
    page.mouse.down()
    page.mouse.move(5_000, 5_000, steps=3)
    page.mouse.up()
    room, pad = page.locator(".stage").bounding_box(), page.locator(".pad").bounding_box()
    assert (pad["x"], pad["y"]) == pytest.approx((room["x"], room["y"]), abs=1)
    page.keyboard.press("0")
    assert scale(page) == 1
    assert inside(page, (0, 0))
    assert inside(page, (1, 1))


def test_keys_and_buttons_zoom_and_the_line_stays_thin(page: Any):
    add_photo(page)
    page.keyboard.press("+")
    press(page, "Zoom in")
    assert scale(page) == pytest.approx(2.25)
    expect(page.locator(".share")).to_have_text("225 %")
    page.locator(".share").click()
    assert scale(page) == 1
    for _ in range(9):
        page.keyboard.press("+")
    assert scale(page) == 8
    expect(page.get_by_role("button", name="Zoom in")).to_be_disabled()
    page.keyboard.press("-")
    assert scale(page) == pytest.approx(8 / 1.5)


def test_the_keyboards_pointer_stays_in_sight(page: Any):
    add_photo(page)
    go(page, "describe")
    page.locator(".pad").focus()
    page.keyboard.press("ArrowRight")
    for _ in range(4):
        page.keyboard.press("+")
    for _ in range(8):
        page.keyboard.press("Shift+ArrowRight")
    assert inside(page, (0.5 + 0.01 + 8 * 0.05, 0.5))


FINGERS = """(pad, [from, to]) => {
  const area = () => pad.getBoundingClientRect();
  const say = (type, id, [x, y]) => pad.dispatchEvent(new PointerEvent(type, {
    pointerId: id, pointerType: "touch", clientX: x, clientY: y, bubbles: true, cancelable: true,
  }));
  pad.setPointerCapture = () => {}; // These fingers are made up.
  const px = ([x, y]) => { const a = area(); return [a.left + x * a.width, a.top + y * a.height]; };
  const start = from.map(px), end = to.map(px);
  say("pointerdown", 11, start[0]);
  say("pointermove", 11, [start[0][0] + 1, start[0][1]]);
  say("pointerdown", 12, start[1]);
  say("pointermove", 11, end[0]);
  say("pointermove", 12, end[1]);
  say("pointerup", 11, end[0]);
  say("pointerup", 12, end[1]);
}"""


def test_two_fingers_zoom_and_leave_no_stroke(page: Any, address: str):
    add_photo(page)
    record(page, DASH, sound=False)
    page.locator(".pad").evaluate(FINGERS, [[(0.45, 0.5), (0.55, 0.5)], [(0.3, 0.5), (0.7, 0.5)]])
    assert scale(page) == pytest.approx(4, abs=0.1)
    line = [(0.45, 0.45), (0.5, 0.5)]
    draw(page, line)
    press(page, "Stop")
    press(page, "Save")
    expect(page.get_by_role("heading", name="Saved")).to_be_visible()
    (told,) = fetched(address + "api/narratives")["narratives"]
    starts, points = told["trace"]["starts"], told["trace"]["points"]
    assert len(starts) == 2
    assert points[starts[1]][:2] == pytest.approx(line[0], abs=0.001)


def test_another_photo_is_shown_whole(zoomed: Any):
    page = zoomed
    add_photo(page, "second.png")
    assert scale(page) == 1


def test_strokes_taken_back_and_put_back_are_the_same(page: Any):
    """Undo and redo are each other's inverse, whatever the order."""
    add_photo(page)
    same = page.evaluate(
        """async () => {
          const { undoStroke, redoStroke } = await import("/page/take.js");
          let seed = 7;
          const random = (n) => { seed = (seed * 48271) % 2147483647; return seed % n; };
          for (let round = 0; round < 200; round += 1) {
            const recording = { points: [], starts: [], undone: [] };
            for (let stroke = 0, t = 0; stroke < random(6); stroke += 1) {
              recording.starts.push(recording.points.length);
              for (let i = 0; i <= random(4); i += 1) recording.points.push([random(100), random(100), t++]);
            }
            const states = [JSON.stringify(recording)];
            while (undoStroke(recording)) states.push(JSON.stringify(recording));
            for (let step = 0, at = states.length - 1; step < 30; step += 1) {
              const back = random(2);
              const done = (back ? undoStroke : redoStroke)(recording);
              at += done ? (back ? 1 : -1) : 0;
              if (JSON.stringify(recording) !== states[at]) return [round, step];
            }
          }
          return "same";
        }"""
    )
    assert same == "same"


def test_the_first_of_two_fingers_leaves_nothing_even_if_it_was_kept(page: Any):
    found = page.evaluate(
        """async (ages_ms) => {
          const { Take } = await import("/page/take.js");
          const { whole } = await import("/page/drafts.js");
          const left = [];
          for (const age of ages_ms) {
            const take = new Take({ id: "photo", name: "photo" }, "", null, (error) => { throw error; });
            take.start();
            take.began -= 10_000;
            take.down(0.1, 0.1, take.began);
            take.down(0.5, 0.5, performance.now() - age);
            await take.keep();
            const gone = take.retract();
            const { points } = await whole(await take.stop());
            left.push([gone, take.draft.starts.length, points.length]);
          }
          return left;
        }""",
        [200, 3_000],
    )
    assert found == [[True, 1, 1], [False, 2, 2]]
