"""Recordings written down over the API: as jobs, with their progress, and stopped when nobody waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from .conftest import FakeRecogniser, refusal, wav

Open = Callable[..., TestClient]
SOUND = {"Content-Type": "audio/wav"}


def begin(client: TestClient, data: bytes, **query: str) -> str:
    reply = client.post("/api/transcriptions", content=data, headers=SOUND, params=query)
    assert reply.status_code == 202, reply.text
    return str(reply.json()["job"])


def ended(client: TestClient, job: str) -> dict[str, Any]:
    for _ in range(1000):
        told = dict(client.get(f"/api/jobs/{job}").json())
        if told["state"] not in ("waiting", "running"):
            return told
        time.sleep(0.01)
    raise AssertionError("the job never ends")


def test_a_recording_is_written_down_in_the_language_that_was_chosen_or_found_out(open_studio: Open):
    ear = FakeRecogniser("ein rotes Haus", "de")
    client = open_studio(recogniser=ear)
    job = ended(client, begin(client, wav(0.5)))
    assert job["result"] == {"text": "ein rotes Haus", "language": "de", "aligned": False}
    assert (job["done"], job["total"]) == (10, 10)
    job = ended(client, begin(client, wav(0.5), language="en"))
    assert (job["result"]["language"], job["result"]["aligned"]) == ("en", True)
    assert ear.asked == [(0.5, None), (0.5, "en")]


def test_a_transcription_that_is_stopped_stops_listening(open_studio: Open):
    ear = FakeRecogniser()
    ear.hold.clear()
    client = open_studio(recogniser=ear)
    job = begin(client, wav())
    assert client.delete(f"/api/jobs/{job}").status_code == 204
    assert ended(client, job)["state"] == "cancelled"
    ear.hold.set()
    assert ended(client, begin(client, wav()))["result"]["text"] == "a red wall"


def test_a_silent_recording_is_said_to_be_silent(open_studio: Open):
    client = open_studio(recogniser=FakeRecogniser(text=""))
    job = ended(client, begin(client, wav()))
    assert job["state"] == "failed"
    assert "silent" in job["error"]


def test_what_is_no_recording_or_no_known_language_is_refused(open_studio: Open):
    client = open_studio(recogniser=FakeRecogniser())
    refusal(client.post("/api/transcriptions", content=b"no", headers={"Content-Type": "text/plain"}), 415)
    refusal(client.post("/api/transcriptions", content=b"no", headers=SOUND), 422)
    reply = client.post("/api/transcriptions", content=wav(), headers=SOUND, params={"language": "xx"})
    assert "language" in refusal(reply, 422)["message"]


def test_without_a_recogniser_the_status_says_how_to_get_one(
    open_studio: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SAYWHERE_CACHE", str(tmp_path / "empty"))
    monkeypatch.setattr("saywhere.studio.transcription._PACKAGES", ())
    client = open_studio()
    facts = client.get("/api/status").json()["transcription"]
    assert (facts["has"], facts["how"], facts["aligned"]) == (False, "saywhere assets fetch whisper-base", ["en"])
    said = refusal(client.post("/api/transcriptions", content=wav(), headers=SOUND), 503)
    assert said["hint"] == "saywhere assets fetch whisper-base"
    monkeypatch.setattr("saywhere.studio.transcription._PACKAGES", ("no_such_package",))
    assert client.get("/api/status").json()["transcription"]["how"] == "pip install 'saywhere[transcribe]'"


def test_the_status_reads_the_recognisers_languages_once_and_lets_others_go_on(
    open_studio: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    described = tmp_path / "generation_config.json"
    described.write_text('{"lang_to_id": {"<|en|>": 1, "<|de|>": 2}}')

    def in_its_own_thread(_: str) -> bool:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return True

    monkeypatch.setattr("saywhere.studio.transcription._PACKAGES", ())
    monkeypatch.setattr("saywhere.studio.transcription.is_cached", in_its_own_thread)
    monkeypatch.setattr("saywhere.studio.transcription.folder_of", lambda _: tmp_path)
    client = open_studio()
    assert client.get("/api/status").json()["transcription"]["languages"] == ["de", "en"]
    described.unlink()
    assert client.get("/api/status").json()["transcription"]["languages"] == ["de", "en"]
