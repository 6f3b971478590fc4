from __future__ import annotations

import gzip
import stat
from pathlib import Path

import pytest

from saywhere.atomic import write_atomic
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
