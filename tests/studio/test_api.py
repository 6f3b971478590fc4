"""The rest of the API as a program uses it: status, narratives, chat, errors."""

from __future__ import annotations

import base64
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from saywhere.formats.files import find_photo
from saywhere.studio.safety import HEADERS
from tests.studio.conftest import (
    BOX,
    WHOLE,
    FakeSeer,
    captions,
    narrative,
    png,
    refusal,
    upload,
    wav,
)

NOBODY = "0" * 32


# Status


def test_the_status_says_what_the_model_can_do_and_for_the_rest_what_is_missing(client: TestClient) -> None:
    status = client.get("/api/status").json()
    skills = status["model"]["skills"]
    assert status["model"]["ready"] is True
    assert list(skills) == ["caption", "ground", "narrate", "answer", "segment", "scene", "chat"]
    assert skills["caption"] == {"has": True}
    assert skills["answer"]["has"] is False
    assert skills["answer"]["why"]
    assert skills["answer"]["how"]
    assert status["limits"]["photo_bytes"] == 25_000_000
    assert status["limits"]["photo_pixels"] == 40_000_000
    assert status["limits"]["audio_s"] == 600


# Narratives


def test_a_narrative_is_kept_changed_listed_and_deleted(client: TestClient, photo: dict[str, Any]) -> None:
    sent = narrative(photo["id"])
    kept = client.post("/api/narratives", json=sent)
    assert kept.status_code == 201, kept.text
    made = kept.json()
    assert {name: made[name] for name in sent} == sent
    assert (made["origin"], made["audio"]) == ("human", False)
    address = f"/api/narratives/{made['id']}"
    assert client.get(address).json() == made
    changed = client.put(address, json={**made, "text": "a blue wall"})
    assert changed.json()["text"] == "a blue wall"
    assert changed.json()["trace"] == sent["trace"]
    assert [one["id"] for one in client.get("/api/narratives").json()["narratives"]] == [made["id"]]
    assert client.get("/api/narratives", params={"photo": NOBODY}).json() == {"narratives": []}
    assert client.delete(address).status_code == 204
    assert refusal(client.get(address), 404)["code"] == "unknown_narrative"


@pytest.mark.parametrize(
    "change",
    [
        {"trace": {"points": [[0, 0, 1], [0, 0, 0]], "starts": [0]}},
        {"trace": {"points": [[0, 0, 0]], "starts": [3]}},
        {"words": [{"text": "two words", "start_s": 0, "end_s": 1}]},
        {"words": [{"text": "a", "start_s": 1, "end_s": 0}]},
        {"words": [{"text": "a", "start_s": 0, "end_s": 1, "confidence": 1.5}]},
        {"words": [{"text": "a", "start_s": 1, "end_s": 2}, {"text": "b", "start_s": 0, "end_s": 2}]},
        {"boxes": [[0, 0, 1, 1]]},
        {"keys": [{"t": 2, "text_length": 1}, {"t": 1, "text_length": 2}]},
        {"created": "yesterday"},
        {"text": "\ud800"},
        {"photo": "../../etc/passwd"},
        {"colour": "red"},
    ],
)
def test_a_narrative_that_cannot_be_is_refused(
    client: TestClient, photo: dict[str, Any], change: dict[str, Any]
) -> None:
    body = json.dumps(narrative(photo["id"], **change))
    reply = client.post("/api/narratives", content=body, headers={"Content-Type": "application/json"})
    assert refusal(reply, 422)
    assert client.get("/api/narratives").json() == {"narratives": []}


def test_a_narrative_needs_its_photo(client: TestClient) -> None:
    assert refusal(client.post("/api/narratives", json=narrative(NOBODY)), 404)["code"] == "unknown_photo"


@pytest.fixture
def told(client: TestClient, photo: dict[str, Any]) -> str:
    """The address of a narrative."""
    return f"/api/narratives/{client.post('/api/narratives', json=narrative(photo['id'])).json()['id']}"


def test_audio_comes_back_whole_and_in_parts(client: TestClient, told: str) -> None:
    assert refusal(client.get(f"{told}/audio"), 404)["code"] == "no_audio"
    sound = wav()
    kept = client.put(f"{told}/audio", content=sound, headers={"Content-Type": "audio/wav"})
    assert kept.status_code == 200, kept.text
    assert client.get(told).json()["audio"] is True
    whole = client.get(f"{told}/audio")
    assert (whole.status_code, whole.headers["content-type"], whole.content) == (200, "audio/wav", sound)
    part = client.get(f"{told}/audio", headers={"Range": "bytes=4-11"})
    assert (part.status_code, part.content) == (206, sound[4:12])
    assert part.headers["content-range"] == f"bytes 4-11/{len(sound)}"


@pytest.mark.parametrize(
    ("asked", "status", "start", "stop"),
    [
        ("bytes=0-0", 206, 0, 1),
        ("bytes=-4", 206, -4, None),
        ("bytes=10-", 206, 10, None),
        ("bytes=9-3", 200, None, None),
        ("bytes=-", 200, None, None),
        ("lines=1-2", 200, None, None),
        ("bytes=0-1,4-5", 200, None, None),
    ],
)
def test_ranges_are_as_http_says(
    client: TestClient, told: str, asked: str, status: int, start: int | None, stop: int | None
) -> None:
    client.put(f"{told}/audio", content=wav(), headers={"Content-Type": "audio/wav"})
    reply = client.get(f"{told}/audio", headers={"Range": asked})
    assert (reply.status_code, reply.content) == (status, wav()[start:stop])


@pytest.mark.parametrize("asked", ["bytes=9999999-", "bytes=9999999-99999999", "bytes=-0"])
def test_a_range_behind_the_end_is_416_in_json(client: TestClient, told: str, asked: str) -> None:
    client.put(f"{told}/audio", content=wav(), headers={"Content-Type": "audio/wav"})
    reply = client.get(f"{told}/audio", headers={"Range": asked})
    assert refusal(reply, 416)
    assert reply.headers["content-range"] == f"bytes */{len(wav())}"


@pytest.mark.parametrize(("data", "kind", "status"), [(b"not sound", "audio/wav", 422), (wav(), "text/plain", 415)])
def test_what_is_no_audio_is_refused(client: TestClient, told: str, data: bytes, kind: str, status: int) -> None:
    assert refusal(client.put(f"{told}/audio", content=data, headers={"Content-Type": kind}), status)


def test_words_get_their_times_from_key_presses(client: TestClient, told: str) -> None:
    aligned = client.post(f"{told}/align", json={})
    assert aligned.status_code == 200, aligned.text
    timed = aligned.json()
    assert timed["timed_by"] == "keys"
    assert [word["text"] for word in timed["words"]] == ["a", "red", "wall"]
    assert client.get(told).json() == timed


def test_without_audio_and_keys_nothing_can_be_timed(client: TestClient, photo: dict[str, Any]) -> None:
    made = client.post("/api/narratives", json=narrative(photo["id"], keys=[])).json()
    assert refusal(client.post(f"/api/narratives/{made['id']}/align"), 409)["message"]


@pytest.mark.parametrize("form", ["localized_narratives", "web_annotation", "coco", "text"])
def test_an_aligned_narrative_is_exported_as_a_file(client: TestClient, told: str, form: str) -> None:
    client.post(f"{told}/align")
    file = client.get(f"{told}/export", params={"format": form})
    assert file.status_code == 200, file.text
    assert file.headers["content-disposition"].startswith("attachment; filename=")
    assert file.content


def test_a_recording_on_a_photo_of_coco_joins_with_coco(client: TestClient, tmp_path: Path) -> None:
    photo = upload(client, png(), "000000000139.jpg")
    made = client.post("/api/narratives", json=narrative(photo["id"])).json()
    line = client.get(f"/api/narratives/{made['id']}/export", params={"format": "localized_narratives"}).json()
    # As Localized Narratives and COCO itself call it.
    assert line["image_id"] == "139"
    (tmp_path / "000000000139.jpg").touch()
    assert find_photo(tmp_path, line["image_id"]) == tmp_path / "000000000139.jpg"


def test_an_unknown_export_is_refused(client: TestClient, told: str) -> None:
    assert refusal(client.get(f"{told}/export", params={"format": "exe"}), 422)


# Chat


def _data_url(data: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(data).decode()


def _chat(client: TestClient, *parts: dict[str, Any], url: str | None = None, **more: Any) -> Any:
    image = {"type": "image_url", "image_url": {"url": _data_url(png()) if url is None else url}}
    message = {"role": "user", "content": [{"type": "text", "text": "What is here?"}, image, *parts]}
    return client.post("/v1/chat/completions", json={"messages": [message], "temperature": 0.5, **more})


def test_chat_describes_an_image_and_its_regions_and_says_what_it_does_not_do(
    client: TestClient, seer: FakeSeer
) -> None:
    whole = _chat(client, model="fake").json()
    assert whole["choices"][0]["message"] == {"role": "assistant", "content": "24 patches"}
    assert "not read" in whole["saywhere"]["note"]
    both = _chat(client, {"type": "region", "region": BOX}, {"type": "region", "region": WHOLE}).json()
    assert both["choices"][0]["message"]["content"] == "6 patches\n24 patches"
    assert len(seer.looks) == 1
    assert client.get("/api/photos").json() == {"photos": []}


def test_a_message_may_carry_its_region_beside_its_content(client: TestClient) -> None:
    content = [{"type": "image_url", "image_url": {"url": _data_url(png())}}]
    messages = [{"role": "user", "content": content}, {"role": "user", "content": "and here?", "region": BOX}]
    reply = client.post("/v1/chat/completions", json={"messages": messages})
    assert reply.json()["choices"][0]["message"]["content"] == "6 patches"


def test_chat_can_stream(client: TestClient) -> None:
    lines = [line for line in _chat(client, stream=True).text.splitlines() if line]
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    assert lines[-1] == "data: [DONE]"
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == "24 patches"
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("https://example.org/cat.png", 422),
        ("http://127.0.0.1/api/status", 422),
        ("file:///etc/passwd", 422),
        ("data:image/png,plain", 422),
        ("data:image/png;base64,@@@", 422),
        ("data:image/png;base64,é", 422),
        ("data:image/png;base64,aGVsbG8=", 415),
    ],
)
def test_chat_fetches_nothing_and_takes_only_photos(client: TestClient, url: str, status: int) -> None:
    assert refusal(_chat(client, url=url), status)


def test_chat_needs_an_image_and_a_known_model(client: TestClient) -> None:
    plain = client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "hello"}]})
    assert "no image" in refusal(plain, 422)["message"]
    assert refusal(_chat(client, model="gpt"), 404)["code"] == "unknown_model"
    assert client.get("/v1/models").json()["data"][0]["id"] == "fake"


# Errors


def test_an_unforeseen_error_is_500_with_a_number_that_the_log_has(
    client: TestClient, photo: dict[str, Any], seer: FakeSeer, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("SECRET")

    seer.before_answer = broken
    with caplog.at_level(logging.ERROR):
        reply = captions(client, photo["id"], WHOLE)
    error = refusal(reply, 500)
    assert {name: reply.headers[name] for name in HEADERS} == HEADERS
    number = error["message"].rsplit(" ", 1)[1]
    assert "SECRET" not in error["message"]
    assert any(number in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("GET", "/api/nothing", 404), ("PATCH", "/api/photos", 405), ("POST", "/", 405)],
)
def test_addresses_that_are_not_there_are_json_too(client: TestClient, method: str, path: str, status: int) -> None:
    assert refusal(client.request(method, path), status)


def test_the_page_is_served_packed(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    script = client.get("/page/main.js")
    assert script.headers["content-encoding"] == "gzip"
    assert refusal(client.get("/page/../app.py"), 404)
    assert refusal(client.get("/page/%2e%2e/app.py"), 404)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"text": "x" * 20_001}, "text is too long: at most 20,000 characters"),
        ({"annotator": 5}, "annotator is not text"),
        ({"origin": ""}, "origin is empty"),
        ({"words": [{"text": "", "start_s": 0, "end_s": 1}]}, "words 0, text is empty"),
        ({"colour": "red"}, "colour is not known here"),
        (
            {"keys": [{"t": 1, "text_length": 1}, {"t": -1, "text_length": 2}]},
            "keys 1, t is too small: at least 0",
        ),
        ({"trace": {"points": [], "starts": 3}}, "trace, starts is not a list"),
    ],
)
def test_mistakes_are_told_to_people(client: TestClient, photo: dict[str, Any], changes: dict[str, Any], said: str):
    message = refusal(client.post("/api/narratives", json=narrative(photo["id"], **changes)), 422)["message"]
    assert said in message
    assert "body" not in message
    assert "should" not in message
