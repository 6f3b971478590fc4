"""Writers that are killed leave what was done whole; `make kills` kills five hundred."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.kills import WRITERS, Writer, kill_all


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.name)
def test_a_killed_writer_leaves_nothing_torn(writer: Writer) -> None:
    found, _ = kill_all(writer, 5, 2026)
    assert found == []


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.name)
def test_what_is_written_is_found_and_what_is_lost_is_missed(writer: Writer, tmp_path: Path) -> None:
    for number in range(3):
        writer.write(tmp_path, number)
    assert writer.check(tmp_path, 2) == ""
    assert writer.check(tmp_path, 5) != ""


def test_a_writer_that_tears_its_file_is_found_out() -> None:
    def slowly(folder: Path, number: int) -> None:
        with (folder / "a").open("w") as file:
            for _ in range(2_000):
                file.write(f"{number} " * 50)
                file.flush()

    def whole(folder: Path, done: int) -> str:
        path = folder / "a"
        words = path.read_text().split() if path.exists() else []
        return "" if done < 0 or len(words) == 100_000 else "torn"

    found, written = kill_all(Writer("careless", slowly, whole), 25, 0)
    assert written == 0 or found
