"""A run that was cut off, in whatever way, ends as if it had not been."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.learn import Event, Note, Recipe, StepDone, find_checkpoint, train
from saywhere.learn.recipe import parse_recipe
from tests.learn.conftest import run_python, same_end, steps_of, stop_at

Tiny = Callable[..., Recipe]


@pytest.mark.parametrize("stop", [1, 4, 9, 17])
def test_resumed_equals_never_stopped(tiny: Tiny, tmp_path: Path, whole: Path, stop: int) -> None:
    before = {kind: signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)}
    first = train(tiny(), tmp_path, on_event=stop_at(stop))
    assert (first.status, first.steps) == ("interrupted", stop)
    assert {kind: signal.getsignal(kind) for kind in before} == before
    torch.rand(3)
    assert train(tiny(), tmp_path).status == "finished"
    assert same_end(tmp_path, whole)


def test_a_run_killed_again_and_again_ends_as_if_it_had_not_been(tiny_file: Path, tmp_path: Path, whole: Path) -> None:
    tiny_file.write_text(tiny_file.read_text().replace("every_steps = 4", "every_steps = 1"))
    seed = random.SystemRandom().randrange(10**6)
    done = run_python("-m", "tests.learn.kill_tiny", str(tiny_file), str(tmp_path / "run"), "5", str(seed))
    kills = f"seed {seed}, killed after steps {done.stdout.split()}"
    assert done.returncode == 0, kills + done.stderr
    assert sum(step.isdigit() for step in done.stdout.split()) >= 2, kills
    assert same_end(tmp_path / "run", whole), kills


def test_a_signal_after_the_last_step_changes_nothing(tiny: Tiny, tmp_path: Path, whole: Path) -> None:
    assert train(tiny(), tmp_path, on_event=stop_at(18)).status == "finished"
    assert same_end(tmp_path, whole)


def test_the_second_signal_acts_at_once(tiny: Tiny, tmp_path: Path) -> None:
    def listen(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == 2:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(tiny(), tmp_path, on_event=listen)
    assert [s["step"] for s in steps_of(tmp_path)] == [1, 2]


def test_training_works_outside_the_main_thread(tiny: Tiny, tmp_path: Path, whole: Path) -> None:
    thread = threading.Thread(target=train, args=(tiny(), tmp_path))
    thread.start()
    thread.join()
    assert same_end(tmp_path, whole)


def test_a_damaged_checkpoint_is_put_aside_and_the_run_ends_the_same(tiny: Tiny, tmp_path: Path, whole: Path) -> None:
    train(tiny(), tmp_path, on_event=stop_at(10))
    newest = find_checkpoint(tmp_path, "last")
    (newest / "model.safetensors").write_bytes((newest / "model.safetensors").read_bytes()[:-8])
    notes: list[str] = []
    train(tiny(), tmp_path, on_event=lambda e: notes.append(e.message) if isinstance(e, Note) else None)
    assert notes[0].startswith("skipped step-00000010: the checkpoint is torn: model.safetensors has ")
    assert notes[1].startswith("resumed step-00000009: 41 parameters, 20 items, 18 steps")
    assert (tmp_path / "checkpoints" / "damaged-step-00000010").is_dir()
    assert "skipped step-00000010" in (tmp_path / "history.jsonl").read_text()
    assert same_end(tmp_path, whole)


def test_a_run_whose_checkpoints_are_all_damaged_is_not_started_anew(tiny: Tiny, tmp_path: Path) -> None:
    train(tiny(), tmp_path, on_event=stop_at(2))
    (find_checkpoint(tmp_path) / "manifest.json").unlink()
    log = (tmp_path / "log.jsonl").read_bytes()
    with pytest.raises(InvalidFile, match=r"no checkpoint is intact \(step-00000002: the checkpoint has no manifest"):
        train(tiny(), tmp_path)
    assert (tmp_path / "log.jsonl").read_bytes() == log


def test_a_torn_last_line_of_the_log_is_dropped(tiny: Tiny, tmp_path: Path, whole: Path) -> None:
    train(tiny(), tmp_path, on_event=stop_at(5))
    with (tmp_path / "log.jsonl").open("ab") as file:
        file.write(b'{"kind":"train","step":6,"lo')
    train(tiny(), tmp_path)
    assert same_end(tmp_path, whole)


def test_a_log_with_a_broken_line_inside_is_named(tiny: Tiny, tmp_path: Path) -> None:
    train(tiny(), tmp_path, on_event=stop_at(2))
    with (tmp_path / "log.jsonl").open("ab") as file:
        file.write(b"broken\n")
    with pytest.raises(InvalidFile, match=r"log\.jsonl: line 4 is not JSON"):
        train(tiny(), tmp_path)


def test_a_finished_run_is_left_as_it_is(tiny: Tiny, tmp_path: Path) -> None:
    first = train(tiny(), tmp_path)
    log = (tmp_path / "log.jsonl").read_bytes()
    assert train(tiny(), tmp_path) == first
    assert (tmp_path / "log.jsonl").read_bytes() == log


def test_a_longer_recipe_goes_on_where_a_shorter_one_ended(tiny: Tiny, tmp_path: Path) -> None:
    constant = parse_recipe({**tiny().to_table(), "schedule": {"kind": "constant"}}, "constant")
    train(constant.with_overrides(["train.epochs=2"]), tmp_path / "run")
    train(constant.with_overrides(["train.epochs=5"]), tmp_path / "run")
    train(constant.with_overrides(["train.epochs=5"]), tmp_path / "whole")
    assert same_end(tmp_path / "run", tmp_path / "whole")


def test_another_recipe_is_not_resumed(tiny: Tiny, tmp_path: Path) -> None:
    train(tiny(), tmp_path, on_event=stop_at(2))
    with pytest.raises(InvalidValue, match=r"is not that of the run to resume: train\.lr was 0\.01, is 0\.5"):
        train(tiny("train.lr=0.5"), tmp_path)


def test_other_data_is_not_resumed(tiny: Tiny, tmp_path: Path) -> None:
    train(tiny(), tmp_path, on_event=stop_at(2))
    trainer = find_checkpoint(tmp_path) / "trainer.json"
    text = trainer.read_text()
    _rewrite(trainer, text.replace(json.loads(text)["data_fingerprint"], "0" * 64))
    with pytest.raises(InvalidFile, match="the data is not what this run learnt from so far"):
        train(tiny(), tmp_path)


def _rewrite(path: Path, text: str) -> None:
    """Change a checkpoint's file and its manifest alike, as only a program that means it can."""
    path.write_text(text)
    manifest = path.parent / "manifest.json"
    known = json.loads(manifest.read_text())
    known["files"][path.name] = {"bytes": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    manifest.write_text(json.dumps(known))


def test_a_folder_with_a_run_is_not_overwritten(tiny: Tiny, tmp_path: Path) -> None:
    train(tiny("train.epochs=1"), tmp_path, resume=False)
    with pytest.raises(InvalidFile, match="already holds a run"):
        train(tiny("train.epochs=1"), tmp_path, resume=False)


def test_two_trainers_do_not_share_a_folder(tiny: Tiny, tmp_path: Path) -> None:
    def listen(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == 1:
            with pytest.raises(InvalidFile, match="another process is training in this folder"):
                train(tiny(), tmp_path)
            refused.append(event.step)

    refused: list[int] = []
    train(tiny("train.epochs=1"), tmp_path, on_event=listen)
    assert refused == [1]
