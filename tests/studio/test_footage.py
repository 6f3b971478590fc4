"""Videos told about in the Studio: frames brought, narratives kept, Video Localized Narratives written."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from saywhere.core.errors import InvalidFile
from saywhere.formats.video_narratives import VideoNarrative, read
from saywhere.studio import footage as footage_files
from saywhere.studio.footage import FootageStore
from saywhere.studio.settings import Limits
from tests.studio.conftest import png, refusal, wav
from tests.videos import NAMES, write_video

WORDS = [{"text": "A", "start_s": 0.0, "end_s": 0.2}, {"text": "cat.", "start_s": 0.3, "end_s": 0.8}]
TRACE = {"points": [[0.1, 0.2, 0.0], [0.2, 0.3, 0.25], [0.6, 0.6, 0.5], [0.7, 0.7, 0.75]], "starts": [0, 2]}


def brought(client: TestClient, name: str = "my cat.webm", frames: int = 3) -> dict[str, Any]:
    footage = client.post("/api/footage", json={"name": name}).json()
    for i in range(frames):
        headers = {"Content-Type": "image/png", "X-File-Name": f"frame_{i:08d}.png"}
        reply = client.post(f"/api/footage/{footage['id']}/frames", content=png(32 + i), headers=headers)
        assert reply.status_code == 201, reply.text
    return client.get(f"/api/footage/{footage['id']}").json()


def told(footage: dict[str, Any], **changes: Any) -> dict[str, Any]:
    frames = [frame["name"] for frame in footage["frames"]][::2]
    text = {"text": "A cat.", "words": WORDS, "trace": TRACE, "annotator": "ada"}
    about = {"footage": footage["id"], "actor": "Cat", "frames": frames, "stroke_frames": [1, 0]}
    return text | about | {"created": "2026-01-02T03:04:05.006Z"} | changes


def test_a_video_is_brought_frame_by_frame_and_comes_back_under_its_name(client: TestClient) -> None:
    footage = brought(client)
    assert (footage["name"], footage["width"], footage["file"], footage["told"]) == ("my cat", 32, None, 0)
    assert [frame["name"] for frame in footage["frames"]] == ["frame_00000000", "frame_00000001", "frame_00000002"]
    picture = client.get(footage["frames"][1]["url"])
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
    assert brought(client) == footage  # The same video again is no second one.
    assert client.get("/api/footage").json()["footage"] == [footage]


def test_for_one_frame_no_other_is_opened(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    footage = brought(client)
    brought(client, "dog.webm")
    opened: list[str] = []
    before = footage_files._is_picture

    def noted(path: Path) -> bool:
        opened.append(path.stem)
        return before(path)

    monkeypatch.setattr(footage_files, "_is_picture", noted)
    assert client.get(footage["frames"][1]["url"]).status_code == 200
    assert opened == ["frame_00000001"]
    refusal(client.get(f"/api/footage/{footage['id']}/frames/none"), 404)


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [("...", png(), 422), ("frame.png", b"no picture", 415), ("frame.png", b"\x89PNG\r\n\x1a\n", 422)],
)
def test_what_is_no_frame_is_refused_and_nothing_is_kept(
    client: TestClient, name: str, content: bytes, status: int
) -> None:
    footage = brought(client, frames=0)
    headers = {"Content-Type": "image/png", "X-File-Name": name}
    refusal(client.post(f"/api/footage/{footage['id']}/frames", content=content, headers=headers), status)
    assert client.get(f"/api/footage/{footage['id']}").json()["frames"] == []


def test_names_cannot_lead_out_of_the_folder(client: TestClient, tmp_path: Path) -> None:
    footage = client.post("/api/footage", json={"name": "../../etc/passwd"}).json()
    assert footage["name"] == "passwd"
    headers = {"Content-Type": "image/png", "X-File-Name": "..%2F..%2Fevil.png"}
    assert client.post(f"/api/footage/{footage['id']}/frames", content=png(), headers=headers).json()["name"] == "evil"
    assert (tmp_path / "studio" / "footage" / "passwd" / "evil.png").is_file()
    assert refusal(client.get(f"/api/footage/{footage['id']}/frames/..%2F..%2Fphotos"), 404)


def test_what_is_told_is_replayed_with_the_frame_of_each_stroke_and_word(client: TestClient) -> None:
    kept = client.post("/api/video-narratives", json=told(brought(client)))
    assert kept.status_code == 201, kept.text
    reply = kept.json()
    assert (reply["actor"], reply["frames"]) == ("Cat", ["frame_00000000", "frame_00000002"])
    assert (reply["stroke_frames"], reply["word_frames"]) == ([1, 0], [1, 0])
    assert reply["boxes"][1] == [0.6, 0.6, 0.7, 0.7]
    address = f"/api/video-narratives/{reply['id']}"
    assert client.get(address).json() == reply
    again = client.put(address, json=reply | {"text": "A cat. Hm"})  # What a reply has can be sent back.
    assert (again.json()["text"], again.json()["version"]) == ("A cat. Hm", 2)
    assert client.get("/api/footage").json()["footage"][0]["told"] == 1
    assert client.delete(address).status_code == 204
    assert client.get("/api/video-narratives").json() == {"narratives": []}
    assert client.get("/api/narratives").json() == {"narratives": []}


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"stroke_frames": [0]}, 422, "invalid_value"),
        ({"stroke_frames": [0, 2]}, 422, "invalid_value"),
        ({"frames": ["frame_00000009"], "stroke_frames": [0, 0]}, 404, "unknown_frame"),
        ({"footage": "0" * 32}, 404, "unknown_footage"),
        ({"actor": ""}, 422, "invalid_request"),
        ({"text": "A dog."}, 422, "invalid_value"),
    ],
)
def test_what_does_not_fit_is_refused(client: TestClient, changes: dict[str, Any], status: int, code: str) -> None:
    reply = client.post("/api/video-narratives", json=told(brought(client)) | changes)
    assert refusal(reply, status)["code"] == code
    assert client.get("/api/video-narratives").json() == {"narratives": []}


def test_words_get_times_from_the_keys_and_the_voice_is_played_back(client: TestClient) -> None:
    keys = [{"t": 0.1 * (i + 1), "text_length": i + 1} for i in range(6)]
    sent = told(brought(client), words=[], keys=keys, typed="A cat.")
    address = f"/api/video-narratives/{client.post('/api/video-narratives', json=sent).json()['id']}"
    timed = client.post(f"{address}/align", json={}).json()
    assert (timed["timed_by"], [word["text"] for word in timed["words"]]) == ("keys", ["A", "cat."])
    assert timed["word_frames"] == [1, 0]
    refusal(client.get(f"{address}/audio"), 404)
    assert client.put(f"{address}/audio", content=wav(), headers={"Content-Type": "audio/wav"}).json()["audio"]
    assert client.get(f"{address}/audio").content == wav()


def test_the_export_is_video_localized_narratives_as_they_were_told(client: TestClient, tmp_path: Path) -> None:
    footage = brought(client)
    refusal(client.get(f"/api/footage/{footage['id']}/export"), 409)
    first = client.post("/api/video-narratives", json=told(footage)).json()["id"]
    client.put(f"/api/video-narratives/{first}/audio", content=wav(), headers={"Content-Type": "audio/wav"})
    later = {"actor": "background", "created": "2026-01-02T04:00:00Z", "words": []}
    sent = told(footage, frames=["frame_00000001"], stroke_frames=[0, 0], **later)
    client.post("/api/video-narratives", json=sent)
    client.post("/api/video-narratives", json=told(footage, annotator="7"))
    path = tmp_path / "told.jsonl"
    path.write_bytes(client.get(f"/api/footage/{footage['id']}/export").content)
    seven, ada = read(path)
    assert isinstance(seven, VideoNarrative)
    assert isinstance(ada, VideoNarrative)
    assert (ada.video_id, ada.annotator_id, seven.annotator_id) == ("my cat", "ada", "7")
    cat, background = ada.actors
    assert (cat.name, background.name, background.keyframes) == ("Cat", "background", (1, 1, 1, 1))
    assert cat.keyframes == (2, 2, 0, 0)
    assert cat.chosen_keyframes == (0, 2)
    assert cat.word_spans == ((0, 1), (2, 6))
    assert np.allclose(cat.narrative.trace.points, TRACE["points"], atol=1e-6)
    assert cat.recording_start_ms == 1767323045006


def test_what_is_told_is_changed_with_history_and_the_zip_has_every_version(client: TestClient) -> None:
    first = client.post("/api/video-narratives", json=told(brought(client))).json()
    address = f"/api/video-narratives/{first['id']}"
    moved = client.put(address, json=first | {"stroke_frames": [0, 0], "actor": "Tom"}).json()
    assert (moved["version"], moved["stroke_frames"], moved["word_frames"]) == (2, [0, 0], [0, 0])
    late = client.put(address, json=first | {"actor": "Mine"})  # Made from the first version, too.
    assert refusal(late, 409)["code"] == "changed_meanwhile"
    listed = client.get(f"{address}/versions").json()["versions"]
    assert [(one["version"], one["strokes"], one["words"]) for one in listed] == [(2, 2, 2), (1, 2, 2)]
    assert client.get(f"{address}/versions/1").json() == first
    refusal(client.get(f"{address}/versions/3"), 404)
    back = client.post(f"{address}/versions/1/restore", json={}).json()
    assert back == first | {"version": 3, "changed": back["changed"]}
    with zipfile.ZipFile(io.BytesIO(client.get("/api/export").content)) as packed:
        versions = [json.loads(line) for line in packed.read("videos/studio.jsonl").splitlines()]
        assert packed.read("studio.jsonl") == b""
    assert [(one["version"], one["actor"]) for one in versions] == [(3, "Cat"), (2, "Tom"), (1, "Cat")]
    refusal(client.get(f"/api/narratives/{first['id']}/versions"), 404)


def test_the_zip_holds_all_that_replays_it_elsewhere(
    client: TestClient, open_studio: Callable[..., TestClient], tmp_path: Path
) -> None:
    kept = client.post("/api/video-narratives", json=told(brought(client))).json()["id"]
    client.put(f"/api/video-narratives/{kept}/audio", content=wav(), headers={"Content-Type": "audio/wav"})
    with zipfile.ZipFile(io.BytesIO(client.get("/api/export").content)) as packed:
        packed.extractall(tmp_path / "zip")
    elsewhere = open_studio(videos=tmp_path / "zip" / "videos" / "narratives.jsonl", folder="other")
    video = elsewhere.get("/api/videos/0").json()
    cat = video["actors"][0]
    assert (cat["text"], cat["stroke_frames"], cat["word_frames"]) == ("A cat.", [2, 0], [2, 0])
    assert [frame["url"] is not None for frame in video["frames"]] == [True, False, True]
    assert elsewhere.get(cat["audio"]).content == wav()
    # And it can be told about there.
    [footage] = elsewhere.get("/api/footage").json()["footage"]
    assert footage["name"] == "my cat"
    frames = [frame["name"] for frame in footage["frames"]]
    assert elsewhere.post("/api/video-narratives", json=told(footage, frames=frames)).status_code == 201


def test_a_folder_of_videos_is_told_about_and_only_what_was_told_is_copied(
    open_studio: Callable[..., TestClient], tmp_path: Path
) -> None:
    given = write_video(tmp_path / "given").parent
    (given / "run.webm").write_bytes(b"\x1aE\xdf\xa3 a video")
    (given / "frames" / "c1a40349" / "notes.png").write_bytes(b"no picture")
    client = open_studio(videos=given)
    frames, run = client.get("/api/footage").json()["footage"]
    assert ([frame["name"] for frame in frames["frames"]], frames["file"]) == (list(NAMES), None)
    assert (run["name"], run["frames"]) == ("run", [])
    played = client.get(run["file"], headers={"Range": "bytes=0-3"})
    assert (played.status_code, played.headers["content-type"], len(played.content)) == (206, "video/webm", 4)
    refusal(client.get(f"/api/footage/{frames['id']}/file"), 404)
    assert not (tmp_path / "studio" / "footage").exists()
    client.post("/api/video-narratives", json=told(frames))
    assert sorted(path.stem for path in (tmp_path / "studio" / "footage").rglob("*.png")) == [NAMES[0], NAMES[2]]
    assert client.get("/api/videos").json()["videos"] == []


def test_a_folder_without_videos_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="has no videos"):
        FootageStore(tmp_path / "footage", tmp_path, (), Limits())
