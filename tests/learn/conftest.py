"""Tiny recipes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from saywhere.learn import Event, Recipe, StepDone, find_checkpoint, read_log, train
from saywhere.learn.recipe import parse_recipe
from tests.learn.tiny import register_all

ROOT = Path(__file__).resolve().parents[2]

TINY = """
name = "tiny"
seed = 3
task = "tiny-regression"

[model]
dropout = 0.2

[data]
jitter = 0.05

[train]
epochs = 6
batch_size = 8
lr = 0.01
clip_norm = 1.0
ema_decay = 0.9
num_threads = 1

[schedule]
kind = "cosine"
warmup_steps = 3

[validate]
metric = "error"

[checkpoint]
every_steps = 4

[log]
plot = false
"""


@pytest.fixture(autouse=True, scope="session")
def _tiny_tasks() -> None:
    register_all()


@pytest.fixture
def tiny_file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture(scope="session")
def tiny() -> Callable[..., Recipe]:
    """A tiny recipe with `key.path=value` put in."""
    return lambda *overrides: parse_recipe(tomllib.loads(TINY), "tiny.toml", overrides)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory, tiny: Callable[..., Recipe]) -> Path:
    """The folder of the tiny recipe's run that was never stopped."""
    out = tmp_path_factory.mktemp("whole") / "run"
    assert train(tiny(), out).status == "finished"
    return out


def steps_of(out_dir: Path) -> list[dict[str, Any]]:
    """What a run's log says of each step, but for the time it took."""
    return [
        {"step": r.step, "epoch": r.epoch, "losses": r.losses, "lr": r.lr, "norm": r.grad_norm, "items": r.items}
        for r in read_log(out_dir / "log.jsonl")
        if isinstance(r, StepDone)
    ]


def same_end(a: Path, b: Path) -> bool:
    """Whether two runs logged the same steps and have the same weights, averages and optimizer, to the bit."""
    for name in ("model", "ema", "optimizer"):
        left, right = (load_file(find_checkpoint(out, "last") / f"{name}.safetensors") for out in (a, b))
        if left.keys() != right.keys() or not all(torch.equal(left[key], right[key]) for key in left):
            return False
    return steps_of(a) == steps_of(b)


def stop_at(step: int) -> Callable[[Event], None]:
    """A listener that interrupts the run after this step, as `kill` or a cluster's scheduler does."""

    def listen(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == step:
            os.kill(os.getpid(), signal.SIGTERM)

    return listen


def run_python(*arguments: str, timeout_s: float = 240) -> subprocess.CompletedProcess[str]:
    """Python with these arguments in a process of its own; it and its children are killed if they take too long."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)
