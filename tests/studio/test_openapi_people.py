"""Requests that nobody would think of, to the server for annotators and reviewers: by one of each, and by nobody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from schemathesis.transport.serialization import Binary

from saywhere.studio.app import create_people_app
from saywhere.studio.settings import StudioSettings
from tests.studio.conftest import FakeRecogniser, narrative, wav
from tests.studio.requests_of import CASES, listening, replies
from tests.studio.test_people import WORDS, desk_of

PEOPLE = [
    "POST /api/people/enter",
    "POST /api/people/leave",
    "GET /api/people/me",
    "GET /api/people/tasks",
    "PUT /api/people/tasks/{photo_id}/skip",
    "DELETE /api/people/tasks/{photo_id}/skip",
    "GET /api/people/reviews",
    "POST /api/people/reviews",
    "GET /api/people/status",
    "GET /api/people/agreement",
]
# What people with a code need of the Studio's own; everything else is refused.
OPEN = [
    "GET /api/status",
    "GET /api/photos/{photo_id}/file",
    "GET /api/photos/{photo_id}/thumbnail",
    "POST /api/narratives",
    "GET /api/narratives/{narrative_id}",
    "PUT /api/narratives/{narrative_id}",
    "PUT /api/narratives/{narrative_id}/audio",
    "GET /api/narratives/{narrative_id}/audio",
    "POST /api/narratives/{narrative_id}/align",
    "POST /api/transcriptions",
]


@dataclass(frozen=True)
class PeopleServer:
    """Runs with photos, annotators and a reviewer. cookies: of an annotator, of a reviewer, and of nobody."""

    address: str
    schema: Any
    session: requests.Session
    cookies: tuple[str, ...]

    def ask(self, method: str, path: str, who: int, **body: Any) -> Any:
        headers = {"Cookie": self.cookies[who]} | body.pop("headers", {})
        return requests.request(method, f"{self.address}{path}", headers=headers, timeout=30, **body)

    def ids(self) -> dict[str, str]:
        photo = self.ask("GET", "/api/people/tasks", 0).json()["photos"][0]["id"]
        sent = narrative(photo, annotator="A1", words=WORDS)
        told = self.ask("POST", "/api/narratives", 0, json=sent).json()["id"]
        sound = {"data": wav(), "headers": {"Content-Type": "audio/wav"}}
        assert self.ask("PUT", f"/api/narratives/{told}/audio", 0, **sound).status_code == 200
        shown = self.ask("GET", "/api/people/reviews", 1).json()["submissions"]
        digest = next(one["digest"] for one in shown if one["narrative"] == told)
        return {"photo_id": photo, "narrative_id": told, "digest": digest}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PeopleServer]:
    folder: Path = tmp_path_factory.mktemp("people") / "studio"
    desk = desk_of(folder, 3)
    desk.add("annotator", ["a1", "a2", "a3"])
    desk.add("reviewer", ["r1"])
    desk.assign(2)
    desk.log.close()

    def make(port: int) -> Any:
        return create_people_app(StudioSettings(folder, port=port), FakeRecogniser())

    with listening(make) as (address, schema), requests.Session() as session:
        port = address.rpartition(":")[2]
        cookies = tuple(f"saywhere-code-{port}={code}" for code in ("A1", "R1", "nobody"))
        yield PeopleServer(address, schema, session, cookies)


_ABSENT = {"id": None, "boxes": None, "version": None, "words": []}


def _body(path: str, body: Any, ids: dict[str, str]) -> Any:
    if isinstance(body, Binary):
        return Binary(wav())
    if not isinstance(body, dict):
        return body
    if path.startswith("/api/narratives") and "photo" in body:
        return {**body, **narrative(ids["photo_id"], annotator="A1"), **_ABSENT}
    wanted = {"code": "a1", "narrative": ids["narrative_id"], "digest": ids["digest"], "verdict": "return", "note": "?"}
    return {name: wanted.get(name, value) for name, value in body.items()}


def _statuses(people: PeopleServer, operation: str, cases: int, *, refused: bool = False) -> Any:
    path, ids = operation.split(" ")[1], people.ids()
    sent = iter(range(10**9))

    def change(case: Any, fill: bool) -> None:
        people.session.cookies.clear()  # What `enter` left there would win.
        case.headers["Cookie"] = people.cookies[next(sent) % len(people.cookies)]
        if fill:
            case.body = _body(path, case.body, ids)

    return replies(people.address, people.schema, operation, ids, change, people.session, cases, refused=refused)


@pytest.mark.parametrize("operation", PEOPLE + OPEN)
def test_no_request_of_anybody_breaks_the_server(people: PeopleServer, operation: str) -> None:
    statuses = _statuses(people, operation, CASES)
    assert min(statuses) < 300, statuses


def test_everything_else_of_the_studio_is_closed_to_people(people: PeopleServer) -> None:
    paths = people.schema.raw_schema["paths"]
    there = [f"{method.upper()} {path}" for path, item in paths.items() for method in item]
    assert set(PEOPLE + OPEN) <= set(there)
    done = {}
    for operation in sorted(set(there) - set(PEOPLE + OPEN)):
        statuses = _statuses(people, operation, 3, refused=True)
        done |= {operation: statuses} if min(statuses) < 300 else {}
    assert done == {}
