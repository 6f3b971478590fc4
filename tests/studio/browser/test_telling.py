"""Tell about a video: frames kept, pointed at one after the other while one speaks; saved, replayed, exported."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import wave
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest
from PIL import Image

from saywhere.formats.video_narratives import read
from saywhere.language.sound import read_wav
from saywhere.language.speech import align_words

from ..conftest import FakeRecogniser, encoded
from .handling import DASH, LOOP, add_photo, axe_violations, expect, fetched, go, microphone, press
from .running import Talker, browser_path, draw, serving

SAID = "a red square goes to the right"
SLID = "(one, t) => { one.value = t; one.dispatchEvent(new Event('input')); }"


def frame(i: int, width: int = 128, height: int = 72) -> Image.Image:
    """A red square that goes to the right."""
    image = Image.new("RGB", (width, height), (230, 230, 220))
    image.paste((200, 30, 30), (8 + 9 * i, 24, 32 + 9 * i, 48))
    return image


def write_film(path: Path, frames: int = 10) -> Path:
    av = pytest.importorskip("av", reason="needs PyAV to write a video")
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as film:
        stream = film.add_stream("libvpx", rate=5)
        stream.width, stream.height, stream.pix_fmt = 128, 72, "yuv420p"
        for i in range(frames):
            film.mux(stream.encode(av.VideoFrame.from_image(frame(i))))
        film.mux(stream.encode())
    return path


@pytest.fixture
def videos(tmp_path: Path) -> Path:
    """A folder with a video file and with the frames of another video."""
    folder = write_film(tmp_path / "given" / "square.webm").parent
    (folder / "walk").mkdir()
    for i in range(4):
        frame(i).save(folder / "walk" / f"img_{i:07d}.png")
    return folder


@pytest.fixture
def address(tmp_path: Path, seer: Talker, recogniser: FakeRecogniser, videos: Path, browser: Any) -> Iterator[str]:
    with serving(tmp_path / "studio", seer, recogniser, videos=videos) as address:
        yield address


def opened(page: Any, name: str) -> None:
    go(page, "video")
    page.locator(".pick", has_text=name).click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()


def kept_frames(page: Any, *times_s: float) -> None:
    """Frames of the video at these times, kept."""
    for number, time_s in enumerate(times_s, page.locator(".strip button").count() + 1):
        page.locator("video.screen").evaluate(
            "(video, t) => new Promise((resolve) => { video.onseeked = resolve; video.currentTime = t; })", time_s
        )
        press(page, "Keep this frame")
        expect(page.locator(".strip button")).to_have_count(number)


def told(page: Any, actor: str, sound: bool = False) -> None:
    """Two strokes on the first frame, one on the second."""
    page.fill("#actor", actor)
    microphone(page, sound)
    press(page, "Record")
    expect(page.locator("button.stop")).to_be_visible()
    draw(page, LOOP)
    draw(page, DASH)
    page.get_by_role("button", name="Frame 2 of").click()
    draw(page, DASH)


def test_a_video_is_told_about_saved_replayed_and_exported(page: Any, address: str, tmp_path: Path):
    opened(page, "square")
    expect(page.locator("video.screen")).to_be_visible()
    kept_frames(page, 0.1, 1.1, 1.7)
    page.get_by_role("button", name="Frame 2 of 3").click()  # Into sight, then left out.
    expect(page.locator("video.screen")).to_be_hidden()
    page.get_by_role("button", name="Frame 2 of 3").click()
    expect(page.get_by_role("button", name="Frame 2 of 3")).to_have_attribute("aria-pressed", "false")
    told(page, "Square")
    page.locator("#typed").press_sequentially("red square", delay=30)
    press(page, "Stop")
    expect(page.locator(".paper")).to_contain_text("3 strokes")
    page.fill("#annotator", "ada")
    press(page, "Save")
    expect(page.locator(".word")).to_have_text(["red", "square"])
    [kept] = fetched(address + "api/video-narratives")["narratives"]
    assert (kept["actor"], kept["stroke_frames"], kept["timed_by"]) == ("Square", [0, 0, 1], "keys")
    assert kept["frames"] == ["frame_00000100", "frame_00001700"]
    page.reload()
    go(page, "video")
    expect(page.locator(".said:visible .word")).to_have_text(["red", "square"])
    points, starts = kept["trace"]["points"], kept["trace"]["starts"]
    scrub = page.get_by_role("slider", name="Time")
    for stroke, shown in ((0, "frame_00000100"), (2, "frame_00001700")):
        current = page.locator(".strip [aria-current]")
        for _ in range(20):  # A page that was just opened may load its replay once more, from the start.
            scrub.evaluate(SLID, points[starts[stroke]][2] + 0.02)  # The slider goes in hundredths.
            page.wait_for_timeout(50)
            if current.get_attribute("title") == shown:
                break
        expect(current).to_have_attribute("title", shown)
    with page.expect_download() as download:
        page.get_by_role("link", name="Export what was told").click()
    [video] = read(download.value.path())
    assert (video.video_id, video.annotator_id) == ("square", "ada")
    [square] = video.actors
    assert square.chosen_keyframes == (0, 2)
    assert np.allclose(square.narrative.trace.points, points, atol=1e-4)


def test_strokes_lie_where_and_when_they_were_drawn(page: Any, address: str):
    opened(page, "walk")
    told(page, "Square")
    # Page up turns back, also while one types.
    page.locator("#typed").press("PageUp")
    draw(page, LOOP)
    press(page, "Stop")
    press(page, "Save")
    expect(page.get_by_role("heading", name="Saved")).to_be_visible()
    [kept] = fetched(address + "api/video-narratives")["narratives"]
    assert kept["stroke_frames"] == [0, 0, 1, 0]
    seen = page.evaluate("seen")
    drawn = np.concatenate([np.array(stroke) - [0, 0, seen["began"]] for stroke in seen["strokes"]])
    apart = np.array(kept["trace"]["points"]) * [1, 1, 1000] - drawn
    assert np.abs(apart[:, :2]).max() < 1e-3
    assert np.abs(apart[:, 2]).max() < 1
    with urlopen(address + "api/export") as reply, zipfile.ZipFile(io.BytesIO(reply.read())) as packed:
        [line] = packed.read("videos/narratives.jsonl").splitlines()
        assert "videos/frames/walk/img_0000001.png" in packed.namelist()
    [actor] = json.loads(line)["actor_narratives"]
    assert [len(stroke) for stroke in actor["traces"]] == [len(stroke) for stroke in seen["strokes"]]
    assert [point["kf_idx"] for stroke in actor["traces"] for point in stroke[:1]] == [0, 0, 1, 0]


def test_what_is_lacking_is_said_before_a_recording_starts(page: Any):
    opened(page, "square")
    press(page, "Record")
    expect(page.locator(".problem")).to_contain_text("No frame is chosen.")
    kept_frames(page, 0.5)
    press(page, "Record")
    expect(page.locator(".problem")).to_contain_text("whom you tell about")
    expect(page.locator("#actor")).to_be_focused()


def test_a_recording_comes_back_after_its_page_died_and_another_actor_follows(page: Any, address: str):
    opened(page, "walk")
    told(page, "Square")
    press(page, "Stop")
    page.fill("#transcript", "kept")
    press(page, "Undo stroke")
    page.reload()
    go(page, "video")
    press(page, "Open")
    expect(page.locator("#transcript")).to_have_value("kept")
    expect(page.locator(".paper")).to_contain_text("2 strokes")
    press(page, "Redo stroke")
    press(page, "Save")
    press(page, "Tell about another actor")
    told(page, "background")
    press(page, "Stop")
    press(page, "Save")
    expect(page.get_by_role("heading", name="Saved")).to_be_visible()
    kept = fetched(address + "api/video-narratives")["narratives"]
    assert [(one["actor"], one["stroke_frames"]) for one in kept] == [("Square", [0, 0, 1]), ("background", [0, 0, 1])]
    page.locator(".paper").get_by_role("button", name="All videos").first.click()
    page.get_by_role("button", name="Delete what was told of background").click()
    expect(page.get_by_role("button", name="background")).to_have_count(0)
    go(page, "record")
    add_photo(page)
    expect(page.locator(".pad img")).to_have_attribute("alt", "kitchen.png")
    expect(page.locator("video.screen")).to_have_count(0)


def test_a_video_and_frames_of_this_computer_are_opened(page: Any, address: str, videos: Path):
    go(page, "video")
    files = page.get_by_label("A video file, or its frames")
    files.set_input_files(
        [{"name": "mine.webm", "mimeType": "video/webm", "buffer": (videos / "square.webm").read_bytes()}]
    )
    expect(page.get_by_role("heading", name="mine")).to_be_visible()
    kept_frames(page, 0.5)
    press(page, "All videos")
    pictures = [{"name": f"shot{i}.png", "mimeType": "image/png", "buffer": encoded(frame(i))} for i in (10, 9)]
    files.set_input_files(pictures)
    expect(page.get_by_role("heading", name="shot9")).to_be_visible()
    expect(page.locator(".strip button")).to_have_count(2)
    footage = {one["name"]: one for one in fetched(address + "api/footage")["footage"]}
    assert [one["name"] for one in footage["mine"]["frames"]] == ["frame_00000500"]
    assert (footage["mine"]["file"], footage["mine"]["width"]) == (None, 128)
    assert [one["name"] for one in footage["shot9"]["frames"]] == ["shot10", "shot9"]


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (360, "dark")])
def test_axe_finds_nothing_while_a_video_is_told_about(open_page: Callable[..., Any], width: int, theme: str):
    page = open_page(width, color_scheme=theme, reduced_motion="reduce")
    found: dict[str, list[str]] = {}

    def check(state: str) -> None:
        found.update({f"{state}: {rule}": places for rule, places in axe_violations(page).items()})
        assert page.evaluate("document.documentElement.scrollWidth") == width

    go(page, "video")
    expect(page.get_by_role("heading", name="Tell about a video")).to_be_visible()
    check("nothing told")
    page.locator(".pick", has_text="square").click()
    expect(page.get_by_role("heading", name="square")).to_be_visible()
    kept_frames(page, 0.3, 1.5)
    check("frames kept")
    told(page, "Square")
    check("recording")
    press(page, "Stop")
    page.fill("#transcript", "a red square")
    check("review")
    press(page, "Save")
    expect(page.get_by_role("heading", name="Saved")).to_be_visible()
    check("saved")
    page.locator(".paper").get_by_role("button", name="All videos").first.click()
    expect(page.get_by_role("link", name="Export what was told")).to_be_visible()
    check("told")
    assert found == {}


def spoken(path: Path) -> Path:
    """A synthesized voice that says what is told, after a moment of silence."""
    tool = shutil.which("espeak-ng")
    if tool is None:
        pytest.skip("needs espeak-ng")
    said = path.with_name("said.wav")
    subprocess.run([tool, "-v", "en-us", "-s", "130", "-w", str(said), SAID], check=True)
    with wave.open(str(said)) as source, wave.open(str(path), "wb") as target:
        target.setparams(source.getparams())
        target.writeframes(bytes(2 * source.getframerate()))
        target.writeframes(source.readframes(source.getnframes()))
        target.writeframes(bytes(source.getframerate()))
    return path


def test_words_of_a_spoken_narration_get_their_times_from_the_voice(browser: Any, address: str, tmp_path: Path):
    """The voice comes through the microphone; its words get their times by listening."""
    voice = spoken(tmp_path / "voice.wav")
    arguments = ["--no-sandbox", "--headless=new", "--disable-gpu", "--use-fake-device-for-media-stream"]
    arguments += ["--use-fake-ui-for-media-stream", f"--use-file-for-fake-audio-capture={voice}%noloop"]
    speaking = browser.browser_type.launch(executable_path=browser_path(), args=arguments)
    try:
        page = speaking.new_context(permissions=["microphone"], viewport={"width": 1280, "height": 800}).new_page()
        page.goto(address)
        page.wait_for_selector("html[data-started]")
        opened(page, "walk")
        page.fill("#actor", "Square")
        press(page, "Record")
        expect(page.locator("button.stop")).to_be_visible()
        draw(page, LOOP, steps=30)
        expect(page.get_by_role("timer")).to_have_text(re.compile(r"^(4\.[2-9]|[5-9])"))  # All of it is heard.
        press(page, "Stop")
        page.fill("#transcript", SAID)
        press(page, "Save")
        expect(page.locator(".paper")).to_contain_text("Word times come from the voice.")
    finally:
        speaking.close()
    [kept] = fetched(address + "api/video-narratives")["narratives"]
    assert (kept["timed_by"], kept["audio"]) == ("audio", True)
    assert [word["text"] for word in kept["words"]] == SAID.split()
    # As in the voice's own file, but for the moment at which the recording began.
    late_s = [
        word["start_s"] - heard.start_s
        for word, heard in zip(kept["words"], align_words(read_wav(voice), SAID.split()), strict=True)
    ]
    assert np.abs(np.array(late_s) - np.median(late_s)).max() < 0.25
