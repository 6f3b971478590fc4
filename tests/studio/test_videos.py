"""Videos that somebody told about, through the API: their frames, voices and what is missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from saywhere.core.errors import InvalidFile
from tests.studio.conftest import refusal
from tests.videos import NAMES, write_video


def test_a_studio_without_videos_says_so(client: TestClient) -> None:
    assert client.get("/api/status").json()["videos"] == 0
    assert client.get("/api/videos").json() == {"videos": [], "skipped": 0}
    assert refusal(client.get("/api/videos/0"), 404)["code"] == "unknown_video"


def test_a_video_comes_with_its_frames_traces_and_voice(open_studio: Callable[..., TestClient], tmp_path: Path) -> None:
    client = open_studio(videos=write_video(tmp_path / "videos"))
    assert client.get("/api/status").json()["videos"] == 1
    [listed] = client.get("/api/videos").json()["videos"]
    facts = {"id": 0, "video": "c1a40349", "annotator": "103", "actors": ["Cat", "background"], "frames": 3}
    assert listed == facts
    video = client.get("/api/videos/0").json()
    assert (video["width"], video["height"]) == (64, 36)
    assert [frame["name"] for frame in video["frames"]] == list(NAMES)
    cat, background = video["actors"]
    assert [word["text"] for word in cat["words"]] == ["A", "cat", "sleeps."]
    assert (cat["trace"]["starts"], cat["stroke_frames"], cat["word_frames"]) == ([0, 2, 4], [0, 2, 0], [0, 2, 0])
    assert cat["boxes"][1] == [0.6, 0.6, 0.8, 0.7]
    assert (background["words"], background["audio"]) == ([], None)
    picture = client.get(video["frames"][1]["url"])
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
    voice = client.get(cat["audio"], headers={"Range": "bytes=0-3"})
    assert (voice.status_code, voice.headers["content-type"], voice.content) == (206, "audio/wav", b"RIFF")
    assert refusal(client.get("/api/videos/0/actors/1/audio"), 404)["code"] == "unknown_recording"
    assert refusal(client.get("/api/videos/0/actors/2/audio"), 404)["code"] == "unknown_actor"
    assert refusal(client.get("/api/videos/0/frames/3"), 404)["code"] == "unknown_frame"


def test_missing_and_damaged_frames_are_named_and_the_rest_is_there(
    open_studio: Callable[..., TestClient], tmp_path: Path
) -> None:
    path = write_video(tmp_path / "videos", frames=(0, 2))
    (path.parent / "frames" / "c1a40349" / f"{NAMES[2]}.png").write_bytes(b"no picture")
    client = open_studio(videos=path)
    frames = client.get("/api/videos/0").json()["frames"]
    assert [frame["missing"] for frame in frames] == ["", "it has no file", f"{NAMES[2]}.png is no PNG, JPEG or WebP"]
    assert [frame["url"] is None for frame in frames] == [False, True, True]
    for frame in (1, 2):
        assert refusal(client.get(f"/api/videos/0/frames/{frame}"), 404)


def test_bad_records_are_counted_and_passed_over(open_studio: Callable[..., TestClient], tmp_path: Path) -> None:
    path = write_video(tmp_path / "videos")
    good = path.read_text(encoding="utf-8")
    broken = json.loads(good) | {"keyframe_names": []}
    path.write_text(f"{good}{json.dumps(broken)}\nno json\n", encoding="utf-8")
    listed = open_studio(videos=path).get("/api/videos").json()
    assert (len(listed["videos"]), listed["skipped"]) == (1, 2)


def test_real_videos_have_all_their_frames_and_voices(
    open_studio: Callable[..., TestClient], shared: Callable[[str], Path]
) -> None:
    client = open_studio(videos=shared("data/video_narratives/OVIS_train_sample.jsonl"))
    for number in range(3):
        video = client.get(f"/api/videos/{number}").json()
        assert all(frame["url"] for frame in video["frames"])
        assert all(actor["audio"] and actor["words"] for actor in video["actors"])
    assert client.get("/api/videos/0/actors/0/audio").headers["content-type"] == "audio/webm"
    assert client.get("/api/videos/2/frames/9").headers["content-type"] == "image/webp"


COCO = '{"images": [], "annotations": [{"id": 1, "image_id": 1, "caption": "a cat"}]}'


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be opened"),
        ("", "is empty"),
        ("hello", "in no format"),
        (COCO, "video narratives are needed here"),
    ],
)
def test_a_file_without_videos_is_said_before_the_studio_opens(
    open_studio: Callable[..., TestClient], tmp_path: Path, content: str | None, reason: str
) -> None:
    path = tmp_path / "videos.jsonl"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidFile, match=reason):
        open_studio(videos=path)
