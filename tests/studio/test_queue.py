"""The queue: what is open, told, or skipped with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.studio.skips import SkipStore

from .conftest import narrative, png, refusal, upload


def states(client: TestClient) -> list[tuple[str, str]]:
    return [(one["state"], one["reason"]) for one in client.get("/api/queue").json()["photos"]]


def test_a_photo_is_open_then_skipped_with_a_reason_then_open_again(client: TestClient, photo: dict[str, Any]):
    assert states(client) == [("open", "")]
    assert client.put(f"/api/queue/{photo['id']}/skip", json={"reason": " blurred "}).status_code == 204
    assert states(client) == [("skipped", "blurred")]
    assert client.delete(f"/api/queue/{photo['id']}/skip").status_code == 204
    assert states(client) == [("open", "")]


def test_a_photo_is_done_when_a_person_told_it_and_not_when_a_model_did(client: TestClient, photo: dict[str, Any]):
    client.post("/api/narratives", json=narrative(photo["id"], origin="some-model"))
    assert states(client) == [("open", "")]
    told = client.post("/api/narratives", json=narrative(photo["id"])).json()["id"]
    assert states(client) == [("done", "")]
    client.put(f"/api/queue/{photo['id']}/skip", json={"reason": "too late"})
    assert states(client) == [("done", "")]
    client.delete(f"/api/narratives/{told}")
    assert states(client) == [("skipped", "too late")]


def test_the_queue_has_the_order_of_the_photos(client: TestClient):
    ids = [upload(client, png(32 + i, 24), f"{i}.png")["id"] for i in range(3)]
    client.put(f"/api/queue/{ids[1]}/skip", json={"reason": "dark"})
    queue = client.get("/api/queue").json()["photos"]
    assert [(one["photo"], one["state"]) for one in queue] == list(zip(ids, ["open", "skipped", "open"], strict=True))


def test_the_queue_reads_only_what_was_written_since(
    client: TestClient, photo: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    for _ in range(3):
        told = client.post("/api/narratives", json=narrative(photo["id"])).json()
    assert states(client) == [("done", "")]
    read: list[Path] = []
    before = Path.read_bytes

    def noted(path: Path) -> bytes:
        read.append(path)
        return before(path)

    monkeypatch.setattr(Path, "read_bytes", noted)
    assert states(client) == [("done", "")]
    assert read == []
    client.put(f"/api/narratives/{told['id']}", json={**told, "text": "other"})
    read.clear()
    assert states(client) == [("done", "")]
    assert [path.parent.name for path in read] == [told["id"]]


def test_a_skip_needs_a_reason_and_a_photo(client: TestClient, photo: dict[str, Any]):
    assert "reason" in refusal(client.put(f"/api/queue/{photo['id']}/skip", json={"reason": "  "}), 422)["message"]
    refusal(client.put(f"/api/queue/{photo['id']}/skip", json={"reason": ""}), 422)
    refusal(client.put(f"/api/queue/{'0' * len(photo['id'])}/skip", json={"reason": "dark"}), 404)
    assert states(client) == [("open", "")]


def test_a_deleted_photo_that_comes_back_is_not_skipped(client: TestClient, photo: dict[str, Any]):
    client.put(f"/api/queue/{photo['id']}/skip", json={"reason": "dark"})
    client.delete(f"/api/photos/{photo['id']}")
    assert states(client) == []
    assert upload(client, png())["id"] == photo["id"]
    assert states(client) == [("open", "")]


def test_skips_are_there_after_a_restart_and_a_damaged_file_is_named(tmp_path: Path):
    path = tmp_path / "skipped.json"
    SkipStore(path).skip("a", "dark")
    again = SkipStore(path)
    assert again.reasons() == {"a": "dark"}
    with pytest.raises(InvalidValue, match="half a character"):
        again.skip("b", "\ud800")
    assert SkipStore(path).reasons() == {"a": "dark"}
    path.write_bytes(b"[1")
    with pytest.raises(InvalidFile, match=r"skipped\.json"):
        SkipStore(path)
