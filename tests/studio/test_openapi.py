"""Requests that nobody would think of: made from the OpenAPI description, right and wrong, against a running server.

SAYWHERE_API_CASES: how many for each operation; 200 for the full proof.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from schemathesis.transport.serialization import Binary

from saywhere.studio.app import create_app
from saywhere.studio.footage import Footage
from saywhere.studio.settings import StudioSettings
from tests.studio.collecting import make_collection
from tests.studio.conftest import FakeRecogniser, TalkingSeer, narrative, png, wav
from tests.studio.requests_of import listening, replies
from tests.studio.studies import make_study
from tests.videos import NAMES, write_video

OPERATIONS = [
    "GET /api/status",
    "POST /api/photos",
    "GET /api/photos",
    "GET /api/photos/{photo_id}",
    "DELETE /api/photos/{photo_id}",
    "GET /api/photos/{photo_id}/file",
    "GET /api/photos/{photo_id}/thumbnail",
    "POST /api/imports",
    "GET /api/export",
    "POST /api/photos/{photo_id}/look",
    "POST /api/photos/{photo_id}/captions",
    "POST /api/photos/{photo_id}/ground",
    "POST /api/photos/{photo_id}/narrate",
    "POST /api/photos/{photo_id}/describe",
    "GET /api/photos/{photo_id}/description",
    "POST /api/photos/{photo_id}/why",
    "POST /api/photos/{photo_id}/answer",
    "POST /api/photos/{photo_id}/why-answer",
    "POST /api/photos/{photo_id}/chat",
    "POST /api/photos/{photo_id}/segment",
    "POST /api/looks",
    "GET /api/jobs/{job_id}",
    "DELETE /api/jobs/{job_id}",
    "GET /api/jobs/{job_id}/events",
    "POST /api/narratives",
    "GET /api/narratives",
    "GET /api/narratives/{narrative_id}",
    "PUT /api/narratives/{narrative_id}",
    "DELETE /api/narratives/{narrative_id}",
    "PUT /api/narratives/{narrative_id}/audio",
    "GET /api/narratives/{narrative_id}/audio",
    "POST /api/narratives/{narrative_id}/align",
    "GET /api/narratives/{narrative_id}/export",
    "GET /api/narratives/{narrative_id}/versions",
    "GET /api/narratives/{narrative_id}/versions/{version_number}",
    "POST /api/narratives/{narrative_id}/versions/{version_number}/restore",
    "POST /api/transcriptions",
    "GET /api/library",
    "POST /api/library/refresh",
    "POST /api/library/search",
    "GET /api/library/file",
    "POST /api/library/take",
    "GET /api/queue",
    "PUT /api/queue/{photo_id}/skip",
    "DELETE /api/queue/{photo_id}/skip",
    "GET /api/study",
    "GET /api/study/place",
    "POST /api/study/ratings",
    "POST /api/study/undo",
    "GET /api/study/photos/{study_photo}",
    "GET /api/study/results",
    "GET /api/study/summary",
    "GET /api/collect",
    "POST /api/collect/turn",
    "POST /api/collect/answers",
    "POST /api/collect/skip",
    "GET /api/collect/photos/{collect_photo}",
    "GET /api/videos",
    "GET /api/videos/{video_number}",
    "GET /api/videos/{video_number}/frames/{frame_number}",
    "GET /api/videos/{video_number}/actors/{actor_number}/audio",
    "GET /api/footage",
    "POST /api/footage",
    "GET /api/footage/{footage_id}",
    "POST /api/footage/{footage_id}/frames",
    "GET /api/footage/{footage_id}/frames/{frame_name}",
    "GET /api/footage/{footage_id}/file",
    "GET /api/footage/{footage_id}/export",
    "POST /api/video-narratives",
    "GET /api/video-narratives",
    "GET /api/video-narratives/{narrative_id}",
    "PUT /api/video-narratives/{narrative_id}",
    "DELETE /api/video-narratives/{narrative_id}",
    "PUT /api/video-narratives/{narrative_id}/audio",
    "GET /api/video-narratives/{narrative_id}/audio",
    "POST /api/video-narratives/{narrative_id}/align",
    "GET /api/video-narratives/{narrative_id}/versions",
    "GET /api/video-narratives/{narrative_id}/versions/{version_number}",
    "POST /api/video-narratives/{narrative_id}/versions/{version_number}/restore",
    "GET /v1/models",
    "POST /v1/chat/completions",
]
# This server's model has no vectors of texts, and it has no folder; test_photo_library has both. Its videos are frames;
# test_footage has a file.
REFUSED = {"POST /api/library/refresh", "POST /api/library/search", "GET /api/library/file", "POST /api/library/take"}
REFUSED |= {"GET /api/footage/{footage_id}/file"}


@dataclass(frozen=True)
class Server:
    """A Studio that runs. ids: of things that are there, by the names that paths have for them."""

    address: str
    schema: Any
    session: requests.Session

    def ids(self) -> dict[str, str]:
        api, kind = f"{self.address}/api", {"Content-Type": "image/png"}
        photo = self.session.post(f"{api}/photos", data=png(), headers=kind).json()["id"]
        told = self.session.post(f"{api}/narratives", json=narrative(photo)).json()["id"]
        self.session.put(f"{api}/narratives/{told}/audio", data=wav(), headers={"Content-Type": "audio/wav"})
        job = self.session.post(f"{api}/looks", json={"photos": [photo]}).json()["job"]
        place = self.session.get(f"{api}/study/place", params={"participant": "P1"}).json()
        if place["next"]:
            said = {"participant": "P1", "study": place["study"], "item": place["next"]["item"], "rating": 1}
            place = self.session.post(f"{api}/study/ratings", json=said).json()
        film = {"footage": Footage("c1a40349").id, "actor": "Cat", "frames": list(NAMES), "stroke_frames": [2, 0]}
        filmed = self.session.post(f"{api}/video-narratives", json=_of_film(film)).json()["id"]
        self.session.put(f"{api}/video-narratives/{filmed}/audio", data=wav(), headers={"Content-Type": "audio/wav"})
        pair = self.session.get(f"{api}/study/place", params={"participant": "NOBODY"}).json()["next"]
        asked = self.session.post(f"{api}/collect/turn", json={"annotator": "NOBODY"}).json()["next"]
        return {
            "photo_id": photo,
            "narrative_id": told,
            "version_number": "1",
            "job_id": job,
            "study_photo": pair["photo"].rpartition("/")[2],
            "study": place["study"],
            "item": place["last"],
            "collect_photo": asked["photo"],
            **{"video_number": "0", "frame_number": "1", "actor_number": "0", "frame_name": NAMES[1]},
            **{"footage_id": film["footage"], "filmed_id": filmed},
        }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("openapi")
    opened = {"study": make_study(folder / "study"), "collection": make_collection(folder / "collection")}
    opened["videos"] = write_video(folder / "videos")

    def make(port: int) -> Any:
        chosen = StudioSettings(folder, port=port, **opened)
        return create_app(chosen, seer=TalkingSeer(), recogniser=FakeRecogniser())

    with listening(make) as (address, schema), requests.Session() as session:
        yield Server(address, schema, session)


def test_the_operations_are_those_of_the_description(server: Server) -> None:
    paths = server.schema.raw_schema["paths"]
    assert sorted(OPERATIONS) == sorted(f"{method.upper()} {path}" for path, item in paths.items() for method in item)


def _of_film(about: dict[str, Any]) -> dict[str, Any]:
    """What the page sends after a video was told about."""
    return {name: value for name, value in narrative("").items() if name != "photo"} | about


def _filled(path: str, body: Any, ids: dict[str, str]) -> Any:
    """The same body about things that are there, so that more than their absence is tried."""
    if isinstance(body, Binary):
        real = wav() if path.endswith(("audio", "transcriptions")) else png()
        return Binary(real + bytes(body.data) if len(body.data) % 3 else real)
    if not isinstance(body, dict):
        return body
    if path.startswith("/api/narratives") and "photo" in body:
        return {**body, **narrative(ids["photo_id"], text=body.get("text", "")), "id": None, "words": [], "boxes": None}
    if path.startswith("/api/video-narratives") and "footage" in body:
        film = {"footage": ids["footage_id"], "actor": "Cat", "frames": list(NAMES), "stroke_frames": [0, 1]}
        return {**body, **_of_film(film), "text": body.get("text", ""), "id": None, "words": [], "version": None}
    if path.startswith("/api/study"):
        kept = {"participant": "P1", "study": ids["study"], "item": ids["item"], "rating": 1}
        return {name: kept.get(name, value) for name, value in body.items()}
    if path.startswith("/api/collect"):
        wanted = {"annotator": "P1", "photo": ids["collect_photo"], "level": "scene", "text": "in a bar"}
        return {name: wanted.get(name, value) for name, value in body.items()}
    if isinstance(body.get("photos"), list):
        return {**body, "photos": [ids["photo_id"]] * len(body["photos"])}
    if path.startswith("/v1"):
        url = "data:image/png;base64," + base64.b64encode(png()).decode()
        return {
            **body,
            "model": "",
            "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}],
        }
    return body


_WANTED = {
    "GET /api/study/place": {"participant": "P1"},
    "DELETE /api/photos/{photo_id}": {"with_narratives": "true"},
}
"""Parameters without which nothing would be done."""


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_request_breaks_the_server(server: Server, operation: str) -> None:
    path, ids = operation.split(" ")[1], server.ids()
    if path.startswith("/api/video-narratives"):
        ids["narrative_id"] = ids["filmed_id"]

    def change(case: Any, fill: bool) -> None:
        if fill:
            case.body = _filled(path, case.body, ids)
            case.query.update(_WANTED.get(operation, {}))

    refused = operation in REFUSED
    statuses = replies(server.address, server.schema, operation, ids, change, server.session, refused=refused)
    # Something was done, too, and not everything refused.
    assert (min(statuses) < 300) != refused, statuses


def test_the_server_still_works_after_all_that(server: Server) -> None:
    assert server.session.get(f"{server.address}/api/status").json()["model"]["ready"] is True
    assert server.ids()["photo_id"]


def test_the_client_in_the_docs_works(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "studio.md").read_text(encoding="utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    (tmp_path / "photo.jpg").write_bytes(png())
    monkeypatch.chdir(tmp_path)
    exec(code.replace("http://127.0.0.1:8765", server.address), {})
    assert capsys.readouterr().out == "['24 patches', '9 patches']\n"


def test_the_docs_name_every_address(server: Server) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "studio.md").read_text(encoding="utf-8")
    for path in server.schema.raw_schema["paths"]:
        last = path.replace("{photo_id}", "{id}").replace("{narrative_id}", "{id}").replace("{job_id}", "{id}")
        assert last in page or f"…/{last.rsplit('/', 1)[1]}" in page or last == "/v1/models", path
