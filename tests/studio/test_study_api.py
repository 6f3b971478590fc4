"""A trust study over HTTP: what participants get and send, and what only the lab sees."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from saywhere.core.errors import InvalidValue
from saywhere.studio.app import create_app, create_study_app
from saywhere.studio.participants import DATABASE
from saywhere.studio.settings import StudioSettings
from saywhere.studio.study_desk import StudyDesk
from saywhere.studio.study_ratings import read_ratings
from tests.studio.conftest import HOME, FakeSeer, refusal
from tests.studio.logs import log_bodies
from tests.studio.studies import MODELS, make_study

SCALE = (-2, -1, 0, 1, 2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_study(tmp_path / "study")


@pytest.fixture
def open_study(tmp_path: Path) -> Iterator[Callable[..., TestClient]]:
    """Opens a study server: open_study(folder, client=…, token=…). All are closed in the end."""
    opened: list[TestClient] = []

    def start(folder: Path | None, client: str = "127.0.0.1", whole: bool = False, **more: Any) -> TestClient:
        settings = StudioSettings(tmp_path / "studio", study=folder, **more)
        app = create_app(settings, FakeSeer()) if whole else create_study_app(settings)
        opened.append(TestClient(app, HOME, raise_server_exceptions=False, client=(client, 50_000)).__enter__())
        return opened[-1]

    yield start
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def lab(open_study: Callable[..., TestClient], folder: Path) -> TestClient:
    return open_study(folder)


def place(client: TestClient, participant: str = "P1") -> dict[str, Any]:
    reply = client.get("/api/study/place", params={"participant": participant})
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def rate(client: TestClient, at: dict[str, Any], value: int, **changes: Any) -> Any:
    sent = {"participant": at["participant"], "study": at["study"], "item": at["next"]["item"], "rating": value}
    return client.post("/api/study/ratings", json={**sent, "seconds": 1.5, **changes})


def go_on(client: TestClient, at: dict[str, Any], value: int) -> dict[str, Any]:
    reply = rate(client, at, value)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def side_of(model: str, pair: dict[str, Any]) -> str:
    """Where a model's map is, going by where it looks."""
    corner = pair["left"][0][0] if model == "plain" else pair["left"][1][2]
    return "left" if corner == 255 else "right"


def table(client: TestClient) -> list[dict[str, str]]:
    reply = client.get("/api/study/results")
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(reply.text)))


@pytest.mark.parametrize("value", SCALE)
def test_a_rating_of_a_side_is_one_of_the_model_that_was_shown_there(lab: TestClient, value: int) -> None:
    wanted: dict[str, str] = {}
    for who in ("P1", "P2", "P3"):
        at = place(lab, who)
        while at["next"] is not None:
            liked = "left" if value < 0 else "right"
            winner = next(name for name in MODELS.values() if side_of(name, at["next"]) == liked)
            wanted[f"{who} {at['next']['item']}"] = winner if value else "equal"
            at = go_on(lab, at, value)
    rows = table(lab)
    assert {f"{row['participant']} {row['item']}": row["preferred"] for row in rows} == wanted
    assert {row["strength"] for row in rows} == {str(abs(value))}
    assert {row["seconds"] for row in rows} == {"1.50"}
    assert {(row["item"], row["word"]) for row in rows} >= {("q0", "wall"), ("q1", "blue")}
    for who in ("P1", "P2", "P3"):
        assert Counter(row["left"] for row in rows if row["participant"] == who) == {"plain": 2, "hinted": 2}


def test_nothing_that_a_participant_gets_names_a_model(lab: TestClient, folder: Path) -> None:
    at = place(lab)
    got = [lab.get("/").text, lab.get("/study").text, lab.get("/api/study").text, json.dumps(at)]
    got += [str(lab.get(at["next"]["photo"]).headers), rate(lab, at, 0).text]
    got += [lab.post("/api/study/undo", json={"participant": "P1", "item": at["next"]["item"]}).text]
    assert not re.search("plain|hinted|maps/|ratings", " ".join(got))
    assert set(at["next"]) == {"item", "photo", "width", "height", "prompt", "word", "answer", "left", "right"}


def test_a_photo_comes_under_its_content_and_may_be_kept(lab: TestClient) -> None:
    pair = place(lab)["next"]
    reply = lab.get(pair["photo"])
    assert reply.headers["content-type"] == "image/jpeg"
    assert "immutable" in reply.headers["cache-control"]
    assert Image.open(io.BytesIO(reply.content)).size == (pair["width"], pair["height"])
    refusal(lab.get("/api/study/photos/" + "0" * 32), 404)
    refusal(lab.get("/api/study/photos/study.json"), 422)


def test_participants_go_on_where_they_stopped_even_after_a_crash_of_the_server(
    lab: TestClient, open_study: Callable[..., TestClient], folder: Path
) -> None:
    at = place(lab)
    assert (at["done"], at["total"], at["last"]) == (0, 4, None)
    then = go_on(lab, at, 2)
    assert (then["done"], then["last"]) == (1, at["next"]["item"])
    assert then["next"]["item"] != at["next"]["item"]
    assert place(open_study(folder), " p1 ") == then
    assert place(lab, "P2")["done"] == 0


def test_an_answer_that_is_sent_twice_is_kept_once_and_another_is_refused(lab: TestClient, folder: Path) -> None:
    at = place(lab)
    first, second = rate(lab, at, 2), rate(lab, at, 2, seconds=9)
    assert first.json() == second.json()
    assert refusal(rate(lab, at, -2), 409)["code"] == "rated_already"
    assert len(log_bodies(folder, "ratings")) == 1


def test_the_last_answer_can_be_undone_once_and_then_the_one_before(lab: TestClient, folder: Path) -> None:
    at = place(lab)
    one = go_on(lab, at, 1)
    two = go_on(lab, one, -1)
    undo = {"participant": "P1", "item": two["last"]}
    assert refusal(lab.post("/api/study/undo", json={**undo, "item": one["last"]}), 409)["code"] == "not_last"
    assert lab.post("/api/study/undo", json=undo).json() == one
    assert refusal(lab.post("/api/study/undo", json=undo), 409)["code"] == "not_rated"
    assert lab.post("/api/study/undo", json={**undo, "item": one["last"]}).json() == at
    assert table(lab) == []
    go_on(lab, at, 2)
    assert [row["rating"] for row in table(lab)] == ["2"]
    assert len(log_bodies(folder, "ratings")) == 5


@pytest.mark.parametrize("value", [-3, 3, 1.5, "1", True, None, 10**30])
def test_a_rating_off_the_scale_is_refused(lab: TestClient, folder: Path, value: Any) -> None:
    assert "rating" in refusal(rate(lab, place(lab), value), 422)["message"]
    assert log_bodies(folder, "ratings") == []


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"item": "q9"}, 404, "unknown_item"),
        ({"item": "../x"}, 404, "unknown_item"),
        ({"participant": "a b"}, 422, "invalid_value"),
        ({"participant": ""}, 422, "invalid_value"),
        ({"study": "another"}, 409, "study_changed"),
        ({"seconds": -1}, 422, "invalid_request"),
        ({"model": "a"}, 422, "invalid_request"),
    ],
)
def test_a_rating_that_cannot_be_is_refused(
    lab: TestClient, folder: Path, changes: dict[str, Any], status: int, code: str
) -> None:
    assert refusal(rate(lab, place(lab), 1, **changes), status)["code"] == code
    assert log_bodies(folder, "ratings") == []


@pytest.mark.parametrize("code", ["", "a b", "<script>", "ü", "a/b", "x" * 41, "x" * 300])
def test_an_odd_code_is_refused_in_words(lab: TestClient, code: str) -> None:
    said = refusal(lab.get("/api/study/place", params={"participant": code}), 422)
    assert "participant" in said["message"]


def test_results_stay_on_the_computer_that_serves_the_study(
    open_study: Callable[..., TestClient], folder: Path
) -> None:
    far = open_study(folder, client="192.168.1.20")
    for path in ("/api/study/results", "/api/study/summary"):
        assert refusal(far.get(path), 403)["code"] == "lab_only"
    assert place(far)["done"] == 0


def test_with_a_token_the_link_lets_participants_in(open_study: Callable[..., TestClient], folder: Path) -> None:
    token = "correct-horse-battery"
    client = open_study(folder, host="0.0.0.0", token=token)
    refusal(client.get("/api/study"), 401)
    page = client.get("/", params={"token": token})
    assert page.status_code == 200
    assert "page/study.js" in page.text
    assert client.get("/api/study").json() == {
        "title": "Where do they look?",
        "question": "Which of the two looks at more reasonable places?",
        "items": 4,
    }


def test_a_server_for_participants_has_nothing_else_of_the_studio(lab: TestClient, tmp_path: Path) -> None:
    for path in ("/api/photos", "/api/narratives", "/api/status", "/v1/models"):
        refusal(lab.get(path), 404)
    assert not (tmp_path / "studio").exists()


def test_the_whole_studio_takes_a_study_and_says_so_without_one(
    open_study: Callable[..., TestClient], folder: Path
) -> None:
    assert place(open_study(folder, whole=True))["total"] == 4
    without = open_study(None, whole=True)
    assert "page/study.js" in without.get("/study").text
    said = refusal(without.get("/api/study"), 404)
    assert (said["code"], "saywhere study serve FOLDER" in said["hint"]) == ("no_study", True)
    for path in ("place?participant=P1", "results", "summary"):
        assert refusal(without.get(f"/api/study/{path}"), 404)["code"] == "no_study"
    with pytest.raises(InvalidValue, match="study"):
        create_study_app(StudioSettings(folder))


def test_a_file_that_cannot_be_written_is_said_to_the_participant_and_nothing_counts(
    lab: TestClient, folder: Path
) -> None:
    at = place(lab)
    (folder / DATABASE).mkdir()
    assert refusal(rate(lab, at, 1), 500)["code"] == "damaged_file"
    (folder / DATABASE).rmdir()
    assert place(lab) == at


def test_many_at_a_time_lose_nothing_and_double_nothing(folder: Path) -> None:
    desk = StudyDesk(folder)

    def all_of(code: str) -> None:
        while (turn := desk.progress(code).turn) is not None:
            desk.rate(code, turn.item, 1, None, desk.key)

    codes = [f"P{i % 8}" for i in range(24)]  # Three windows for each.
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(all_of, codes))
    again = read_ratings(folder)
    assert again.bad_lines == []
    assert {code: len(rated) for code, rated in again.ratings.items()} == dict.fromkeys(codes, 4)
