"""Digests see what files hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from saywhere.core import InvalidFile
from saywhere.store.digest import content_digest, folder_fingerprint

MIB = 1 << 20


@pytest.mark.parametrize("place", [0, 70_000, 199_999])
def test_any_byte_of_a_small_file_counts(tmp_path: Path, place: int) -> None:
    content = bytearray(200_000)
    (tmp_path / "a").write_bytes(content)
    content[place] = 1
    (tmp_path / "b").write_bytes(content)
    assert content_digest(tmp_path / "a") != content_digest(tmp_path / "b")


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (30 * MIB - 1, 30 * MIB), (7 * MIB, 8 * MIB)])
def test_both_ends_and_every_longer_stretch_of_a_large_file_count(tmp_path: Path, start: int, stop: int) -> None:
    content = bytearray(30 * MIB)
    (tmp_path / "a").write_bytes(content)
    content[start:stop] = b"x" * (stop - start)
    (tmp_path / "b").write_bytes(content)
    assert content_digest(tmp_path / "a") != content_digest(tmp_path / "b")


def test_the_size_counts(tmp_path: Path) -> None:
    for size in (0, 1, 30 * MIB, 30 * MIB + 1):
        (tmp_path / str(size)).write_bytes(bytes(size))
    assert len({content_digest(file) for file in tmp_path.iterdir()}) == 4


def test_equal_content_has_an_equal_digest(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(b"features")
    assert content_digest(tmp_path / "a") == content_digest(tmp_path / "b")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="regions"):
        content_digest(tmp_path / "regions")


def test_a_folder_is_known_by_the_content_and_the_names_of_its_files(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(name.encode())
    before = folder_fingerprint(tmp_path, "ab")
    assert folder_fingerprint(tmp_path, "ab") == before
    assert folder_fingerprint(tmp_path, "ba") != before
    (tmp_path / "a").write_bytes(b"b")
    assert folder_fingerprint(tmp_path, "ab") != before
