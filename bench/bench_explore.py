"""Explore by touch with the embedded default model: from a move of the mouse to the words given to the browser's voice.

    python -m bench explore

Needs Playwright and a Chromium. How long a voice takes to begin depends on the computer's speech engine and is no part
of it. The moves jump over a sample photo, so that most of them meet something new.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from tests.studio.browser.running import browser_path

from bench.bench_studio import Client, Row, studio

PHOTO = Path(__file__).parents[1] / "examples" / "kitchen.jpg"
MOVES, ASKED_MS = 400, 150.0
# Notes when the pointer moved and when words were given to the voice, on the same clock.
WATCH = """
window.waits = []; let moved = 0;
window.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
Object.defineProperty(window, "speechSynthesis", { value: {
  speaking: false, pending: false, cancel() {},
  speak() { if (moved) waits.push(performance.now() - moved); moved = 0; },
} });
addEventListener("pointermove", (event) => { moved = event.timeStamp; }, true);
"""


def run() -> list[Row]:
    """Rows (name, measured, asked, ok)."""
    with tempfile.TemporaryDirectory() as folder, studio(Path(folder)) as (_, address):
        client = Client(address)
        client.until_ready()
        waits = np.array(_waits(address))
    p50, p95 = np.percentile(waits, [50, 95]).tolist()
    name = f"Explore, from a move to the first words given to the voice, {len(waits)} of {MOVES} moves"
    return [(name, f"p50 {p50:.1f} ms, p95 {p95:.1f} ms", f"p95 < {ASKED_MS:g} ms", p95 < ASKED_MS)]


def _waits(address: str) -> list[float]:
    from playwright.sync_api import sync_playwright

    rng = np.random.default_rng(0)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.add_init_script(WATCH)
        page.goto(address)
        page.set_input_files("input[type=file]", str(PHOTO))
        page.click("#tab-explore")
        page.wait_for_selector(".told-all", timeout=120_000)
        box: Any = page.locator(".pad").bounding_box()
        for x, y in rng.random((MOVES, 2)).tolist():
            page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        waits: list[float] = page.evaluate("waits")
        browser.close()
    return waits
