"""Where frames and voices of videos lie, and on which frame each stroke and each word is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from saywhere.formats.video_files import VideoFiles
from saywhere.formats.video_narratives import VideoNarrative, read
from tests.videos import NAMES, write_video


def one(path: Path) -> VideoNarrative:
    [video] = read(path)
    assert isinstance(video, VideoNarrative)
    return video


@pytest.mark.parametrize("above", ["", "frames", "JPEGImages"])
def test_frames_lie_in_a_folder_of_their_video(tmp_path: Path, above: str) -> None:
    video = one(write_video(tmp_path, frames=(0, 2)))
    (tmp_path / "frames").rename(tmp_path / "moved")
    (tmp_path / above).mkdir(exist_ok=True)
    (tmp_path / "moved" / "c1a40349").rename(tmp_path / above / "c1a40349")
    found = VideoFiles(tmp_path).frames(video)
    assert [path and path.name for path in found] == [f"{NAMES[0]}.png", None, f"{NAMES[2]}.png"]


def test_voices_are_found_as_they_are_named_or_by_their_last_name(tmp_path: Path) -> None:
    video = one(write_video(tmp_path))
    cat, background = video.actors
    files = VideoFiles(tmp_path)
    assert files.recording(cat) == tmp_path / "recordings" / "0_0.wav"
    assert files.recording(background) is None
    named = tmp_path / "recordings" / "OVIS_train" / "0_0.wav"
    named.parent.mkdir()
    named.write_bytes(b"")
    assert files.recording(cat) == named


def test_names_that_lead_elsewhere_find_nothing(tmp_path: Path) -> None:
    video = one(write_video(tmp_path / "data"))
    files = VideoFiles(tmp_path / "data" / "recordings")
    for audio in ("../frames/c1a40349/img_0000005.png", "../recordings/0_0.wav", str(tmp_path / "x.wav"), "0_0.txt"):
        actor = replace(video.actors[0], narrative=replace(video.actors[0].narrative, audio=audio))
        assert files.recording(actor) is None
    for name in ("..", ".", "", "../data/frames/c1a40349", "a\\b"):
        assert set(VideoFiles(tmp_path / "data").frames(replace(video, video_id=name))) == {None}


def test_the_pen_is_lifted_wherever_it_leaves_a_frame(tmp_path: Path) -> None:
    cat = one(write_video(tmp_path)).actors[0]
    trace, frames = cat.by_frame()
    assert (list(trace.starts), frames) == ([0, 2, 4], (0, 2, 0))
    np.testing.assert_array_equal(trace.points, cat.narrative.trace.points)
    nobody = replace(cat, narrative=replace(cat.narrative, trace=type(trace)(np.empty((0, 3)))), keyframes=())
    assert nobody.by_frame()[1] == ()
    assert nobody.word_places()[0] == (None, None, None)


def test_each_word_is_on_the_frame_that_was_pointed_at_meanwhile(tmp_path: Path) -> None:
    frames, boxes = one(write_video(tmp_path)).actors[0].word_places()
    assert frames == (0, 2, 0)
    np.testing.assert_allclose(boxes.boxes_xyxy[1], [0.6, 0.6, 0.8, 0.7])
    np.testing.assert_allclose(boxes.boxes_xyxy[2], [0.3, 0.3, 0.4, 0.4])
