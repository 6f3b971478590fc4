"""What a run has made: its weights, its model, its score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec
from torch import nn

from saywhere.assets.checkpoint import read_tensors
from saywhere.core.errors import InvalidFile
from saywhere.learn.checkpoint import load_checkpoint, load_weights, newest_intact, read_trainer, step_of
from saywhere.learn.processes import Processes, pick_device
from saywhere.learn.provenance import provenance
from saywhere.learn.randomness import generator_for, preserved_global_rng, seed_globals
from saywhere.learn.recipe import Recipe, parse_recipe
from saywhere.learn.records import TrainerState, write_json
from saywhere.learn.registry import make_task
from saywhere.learn.task import Task
from saywhere.learn.trainer import measure

Which = Literal["best", "last"]


@runtime_checkable
class Saveable(Protocol):
    """A network that has a `from_pretrained`, too."""

    def save_pretrained(self, folder: str | Path) -> None: ...


@dataclass(frozen=True, slots=True)
class TrainedRun:
    """A run's task and model, in eval mode, with the weights of a checkpoint (their moving average if there is one)."""

    recipe: Recipe
    task: Task
    model: nn.Module
    checkpoint: Path
    trained_on: str

    @property
    def step(self) -> int:
        return step_of(self.checkpoint)


def find_checkpoint(run_dir: str | Path, which: Which = "best") -> Path:
    """The run's newest intact checkpoint, or its best: the newest too if the recipe names no metric."""
    folder = Path(run_dir) / "checkpoints"
    newest, damaged = newest_intact(folder)
    if newest is None:
        reasons = "; ".join(str(error) for error in damaged)
        raise InvalidFile(run_dir, f"holds no intact checkpoint{': ' + reasons if reasons else ''}")
    state = msgspec.convert(read_trainer(newest)["state"], TrainerState)
    if which == "last" or state.best is None:
        return newest
    return folder / f"step-{state.best.step:08d}"


def load_run(run_dir: str | Path, which: Which = "best", overrides: Sequence[str] = ()) -> TrainedRun:
    """A trained model with its task. overrides: `key.path=value` to put into the recipe, to read other data say."""
    path = find_checkpoint(run_dir, which)
    snapshot = load_checkpoint(path)
    recipe = parse_recipe(snapshot.trainer["recipe"], str(path), overrides)
    task = make_task(recipe)
    with preserved_global_rng():
        seed_globals(recipe.seed, "build")
        model = task.build(generator_for(recipe.seed, "build"))
    load_weights(model, snapshot.eval_weights, path, snapshot.frozen_sha256)
    model.to(pick_device(recipe.train.device, 0)).eval()
    return TrainedRun(recipe, task, model, path, snapshot.trainer["data_fingerprint"])


def evaluate(run_dir: str | Path, which: Which = "best", overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Validate a run's model again; the metrics with all that made them, also written to evaluation-{which}.json."""
    run = load_run(run_dir, which, overrides)
    with preserved_global_rng():
        metrics = measure(run.task, run.model, run.recipe.seed, run.step, Processes())
    report = {
        **provenance(run.recipe, run.task.fingerprint()),
        "trained_on": run.trained_on,
        "checkpoint": str(run.checkpoint),
        "step": run.step,
        "metrics": metrics,
    }
    write_json(Path(run_dir) / f"evaluation-{which}.json", report)
    return report


def export(run_dir: str | Path, folder: str | Path, which: Which = "best") -> Path:
    """Write a run's network into a folder of its own, weights and all that `from_pretrained` needs; the checkpoint."""
    run = load_run(run_dir, which)
    if not isinstance(run.model, Saveable):
        raise InvalidFile(run_dir, f"holds a {type(run.model).__name__}, which has no form of its own to be kept in")
    run.model.save_pretrained(folder)
    return run.checkpoint


def init_from(model: nn.Module, path: Path) -> None:
    """Load the weights of a safetensors file, of a checkpoint, or of a run's best checkpoint."""
    if path.is_file():
        load_weights(model, read_tensors(path), path)
        return
    is_run = (path / "checkpoints").is_dir()
    snapshot = load_checkpoint(find_checkpoint(path) if is_run else path)
    load_weights(model, snapshot.eval_weights, path, snapshot.frozen_sha256)
