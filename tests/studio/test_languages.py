"""The language of what was told: kept, changed with history, exported, imported, and what it means for words' times."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from saywhere.core.errors import InvalidValue
from saywhere.formats.video_narratives import VideoNarrative, read
from saywhere.studio import timing
from saywhere.studio.app import create_people_app
from saywhere.studio.settings import StudioSettings

from .conftest import HOME, narrative, png, refusal, upload, wav
from .test_footage import brought
from .test_footage import told as told_of_film
from .test_people import WORDS, desk_of
from .test_transcription import ended

SOUND = {"Content-Type": "audio/wav"}
GERMAN = {"text": "ein rotes Haus", "language": "de", "keys": []}


def sent(client: TestClient, photo: str, **changes: Any) -> dict[str, Any]:
    reply = client.post("/api/narratives", json=narrative(photo, **changes))
    assert reply.status_code == 201, reply.text
    return dict(reply.json())


def imported(client: TestClient, data: bytes, name: str = "told.jsonl") -> dict[str, Any]:
    headers = {"Content-Type": "application/octet-stream", "X-File-Name": name}
    job = client.post("/api/imports", content=data, headers=headers).json()["job"]
    return dict(ended(client, job)["result"])


def test_a_narrative_keeps_its_language_and_every_version_has_its_own(client: TestClient, photo: Any) -> None:
    told = sent(client, photo["id"], language="de")
    address = f"/api/narratives/{told['id']}"
    assert client.get(address).json()["language"] == "de"
    changed = client.put(address, json=told | {"language": "nl"}).json()
    assert (changed["language"], changed["version"]) == ("nl", 2)
    versions = client.get(f"{address}/versions").json()["versions"]
    assert [one["language"] for one in versions] == ["nl", "de"]
    assert client.post(f"{address}/versions/1/restore", json={}).json()["language"] == "de"
    unknown = client.put(address, json=told | {"language": None, "version": None}).json()
    assert unknown["language"] is None
    assert sent(client, photo["id"])["language"] is None


@pytest.mark.parametrize("language", ["German, I think", "e", "en_GB", "", "x" * 40])
def test_what_is_no_tag_of_a_language_is_refused(client: TestClient, photo: Any, language: str) -> None:
    reply = client.post("/api/narratives", json=narrative(photo["id"], language=language))
    refusal(reply, 422)
    assert client.get("/api/narratives").json() == {"narratives": []}


def test_every_export_says_the_language_where_its_format_can(client: TestClient, photo: Any) -> None:
    found: dict[str, list[Any]] = {}
    for language in ("de", "en", None):
        told = sent(client, photo["id"], language=language)
        files = {
            name: client.get(f"/api/narratives/{told['id']}/export", params={"format": name}).json()
            for name in ("localized_narratives", "web_annotation", "coco")
        }
        found.setdefault("official", []).append(files["localized_narratives"].get("language"))
        found.setdefault("annotation", []).append(files["web_annotation"]["body"][0].get("language"))
        found.setdefault("coco", []).append(files["coco"]["annotations"][0].get("language"))
    # Official readers of Localized Narratives know no such key, and all of theirs are English.
    assert found == {"official": ["de", None, None], "annotation": ["de", "en", None], "coco": ["de", "en", None]}


@pytest.mark.parametrize("name", ["localized_narratives.jsonl", "captions.json", "annotations.jsonld"])
def test_a_language_comes_out_with_everything_and_goes_in_again(
    open_studio: Callable[..., TestClient], tmp_path: Path, name: str
) -> None:
    here, there = open_studio(), open_studio(folder="other")
    photo = upload(here, png())
    sent(here, photo["id"], **GERMAN)
    with zipfile.ZipFile(io.BytesIO(here.get("/api/export").content)) as packed:
        [version] = packed.read("studio.jsonl").splitlines()
        data = packed.read(name)
    assert json.loads(version)["language"] == "de"
    upload(there, png())
    assert imported(there, data, name)["new"] == 1
    [taken] = there.get("/api/narratives").json()["narratives"]
    assert (taken["text"], taken["language"]) == (GERMAN["text"], "de")


def test_a_narrative_that_was_imported_before_languages_were_noted_is_known_again(
    client: TestClient, photo: Any
) -> None:
    line = {"image_id": "kitchen", "caption": "ein Haus", "timed_caption": [], "traces": []}
    assert imported(client, json.dumps(line).encode())["new"] == 1
    assert imported(client, json.dumps(line | {"language": "de"}).encode())["known"] == 1
    assert len(client.get("/api/narratives").json()["narratives"]) == 1


def test_what_is_told_of_a_video_has_a_language_too(
    client: TestClient, open_studio: Callable[..., TestClient], tmp_path: Path
) -> None:
    footage = brought(client)
    reply = client.post("/api/video-narratives", json=told_of_film(footage, language="de"))
    assert reply.json()["language"] == "de"
    path = tmp_path / "told.jsonl"
    path.write_bytes(client.get(f"/api/footage/{footage['id']}/export").content)
    [video] = read(path)
    assert isinstance(video, VideoNarrative)
    assert video.actors[0].narrative.language == "de"
    elsewhere = open_studio(videos=path, folder="other")
    assert elsewhere.get("/api/videos/0").json()["actors"][0]["language"] == "de"


def test_only_the_voice_of_an_aligned_language_is_listened_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    listened: list[list[str]] = []

    def hear(_: Any, words: list[str]) -> Any:
        listened.append(list(words))
        raise InvalidValue("the text", "is not what is said in the recording")

    monkeypatch.setattr("saywhere.language.speech.align_words", hear)
    sound = tmp_path / "audio.wav"
    sound.write_bytes(wav())
    told = narrative("0" * 32, text="ein Haus", keys=[])
    for language in ("en", "en-GB", None):
        with pytest.raises(InvalidValue, match="not what is said"):
            timing.align(told | {"language": language}, sound)
    assert len(listened) == 3
    with pytest.raises(InvalidValue, match="is de, and only words in en are found") as refused:
        timing.align(told | {"language": "de"}, sound)
    assert "drag" in refused.value.hint
    assert len(listened) == 3


def test_words_of_other_languages_get_their_times_from_the_keys(client: TestClient, photo: Any) -> None:
    text = "ein rotes Haus"
    keys = [{"t": 0.1 * (i + 1), "text_length": i + 1} for i in range(len(text))]
    told = sent(client, photo["id"], text=text, typed=text, keys=keys, language="de")
    address = f"/api/narratives/{told['id']}"
    client.put(f"{address}/audio", content=wav(), headers=SOUND)
    timed = client.post(f"{address}/align", json={}).json()
    assert (timed["timed_by"], [word["text"] for word in timed["words"]]) == ("keys", text.split())
    assert timed["language"] == "de"
    silent = sent(client, photo["id"], **GERMAN)
    client.put(f"/api/narratives/{silent['id']}/audio", content=wav(), headers=SOUND)
    assert "is de" in refusal(client.post(f"/api/narratives/{silent['id']}/align", json={}), 409)["message"]


def test_a_reviewer_is_told_the_language(tmp_path: Path) -> None:
    desk = desk_of(tmp_path / "studio", 1)
    desk.add("annotator", ["a1"])
    desk.add("reviewer", ["r1"])
    desk.assign(1)
    desk.log.close()
    app = create_people_app(StudioSettings(tmp_path / "studio"))
    with TestClient(app, HOME) as annotator:
        reviewer = TestClient(app, HOME)
        annotator.post("/api/people/enter", json={"code": "A1"})
        reviewer.post("/api/people/enter", json={"code": "R1"})
        [photo] = annotator.get("/api/people/tasks").json()["photos"]
        sent(annotator, photo["id"], annotator="A1", words=WORDS, language="de")
        [waits] = reviewer.get("/api/people/reviews").json()["submissions"]
    assert waits["language"] == "de"
