"""A saved narrative is corrected on the page: its words, their times, its strokes; and every version comes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ..conftest import narrative
from .handling import DASH, add_photo, axe_violations, expect, fetched, go, press, sent
from .running import draw

WORDS = [
    {"text": "a", "start_s": 0.1, "end_s": 0.3},
    {"text": "red", "start_s": 0.3, "end_s": 0.7},
    {"text": "wall", "start_s": 0.8, "end_s": 1.4},
]
POINTS = [[0.1, 0.1, 0.2], [0.2, 0.3, 0.4], [0.3, 0.3, 0.6], [0.6, 0.6, 0.9], [0.8, 0.7, 1.3]]


@pytest.fixture
def told(page: Any, address: str) -> dict[str, Any]:
    return edited(page, address)


def edited(page: Any, address: str, words: Sequence[dict[str, Any]] = WORDS) -> dict[str, Any]:
    """A narrative that the Studio has, open for editing."""
    add_photo(page)
    (photo,) = fetched(address + "api/photos")["photos"]
    trace = {"points": POINTS, "starts": [0, 3]}
    made = sent(address + "api/narratives", narrative(photo["id"], words=list(words), trace=trace, timed_by="keys"))
    go(page, "replay")
    press(page, "Edit")
    expect(page.locator(".mark-word")).to_have_count(3)
    return dict(made)


def kept(address: str, told: dict[str, Any]) -> dict[str, Any]:
    return dict(fetched(f"{address}api/narratives/{told['id']}"))


def save(page: Any) -> None:
    press(page, "Save")
    expect(page.get_by_role("heading", name="Replay")).to_be_visible()


def test_words_are_corrected_and_keep_their_times(page: Any, address: str, told: dict[str, Any]):
    page.fill("#edited", "A dark red brick")
    save(page)
    now = kept(address, told)
    assert now["text"] == "A dark red brick"
    assert [word["text"] for word in now["words"]] == ["A", "dark", "red", "brick"]
    assert now["words"][2] == WORDS[1] | {"confidence": None}
    assert (now["words"][3]["start_s"], now["words"][3]["end_s"]) == (0.8, 1.4)
    starts = [word["start_s"] for word in now["words"]]
    assert starts == sorted(starts)
    assert (now["version"], now["timed_by"], now["trace"]) == (2, "keys", told["trace"])


def test_a_word_is_dragged_and_its_time_typed(page: Any, address: str, told: dict[str, Any]):
    box = page.locator(".mark-word").nth(2).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 70, box["y"] + 10, steps=5)
    page.mouse.up()
    expect(page.locator("#from")).to_have_value("1.300")
    page.fill("#to", "2.5")
    page.keyboard.press("Enter")
    page.locator(".mark-word").nth(1).focus()
    page.keyboard.press("Shift+ArrowLeft")
    expect(page.locator("#from")).to_have_value("0.250")
    save(page)
    words = kept(address, told)["words"]
    assert [(word["start_s"], word["end_s"]) for word in words] == [(0.1, 0.3), (0.25, 0.65), (1.3, 2.5)]
    assert kept(address, told)["timed_by"] == "hand"


def test_a_stroke_is_drawn_anew_moved_and_deleted(page: Any, address: str, told: dict[str, Any]):
    page.locator(".mark-stroke").first.click()
    press(page, "Draw it anew")
    draw(page, DASH)
    expect(page.locator(".mark-stroke")).to_have_count(2)
    press(page, "Move it")
    draw(page, [(0.2, 0.2), (0.25, 0.3)])
    page.locator(".mark-stroke").nth(1).click()
    press(page, "Delete stroke")
    expect(page.locator(".mark-stroke")).to_have_count(1)
    page.locator(".mark-word").nth(2).click()
    press(page, "Draw where it is")
    draw(page, [(0.5, 0.5), (0.6, 0.9)])
    save(page)
    trace = kept(address, told)["trace"]
    first, second = trace["points"][: trace["starts"][1]], trace["points"][trace["starts"][1] :]
    assert (first[0][2], first[-1][2]) == (0.2, 0.6)
    assert first[0][:2] == pytest.approx([DASH[0][0] + 0.05, DASH[0][1] + 0.1], abs=0.005)
    assert first[-1][:2] == pytest.approx([DASH[-1][0] + 0.05, DASH[-1][1] + 0.1], abs=0.005)
    assert (second[0][2], second[-1][2]) == (0.8, 1.4)
    assert second[-1][:2] == pytest.approx([0.6, 0.9], abs=0.005)


def test_undo_and_redo_are_each_others_inverse(page: Any, address: str, told: dict[str, Any]):
    press(page, "Close")
    states = page.evaluate(
        """async (narrative) => {
          const { Edit } = await import("/page/edit.js");
          const { Player } = await import("/page/player.js");
          const { Stage } = await import("/page/stage.js");
          const { delayed, retimed, reworded, shifted, without } = await import("/page/revise.js");
          const stage = new Stage(document.createElement("div"));
          stage.show({ ...narrative, url: "", width: 4, height: 3, name: "" });
          const edit = new Edit({ stage }, new Player(stage), narrative, () => {});
          const seen = [edit.state];
          const say = (change) => { edit.change({ ...edit.state, ...change(edit.state) }, ""); seen.push(edit.state); };
          say(({ words }) => ({ words: retimed(words, 1, 0.2, 0.5) }));
          say(({ lines }) => ({ lines: shifted(lines, 0, 0.1, -0.1) }));
          say(({ words }) => ({ words: reworded(words, "one two three four"), text: "one two three four" }));
          say(({ lines }) => ({ lines: delayed(lines, 1, 5) }));
          say(({ lines }) => ({ lines: without(lines, 0, 1) }));
          const back = [], forth = [];
          for (const _ of seen.slice(1)) { back.push(edit.state); edit.undo(); }
          edit.undo();
          const start = edit.state;
          for (const _ of seen.slice(1)) { edit.redo(); forth.push(edit.state); }
          edit.redo();
          const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
          const changed = seen.slice(1), different = new Set(seen.map((one) => JSON.stringify(one))).size;
          return [same(start, seen[0]), same(back.reverse(), changed), same(forth, changed), different];
        }""",
        told,
    )
    assert states == [True, True, True, 6]


def test_changes_survive_a_crash_of_the_page_and_go_with_undo(page: Any, address: str, told: dict[str, Any]):
    page.fill("#edited", "a green wall")
    page.locator(".mark-stroke").first.click()
    press(page, "Delete stroke")
    expect(page.locator(".mark-stroke")).to_have_count(1)
    page.wait_for_timeout(200)
    page.reload()
    page.wait_for_selector("html[data-started]")
    expect(page.locator(".said")).to_contain_text("a red wall")
    press(page, "Edit")
    expect(page.locator("#edited")).to_have_value("a green wall")
    expect(page.locator(".mark-stroke")).to_have_count(1)
    assert kept(address, told)["version"] == 1
    press(page, "Undo")
    expect(page.locator("#edited")).to_have_value("a red wall")
    press(page, "Redo")
    page.keyboard.press("Control+s")
    expect(page.get_by_role("heading", name="Replay")).to_be_visible()
    assert kept(address, told)["text"] == "a green wall"
    press(page, "Edit")
    expect(page.locator("#edited")).to_have_value("a green wall")
    expect(page.get_by_role("button", name="Undo", exact=True)).to_be_disabled()


def test_earlier_versions_are_seen_and_restored(page: Any, address: str, told: dict[str, Any]):
    for text in ("a green wall", "a blue wall"):
        page.fill("#edited", text)
        save(page)
        press(page, "Edit")
    press(page, "Close")
    page.locator(".versions summary").click()
    expect(page.locator(".versions li")).to_have_count(2)
    press(page, "See version 1")
    expect(page.locator(".said")).to_contain_text("a red wall")
    press(page, "Show the newest")
    expect(page.locator(".said")).to_contain_text("a blue wall")
    page.locator(".versions summary").click()
    press(page, "Restore version 1")
    expect(page.locator(".said")).to_contain_text("a red wall")
    now = kept(address, told)
    assert now == told | {"version": 4, "changed": now["changed"]}


def test_what_another_window_saved_is_not_overwritten_unasked(page: Any, address: str, told: dict[str, Any]):
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_selector("html[data-started]")
    press(other, "Edit")
    other.fill("#edited", "theirs")
    save(other)
    page.fill("#edited", "mine")
    press(page, "Save")
    expect(page.locator(".problem")).to_contain_text("changed by somebody else")
    assert kept(address, told)["text"] == "theirs"
    press(page, "Save mine on top")
    expect(page.get_by_role("heading", name="Replay")).to_be_visible()
    assert kept(address, told)["text"] == "mine"
    assert fetched(f"{address}api/narratives/{told['id']}/versions/2")["text"] == "theirs"


@pytest.mark.parametrize("width", [360, 1440])
def test_the_editor_fits_the_window(page: Any, told: dict[str, Any], width: int):
    page.set_viewport_size({"width": width, "height": 900})
    page.locator(".mark-word").nth(1).click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for name in ("Save", "Close", "Draw where it is"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_visible()


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (360, "dark")])
def test_axe_finds_nothing_in_the_editor(open_page: Callable[..., Any], address: str, width: int, theme: str):
    page = open_page(width, color_scheme=theme, reduced_motion="reduce")
    edited(page, address)
    found = {"words": axe_violations(page)}
    page.locator(".mark-word").nth(1).focus()
    page.keyboard.press("Enter")
    found["a word"] = axe_violations(page)
    page.locator(".mark-stroke").first.click()
    found["a stroke"] = axe_violations(page)
    page.fill("#edited", "a tall wall")
    save(page)
    page.locator("details.versions summary").click()
    found["versions"] = axe_violations(page)
    assert {state: broken for state, broken in found.items() if broken} == {}
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_doubtful_words_are_marked_and_stay_so_until_they_are_changed(page: Any, address: str):
    sure = [word | {"confidence": confidence} for word, confidence in zip(WORDS, (0.9, 0.2, 0.3), strict=True)]
    told = edited(page, address, sure)
    marks = page.locator(".mark-word.doubtful")
    expect(marks).to_have_text(["red", "wall"])
    marks.first.click()
    expect(page.locator(".details")).to_contain_text("The time of this word is doubtful")
    page.fill("#edited", "a red wal")
    expect(marks).to_have_text(["red"])
    page.fill("#edited", "a red walls")
    marks.first.focus()
    page.keyboard.press("Shift+ArrowLeft")
    expect(marks).to_have_count(0)
    press(page, "Undo")
    expect(marks).to_have_text(["red"])
    save(page)
    assert [word["confidence"] for word in kept(address, told)["words"]] == [0.9, 0.2, None]
