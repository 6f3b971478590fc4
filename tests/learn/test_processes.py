"""Two processes under torchrun, on the CPU with gloo, learn what one learns."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from saywhere.learn import Recipe, TrainingDiverged, find_checkpoint, train
from saywhere.learn.checkpoint import list_checkpoints
from saywhere.learn.processes import Processes
from saywhere.learn.records import Event, Note
from tests.learn.conftest import TINY, run_python, steps_of
from tests.learn.processes_tiny import CUT, RUNS

Pair = tuple[Path, list[dict[str, Any]], str]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Where two processes ran, what each saw, and what was printed."""
    out = tmp_path_factory.mktemp("pair")
    (out / "tiny.toml").write_text(TINY)
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    done = run_python(*launcher, "-m", "tests.learn.processes_tiny", str(out / "tiny.toml"), str(out))
    assert done.returncode == 0, done.stderr
    return out, [json.loads((out / f"seen-{rank}.json").read_text()) for rank in (0, 1)], done.stderr


def test_what_was_exchanged_last_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda tensor: None)
    pair, tensor = Processes(0, 2), torch.ones(3)
    known = weakref.ref(tensor)
    pair.all_reduce(tensor)
    del tensor
    assert known() is not None
    for _ in range(4):
        pair.all_reduce(torch.ones(3))
    assert known() is None


@pytest.mark.parametrize("name", ["items", "words", "stream", "shared"])
def test_two_processes_learn_what_one_learns(
    tiny: Callable[..., Recipe], tmp_path: Path, pair: Pair, name: str
) -> None:
    train(tiny(*RUNS[name]), tmp_path)
    alone, together = steps_of(tmp_path), steps_of(pair[0] / name)
    assert [s["step"] for s in together] == [s["step"] for s in alone] == list(range(1, 19))
    for one, two in zip(alone, together, strict=True):
        assert two["losses"] == pytest.approx(one["losses"], rel=1e-5)
        assert two["norm"] == pytest.approx(one["norm"], rel=1e-4)
        assert two["items"] == one["items"]
    weights = [load_file(find_checkpoint(out) / "ema.safetensors") for out in (tmp_path, pair[0] / name)]
    for key in weights[0]:
        torch.testing.assert_close(weights[1][key], weights[0][key], atol=1e-5, rtol=1e-5)


def test_both_processes_see_the_same_and_one_writes(pair: Pair) -> None:
    out, (first, second), stderr = pair
    assert first == second
    assert first["items"][:2] == ["finished", 18]
    assert json.loads((out / "items" / "run.json").read_text())["processes"] == 2
    lines = (out / "items" / "history.jsonl").read_text().splitlines()
    assert sum("started" in line for line in lines) == 1
    assert stderr.count("step 18/18") == 1


def test_processes_validate_a_part_each_where_the_measures_add_up(
    tiny: Callable[..., Recipe], tmp_path: Path, pair: Pair
) -> None:
    alone = train(tiny(*RUNS["shared"]), tmp_path).metrics
    _, (first, second), _ = pair
    together = first["shared"][2]
    assert together == second["shared"][2]
    assert together["error"] == pytest.approx(alone["error"], rel=1e-4)
    assert set(alone) == {"error", "error_of_part_0"}
    assert set(together) == {*alone, "error_of_part_1"}
    # Of 17 items the first process has 9.
    mean = (9 * together["error_of_part_0"] + 8 * together["error_of_part_1"]) / 17
    assert together["error"] == pytest.approx(mean)


@pytest.mark.parametrize("name", CUT)
def test_a_signal_to_one_process_stops_both_and_resumed_equals_never_stopped(pair: Pair, name: str) -> None:
    out, (first, second), _ = pair
    (status, steps), again = first[f"cut-{name}"]
    assert status == "interrupted"
    assert 7 <= steps < 18
    assert again == ["finished", 18]
    assert first[f"cut-{name}"] == second[f"cut-{name}"]
    assert steps_of(out / f"cut-{name}") == steps_of(out / name)
    for part in ("model", "ema", "optimizer"):
        ours, theirs = (
            load_file(find_checkpoint(out / run, "last") / f"{part}.safetensors") for run in (f"cut-{name}", name)
        )
        assert all(torch.equal(ours[key], theirs[key]) for key in theirs)


def test_a_number_lost_by_one_process_stops_both(tiny: Callable[..., Recipe], tmp_path: Path, pair: Pair) -> None:
    with pytest.raises(TrainingDiverged) as caught:
        train(tiny(*RUNS["lost"]), tmp_path)
    out, (first, second), _ = pair
    assert first["lost"] == second["lost"] == ["diverged", caught.value.step, None]
    assert [p.name for p in list_checkpoints(out / "lost" / "checkpoints")] == [
        p.name for p in list_checkpoints(tmp_path / "checkpoints")
    ]


def test_one_process_goes_on_where_two_left_off(tiny: Callable[..., Recipe], pair: Pair) -> None:
    out, _, _ = pair
    told: list[Event] = []
    result = train(tiny(*RUNS["items"]), out / "items", on_event=told.append)
    assert (result.status, result.steps) == ("finished", 18)
    said = "the number of processes was 2 and is 1: from here on the run is equal but for rounding"
    assert sum(said in event.message for event in told if isinstance(event, Note)) == 1
    # Where their number stayed, nothing is said.
    assert all("no longer" not in (out / f"cut-{name}" / "history.jsonl").read_text() for name in CUT)
