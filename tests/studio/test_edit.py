"""Saved narratives are changed with history: every earlier version is kept, seen and restored."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from saywhere.core.errors import InvalidFile, UnknownName
from saywhere.studio.errors import Refused
from saywhere.studio.narratives import NarrativeStore

from .conftest import narrative, refusal, wav

PHOTO = "0" * 32
TEXTS = ("a red wall", "a blue wall", "two walls")


@pytest.fixture
def store(tmp_path: Path) -> NarrativeStore:
    return NarrativeStore(tmp_path / "narratives")


def changed_twice(store: NarrativeStore) -> str:
    narrative_id = str(store.create(narrative(PHOTO, text=TEXTS[0]))["id"])
    for text in TEXTS[1:]:
        store.replace(narrative_id, narrative(PHOTO, text=text))
    return narrative_id


def test_every_earlier_version_is_kept_as_it_was(store: NarrativeStore) -> None:
    first = store.create(narrative(PHOTO, text=TEXTS[0]))
    store.put_audio(first["id"], wav())
    for text in TEXTS[1:]:
        store.replace(first["id"], narrative(PHOTO, text=text, keys=[]))
    versions = store.versions(first["id"])
    assert [(one["version"], one["text"]) for one in versions] == [(3, TEXTS[2]), (2, TEXTS[1]), (1, TEXTS[0])]
    assert versions[-1] == first | {"audio": True}
    assert versions == [store.version(first["id"], number) for number in (3, 2, 1)]
    assert [one["changed"] for one in versions] == sorted((one["changed"] for one in versions), reverse=True)


def test_restoring_makes_a_new_version_and_loses_none(store: NarrativeStore) -> None:
    narrative_id = changed_twice(store)
    restored = store.restore(narrative_id, 1)
    assert (restored["version"], restored["text"]) == (4, TEXTS[0])
    assert [one["text"] for one in store.versions(narrative_id)] == [TEXTS[0], *reversed(TEXTS)]
    assert store.restore(narrative_id, 3)["text"] == TEXTS[2]
    with pytest.raises(UnknownName):
        store.restore(narrative_id, 9)


def test_saying_the_same_again_makes_no_version(store: NarrativeStore) -> None:
    narrative_id = changed_twice(store)
    assert store.replace(narrative_id, narrative(PHOTO, text=TEXTS[2]))["version"] == 3
    assert store.restore(narrative_id, 3)["version"] == 3
    assert len(store.versions(narrative_id)) == 3


def test_what_was_made_from_an_older_version_overwrites_nothing(store: NarrativeStore) -> None:
    narrative_id = changed_twice(store)
    with pytest.raises(Refused) as refused:
        store.replace(narrative_id, narrative(PHOTO, text="mine", version=2))
    assert (refused.value.status_code, refused.value.code) == (409, "changed_meanwhile")
    assert store.get(narrative_id)["text"] == TEXTS[2]
    assert store.replace(narrative_id, narrative(PHOTO, text="mine", version=3))["version"] == 4


def test_narratives_from_before_versions_were_counted_are_their_first(store: NarrativeStore) -> None:
    made = store.create(narrative(PHOTO))
    path = store.folder / made["id"] / "narrative.json"
    path.write_bytes(path.read_bytes().replace(b',"version":1', b""))
    assert b"version" not in path.read_bytes()
    assert store.get(made["id"])["version"] == 1
    assert store.replace(made["id"], narrative(PHOTO, text="other"))["version"] == 2
    assert store.version(made["id"], 1)["text"] == made["text"]


@pytest.mark.parametrize("at", ["history.keep", "narratives.NarrativeStore._write"])
def test_a_crash_while_changing_leaves_what_was_there(
    store: NarrativeStore, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    narrative_id = changed_twice(store)
    before = store.versions(narrative_id)

    def crash(*_: Any) -> None:
        raise InvalidFile("disk", "broke")

    with monkeypatch.context() as broken:
        broken.setattr(f"saywhere.studio.{at}", crash)
        with pytest.raises(InvalidFile):
            store.replace(narrative_id, narrative(PHOTO, text="lost?"))
    assert store.versions(narrative_id) == before
    assert store.replace(narrative_id, narrative(PHOTO, text="kept"))["version"] == 4
    assert [one["text"] for one in store.versions(narrative_id)] == ["kept", *reversed(TEXTS)]


CHANGING = """
import sys
from pathlib import Path
from saywhere.studio.narratives import NarrativeStore
store, narrative_id = NarrativeStore(Path(sys.argv[1])), sys.argv[2]
trace = {"points": [[0.5, 0.5, i / 10] for i in range(2000)], "starts": [0]}
while True:
    number = store.get(narrative_id)["version"] + 1
    store.replace(narrative_id, {"photo": "0" * 32, "text": str(number), "trace": trace})
    print(number, flush=True)
"""


def test_killed_while_changing_no_version_is_torn_or_missing(store: NarrativeStore) -> None:
    narrative_id = str(store.create(narrative(PHOTO, text="1"))["id"])
    told = 1
    for n_changes in (3, 8):
        command = [sys.executable, "-c", CHANGING, str(store.folder), narrative_id]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
            assert process.stdout is not None
            for _ in range(n_changes):
                told = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
        versions = store.versions(narrative_id)
        assert len(versions) >= told
        assert [one["text"] for one in versions] == [str(number) for number in range(len(versions), 0, -1)]


def test_of_many_that_change_at_once_each_is_a_version(store: NarrativeStore) -> None:
    narrative_id = str(store.create(narrative(PHOTO, text="0"))["id"])
    texts = [f"by {number}" for number in range(1, 9)]
    threads = [
        threading.Thread(target=store.replace, args=(narrative_id, narrative(PHOTO, text=text))) for text in texts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one["text"] for one in store.versions(narrative_id)) == ["0", *texts]


def test_versions_go_with_their_narrative(store: NarrativeStore) -> None:
    narrative_id = changed_twice(store)
    store.delete(narrative_id)
    assert list(store.folder.iterdir()) == []


def test_the_api_lists_shows_and_restores_versions(client: TestClient, photo: dict[str, Any]) -> None:
    made = client.post("/api/narratives", json=narrative(photo["id"])).json()
    assert (made["version"], made["changed"]) == (1, made["created"])
    words = [{"text": "walls", "start_s": 0.25, "end_s": 0.5}]
    edited = client.put(f"/api/narratives/{made['id']}", json={**made, "words": words, "timed_by": "hand"}).json()
    assert (edited["version"], edited["timed_by"]) == (2, "hand")
    error = refusal(client.put(f"/api/narratives/{made['id']}", json={**made, "text": "late"}), 409)
    assert error["code"] == "changed_meanwhile"
    address = f"/api/narratives/{made['id']}/versions"
    listed = client.get(address).json()["versions"]
    assert [(one["version"], one["words"], one["strokes"], one["points"]) for one in listed] == [
        (2, 1, 2, 3),
        (1, 0, 2, 3),
    ]
    assert client.get(f"{address}/1").json() == made
    restored = client.post(f"{address}/1/restore", json={}).json()
    assert restored == made | {"version": 3, "changed": restored["changed"]}
    assert refusal(client.get(f"{address}/4"), 404)["code"] == "unknown_version"
    refusal(client.get(f"{address}/0"), 422)
    refusal(client.get(f"/api/narratives/{'f' * 16}/versions"), 404)
