"""What a person does on the page, and what the server has afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from ..conftest import encoded, picture
from .running import draw

LOOP = [(0.3, 0.3), (0.45, 0.4), (0.4, 0.6), (0.25, 0.6), (0.2, 0.4), (0.3, 0.3)]
DASH = [(0.7, 0.2), (0.8, 0.3), (0.9, 0.2)]


def expect(locator: Any) -> Any:
    """Playwright's, imported when it is used: without Playwright, tests are skipped and not broken."""
    from playwright.sync_api import expect as expected

    return expected(locator)


def add_photo(page: Any, name: str = "kitchen.png", width: int = 640, height: int = 480) -> None:
    before = page.locator(".thumb").count()
    data = encoded(picture(width, height + before))  # Another size, so that it is another photo.
    page.set_input_files("input[type=file]", [{"name": name, "mimeType": "image/png", "buffer": data}])
    expect(page.locator(".thumb")).to_have_count(before + 1)
    expect(page.locator(".pad.loading")).to_have_count(0)


def go(page: Any, mode: str) -> None:
    page.click(f"#tab-{mode}")


def press(page: Any, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def microphone(page: Any, on: bool) -> None:
    button = page.get_by_role("button", name="Microphone")
    if (button.get_attribute("aria-pressed") == "true") != on:
        button.click()


def record(page: Any, *lines: list[tuple[float, float]], sound: bool = True) -> None:
    microphone(page, sound)
    press(page, "Record")
    expect(page.locator("button.stop")).to_be_visible()
    for line in lines:
        draw(page, line)
        page.wait_for_timeout(150)


def export(page: Any, name: str) -> bytes:
    page.locator(".export summary").click()
    with page.expect_download() as download:
        page.locator(".export button", has_text=name).click()
    return Path(download.value.path()).read_bytes()


def fetched(address: str) -> Any:
    with urlopen(address) as reply:
        return json.load(reply)


def sent(address: str, values: Any) -> Any:
    request = Request(address, json.dumps(values).encode(), {"Content-Type": "application/json"})
    with urlopen(request) as reply:
        return json.load(reply)


def axe_violations(page: Any) -> dict[str, list[str]]:
    """What axe finds against the page as it is now: the rule, and the markup of each place."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs pip install axe-playwright-python")
    page.wait_for_timeout(50)
    violations = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return {one["id"]: [node["html"] for node in one["nodes"]] for one in violations}
