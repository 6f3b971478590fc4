"""`make pictures`: the pictures of the README and of the Studio's guide, made by using the Studio as a person would.

The embedded model looks at sample photographs in headless Chromium; nothing is touched up. Look at what it writes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from playwright.sync_api import expect, sync_playwright

import saywhere as sw
from saywhere.assets import fetch
from saywhere.cli.studio import take_photos
from saywhere.studio.app import create_app
from saywhere.studio.settings import StudioSettings

HERE = Path(__file__).resolve().parent
IMAGES, EXAMPLES = HERE / "images", HERE.parent / "examples"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ("--no-sandbox", "--headless=new", "--disable-gpu", "--hide-scrollbars")
PATIENCE_MS = 60_000
PHOTOS = ("dogs.jpg", "street.jpg", "cat.jpg")
Point = tuple[float, float]
SPOON = ((0.66, 0.66), (0.605, 0.54), (0.55, 0.66), (0.605, 0.79), (0.66, 0.66))


def main() -> None:
    """Write every picture."""
    expect.set_options(timeout=PATIENCE_MS)
    browser_path = os.environ.get("SAYWHERE_CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)
    if browser_path is None:
        sys.exit("pictures need Chromium: install it, or set SAYWHERE_CHROMIUM to its path")
    subprocess.run([sys.executable, EXAMPLES / "demo.py", HERE.parent / "out"], check=True, stdout=subprocess.DEVNULL)
    shrink(HERE.parent / "out" / "demo.png", IMAGES / "demo.png")
    with tempfile.TemporaryDirectory() as folder, studio(Path(folder)) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=list(ARGUMENTS))
        for name, play in PICTURES.items():
            page = browser.new_page(**SIZES.get(name, {"viewport": {"width": 1280, "height": 800}}))
            page.goto(address)
            page.wait_for_selector("html[data-started]")
            play(page)
            page.mouse.move(2, 2)
            page.wait_for_timeout(400)
            page.screenshot(path=IMAGES / f"studio-{name}.png")
            page.close()
            print(IMAGES / f"studio-{name}.png")  # noqa: T201 - a script's own words


def shrink(source: Path, target: Path, width: int = 1000) -> None:
    """The picture, so wide, in few colours."""
    from PIL import Image

    with Image.open(source) as image:
        size = (width, round(width * image.height / image.width))
        small = image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    small.quantize(256, dither=Image.Dither.NONE).save(target, optimize=True)


@contextmanager
def studio(folder: Path) -> Iterator[str]:
    """A Studio with the embedded model, three photographs of ours and a cup of coffee. Gives its address."""
    photos = folder / "photos"
    photos.mkdir()
    for name in PHOTOS:
        shutil.copy(EXAMPLES / "photos" / name, photos)
    shutil.copy(fetch("sample-photos") / "coffee.png", photos)
    settings = StudioSettings(folder / "studio", port=0)
    take_photos(photos, settings)
    app = create_app(settings, seer=sw.load())
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", ws="none", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.05)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(10)


def choose(page: Any, photo: str, mode: str) -> None:
    page.click(f"#tab-{mode}")
    page.get_by_role("button", name=photo).first.click()
    expect(page.locator(".pad.loading")).to_have_count(0)


def draw(page: Any, key: str, line: Sequence[Point]) -> None:
    """One stroke with the tool of this key."""
    page.keyboard.press(key)
    box = page.locator(".pad").bounding_box()
    at = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in line]
    page.mouse.move(*at[0])
    page.mouse.down()
    for point in at[1:]:
        page.mouse.move(*point, steps=12)
    page.mouse.up()


def describe(page: Any) -> None:
    choose(page, "coffee", "describe")
    draw(page, "t", SPOON)
    draw(page, "b", ((0.7, 0.62), (0.99, 0.98)))
    draw(page, "b", ((0.29, 0.04), (0.71, 0.79)))
    page.keyboard.press("w")
    expect(page.locator(".card .caption")).to_have_count(4)


def ask(page: Any) -> None:
    choose(page, "cat", "ask")
    draw(page, "b", ((0.1, 0.22), (0.98, 0.76)))
    for question in ("what is this?", "how many cats are there?", "is there a person?"):
        page.fill("#question", question)
        page.keyboard.press("Enter")
        expect(page.locator(".turn").last.locator(".asked")).to_contain_text(question)
        expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()


def find(page: Any) -> None:
    choose(page, "dogs", "find")
    page.fill("#sentence", "two dogs in front of a window")
    page.keyboard.press("Enter")
    expect(page.locator(".word")).to_have_count(7)


def replay(page: Any) -> None:
    choose(page, "coffee", "narrate")
    page.get_by_role("button", name="Narrate", exact=True).click()
    page.get_by_role("button", name="Keep", exact=True).click()
    page.get_by_role("button", name="Close this notice").click()
    page.click("#tab-replay")
    expect(page.locator(".narratives li")).to_have_count(1)
    page.get_by_role("button", name="Play", exact=True).first.click()
    page.wait_for_timeout(2500)
    page.keyboard.press("Escape")


PICTURES: dict[str, Callable[[Any], None]] = {"describe": describe, "ask": ask, "find": find, "replay": replay}
SIZES: dict[str, dict[str, Any]] = {
    "replay": {"viewport": {"width": 360, "height": 740}, "device_scale_factor": 2, "color_scheme": "dark"}
}

if __name__ == "__main__":
    main()
