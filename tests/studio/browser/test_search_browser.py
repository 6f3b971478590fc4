"""The search box over the photo strip, as somebody with a mouse, with keys alone, or with a screen reader uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lancedb")

from saywhere.models.patchioner.seer import Seer
from tests.models.patchioner_seeing import photo
from tests.studio.test_photo_library import COLOURS, FOUND, plain, seer

from ..conftest import encoded, narrative
from .handling import axe_violations, expect, fetched, go, press, sent
from .running import draw, serving


@pytest.fixture
def seeing() -> Seer:
    return seer(found=FOUND)


@pytest.fixture
def address(tmp_path: Path, seeing: Seer, browser: Any) -> Iterator[str]:
    """A Studio with a photo of a cat, a dog, a cup, and all of them."""
    with serving(tmp_path / "studio", seeing) as address:
        yield address


@pytest.fixture
def stocked(open_page: Callable[..., Any]) -> Callable[..., Any]:
    """Opens a page with photos on its shelf."""

    def start(*size: int, **how: Any) -> Any:
        page = open_page(*size, **how)
        pictures = {name: encoded(plain(name)) for name in COLOURS} | {"all.png": encoded(photo(400))}
        files = [{"name": name, "mimeType": "image/png", "buffer": data} for name, data in pictures.items()]
        page.set_input_files("input[type=file]", files)
        expect(page.locator(".shelf ul:not(.found) .thumb")).to_have_count(4)
        return page

    return start


def _looked_at(page: Any) -> None:
    """All photos are looked at once somebody goes to the box."""
    page.locator("#seek").focus()
    for _ in range(1200):
        facts = fetched(f"{page.url.partition('#')[0]}api/library")
        if facts["photos"] == 4 and not facts["doing"]:
            return
        page.wait_for_timeout(50)
    pytest.fail(f"the photos were never looked at: {facts}")


def _search(page: Any, text: str) -> None:
    _looked_at(page)
    page.fill("#seek", text)
    press(page, "Search")
    expect(page.locator(".found .thumb")).to_have_count(4)


def test_a_text_finds_photos_and_lights_the_place(stocked: Callable[..., Any]) -> None:
    page = stocked()
    _search(page, "a dog")
    first = page.locator(".found .thumb").first
    assert first.get_attribute("aria-label").startswith("1 of 4: dog.png")
    expect(first.locator("svg.lamp-lit")).to_have_count(1)
    page.locator(".found .thumb[aria-label*='all.png']").click()
    expect(page.locator(".pad img")).to_have_attribute("alt", "all.png")
    lit = page.locator(".hits rect.shape:not(.under)")
    expect(lit).to_have_count(1)
    # The dog is at the top right.
    assert (float(lit.get_attribute("x")), float(lit.get_attribute("y"))) == (500, 0)
    expect(page.locator(".seek .says")).to_contain_text("all.png: dog, top right")
    press(page, "All photos")
    expect(page.locator(".shelf ul:not(.found) .thumb").first).to_be_visible()
    expect(page.locator(".hits rect")).to_have_count(0)


def test_keys_alone_search_and_open(stocked: Callable[..., Any]) -> None:
    page = stocked()
    _looked_at(page)
    page.locator("#tab-record").focus()
    page.keyboard.press("/")
    expect(page.locator("#seek")).to_be_focused()
    page.keyboard.type("a cup")
    page.keyboard.press("Enter")
    expect(page.locator(".found .thumb")).to_have_count(4)
    expect(page.locator("#says")).to_have_text("4 photos, best first.")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.keyboard.press("Home")
    expect(page.locator(".found .thumb").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".pad img")).to_have_attribute("alt", "cup.png")
    expect(page.locator("#says")).to_contain_text("cup.png")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#seek")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".found")).to_be_hidden()
    expect(page.locator("#says")).to_have_text("All photos")


def test_an_example_is_drawn_by_mouse_or_keys_and_the_mode_has_its_hand_back(stocked: Callable[..., Any]) -> None:
    page = stocked()
    go(page, "describe")
    expect(page.locator(".pad.drawable")).to_have_count(1)
    _looked_at(page)
    page.get_by_role("button", name="Like an example: draw it on the photo").click()
    expect(page.locator(".pad")).to_be_focused()
    draw(page, [(0.1, 0.1), (0.4, 0.9)])
    expect(page.locator(".seek .says")).to_contain_text("with something like your box")
    assert page.locator(".found .thumb").first.get_attribute("aria-label").startswith("1 of")
    # By keys: the pen down, a few steps, the pen up.
    page.get_by_role("button", name="Like an example: draw it on the photo").click()
    page.get_by_role("toolbar", name="How to draw the example").get_by_role("button", name="Trace").click()
    page.locator(".pad").focus()
    for key in ("Space", "ArrowRight", "ArrowRight", "Space"):
        page.keyboard.press(key)
    expect(page.locator(".seek .says")).to_contain_text("with something like your trace")
    # What is drawn now is described again.
    expect(page.locator(".card")).to_have_count(0)
    draw(page, [(0.6, 0.1), (0.9, 0.4)])
    expect(page.locator(".card")).to_have_count(1)
    page.get_by_role("button", name="Search all photos for what is like region 1").click()
    expect(page.locator(".seek .says")).to_contain_text("best first")


def test_what_was_said_is_found_with_its_words(stocked: Callable[..., Any], address: str) -> None:
    page = stocked()
    ids = {one["name"]: one["id"] for one in fetched(f"{address}api/photos")["photos"]}
    words = [{"text": word, "start_s": at, "end_s": at + 0.4} for at, word in enumerate(("a", "dog", "sleeps"))]
    sent(f"{address}api/narratives", narrative(ids["cup.png"], text="a dog sleeps", words=words))
    _looked_at(page)
    page.get_by_label("Where to search").select_option("said")
    page.fill("#seek", "a dog")
    press(page, "Search")
    expect(page.locator(".found .thumb")).to_have_count(1)
    page.locator(".found .thumb").click()
    expect(page.locator(".seek .says")).to_contain_text("“a dog sleeps”, ada at 0.0 s, pointing")
    expect(page.locator(".hits rect.shape:not(.under)")).to_have_count(1)


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (360, "dark")])
def test_axe_finds_nothing_and_nothing_is_cut_off(stocked: Callable[..., Any], width: int, theme: str) -> None:
    page = stocked(width, 800, color_scheme=theme, reduced_motion="reduce", has_touch=width == 360)
    found: dict[str, list[str]] = {}

    def check(state: str) -> None:
        found.update({f"{state}: {rule}": places for rule, places in axe_violations(page).items()})
        assert page.evaluate("document.documentElement.scrollWidth") == width

    check("before")
    _search(page, "a dog")
    page.locator(".found .thumb").first.click()
    check("found")
    page.get_by_role("button", name="Like an example: draw it on the photo").click()
    check("drawing an example")
    assert found == {}
