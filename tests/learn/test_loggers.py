"""Where a run's numbers go: terminals, plain output, TensorBoard, Weights & Biases, the plot."""

from __future__ import annotations

import io
import json
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image
from rich.console import Console

from saywhere.core.errors import MissingDependency
from saywhere.learn import Recipe, StepDone, Validated, read_log, train
from saywhere.learn.curves import draw_curves
from saywhere.learn.progress import ProgressDisplay
from saywhere.learn.records import LogRecord
from tests.learn.conftest import stop_at

Tiny = Callable[..., Recipe]


def _step(step: int, seconds: float = 0.5) -> StepDone:
    return StepDone(step=step, epoch=0, losses={"loss": 0.25}, lr=0.1, grad_norm=1.0, items=4, seconds=seconds)


def test_without_a_terminal_a_run_prints_plain_lines(tiny: Tiny, tmp_path: Path) -> None:
    text = io.StringIO()
    train(tiny(), tmp_path, console=Console(file=text))
    lines = text.getvalue().splitlines()
    assert lines[0] == "started: 41 parameters, 20 items, 18 steps on cpu"
    assert lines[1].startswith("step 0  validated: error ")
    steps = [line for line in lines if line.startswith("step 18/18")]
    assert len(steps) == 1
    assert re.fullmatch(
        r"step 18/18  epoch 5  loss [\d.]+  abs [\d.]+  lr [\d.e-]+  [\d.e+]+ steps/s  0:00:00 left", steps[0]
    )
    assert "\x1b" not in text.getvalue()
    assert lines[-1].endswith("(best so far)")


def test_plain_lines_come_no_more_often_than_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    now = [0.0]
    monkeypatch.setattr("saywhere.learn.progress.time", types.SimpleNamespace(monotonic=lambda: now[0]))
    display = ProgressDisplay(Console(file=text), "run", total_steps=100, done=0, line_seconds=30)
    for step in range(1, 41):
        now[0] += 2
        display.write(_step(step, seconds=2.0))
    lines = text.getvalue().splitlines()
    assert [line.split()[1] for line in lines] == ["15/100", "30/100"]
    assert lines[0].endswith("0.5 steps/s  0:02:50 left")


def test_a_terminal_gets_a_bar_with_the_time_left() -> None:
    text = io.StringIO()
    display = ProgressDisplay(
        Console(file=text, force_terminal=True, width=120), "a run", total_steps=10, done=2, line_seconds=30
    )
    for step in range(3, 6):
        display.write(_step(step))
    display.write(Validated(step=5, epoch=0, metrics={"error": float("nan")}, best=False, seconds=1.0))
    display.close()
    assert "a run" in text.getvalue()
    assert "5/10" in text.getvalue()
    assert "loss 0.25" in text.getvalue()
    assert "left" in text.getvalue()
    assert "validated: error nan" in text.getvalue()


def test_nothing_is_shown_without_a_console(tiny: Tiny, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    train(tiny("train.epochs=1"), tmp_path)
    assert capfd.readouterr() == ("", "")


def test_tensorboard_gets_the_numbers(tiny: Tiny, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    train(tiny("log.tensorboard=true", "train.epochs=1"), tmp_path)
    (events,) = (tmp_path / "tensorboard").iterdir()
    content = events.read_bytes()
    assert all(name in content for name in (b"train/loss", b"train/lr", b"train/grad_norm", b"validate/error"))


class _FakeRun:
    id = "abc"

    def __init__(self) -> None:
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.finished = False

    def log(self, values: dict[str, float], step: int) -> None:
        self.logged.append((step, values))

    def finish(self) -> None:
        self.finished = True


def test_weights_and_biases_gets_the_numbers_and_a_resumed_run_the_same_place(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[dict[str, Any]] = []
    runs: list[_FakeRun] = []

    def init(**options: Any) -> _FakeRun:
        starts.append(options)
        runs.append(_FakeRun())
        return runs[-1]

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=init))
    recipe = tiny("log.wandb=true", "train.epochs=2")
    train(recipe, tmp_path, on_event=stop_at(2))
    train(recipe, tmp_path)
    assert [start["id"] for start in starts] == [None, "abc"]
    assert starts[0]["config"]["train"]["lr"] == 0.01
    assert [step for step, values in runs[0].logged + runs[1].logged if "train/loss" in values] == [1, 2, 3, 4, 5, 6]
    assert any("validate/error" in values for _, values in runs[1].logged)
    assert all(run.finished for run in runs)


def test_a_logger_that_is_not_installed_is_named_before_work(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> types.ModuleType:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("saywhere.core.errors.import_module", missing)
    for key, package in (("wandb", "wandb"), ("tensorboard", "tensorboard")):
        with pytest.raises(MissingDependency, match=rf"log\.{key} = true needs the package '{package}'"):
            train(tiny(f"log.{key}=true"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_learning_curves_are_drawn_at_the_end(tiny: Tiny, tmp_path: Path) -> None:
    train(tiny("log.plot=true", "train.epochs=1"), tmp_path)
    with Image.open(tmp_path / "curves.png") as picture:
        assert picture.width >= 1000
        assert len(picture.convert("RGB").getcolors(2**24) or []) > 50


def test_curves_of_a_log_with_gaps_and_of_an_empty_one_are_drawn(tmp_path: Path) -> None:
    records: list[LogRecord] = [_step(step) for step in range(1, 200)]
    gap = {"loss": 0.1, "sometimes": float("nan")}
    records.append(StepDone(step=200, epoch=0, losses=gap, lr=0.1, grad_norm=float("inf"), items=4, seconds=0.1))
    (tmp_path / "log.jsonl").write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
    assert read_log(tmp_path / "log.jsonl")[-1].losses == {"loss": 0.1, "sometimes": None}  # type: ignore[union-attr]
    (tmp_path / "empty.jsonl").write_bytes(b"")
    for name in ("log", "empty"):
        draw_curves(tmp_path / f"{name}.jsonl", tmp_path / f"{name}.png", "a run")
        with Image.open(tmp_path / f"{name}.png") as picture:
            assert picture.format == "PNG"


def test_every_line_of_the_log_is_plain_json(whole: Path) -> None:
    for line in (whole / "log.jsonl").read_text().splitlines():
        record = json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
        assert {"kind", "step", "epoch", "seconds"} <= set(record)
