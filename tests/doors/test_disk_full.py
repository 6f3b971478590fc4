"""A full disk, as the system tells of it: a clear sentence, nothing half-written, nothing lost that was computed."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from saywhere.atomic import DiskFull, write_atomic
from saywhere.cli import app as cli
from saywhere.cli import seeing
from saywhere.core.errors import InvalidFile
from saywhere.learn.checkpoint import newest_intact
from saywhere.store import Store
from saywhere.studio.participants import DATABASE
from tests.fuzz.kills import WRITERS, Writer
from tests.models.patchioner_seeing import photo, seer
from tests.studio.conftest import png


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Inside, no file grows beyond so many bytes: writing on fails, as it does on a disk without room."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_a_file_that_does_not_fit_leaves_what_was_there(name: str, tmp_path: Path) -> None:
    with write_atomic(tmp_path / name) as file:
        file.write(b"before")
    before = _files(tmp_path)
    noise = np.random.default_rng(0).bytes(100_000)
    with room_for(5_000), pytest.raises(DiskFull, match="the disk is full"), write_atomic(tmp_path / name) as file:
        file.write(noise)
    assert _files(tmp_path) == before


@pytest.mark.parametrize("room", [0, 40])
@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.name)
def test_every_writer_says_so_and_loses_nothing(writer: Writer, room: int, tmp_path: Path) -> None:
    writer.write(tmp_path, 0)
    # Of the ratings' database, a file that grows, there is room for what is there.
    grown = (tmp_path / DATABASE).stat().st_size if (tmp_path / DATABASE).exists() else 0
    with room_for(room + grown), pytest.raises(InvalidFile, match=r"disk is full|cannot be written"):
        writer.write(tmp_path, 1)
    assert writer.check(tmp_path, 0) == ""
    assert [name for name in _files(tmp_path) if name.endswith(".part")] == []


def test_what_is_still_there_can_be_written_on_later(tmp_path: Path) -> None:
    store, checkpoint = (next(one for one in WRITERS if one.name.startswith(name)) for name in ("store", "checkpoint"))
    for writer in (store, checkpoint):
        writer.write(tmp_path, 0)
        with room_for(100), pytest.raises(InvalidFile):
            writer.write(tmp_path, 1)
        writer.write(tmp_path, 1)
        assert writer.check(tmp_path, 1) == ""
    assert len(Store(tmp_path / "store")) == 6
    assert newest_intact(tmp_path / "run")[1] == []


@pytest.mark.parametrize("arguments", [["ground", "a.png", "a cat", "--out", "t.jsonl"], ["narrate", "a.png"]])
def test_what_was_computed_is_printed_before_it_is_lost(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    photo().save("a.png")
    monkeypatch.setattr(seeing, "opened", lambda *_, **__: seer())
    more = ["--out", "t.jsonl"] if "--out" not in arguments else []
    with room_for(10):
        result = CliRunner().invoke(cli.app, [*arguments, *more])
    assert isinstance(result.exception, DiskFull)
    assert "cat" in result.output
    assert not Path("t.jsonl").exists()


def test_the_command_line_says_it_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full() -> None:
        with room_for(10), (tmp_path / "any").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(100))

    monkeypatch.setattr(cli, "app", full)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert "the disk is full" in capsys.readouterr().err


def test_output_that_does_not_fit_is_not_blamed_on_another_disk(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def told() -> None:
        with Path("/dev/full").open("wb", buffering=0) as output:
            output.write(b"told")

    monkeypatch.setattr(cli, "app", told)
    with pytest.raises(SystemExit):
        cli.main()
    assert "the disk is full: where standard output goes" in capsys.readouterr().err


def test_the_studio_answers_507_and_keeps_nothing_in_part(
    open_studio: Callable[..., TestClient], tmp_path: Path
) -> None:
    client: Any = open_studio()
    with room_for(20):
        reply = client.post("/api/photos", content=png(), headers={"Content-Type": "image/png"})
    assert reply.status_code == 507
    assert reply.json()["error"]["code"] == "disk_full"
    assert client.get("/api/photos").json() == {"photos": []}
    assert client.post("/api/photos", content=png(), headers={"Content-Type": "image/png"}).status_code == 201
