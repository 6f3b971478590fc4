from __future__ import annotations

import gzip
import os
import signal
import stat
from pathlib import Path

import pytest

from saywhere.atomic import _left_over, write_atomic
from saywhere.core import InvalidFile


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "new" / "a.txt"
    with write_atomic(target) as file:
        file.write(b"one")
        assert not target.exists()
    assert target.read_bytes() == b"one"
    assert stat.S_IMODE(target.stat().st_mode) & 0o400
    with pytest.raises(TypeError, match="bytes-like"), write_atomic(target) as file:
        file.write("two")  # type: ignore[arg-type]
    assert target.read_bytes() == b"one"
    assert [path.name for path in target.parent.iterdir()] == ["a.txt"]


def test_the_same_content_packs_to_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        with write_atomic(tmp_path / name) as file:
            file.write(b"content")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"content"


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidFile, match="cannot be written"), write_atomic(tmp_path / "file" / "below.txt"):
        pytest.fail("the block must not run")


def test_no_file_is_open_to_all_while_another_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0o027)
    os.umask(before)
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("the mask is asked for while other threads may write"))
    with write_atomic(tmp_path / "a.txt") as file:
        file.write(b"one")
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o666 & ~before


def test_what_a_killed_writer_left_is_swept_when_its_file_is_next_written(tmp_path: Path) -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with write_atomic(tmp_path / "a.txt") as file:
            file.write(b"half")
            os.write(write, b"x")
            signal.pause()
    os.read(read, 1)
    (left,) = tmp_path.iterdir()
    with write_atomic(tmp_path / "b.txt") as file:
        file.write(b"other")
    with write_atomic(tmp_path / "a.txt") as file:
        file.write(b"mine")
    assert left.exists(), "its writer is still at it"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    _left_over.cache_clear()
    with write_atomic(tmp_path / "b.txt"):
        assert left.exists(), "it is not the file's"
    with write_atomic(tmp_path / "a.txt") as file:
        file.write(b"whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt"]
    assert (tmp_path / "a.txt").read_bytes() == b"whole"
