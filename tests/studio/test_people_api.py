"""The API for people: who may ask what, and the way of a narrative from annotator to reviewer and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from saywhere.studio.app import create_people_app
from saywhere.studio.settings import StudioSettings

from .conftest import HOME, narrative, refusal, wav
from .test_people import WORDS, desk_of

NOBODY = "f" * 32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    desk = desk_of(tmp_path / "studio", 3)
    desk.add("annotator", ["a1", "a2", "a3"])
    desk.add("reviewer", ["r1"])
    desk.assign(2)
    desk.log.close()
    return tmp_path / "studio"


@pytest.fixture
def come(folder: Path) -> Iterator[Callable[..., TestClient]]:
    """come(code) gives the client of somebody; without a code, of nobody."""
    app = create_people_app(StudioSettings(folder))
    first = TestClient(app, HOME, raise_server_exceptions=False)
    first.__enter__()

    def start(code: str = "") -> TestClient:
        client = TestClient(app, HOME, raise_server_exceptions=False)
        if code:
            assert client.post("/api/people/enter", json={"code": code}).status_code == 200
        return client

    yield start
    first.__exit__(None, None, None)


def tasks(client: TestClient) -> list[dict[str, Any]]:
    reply = client.get("/api/people/tasks")
    assert reply.status_code == 200, reply.text
    return list(reply.json()["photos"])


def told(client: TestClient, code: str, photo: str, **changes: Any) -> Any:
    return client.post("/api/narratives", json=narrative(photo, annotator=code, words=WORDS, **changes))


def test_a_narrative_goes_from_annotator_to_reviewer_and_back(come: Callable[..., TestClient]) -> None:
    annotator, reviewer = come(" a1 "), come("r1")
    photo = tasks(annotator)[0]
    assert (photo["state"], photo["name"]) == ("open", "Photo 1")
    assert annotator.get(photo["url"]).headers["content-type"] == "image/png"
    sent = told(annotator, "A1", photo["id"]).json()
    assert annotator.put(f"/api/narratives/{sent['id']}/audio", content=wav(), headers={"Content-Type": "audio/wav"})
    assert tasks(annotator)[0]["state"] == "waiting"
    [waits] = reviewer.get("/api/people/reviews").json()["submissions"]
    assert (waits["annotator"], waits["state"], waits["text"]) == ("A1", "waiting", "a red wall")
    assert reviewer.get(f"/api/narratives/{sent['id']}").json()["text"] == "a red wall"
    assert reviewer.get(f"/api/narratives/{sent['id']}/audio").status_code == 200
    assert reviewer.get(waits["url"]).status_code == 200
    verdict = {"narrative": sent["id"], "digest": waits["digest"], "verdict": "return", "note": "which red?"}
    assert reviewer.post("/api/people/reviews", json=verdict).json()["state"] == "returned"
    again = tasks(annotator)[0]
    assert (again["state"], again["note"], again["narrative"]) == ("returned", "which red?", sent["id"])
    mended = annotator.put(f"/api/narratives/{sent['id']}", json={**sent, "text": "a dark red wall"})
    assert mended.status_code == 200, mended.text
    assert refusal(reviewer.post("/api/people/reviews", json=verdict), 409)["code"] == "changed_meanwhile"
    [after] = reviewer.get("/api/people/reviews").json()["submissions"]
    accepted = {**verdict, "digest": after["digest"], "verdict": "accept", "note": ""}
    history = reviewer.post("/api/people/reviews", json=accepted).json()["reviews"]
    assert [one["verdict"] for one in history] == ["return", "accept"]
    counts = annotator.get("/api/people/tasks").json()
    assert (counts["done"], counts["total"]) == (1, 2)
    [mine, *_] = reviewer.get("/api/people/status").json()["people"]
    assert (mine["code"], mine["done"], mine["counts"]["accepted"]) == ("A1", 1, 1)


def test_agreement_is_for_reviewers(come: Callable[..., TestClient]) -> None:
    people = {code: come(code) for code in ("A1", "A2", "A3")}
    for code, client in people.items():
        for task in tasks(client):
            assert told(client, code, task["id"]).status_code == 201
    found = come("r1").get("/api/people/agreement").json()
    assert (found["photos"], found["narratives"]) == (3, 6)
    assert found["measures"][0]["people"]["mean"] == 0
    assert refusal(people["A1"].get("/api/people/agreement"), 403)["code"] == "no_code"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/photos"),
        ("POST", "/api/photos"),
        ("DELETE", "/api/photos/{photo}"),
        ("POST", "/api/photos/{photo}/look"),
        ("POST", "/api/photos/{photo}/captions"),
        ("GET", "/api/narratives"),
        ("DELETE", "/api/narratives/{narrative}"),
        ("GET", "/api/narratives/{narrative}/export?format=text"),
        ("POST", "/api/looks"),
    ],
)
@pytest.mark.parametrize("code", ["", "A1", "R1"])
def test_everything_else_of_the_studio_is_closed(
    come: Callable[..., TestClient], method: str, path: str, code: str
) -> None:
    annotator = come("A1")
    photo = tasks(annotator)[0]["id"]
    sent = told(annotator, "A1", photo).json()["id"]
    reply = come(code).request(method, path.format(photo=photo, narrative=sent))
    assert refusal(reply, 403)["code"] == ("not_for_you" if code else "no_code")


def test_photos_to_tell_and_to_review_are_shown_large_and_small(come: Callable[..., TestClient]) -> None:
    annotator, reviewer = come("A1"), come("R1")
    photo = tasks(annotator)[0]
    for client in (annotator, reviewer):
        for address in (photo["url"], photo["thumbnail"]):
            assert client.get(address).status_code == 200
    assert refusal(come().get(photo["thumbnail"]), 403)["code"] == "no_code"


def test_an_annotator_gets_at_nothing_of_others(come: Callable[..., TestClient]) -> None:
    one, other = come("A1"), come("A2")
    mine, theirs = ({task["id"] for task in tasks(client)} for client in (one, other))
    sent = told(one, "A1", min(mine)).json()
    for path in (f"/api/narratives/{sent['id']}", f"/api/narratives/{sent['id']}/audio"):
        assert refusal(other.get(path), 403)["code"] == "not_yours"
    assert refusal(other.put(f"/api/narratives/{sent['id']}", json=sent), 403)["code"] == "not_yours"
    assert refusal(told(other, "A1", min(mine)), 403)["code"] == "not_yours"
    [foreign] = mine - theirs
    assert refusal(told(other, "A2", foreign), 403)["code"] == "not_assigned"
    for picture in ("file", "thumbnail"):
        assert refusal(other.get(f"/api/photos/{foreign}/{picture}"), 403)["code"] == "not_assigned"
    moved = {**sent, "photo": min(theirs - mine)}
    assert refusal(one.put(f"/api/narratives/{sent['id']}", json=moved), 403)["code"] == "not_assigned"
    assert refusal(one.put(f"/api/narratives/{sent['id']}", json={**sent, "annotator": "A2"}), 403)


@pytest.mark.parametrize(
    ("code", "status"), [("", 422), ("a b", 422), ("ü", 422), ("A9", 404), ("x" * 300, 422), ("' OR 1=1 --", 422)]
)
def test_a_code_that_nobody_has_does_not_let_in(come: Callable[..., TestClient], code: str, status: int) -> None:
    nobody = come()
    said = refusal(nobody.post("/api/people/enter", json={"code": code}), status)
    assert "A1" not in str(said)
    for path in ("me", "tasks", "reviews", "status", "agreement"):
        assert refusal(nobody.get(f"/api/people/{path}"), 403)["code"] == "no_code"


def test_who_leaves_has_to_come_in_again(come: Callable[..., TestClient]) -> None:
    client = come("A1")
    assert client.get("/api/people/me").json() == {"code": "A1", "role": "annotator"}
    assert client.post("/api/people/leave").status_code == 204
    assert refusal(client.get("/api/people/me"), 403)["code"] == "no_code"


def test_skipping_over_the_api(come: Callable[..., TestClient]) -> None:
    client = come("A1")
    photo = tasks(client)[0]["id"]
    assert client.put(f"/api/people/tasks/{photo}/skip", json={"reason": "too dark"}).status_code == 204
    assert (tasks(client)[0]["state"], tasks(client)[0]["note"]) == ("skipped", "too dark")
    assert client.delete(f"/api/people/tasks/{photo}/skip").status_code == 204
    assert tasks(client)[0]["state"] == "open"
    refusal(client.put(f"/api/people/tasks/{photo}/skip", json={"reason": "  "}), 422)
    refusal(client.put(f"/api/people/tasks/{NOBODY}/skip", json={"reason": "x"}), 422)


@pytest.mark.parametrize("note", ["", "   "])
def test_returning_without_a_note_is_refused(come: Callable[..., TestClient], note: str) -> None:
    annotator, reviewer = come("A1"), come("R1")
    told(annotator, "A1", tasks(annotator)[0]["id"])
    [waits] = reviewer.get("/api/people/reviews").json()["submissions"]
    sent = {"narrative": waits["narrative"], "digest": waits["digest"], "verdict": "return", "note": note}
    assert "note" in refusal(reviewer.post("/api/people/reviews", json=sent), 422)["message"]


def test_the_pages_are_served(come: Callable[..., TestClient]) -> None:
    nobody = come()
    for path, title in (("/", "recording"), ("/annotate", "recording"), ("/review", "review")):
        assert f"<title>saywhere {title}</title>" in nobody.get(path).text
    assert nobody.get("/api/status").status_code == 200
