"""What is asked of the model: regions, texts, the line before it, and jobs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from saywhere.core.errors import UnknownName
from saywhere.studio.looks import LookCache
from saywhere.studio.settings import Limits
from tests.studio.conftest import (
    BOX,
    GRID,
    WHOLE,
    FakeLook,
    FakeSeer,
    Gate,
    ScenicSeer,
    captions,
    png,
    refusal,
    upload,
)

NOBODY = "0" * 32


# Seeing


def test_a_photo_is_looked_at_once_for_many_questions(
    client: TestClient, photo: dict[str, Any], seer: FakeSeer
) -> None:
    first, second = (client.post(f"/api/photos/{photo['id']}/look").json() for _ in range(2))
    assert (first["cached"], second["cached"]) == (False, True)
    assert first["grid"] == list(GRID)
    captions(client, photo["id"], WHOLE)
    client.post(f"/api/photos/{photo['id']}/ground", json={"text": "a cup"})
    assert seer.looks == [photo["id"]]


def test_the_regions_of_one_request_are_one_batch(client: TestClient, photo: dict[str, Any], seer: FakeSeer) -> None:
    reply = captions(client, photo["id"], *[BOX] * 100)
    assert len(reply.json()["captions"]) == 100
    assert seer.batches == [100]


@pytest.mark.parametrize(
    ("region", "patches"),
    [
        (WHOLE, 24),
        ({"kind": "box", "xyxy": [0, 0, 0.5, 0.5]}, 6),
        ({"kind": "boxes", "boxes": [[0, 0, 0.1, 0.1], [0.9, 0.9, 1, 1]]}, 2),
        ({"kind": "point", "x": 0.5, "y": 0.5}, 1),
        ({"kind": "polygon", "points": [[0, 0], [0.5, 0], [0.5, 0.5], [0, 0.5]]}, 6),
        ({"kind": "trace", "points": [[0.1, 0.1, 0], [0.9, 0.1, 0.5], [0.9, 0.9, 1]], "starts": [0, 2]}, 3),
    ],
)
def test_every_kind_of_region_is_weighed(
    client: TestClient, photo: dict[str, Any], region: dict[str, Any], patches: int
) -> None:
    plain = captions(client, photo["id"], region).json()["captions"][0]
    told = captions(client, photo["id"], region, provenance=True).json()["captions"][0]
    assert plain["text"] == told["text"] == f"{patches} patches"
    assert plain["weights"] is None
    assert np.shape(told["weights"]) == GRID
    assert np.sum(told["weights"]) == pytest.approx(1)
    assert told["nearest"] == [{"sentence": "a thing on a table", "cosine": 0.5}]


def test_a_lasso_that_crosses_itself_a_thousand_times_is_captioned(client: TestClient, photo: dict[str, Any]) -> None:
    points = np.random.default_rng(0).random((2_000, 2)).tolist()
    assert captions(client, photo["id"], {"kind": "polygon", "points": points}).status_code == 200


@pytest.mark.parametrize(
    ("region", "reason"),
    [
        ({"kind": "box", "xyxy": [0.5, 0, 0.1, 1]}, "no area"),
        ({"kind": "box", "xyxy": [2, 2, 3, 3]}, "covers nothing"),
        ({"kind": "box", "xyxy": [0, 0, 1]}, "xyxy 3 is missing"),
        ({"kind": "point", "x": 1.5, "y": 0.5}, "covers nothing"),
        ({"kind": "polygon", "points": [[2, 2], [3, 2], [3, 3]]}, "covers nothing"),
        ({"kind": "polygon", "points": [[0, 0], [1, 1]]}, "at least 3"),
        ({"kind": "trace", "points": [[0, 0, 1], [0, 0, 0]]}, "back in time"),
        ({"kind": "trace", "points": [[0, 0, 1]], "starts": [0, 5]}, "stay below 1"),
        ({"kind": "trace", "points": [[5, 5, 1]]}, "none of its 1 points"),
        ({"kind": "point", "x": 1e300, "y": 0.5}, "x is too large: at most 10"),
        ({"kind": "star"}, "is of no known 'kind'"),
        ({"kind": "point", "x": 0.5, "y": 0.5, "z": 1}, "z is not known here"),
        ({}, "has no 'kind'"),
    ],
)
def test_a_region_that_cannot_be_is_refused_and_named(
    client: TestClient, photo: dict[str, Any], region: dict[str, Any], reason: str
) -> None:
    message = refusal(captions(client, photo["id"], WHOLE, region), 422)["message"]
    assert reason in message
    assert "region 1" in message or "regions 1" in message


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_not_json_or_not_finite_are_refused(
    client: TestClient, photo: dict[str, Any], number: str
) -> None:
    body = f'{{"regions": [{{"kind": "point", "x": {number}, "y": 0.5}}]}}'
    reply = client.post(
        f"/api/photos/{photo['id']}/captions", content=body, headers={"Content-Type": "application/json"}
    )
    assert refusal(reply, 422)["code"] == "invalid_request"


def test_what_is_not_json_is_refused_even_where_it_is_not_looked_at(client: TestClient) -> None:
    body = '{"messages": [{"role": "user", "content": "hello"}], "temperature": NaN}'
    reply = client.post("/v1/chat/completions", content=body, headers={"Content-Type": "application/json"})
    assert "NaN is not JSON" in refusal(reply, 422)["message"]


@pytest.mark.parametrize("body", ["", "{", "[]", "null", '{"regions": []}', '{"regions": "\\ud800"}', "[" * 100_000])
def test_bodies_that_are_no_request_are_refused(client: TestClient, photo: dict[str, Any], body: str) -> None:
    reply = client.post(
        f"/api/photos/{photo['id']}/captions", content=body, headers={"Content-Type": "application/json"}
    )
    assert refusal(reply, 400 if len(body) > 1_000 else 422)


def test_too_many_regions_points_or_words_are_refused_with_413(open_studio: Callable[..., TestClient]) -> None:
    client = open_studio(Limits(regions=3, points=5, text_words=4))
    photo = upload(client, png())
    line = {"kind": "trace", "points": [[0.5, 0.5, 0]] * 3}
    assert captions(client, photo["id"], *[BOX] * 3).status_code == 200
    assert refusal(captions(client, photo["id"], *[BOX] * 4), 413)
    assert refusal(captions(client, photo["id"], line, line), 413)
    ground = f"/api/photos/{photo['id']}/ground"
    assert client.post(ground, json={"text": "a b c d"}).status_code == 200
    assert refusal(client.post(ground, json={"text": "a b c d e"}), 413)


def test_a_grounded_text_gives_a_box_or_nothing_for_each_word(client: TestClient, photo: dict[str, Any]) -> None:
    told = client.post(f"/api/photos/{photo['id']}/ground", json={"text": "the red cup"}).json()
    assert [word["text"] for word in told["words"]] == ["the", "red", "cup"]
    assert told["boxes"] == [None, [0.25, 0.25, 0.75, 0.75], [0.25, 0.25, 0.75, 0.75]]
    assert (told["origin"], told["timed_by"], told["id"]) == ("fake", "even", None)
    assert told["trace"]["starts"][0] == 0
    assert refusal(client.post(f"/api/photos/{photo['id']}/ground", json={"text": " "}), 422)


def test_a_told_photo_can_be_kept_as_it_is(client: TestClient, photo: dict[str, Any]) -> None:
    told = client.post(f"/api/photos/{photo['id']}/narrate", json={"most": 1}).json()
    assert told["text"] == "A thing. Another."
    assert len(told["boxes"]) == len(told["words"]) == 3
    kept = client.post("/api/narratives", json=told)
    assert kept.status_code == 201, kept.text
    assert {name: kept.json()[name] for name in ("text", "words", "trace", "boxes", "origin")} == {
        name: told[name] for name in ("text", "words", "trace", "boxes", "origin")
    }


def test_a_model_without_a_skill_says_so(open_studio: Callable[..., TestClient]) -> None:
    mute = FakeSeer()
    mute.skills = ("caption",)  # type: ignore[assignment]
    client = open_studio(model=mute)
    photo = upload(client, png())
    error = refusal(client.post(f"/api/photos/{photo['id']}/ground", json={"text": "a cup"}), 409)
    assert error["code"] == "no_skill"
    assert "--model" in error["hint"]


def test_captions_are_given_at_the_level_asked_for(open_studio: Callable[..., TestClient]) -> None:
    client = open_studio(model=ScenicSeer())
    photo = upload(client, png())
    assert client.get("/api/status").json()["model"]["levels"] == ["object", "scene", "action"]
    assert client.get("/api/status").json()["model"]["skills"]["scene"] == {"has": True}
    plain = captions(client, photo["id"], WHOLE).json()
    assert (plain["level"], plain["captions"][0]["text"]) == ("object", "24 patches")
    for level in ("scene", "action"):
        told = captions(client, photo["id"], WHOLE, BOX, level=level, provenance=True).json()
        assert told["level"] == level
        assert [one["text"].startswith(f"{level} of ") for one in told["captions"]] == [True, True]
        assert np.shape(told["captions"][0]["weights"]) == GRID


@pytest.mark.parametrize(
    ("model", "level", "status", "code"),
    [
        (FakeSeer, "scene", 409, "no_skill"),
        (FakeSeer, "action", 422, "invalid_value"),
        (ScenicSeer, "rationale", 404, "unknown_level"),
        (ScenicSeer, "", 422, "invalid_request"),
        (ScenicSeer, 3, 422, "invalid_request"),
    ],
)
def test_a_level_that_the_model_does_not_have_is_refused(
    open_studio: Callable[..., TestClient], model: type[FakeSeer], level: object, status: int, code: str
) -> None:
    client = open_studio(model=model())
    error = refusal(captions(client, upload(client, png())["id"], WHOLE, level=level), status)
    assert error["code"] == code


def test_a_model_without_levels_has_only_the_one_of_objects_and_one_that_loads_has_none(
    client: TestClient, open_studio: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.get("/api/status").json()["model"]["levels"] == ["object"]
    gate = Gate()
    _loading(monkeypatch, lambda _: (gate(), FakeSeer())[1])
    assert open_studio(model="load").get("/api/status").json()["model"]["levels"] == []
    gate.opened.set()


@pytest.mark.parametrize("what", ["look", "captions", "ground", "narrate", "file"])
def test_photos_that_are_not_there_are_404(client: TestClient, what: str) -> None:
    body = {"captions": {"regions": [WHOLE]}, "ground": {"text": "x"}, "narrate": {}}.get(what)
    address = f"/api/photos/{NOBODY}/{what}"
    reply = client.get(address) if what == "file" else client.post(address, json=body)
    assert refusal(reply, 404)["code"] == "unknown_photo"


# The line before the model


def test_a_full_line_is_429_and_goes_on_afterwards(open_studio: Callable[..., TestClient], seer: FakeSeer) -> None:
    client = open_studio(Limits(queue=1))
    photo = upload(client, png())
    seer.before_answer = gate = Gate()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(captions, client, photo["id"], WHOLE)
        assert gate.reached.wait(20)
        full = captions(client, photo["id"], WHOLE)
        gate.opened.set()
        assert waiting.result().status_code == 200
    assert refusal(full, 429)["code"] == "busy"
    assert full.headers["retry-after"] == "1"
    assert captions(client, photo["id"], WHOLE).status_code == 200


def _loading(monkeypatch: pytest.MonkeyPatch, load: Callable[[str], Any]) -> None:
    monkeypatch.setattr("saywhere.loading.load", load)


def test_a_model_that_still_loads_is_waited_for_but_not_forever(
    open_studio: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    _loading(monkeypatch, lambda _: (gate(), FakeSeer())[1])
    client = open_studio(Limits(load_wait_s=0.2), model="load")
    photo = upload(client, png())
    status = client.get("/api/status").json()["model"]
    assert (status["ready"], status["error"]) == (False, "")
    assert "loading" in status["skills"]["caption"]["why"]
    late = captions(client, photo["id"], WHOLE)
    assert refusal(late, 503)["code"] == "model_loading"
    assert late.headers["retry-after"]
    threading.Timer(0.05, gate.opened.set).start()
    assert captions(client, photo["id"], WHOLE).status_code == 200
    assert client.get("/api/status").json()["model"]["ready"] is True


def test_a_model_that_cannot_be_loaded_is_503_with_the_reason(
    open_studio: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(name: str) -> Any:
        raise UnknownName("model", name, ["other"])

    _loading(monkeypatch, load)
    client = open_studio(model="load")
    photo = upload(client, png())
    error = refusal(captions(client, photo["id"], WHOLE), 503)
    assert error["code"] == "no_model"
    assert "unknown model" in error["message"]
    assert "unknown model" in client.get("/api/status").json()["model"]["error"]
    assert client.get("/api/photos").status_code == 200


@pytest.mark.parametrize("bound", ["number", "bytes"])
def test_the_cache_of_looks_is_bounded_in_number_and_bytes(seer: FakeSeer, tmp_path: Path, bound: str) -> None:
    (tmp_path / "a.png").write_bytes(png())
    look: FakeLook = seer.look(tmp_path / "a.png")
    size = 3 * look.view.patches.nbytes
    cache = LookCache(2, 10**9) if bound == "number" else LookCache(10, 2 * size)
    for key in "abc":
        cache.put(key, look)
    assert [key for key in "abc" if cache.get(key)] == ["b", "c"]
    assert (len(cache), cache.bytes) == (2, 2 * size)
    cache.drop("c")
    assert cache.bytes == size


def test_the_look_used_longest_ago_is_the_first_to_go(seer: FakeSeer, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    look = seer.look(tmp_path / "a.png")
    cache = LookCache(2, 10**9)
    cache.put("a", look)
    cache.put("b", look)
    cache.get("a")
    cache.put("c", look)
    assert [key for key in "abc" if cache.get(key)] == ["a", "c"]


# Jobs


def _events(text: str) -> list[tuple[str, dict[str, Any]]]:
    blocks = [dict(line.split(": ", 1) for line in block.splitlines()) for block in text.strip().split("\n\n")]
    return [(block["event"], json.loads(block["data"])) for block in blocks]


def test_many_looks_are_a_job_that_can_be_followed(client: TestClient, seer: FakeSeer) -> None:
    ids = [upload(client, png(8 + i, 8))["id"] for i in range(3)]
    started = client.post("/api/looks", json={"photos": ids})
    assert started.status_code == 202
    address = f"/api/jobs/{started.json()['job']}"
    stream = client.get(f"{address}/events")
    assert stream.headers["content-type"].startswith("text/event-stream")
    events = _events(stream.text)
    assert {name for name, _ in events[:-1]} <= {"progress"}
    assert events[-1][0] == "end"
    assert [job["done"] for _, job in events] == sorted(job["done"] for _, job in events)
    assert events[-1][1] == client.get(address).json()
    assert events[-1][1]["state"] == "done"
    assert events[-1][1]["result"] == {"looked": ids, "failed": []}
    assert seer.looks == ids


def test_a_job_can_be_stopped(client: TestClient, photo: dict[str, Any], seer: FakeSeer) -> None:
    seer.before_answer = gate = Gate()
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(captions, client, photo["id"], WHOLE)
        assert gate.reached.wait(20)
        others = [upload(client, png(8 + i, 8))["id"] for i in range(2)]
        address = f"/api/jobs/{client.post('/api/looks', json={'photos': others}).json()['job']}"
        assert client.get(address).json()["state"] in ("waiting", "running")
        assert client.delete(address).status_code == 204
        gate.opened.set()
        assert asking.result().status_code == 200
    job = client.get(address).json()
    assert (job["state"], job["done"]) == ("cancelled", 0)
    assert _events(client.get(f"{address}/events").text)[-1][0] == "end"


def test_a_job_that_breaks_ends_as_failed(client: TestClient, photo: dict[str, Any], seer: FakeSeer) -> None:
    seer.see = None  # type: ignore[assignment]
    job = client.post("/api/looks", json={"photos": [photo["id"]]}).json()["job"]
    end = _events(client.get(f"/api/jobs/{job}/events").text)[-1]
    assert end[1]["state"] == "failed"
    assert job in end[1]["error"]


def test_jobs_are_bounded(open_studio: Callable[..., TestClient], seer: FakeSeer) -> None:
    client = open_studio(Limits(jobs=2, job_photos=2))
    photo = upload(client, png())
    ids = [upload(client, png(8 + i, 8))["id"] for i in range(3)]
    assert refusal(client.post("/api/looks", json={"photos": ids}), 413)
    seer.before_answer = gate = Gate()
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(captions, client, photo["id"], WHOLE)
        assert gate.reached.wait(20)
        replies = [client.post("/api/looks", json={"photos": ids[:1]}) for _ in range(3)]
        gate.opened.set()
        asking.result()
    assert [reply.status_code for reply in replies] == [202, 202, 429]
    first, second = (reply.json()["job"] for reply in replies[:2])
    client.get(f"/api/jobs/{second}/events")
    third = client.post("/api/looks", json={"photos": ids[:1]}).json()["job"]
    assert client.get(f"/api/jobs/{third}").status_code == 200
    assert refusal(client.get(f"/api/jobs/{first}"), 404)
