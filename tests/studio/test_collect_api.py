"""A collection over HTTP: what annotators get and send, and what is refused."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from saywhere.core.errors import InvalidValue
from saywhere.studio.app import create_app, create_collect_app
from saywhere.studio.participants import DATABASE
from saywhere.studio.settings import StudioSettings
from tests.studio.collecting import make_collection
from tests.studio.conftest import HOME, FakeSeer, refusal
from tests.studio.logs import log_lines


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_collection(tmp_path / "collection")


@pytest.fixture
def open_collect(tmp_path: Path) -> Iterator[Callable[..., TestClient]]:
    """Opens a server for annotators: open_collect(folder, token=…). All are closed in the end."""
    opened: list[TestClient] = []

    def start(folder: Path | None, whole: bool = False, **more: Any) -> TestClient:
        settings = StudioSettings(tmp_path / "studio", collection=folder, **more)
        app = create_app(settings, FakeSeer()) if whole else create_collect_app(settings)
        opened.append(TestClient(app, HOME, raise_server_exceptions=False).__enter__())
        return opened[-1]

    yield start
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def lab(open_collect: Callable[..., TestClient], folder: Path) -> TestClient:
    return open_collect(folder)


def turn(client: TestClient, annotator: str = "A1") -> dict[str, Any]:
    reply = client.post("/api/collect/turn", json={"annotator": annotator})
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def send(client: TestClient, at: dict[str, Any], **changes: Any) -> Any:
    asked = at["next"] or at["last"]
    sent = {"annotator": at["annotator"], "photo": asked["photo"], "level": asked["level"], "seconds": 2.5}
    return client.post("/api/collect/answers", json={**sent, "text": "in a kitchen", "confidence": 4, **changes})


def go_on(client: TestClient, at: dict[str, Any], **changes: Any) -> dict[str, Any]:
    reply = send(client, at, **changes)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def kept(folder: Path) -> list[dict[str, Any]]:
    return log_lines(folder, "answers")


def test_an_annotator_answers_and_goes_on_even_after_a_crash_of_the_server(
    lab: TestClient, open_collect: Callable[..., TestClient], folder: Path
) -> None:
    assert lab.get("/api/collect").json() == {
        "title": "Describe these pictures",
        "levels": ["scene"],
        "photos": 4,
        "annotators": 3,
        "most_text": 300,
    }
    at = turn(lab)
    assert (at["done"], at["open"], at["waiting"], at["last"]) == (0, 4, 0, None)
    assert at["next"]["question"] == "Where is the picture taken?"
    then = go_on(lab, at, text="  in  a kitchen ")
    assert (then["done"], then["open"]) == (1, 3)
    assert then["next"]["photo"] != at["next"]["photo"]
    assert (then["last"]["text"], then["last"]["confidence"]) == ("in a kitchen", 4)
    [line] = kept(folder)
    assert (line["annotator"], line["text"], line["confidence"], line["seconds"]) == ("A1", "in a kitchen", 4, 2.5)
    again = turn(open_collect(folder), " a1 ")
    assert (again["done"], again["open"], again["last"]) == (then["done"], then["open"], then["last"])


def test_nothing_that_an_annotator_gets_names_a_photo_or_another_annotator(lab: TestClient) -> None:
    go_on(lab, turn(lab, "ANNA"))
    at = turn(lab, "BERT")
    got = json.dumps([at, go_on(lab, at)]) + str(lab.get(at["next"]["url"]).headers)
    assert ".png" not in got
    assert "ANNA" not in got


def test_a_photo_comes_under_its_content_and_may_be_kept(lab: TestClient) -> None:
    asked = turn(lab)["next"]
    reply = lab.get(asked["url"])
    assert reply.headers["content-type"] == "image/png"
    assert "immutable" in reply.headers["cache-control"]
    assert Image.open(io.BytesIO(reply.content)).size == (asked["width"], asked["height"])
    refusal(lab.get("/api/collect/photos/" + "0" * 32), 404)
    refusal(lab.get("/api/collect/photos/collection.json"), 422)


def test_an_answer_that_is_sent_twice_is_kept_once_and_another_is_refused(lab: TestClient, folder: Path) -> None:
    at = turn(lab)
    first, second = send(lab, at), send(lab, at, seconds=9)
    assert first.json() == second.json()
    said = refusal(send(lab, at, text="in a bar"), 409)
    assert said["code"] == "answered_already"
    assert len(kept(folder)) == 1


def test_the_last_answer_can_be_corrected(lab: TestClient, folder: Path) -> None:
    one = go_on(lab, turn(lab))
    task = {"photo": one["last"]["photo"], "level": "scene"}
    two = go_on(lab, one, **task, text="in a bar", confidence=2, correcting=True)
    assert (two["last"]["text"], two["last"]["confidence"], two["done"]) == ("in a bar", 2, 1)
    assert two["next"] == one["next"]
    three = go_on(lab, two)
    assert refusal(send(lab, three, **task, text="in a pub", correcting=True), 409)["code"] == "not_last"
    assert [line["text"] for line in kept(folder)] == ["in a kitchen", "in a bar", "in a kitchen"]


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"text": ""}, 422, "invalid_value"),
        ({"text": " \n "}, 422, "invalid_value"),
        ({"text": "?!"}, 422, "invalid_value"),
        ({"text": "\x00a"}, 422, "invalid_value"),
        ({"text": "x" * 301}, 422, "invalid_value"),
        ({"text": "x" * 10_000}, 422, "invalid_request"),
        ({"text": 3}, 422, "invalid_request"),
        ({"confidence": 0}, 422, "invalid_request"),
        ({"confidence": 6}, 422, "invalid_request"),
        ({"confidence": 2.5}, 422, "invalid_request"),
        ({"confidence": "3"}, 422, "invalid_request"),
        ({"confidence": True}, 422, "invalid_request"),
        ({"confidence": None}, 422, "invalid_request"),
        ({"seconds": -1}, 422, "invalid_request"),
        ({"photo": "0" * 32}, 404, "unknown_photo"),
        ({"photo": "../x"}, 422, "invalid_request"),
        ({"level": "mood"}, 404, "unknown_level"),
        ({"level": "object"}, 404, "unknown_level"),
        ({"annotator": "a b"}, 422, "invalid_value"),
        ({"annotator": ""}, 422, "invalid_value"),
        ({"name": "x"}, 422, "invalid_request"),
    ],
)
def test_an_answer_that_cannot_be_is_refused_in_words_and_nothing_is_lost(
    lab: TestClient, folder: Path, changes: dict[str, Any], status: int, code: str
) -> None:
    at = go_on(lab, turn(lab))
    assert refusal(send(lab, at, **changes), status)["code"] == code
    assert len(kept(folder)) == 1
    assert turn(lab) == at


def test_half_a_character_is_refused(lab: TestClient, folder: Path) -> None:
    at = turn(lab)
    body = json.dumps(
        {"annotator": "A1", "photo": at["next"]["photo"], "level": "scene", "text": "a\ud800", "confidence": 3}
    )
    refusal(lab.post("/api/collect/answers", content=body, headers={"Content-Type": "application/json"}), 422)
    assert kept(folder) == []


def test_two_browsers_never_get_the_last_place_of_a_photo_together(
    open_collect: Callable[..., TestClient], tmp_path: Path
) -> None:
    lab = open_collect(make_collection(tmp_path / "one", 1, annotators=2))
    with ThreadPoolExecutor(8) as pool:
        turns = list(pool.map(lambda who: turn(lab, who), [f"P{i}" for i in range(16)]))
    shown = [at for at in turns if at["next"] is not None]
    assert len(shown) == 2
    assert {(at["open"], at["waiting"]) for at in turns if at["next"] is None} == {(1, 1)}
    for at in shown:
        go_on(lab, at)
    assert turn(lab, "P99")["open"] == 0


def test_a_photo_that_cannot_be_shown_is_passed_over(lab: TestClient, folder: Path) -> None:
    at = turn(lab)
    for path in (folder / "photos").glob(f"{at['next']['photo']}.png"):
        path.write_bytes(b"broken meanwhile")
    sent = {"annotator": "A1", "photo": at["next"]["photo"], "level": "scene"}
    after = lab.post("/api/collect/skip", json=sent).json()
    assert after["next"]["photo"] != at["next"]["photo"]
    assert after["open"] == 3
    assert refusal(lab.post("/api/collect/skip", json={**sent, "level": "x"}), 404)["code"] == "unknown_level"


def test_a_file_that_cannot_be_written_is_said_to_the_annotator(lab: TestClient, folder: Path) -> None:
    at = turn(lab)
    (folder / DATABASE).mkdir()
    assert refusal(send(lab, at), 500)["code"] == "damaged_file"
    (folder / DATABASE).rmdir()
    assert turn(lab) == at


def test_with_a_token_the_link_lets_annotators_in(open_collect: Callable[..., TestClient], folder: Path) -> None:
    token = "correct-horse-battery"
    client = open_collect(folder, host="0.0.0.0", token=token)
    refusal(client.get("/api/collect"), 401)
    page = client.get("/", params={"token": token})
    assert "page/collect.js" in page.text
    assert turn(client)["open"] == 4


def test_a_server_for_annotators_has_nothing_else_of_the_studio(lab: TestClient, tmp_path: Path) -> None:
    for path in ("/api/photos", "/api/narratives", "/api/status", "/api/study", "/v1/models"):
        refusal(lab.get(path), 404)
    assert not (tmp_path / "studio").exists()


def test_the_whole_studio_takes_a_collection_and_says_so_without_one(
    open_collect: Callable[..., TestClient], folder: Path
) -> None:
    assert turn(open_collect(folder, whole=True))["open"] == 4
    without = open_collect(None, whole=True)
    assert "page/collect.js" in without.get("/collect").text
    said = refusal(without.get("/api/collect"), 404)
    assert (said["code"], "saywhere collect serve DIR" in said["hint"]) == ("no_collection", True)
    with pytest.raises(InvalidValue, match="collection"):
        create_collect_app(StudioSettings(folder))


@pytest.mark.parametrize("hold_s", [0, -1, float("nan"), 1e9])
def test_a_hold_that_cannot_be_is_refused(folder: Path, hold_s: float) -> None:
    with pytest.raises(InvalidValue, match="hold"):
        StudioSettings(folder, hold_s=hold_s)
