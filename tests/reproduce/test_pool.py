"""Runs side by side: all are done, the first failure ends it, and no worker outlives the run that began it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from saywhere.core import InvalidValue
from saywhere.reproduce.pool import run_jobs

_RUN = """
import sys
from pathlib import Path
from saywhere.reproduce.pool import run_jobs
from tests.reproduce.test_pool import sleep_long
if __name__ == "__main__":
    run_jobs([Path(sys.argv[1])], sleep_long, 1, lambda: None)
"""


def write_name(path: Path) -> None:
    path.write_text(str(os.getpid()))


def sleep_long(path: Path) -> None:
    write_name(path)
    time.sleep(120)


def write_threads(path: Path) -> None:
    path.write_text(os.environ.get("OMP_NUM_THREADS", "all"))


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


def test_workers_compute_with_one_thread_and_this_process_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    run_jobs([tmp_path / "threads"], write_threads, 1, lambda: None)
    assert (tmp_path / "threads").read_text() == "1"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


@pytest.mark.parametrize("workers", [0, 1])
def test_a_failure_is_not_lost(workers: int, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="second cannot be done"):
        run_jobs([tmp_path / "second"], fail, workers, lambda: None)


def test_a_worker_ends_with_the_run_that_began_it(tmp_path: Path) -> None:
    script, told = tmp_path / "run.py", tmp_path / "worker"
    script.write_text(_RUN)
    path = os.pathsep.join([str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")])
    run = subprocess.Popen([sys.executable, str(script), str(told)], env={**os.environ, "PYTHONPATH": path})
    try:
        worker = int(_wait_for(lambda: told.read_text() if told.is_file() else ""))
        run.send_signal(signal.SIGKILL)
        run.wait()
        assert _wait_for(lambda: "" if _lives(worker) else "gone") == "gone"
    finally:
        run.kill()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    # One that nobody has asked after yet has ended, too.
    return not state.is_file() or state.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def _wait_for(told: Callable[[], str], most_s: float = 60.0) -> str:
    end = time.monotonic() + most_s
    while time.monotonic() < end:
        if found := told():
            return found
        time.sleep(0.1)
    return ""
