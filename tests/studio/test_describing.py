"""What the server prepares for a finger, and the description as files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi.testclient import TestClient

from tests.studio.conftest import ExploredSeer, FakeSeer, png, refusal, upload

NOBODY = "0" * 32


def explored(open_studio: Callable[..., TestClient]) -> tuple[TestClient, str, ExploredSeer]:
    seer = ExploredSeer()
    client = open_studio(model=seer)
    return client, upload(client, png(), "desk & co.png")["id"], seer


def test_all_that_a_finger_may_ask_for_comes_in_one_reply(open_studio: Callable[..., TestClient]) -> None:
    client, photo, seer = explored(open_studio)
    told = client.post(f"/api/photos/{photo}/describe").json()
    assert [one["name"] for one in told["things"]] == ["a couch", "a cat", "a cup"]
    assert told["things"][1]["about"] == [
        "A black cat.",
        "On the left.",
        "Right of it: a cup.",
    ]
    assert told["things"][1]["neighbours"] == {"right": 2}
    assert told["alt_text"] == "A cat on a couch."
    assert told["text"].startswith("A cat on a couch. The eye goes first to a couch")
    assert told["origin"] == "fake"
    assert "fork" not in str(told)
    assert (seer.looks, seer.batches) == ([photo], [5])


def test_files_are_made_of_the_same_description_without_looking_again(open_studio: Callable[..., TestClient]) -> None:
    client, photo, seer = explored(open_studio)
    told = client.post(f"/api/photos/{photo}/describe").json()
    text = client.get(f"/api/photos/{photo}/description")
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert text.headers["content-disposition"] == f'attachment; filename="description-{photo[:12]}.txt"'
    assert text.text.splitlines()[0] == "Photo: desk & co.png"
    assert text.text.endswith(f"{told['text']}\n")
    page = client.get(f"/api/photos/{photo}/description", params={"format": "page"})
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "desk &amp; co.png" in page.text
    assert seer.batches == [5]


def test_what_cannot_be_is_refused(client: TestClient, photo: dict[str, Any], seer: FakeSeer) -> None:
    assert refusal(client.post(f"/api/photos/{NOBODY}/describe"), 404)
    assert refusal(client.get(f"/api/photos/{photo['id']}/description?format=pdf"), 422)
    seer.skills = ("ground",)  # type: ignore[misc]
    assert refusal(client.post(f"/api/photos/{photo['id']}/describe"), 409)["code"] == "no_skill"
