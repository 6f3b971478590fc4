"""Runs side by side: all are done, and the first failure ends it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from saywhere.core import InvalidValue
from saywhere.engine import ShardError
from saywhere.reproduce.pool import run_jobs


def write_name(path: Path) -> None:
    path.write_text(str(os.getpid()))


def fail(path: Path) -> None:
    raise InvalidValue("job", f"{path.name} cannot be done")


@pytest.mark.parametrize("workers", [0, 2])
def test_all_jobs_are_done_and_told(workers: int, tmp_path: Path) -> None:
    ticks: list[int] = []
    paths = [tmp_path / str(i) for i in range(3)]
    run_jobs(paths, write_name, workers, lambda: ticks.append(1))
    assert all(path.is_file() for path in paths)
    assert ticks
    assert (workers == 0) == (paths[0].read_text() == str(os.getpid()))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_failure_is_not_lost(workers: int, tmp_path: Path) -> None:
    with pytest.raises(ShardError, match="second cannot be done"):
        run_jobs([tmp_path / "second"], fail, workers, lambda: None)
