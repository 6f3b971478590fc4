"""A Studio that really listens, a model that says what it is told, a voice, and a hand."""

from __future__ import annotations

import math
import os
import shutil
import struct
import threading
import wave
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from saywhere.core import Caption, Nearest, Region
from saywhere.studio.app import create_app
from saywhere.studio.settings import StudioSettings

from ..conftest import FakeLook, FakeSeer, FakeStream

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

Point = tuple[float, float]


class Talker(FakeSeer):
    """Says whatever the test puts into its mouth. unsure: about captions."""

    def __init__(self) -> None:
        super().__init__()
        self.says: list[str] = []
        self.unsure = False

    def conversation(self) -> FakeStream:
        return FakeStream(self)

    def see(self, view: Any, image: None = None, image_id: str = "photo") -> TalkerLook:
        return TalkerLook(self, view)


class TalkerLook(FakeLook):
    seer: Talker

    def captions(self, regions: Sequence[Region], how: Any = None, level: str = "object") -> list[Caption]:
        captions = []
        for caption in super().captions(regions, how, level):
            text = self.seer.says.pop(0) if self.seer.says else caption.text
            near = (Nearest(text, 0.5),)
            captions.append(replace(caption, text=text, sure=not self.seer.unsure, nearest=near))
        return captions


def browser_path() -> str:
    """Where a Chromium is; the test is skipped where there is none."""
    given = os.environ.get("SAYWHERE_CHROMIUM", "")
    found = given or next((path for name in NAMES if (path := shutil.which(name))), "")
    if not found:
        pytest.skip("needs Chromium: install it, or set SAYWHERE_CHROMIUM to its path")
    return found


@contextmanager
def serving(folder: Path, seer: Any, recogniser: Any = None, **settings: Any) -> Iterator[str]:
    """A Studio on a free port. Gives its address."""
    app = create_app(StudioSettings(folder, port=0, **settings), seer=seer, recogniser=recogniser)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", ws="none", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    for _ in range(1000):
        if server.started:
            break
        thread.join(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(10)


def write_voice(path: Path, seconds: float = 4.0, rate: int = 48_000) -> None:
    """A voice of a kind: a hum that swells and fades."""
    values = (round(9_000 * math.sin(i * 0.03) * math.sin(i / rate * 4) ** 2) for i in range(int(seconds * rate)))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(b"".join(struct.pack("<h", value) for value in values))


def place(page: Any, at: Point) -> Point:
    """Pixels of the window for fractions of the photo."""
    box = page.locator(".pad").bounding_box()
    return box["x"] + at[0] * box["width"], box["y"] + at[1] * box["height"]


def draw(page: Any, line: Sequence[Point], steps: int = 4) -> None:
    """One stroke with the mouse."""
    page.mouse.move(*place(page, line[0]))
    page.mouse.down()
    for at in line[1:]:
        page.mouse.move(*place(page, at), steps=steps)
    page.mouse.up()


# Notes every pointer event and attack as the browser itself sees it, and from when a recording counts its time.
WATCH = """
window.seen = {strokes: [], began: null, pwned: [], blocked: [], sounds: []};
for (const name of ["alert", "confirm", "prompt", "print"]) window[name] = (text) => { seen.pwned.push(String(text)); };
document.addEventListener("securitypolicyviolation", (event) => seen.blocked.push(event.violatedDirective));
window.Audio = class extends Audio { constructor(...given) { super(...given); seen.sounds.push(this); } };
const note = (event) => {
  const area = document.querySelector(".pad").getBoundingClientRect();
  const each = event.type === "pointermove" ? event.getCoalescedEvents() : [];
  for (const one of each.length ? each : [event]) {
    const [x, y] = [(one.clientX - area.left) / area.width, (one.clientY - area.top) / area.height];
    seen.strokes.at(-1).push([x, y, one.timeStamp]);
  }
};
let down = false;
addEventListener("pointerdown", (event) => {
  if (!event.target.closest?.(".pad")) return;
  down = true; seen.strokes.push([]); note(event);
}, true);
addEventListener("pointermove", (event) => { if (down) note(event); }, true);
addEventListener("pointerup", (event) => { if (down) note(event); down = false; }, true);
const now = performance.now.bind(performance);
performance.now = () => {
  const moment = now();
  if (document.querySelector(".bar.live")) seen.began ??= moment;
  return moment;
};
"""
