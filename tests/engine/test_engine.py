"""Stages over shards: the same from one process and from several, with names, kept results, and no worker left over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from saywhere.core import InvalidFile, InvalidValue
from saywhere.engine import (
    Engine,
    FailedShard,
    Function,
    OneProcess,
    Options,
    SeveralProcesses,
    ShardError,
    open_engine,
)
from saywhere.engine.mapping import plan
from tests.engine.stages import DeadlySetup, NeverReady, Squared, Unsendable, no_room, sleep_long, threads, write_pid

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=[0, 2], ids=["one process", "two processes"])
def engine(request: pytest.FixtureRequest) -> Engine:
    return open_engine(request.param)


def _lines(path: Path) -> list[str]:
    return sorted(path.read_text().split()) if path.exists() else []


def test_results_come_in_the_order_of_the_shards_and_each_worker_is_set_up_once(engine: Engine, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    waits: list[int] = []
    options = Options(progress=lambda *at: told.append(at), doing="squaring", on_wait=lambda: waits.append(1))
    assert list(engine.map(Squared(tmp_path), range(7), options)) == [0, 1, 4, 9, 16, 25, 36]
    assert told == [("squaring", i + 1, 7) for i in range(7)]
    assert _lines(tmp_path / "shards") == [str(i) for i in range(7)]
    setups = _lines(tmp_path / "setups")
    assert len(setups) == len(set(setups)) == (1 if isinstance(engine, OneProcess) else 2)
    assert (str(os.getpid()) in setups) == isinstance(engine, OneProcess)
    assert waits


def test_there_may_be_no_shards(engine: Engine, tmp_path: Path) -> None:
    assert list(engine.map(Squared(tmp_path), [])) == []
    assert _lines(tmp_path / "setups") == []


def test_finished_shards_are_not_done_again(engine: Engine, tmp_path: Path) -> None:
    kept = Options(folder=tmp_path / "kept", name=lambda number: f"number-{number}")
    with pytest.raises(ShardError, match="number-13: number: 13 brings bad luck"):
        list(engine.map(Squared(tmp_path), [3, 4, 13, 5], kept))
    # With several processes, those of 3 and 4 may have been stopped in the middle.
    missing = [number for number in (3, 4, 6) if not (tmp_path / "kept" / f"number-{number}.json").exists()]
    (tmp_path / "shards").unlink()
    told: list[int] = []
    again = Options(folder=kept.folder, name=kept.name, progress=lambda _, done, total: told.append(done))
    assert list(engine.map(Squared(tmp_path), [3, 4, 6], again)) == [9, 16, 36]
    assert _lines(tmp_path / "shards") == [str(number) for number in missing]
    assert told == [1, 2, 3][-len(missing) :]
    assert json.loads((tmp_path / "kept" / "number-6.json").read_text()) == 36
    # A process that was ended while it wrote leaves its own temporary file, which nobody takes for a result.
    assert {path.name for path in (tmp_path / "kept").glob("number-*")} >= {f"number-{n}.json" for n in (3, 4, 6)}


def test_a_shard_that_a_worker_finished_before_it_died_is_not_done_again(tmp_path: Path) -> None:
    options = Options(folder=tmp_path / "kept")
    work = plan(Squared(tmp_path), [4], options)
    assert list(OneProcess().map(Squared(tmp_path), [4], options)) == [16]
    assert work.tasks[0].run(work.stage) == 16
    assert _lines(tmp_path / "shards") == ["4"]


def test_a_folder_belongs_to_one_stage(engine: Engine, tmp_path: Path) -> None:
    list(engine.map(Squared(tmp_path), [1], Options(folder=tmp_path / "kept")))
    with pytest.raises(InvalidFile, match=r"holds the results of Squared\(.*power=2.*not of Squared\(.*power=3"):
        engine.map(Squared(tmp_path, 3), [1], Options(folder=tmp_path / "kept"))


@pytest.mark.parametrize("shards", [["a", "a"], ["a/b"], [""]])
def test_shards_whose_results_cannot_be_kept_apart_are_refused(
    engine: Engine, tmp_path: Path, shards: list[str]
) -> None:
    with pytest.raises(InvalidValue, match="names that are not those of different files"):
        engine.map(Function(write_pid), shards, Options(folder=tmp_path / "kept"))


def test_a_result_that_is_damaged_is_named(engine: Engine, tmp_path: Path) -> None:
    list(engine.map(Squared(tmp_path), [1], Options(folder=tmp_path / "kept")))
    (tmp_path / "kept" / "1.json").write_bytes(b"{")
    with pytest.raises(InvalidFile, match=r"1\.json: is not the result of a shard"):
        engine.map(Squared(tmp_path), [1], Options(folder=tmp_path / "kept"))


def test_a_bad_shard_is_a_value_at_its_place_and_is_tried_again(engine: Engine, tmp_path: Path) -> None:
    options = Options(folder=tmp_path / "kept", keep_errors=True)
    for _ in range(2):
        found = list(engine.map(Squared(tmp_path), [12, 13, 16], options))
        assert found == [144, FailedShard("13", "number: 13 brings bad luck"), 256]
    assert _lines(tmp_path / "shards") == ["12", "13", "13", "16"]


def test_a_defect_ends_the_work_with_the_shard_and_the_place(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(ShardError, match="14: ZeroDivisionError: a defect") as caught:
        list(engine.map(Squared(tmp_path), [1, 14], Options(keep_errors=True)))
    assert caught.value.shard == "14"
    assert "tests/engine/stages.py" in caught.value.where.replace(os.sep, "/")


def test_a_full_disk_ends_the_work_though_bad_shards_are_kept(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(ShardError, match=r"[123]: .*the disk is full"):
        list(engine.map(Function(no_room), [1, 2, 3], Options(keep_errors=True)))


def test_a_stage_that_cannot_be_set_up_ends_the_work(engine: Engine) -> None:
    with pytest.raises(ShardError, match=r"[12]: model: is not there"):
        list(engine.map(NeverReady(), [1, 2], Options(keep_errors=True)))


def test_a_result_that_is_no_json_cannot_be_kept(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(ShardError, match="the result of 1: is not a JSON value"):
        list(engine.map(Unsendable(), [1], Options(folder=tmp_path)))


def test_a_result_that_cannot_leave_its_process_is_an_error_of_its_shard() -> None:
    with pytest.raises(ShardError, match="1: TypeError: cannot pickle"):
        list(SeveralProcesses(1).map(Unsendable(), [1]))


def test_a_shard_that_kills_its_workers_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    found = list(SeveralProcesses(2).map(Squared(tmp_path), [1, 15, 2, 3], Options(keep_errors=True)))
    assert found == [1, FailedShard("15", "3 workers died over it (exit code 3): out of memory, or killed?"), 4, 9]
    assert _lines(tmp_path / "shards").count("15") == 3
    with pytest.raises(ShardError, match="15: 3 workers died over it"):
        list(SeveralProcesses(1).map(Squared(tmp_path), [15, 2]))


def test_workers_that_die_before_they_are_ready_end_the_work() -> None:
    with pytest.raises(ShardError, match=r"1: its worker died while it got ready \(exit code 4\)"):
        list(SeveralProcesses(1).map(DeadlySetup(), [1, 2], Options(keep_errors=True)))


def test_workers_compute_with_one_thread_and_this_process_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    assert list(SeveralProcesses(1).map(Function(threads), [1])) == ["1"]
    assert list(SeveralProcesses(1, threads=3).map(Function(threads), [1])) == ["3"]
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


@pytest.mark.parametrize(("workers", "per_worker"), [(0, 1), (1, 0)])
def test_no_worker_and_no_thread_are_refused(workers: int, per_worker: int) -> None:
    with pytest.raises(InvalidValue, match="not at least 1"):
        SeveralProcesses(workers, per_worker)


def test_whoever_stops_asking_leaves_no_worker(tmp_path: Path) -> None:
    results = SeveralProcesses(2).map(Function(_pid_then_sleep), [tmp_path / "quick", tmp_path / "slow"])
    next(results)
    worker = int(_wait_for(lambda: (tmp_path / "slow").read_text() if (tmp_path / "slow").is_file() else ""))
    results.close()  # type: ignore[attr-defined]  # it is a generator
    assert not _lives(worker)


def _pid_then_sleep(path: Path) -> None:
    (write_pid if path.name == "quick" else sleep_long)(path)


_RUN = """
import sys
from pathlib import Path
from saywhere.engine import Function, SeveralProcesses
from tests.engine.stages import sleep_long
if __name__ == "__main__":
    list(SeveralProcesses(1).map(Function(sleep_long), [Path(sys.argv[1])]))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_worker_ends_with_the_process_that_began_it(tmp_path: Path, how: signal.Signals) -> None:
    script, told = tmp_path / "run.py", tmp_path / "worker"
    script.write_text(_RUN)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    run = subprocess.Popen([sys.executable, str(script), str(told)], env={**os.environ, "PYTHONPATH": path})
    try:
        worker = int(_wait_for(lambda: told.read_text() if told.is_file() else ""))
        run.send_signal(how)
        run.wait(timeout=60)
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
