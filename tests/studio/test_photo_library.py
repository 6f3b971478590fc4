"""Search in the Studio: the shelf or a folder, looked at in the background; by text, example and speech."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from PIL import Image

pytest.importorskip("lancedb")

from saywhere.models.patchioner.seer import Seer
from saywhere.vision import Found
from tests.models.patchioner_seeing import BOTTOM_RIGHT, LEFT, TOP_RIGHT, photo, seer
from tests.studio.conftest import FakeSeer, encoded, narrative, refusal, upload

FOUND = (Found(LEFT, "cat", 0.9), Found(TOP_RIGHT, "dog", 0.8), Found(BOTTOM_RIGHT, "cup", 0.6))
COLOURS = {"cat.png": (250, 5, 5), "dog.png": (5, 250, 5), "cup.png": (5, 5, 250)}


@pytest.fixture
def tiny() -> Seer:
    return seer(found=FOUND)


def plain(name: str) -> Image.Image:
    """A photo of one colour: of one thing."""
    return Image.new("RGB", (40, 40), COLOURS[name])


def settled(client: TestClient) -> dict[str, Any]:
    """What the Studio says when it has looked at all photos."""
    for _ in range(6000):  # a minute, on a busy machine
        facts: dict[str, Any] = client.get("/api/library").json()
        if not facts["doing"]:
            return facts
        time.sleep(0.01)
    pytest.fail("the library was never finished")


def refreshed(client: TestClient) -> dict[str, Any]:
    reply = client.post("/api/library/refresh")
    assert reply.status_code == 202, reply.text
    return settled(client)


def found(client: TestClient, **asked: Any) -> list[dict[str, Any]]:
    reply = client.post("/api/library/search", json=asked)
    assert reply.status_code == 200, reply.text
    return list(reply.json()["hits"])


@pytest.fixture
def shelf(open_studio: Callable[..., TestClient], tiny: Seer) -> tuple[TestClient, dict[str, str]]:
    """A Studio with a photo of each thing and one of all; ids by name."""
    client = open_studio(model=tiny)
    ids = {name: upload(client, encoded(plain(name)), name)["id"] for name in COLOURS}
    ids["all.png"] = upload(client, encoded(photo()), "all.png")["id"]
    return client, ids


def test_the_shelf_is_looked_at_when_somebody_searches_and_when_it_changes(
    shelf: tuple[TestClient, dict[str, str]],
) -> None:
    client, ids = shelf
    before = client.get("/api/library").json()
    assert (before["has"], before["doing"], before["photos"]) == (True, "", 0)
    assert found(client, text="a dog") == []
    facts = refreshed(client)
    assert (facts["photos"], facts["failed"], facts["error"], facts["folder"]) == (4, 0, "", "")
    best, *rest = found(client, text="a dog")
    assert (best["photo"], best["name"], best["said"]) == (ids["dog.png"], "dog.png", "")
    whole = {hit["name"]: hit for hit in rest}["all.png"]
    assert (whole["what"], whole["box"]) == ("dog", list(TOP_RIGHT))
    assert client.get(whole["url"]).headers["content-type"] == "image/png"
    client.delete(f"/api/photos/{ids['dog.png']}")
    assert ids["dog.png"] not in {hit["photo"] for hit in found(client, text="a dog")}
    assert settled(client)["photos"] == 3


def test_an_example_finds_places_like_it(shelf: tuple[TestClient, dict[str, str]]) -> None:
    client, ids = shelf
    refreshed(client)
    cup = {"kind": "box", "xyxy": [0.55, 0.55, 0.95, 0.95]}
    hits = found(client, photo=ids["all.png"], region=cup, most=2)
    assert {hit["name"]: hit["box"] for hit in hits}["all.png"] == list(BOTTOM_RIGHT)
    assert {hit["name"] for hit in hits} == {"all.png", "cup.png"}
    trace = {"kind": "trace", "points": [[0.6, 0.6, 0.0], [0.9, 0.9, 1.0]]}
    assert {hit["name"] for hit in found(client, photo=ids["all.png"], region=trace, most=2)} == {"all.png", "cup.png"}
    assert found(client, photo=ids["cat.png"], most=1)[0]["name"] == "cat.png"


def test_what_people_said_is_found_where_they_pointed_and_gone_when_it_is(
    shelf: tuple[TestClient, dict[str, str]],
) -> None:
    client, ids = shelf
    words = [{"text": text, "start_s": at, "end_s": at + 0.4} for at, text in enumerate(("look,", "a", "dog", "here"))]
    told = narrative(ids["cat.png"], text="look, a dog here", words=words)
    kept = client.post("/api/narratives", json=told).json()
    machine = narrative(ids["cup.png"], text="a dog", origin="tiny")
    client.post("/api/narratives", json=machine)
    assert refreshed(client)["said"] == 1, "what a model told is not what people said"
    [hit] = found(client, text="a dog", said=True)
    assert (hit["photo"], hit["said"], hit["who"]) == (ids["cat.png"], "look, a dog here", "ada")
    assert hit["box"] is not None
    # A change is taken in without being asked.
    client.put(f"/api/narratives/{kept['id']}", json=told | {"text": "a cup", "words": []})
    settled(client)
    assert [hit["said"] for hit in found(client, text="a cup", said=True)] == ["a cup"]
    client.delete(f"/api/narratives/{kept['id']}")
    assert settled(client)["said"] == 0


def test_a_folder_is_searched_from_the_start_and_its_photos_are_taken_when_they_are_opened(
    open_studio: Callable[..., TestClient], tiny: Seer, tmp_path: Path
) -> None:
    folder = tmp_path / "holidays"
    (folder / "more").mkdir(parents=True)
    for name in COLOURS:
        plain(name).resize((400, 400)).save(folder / "more" / name)
    (folder / "broken.jpg").write_bytes(b"no photo")
    client = open_studio(model=tiny, library=folder)
    facts = settled(client)
    assert (facts["folder"], facts["photos"], facts["failed"]) == ("holidays", 3, 1)
    [hit] = found(client, text="a cup", most=1)
    assert (hit["photo"], hit["name"]) == (None, "more/cup.png")
    small = client.get(hit["url"])
    assert small.headers["content-type"] == "image/jpeg"
    assert len(small.content) < 20_000
    taken = client.post("/api/library/take", json={"name": hit["name"]})
    assert taken.status_code == 201
    assert client.post("/api/library/take", json={"name": hit["name"]}).json() == taken.json()
    assert [one["name"] for one in client.get("/api/photos").json()["photos"]] == ["cup.png"]
    for wrong in ("broken.jpg", "../holidays/more/cup.png", "it's", str(folder / "more" / "cup.png")):
        refusal(client.post("/api/library/take", json={"name": wrong}), 404)
        refusal(client.get("/api/library/file", params={"name": wrong}), 404)
    (folder / "more" / "cat.png").write_bytes(b"damaged since")
    assert "not PNG" in refusal(client.post("/api/library/take", json={"name": "more/cat.png"}), 409)["message"]


def test_questions_are_answered_while_photos_are_looked_at(
    open_studio: Callable[..., TestClient], tiny: Seer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_studio(model=tiny)
    ids = [upload(client, encoded(plain(name)), name)["id"] for name in COLOURS]
    first, go_on = threading.Event(), threading.Event()
    look = Seer.look

    def slow(self: Seer, photo: Any, image_id: str = "") -> Any:
        if threading.current_thread().name.startswith("studio-library"):
            raise AssertionError("the model has one thread")
        if image_id.endswith(".png"):
            first.set()
            assert go_on.wait(20)
        return look(self, photo, image_id)

    monkeypatch.setattr(Seer, "look", slow)
    client.post("/api/library/refresh")
    assert first.wait(20)
    # The question stands in line behind one photo, not behind all.
    threading.Timer(0.05, go_on.set).start()
    asked = client.post(f"/api/photos/{ids[0]}/captions", json={"regions": [{"kind": "whole"}]})
    assert asked.status_code == 200
    assert settled(client)["photos"] == 3


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "needs a text or a photo"),
        ({"text": "a", "photo": "0" * 32}, "needs a text or a photo"),
        ({"text": "a", "region": {"kind": "whole"}}, "region of no photo"),
        ({"photo": "0" * 32, "said": True}, "in what was said"),
        ({"text": "a", "most": 0}, "most is too small"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(
    shelf: tuple[TestClient, dict[str, str]], asked: dict[str, Any], message: str
) -> None:
    assert message in refusal(shelf[0].post("/api/library/search", json=asked), 422)["message"]


def test_a_photo_that_is_not_there_is_no_example(shelf: tuple[TestClient, dict[str, str]]) -> None:
    said = refusal(shelf[0].post("/api/library/search", json={"photo": "0" * 32}), 404)
    assert said["code"] == "unknown_photo"


def test_a_model_without_vectors_of_texts_says_so(client: TestClient) -> None:
    facts = client.get("/api/library").json()
    assert not facts["has"]
    assert "saywhere-base" in facts["why"]
    for address in ("search", "refresh"):
        assert "saywhere-base" in refusal(client.post(f"/api/library/{address}", json={"text": "a"}), 409)["message"]


def test_a_missing_package_is_said_with_how_to_get_it(
    open_studio: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch, tiny: Seer
) -> None:
    monkeypatch.setattr("saywhere.studio.library.find_spec", lambda _: None)
    facts = open_studio(model=tiny).get("/api/library").json()
    assert (facts["has"], facts["how"]) == (False, "pip install 'saywhere[search]'")


def test_an_index_of_another_model_and_a_writer_elsewhere_are_said(
    open_studio: Callable[..., TestClient], tiny: Seer, tmp_path: Path, seer: FakeSeer
) -> None:
    from saywhere.index.library import About, begin
    from saywhere.index.places import FolderPlace

    client = open_studio(model=tiny)
    upload(client, encoded(plain("cat.png")), "cat.png")
    tables = FolderPlace(tmp_path / "studio" / "library" / "tables")
    with tables.only_writer():
        assert "being written by another process" in refreshed(client)["error"]
    begin(tables, About("another", {"encoder": "another"}, 3))
    assert "was made with another" in refreshed(client)["error"]
