"""The page in a real browser. Where there is none, these tests are skipped and say so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..conftest import FakeRecogniser
from .running import WATCH, Talker, browser_path, serving, write_voice


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    path = browser_path()
    sync_api.expect.set_options(timeout=15_000)
    voice = tmp_path_factory.mktemp("voice") / "voice.wav"
    write_voice(voice)
    arguments = ["--no-sandbox", "--headless=new", "--disable-gpu", "--use-fake-device-for-media-stream"]
    arguments += ["--use-fake-ui-for-media-stream", f"--use-file-for-fake-audio-capture={voice}"]
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def seer() -> Talker:
    return Talker()


@pytest.fixture
def recogniser() -> FakeRecogniser:
    return FakeRecogniser()


@pytest.fixture
def address(tmp_path: Path, seer: Talker, recogniser: FakeRecogniser, browser: Any) -> Iterator[str]:
    with serving(tmp_path / "studio", seer, recogniser) as address:
        yield address


@pytest.fixture
def open_page(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Opens the page: open_page(width=…, …). What goes wrong in it is an error of the test."""
    opened: list[Any] = []
    wrong: list[str] = []

    def start(width: int = 1280, height: int = 800, **how: Any) -> Any:
        size = {"width": width, "height": height}
        context = browser.new_context(viewport=size, permissions=["microphone"], accept_downloads=True, **how)
        context.set_default_timeout(15_000)
        context.add_init_script(WATCH)
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


@pytest.fixture
def page(open_page: Callable[..., Any]) -> Any:
    return open_page()
