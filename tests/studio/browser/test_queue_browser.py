"""Many narratives in a row: the queue, its keys, and a recorder that asks before it starts."""

from __future__ import annotations

from typing import Any

from .handling import DASH, LOOP, add_photo, expect, fetched, microphone, press, record
from .running import draw

# A computer without a microphone, until one is plugged in.
UNPLUGGED = """() => {
  const devices = navigator.mediaDevices, open = devices.getUserMedia.bind(devices);
  devices.getUserMedia = () => Promise.reject(new DOMException("none", "NotFoundError"));
  window.plugIn = () => { devices.getUserMedia = open; };
}"""
FOCUSED = "document.activeElement.id || document.activeElement.className"


def three_photos(page: Any) -> None:
    for name in ("one.png", "two.png", "three.png"):
        add_photo(page, name)
    page.locator(".thumb").first.click()
    expect(page.locator(".queue")).to_contain_text("1 of 3")


def queue_states(address: str) -> list[tuple[str, str]]:
    return [(one["state"], one["reason"]) for one in fetched(address + "api/queue")["photos"]]


def test_three_photos_are_told_with_keys_alone(page: Any, address: str):
    three_photos(page)
    microphone(page, on=False)
    page.locator(".pad").click()
    for text in ("a red wall", "a blue wall"):
        page.keyboard.press("r")
        expect(page.locator("#typed")).to_be_focused()
        page.keyboard.type(text)
        page.keyboard.press("Tab")
        expect(page.locator(".pad")).to_be_focused()
        for key in ("Space", "Shift+ArrowRight", "Shift+ArrowDown", "Space", "Escape"):
            page.keyboard.press(key)
        expect(page.locator("#transcript")).to_be_focused()
        expect(page.locator("#transcript")).to_have_value(text)
        page.keyboard.press("Control+Enter")
        expect(page.locator("button.record")).to_be_focused()
    expect(page.locator(".queue")).to_contain_text("3 of 3")
    expect(page.locator(".queue")).to_contain_text("2 done · 1 to go")
    expect(page.locator(".shelf .mark")).to_have_count(2)
    page.keyboard.press("r")
    page.keyboard.type("both walls")
    page.keyboard.press("Escape")
    expect(page.locator("#transcript")).to_be_focused()
    page.keyboard.press("Control+s")
    expect(page.get_by_role("heading", name="Saved")).to_be_visible()
    expect(page.locator(".queue")).to_contain_text("3 done · 0 to go")
    expect(page.get_by_role("button", name="Next open photo")).to_be_disabled()
    told = fetched(address + "api/narratives")["narratives"]
    assert [one["text"] for one in told] == ["a red wall", "a blue wall", "both walls"]
    assert [one["timed_by"] for one in told[:2]] == ["keys", "keys"]
    assert queue_states(address) == [("done", "")] * 3


def test_a_photo_is_skipped_with_a_reason_and_taken_back(page: Any, address: str):
    three_photos(page)
    page.locator(".pad").click()
    page.keyboard.press("x")
    expect(page.locator("#reason")).to_be_focused()
    page.keyboard.press("Enter")
    assert queue_states(address)[0] == ("open", "")
    page.keyboard.type("too dark")
    page.keyboard.press("Enter")
    expect(page.locator(".queue")).to_contain_text("2 of 3")
    expect(page.locator("button.record")).to_be_focused()
    assert queue_states(address)[0] == ("skipped", "too dark")
    page.keyboard.press("x")
    press(page, "Blurred")
    expect(page.locator(".queue")).to_contain_text("3 of 3")
    expect(page.get_by_role("button", name="Next open photo")).to_be_disabled()
    page.reload()
    page.get_by_role("button", name="one.png, skipped", exact=True).click()
    expect(page.locator(".queue")).to_contain_text("Skipped: too dark")
    press(page, "Take it back")
    expect(page.locator(".shelf .mark")).to_have_count(1)
    assert queue_states(address) == [("open", ""), ("skipped", "Blurred"), ("open", "")]


def test_next_goes_round_past_what_is_done(page: Any):
    three_photos(page)
    page.locator(".thumb").nth(1).click()
    record(page, DASH, sound=False)
    press(page, "Stop")
    press(page, "Save and next")
    expect(page.locator(".queue")).to_contain_text("3 of 3")
    page.keyboard.press("n")
    expect(page.locator(".queue")).to_contain_text("1 of 3")
    page.keyboard.press("n")
    expect(page.locator(".queue")).to_contain_text("3 of 3")


def test_after_stop_the_transcript_has_the_focus_and_escape_plays(page: Any):
    add_photo(page)
    record(page, LOOP)
    assert "pad" in page.evaluate(FOCUSED)
    page.keyboard.press("Escape")
    expect(page.locator("#transcript")).to_be_focused()
    page.keyboard.type("a wall")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    expect(page.locator("#transcript")).to_have_value("a wall")


def test_a_missing_microphone_is_asked_about_before_anything_is_recorded(page: Any):
    add_photo(page)
    page.evaluate(UNPLUGGED)
    press(page, "Record")
    expect(page.locator(".problem")).to_contain_text("No microphone was found.")
    expect(page.locator(".problem")).to_contain_text("Record without sound?")
    expect(page.locator("button.stop")).to_have_count(0)
    expect(page.get_by_role("button", name="Try again")).to_be_focused()
    press(page, "Try again")
    expect(page.locator(".problem")).to_contain_text("No microphone")
    press(page, "Record without sound")
    expect(page.locator("#typed")).to_be_focused()
    press(page, "Cancel")
    page.evaluate("plugIn()")
    press(page, "Record")
    expect(page.locator(".level")).to_be_visible()
    press(page, "Cancel")


def test_redo_puts_back_what_undo_took_even_after_a_reload(page: Any, address: str):
    add_photo(page)
    record(page, LOOP, DASH, [(0.5, 0.9)], sound=False)
    press(page, "Stop")
    facts = page.locator(".paper > .hint")
    expect(facts).to_contain_text("3 strokes")
    whole = facts.inner_text()
    expect(page.get_by_role("button", name="Redo stroke")).to_be_disabled()
    press(page, "Undo stroke")
    press(page, "Undo stroke")
    expect(facts).to_contain_text("1 stroke ·")
    page.wait_for_timeout(100)
    page.reload()
    expect(facts).to_contain_text("1 stroke ·")
    page.locator(".pad").click()
    page.keyboard.press("Control+Shift+Z")
    expect(facts).to_contain_text("2 strokes")
    page.keyboard.press("Control+z")
    expect(facts).to_contain_text("1 stroke ·")
    page.keyboard.press("Control+y")
    page.keyboard.press("Control+y")
    expect(facts).to_have_text(whole)
    press(page, "Save")
    expect(page.get_by_role("heading", name="Saved")).to_be_visible()
    [narrative] = fetched(address + "api/narratives")["narratives"]
    assert len(narrative["trace"]["starts"]) == 3
    times = [point[2] for point in narrative["trace"]["points"]]
    assert times == sorted(times)


def test_tab_goes_round_photo_stop_cancel_and_text_while_recording(page: Any):
    add_photo(page)
    record(page, LOOP)
    places = []
    for _ in range(5):
        places.append(page.evaluate(FOCUSED))
        page.keyboard.press("Tab")
    assert [name.split()[0] for name in places] == ["pad", "primary", "quiet", "typed", "pad"]
    page.locator(".pad").focus()
    page.keyboard.press("Shift+Tab")
    expect(page.locator("#typed")).to_be_focused()


def test_undo_and_redo_of_regions_bring_back_the_choice_too(page: Any):
    add_photo(page)
    page.click("#tab-describe")
    draw(page, LOOP)
    draw(page, DASH)
    expect(page.locator(".caption")).to_have_count(2)
    before = page.locator(".card.chosen .number").inner_text()
    page.keyboard.press("Control+z")
    expect(page.locator(".card.chosen .number")).to_have_text("1")
    page.keyboard.press("Control+Shift+Z")
    expect(page.locator(".card.chosen .number")).to_have_text(before)
