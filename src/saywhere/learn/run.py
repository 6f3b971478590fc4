"""Training as a whole job on a folder.

out_dir/
    run.json        where the run comes from: versions, git hash, recipe, seed, data fingerprint, device
    log.jsonl       a line for each step and validation
    history.jsonl   starts, resumes, checkpoints, with the time of day
    checkpoints/    step-00000040/ …
    result.json     how it ended
    curves.png      the learning curves
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
import torch
from rich.console import Console
from torch import nn

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.learn.checkpoint import (
    Snapshot,
    list_checkpoints,
    load_checkpoint,
    newest_intact,
    quarantine,
    remove_partial,
)
from saywhere.learn.curves import draw_curves
from saywhere.learn.errors import TrainingDiverged
from saywhere.learn.interruption import Interruption
from saywhere.learn.learner import Learner
from saywhere.learn.loggers import History, JsonLines, Logger, TensorBoard, WeightsAndBiases, check_installed
from saywhere.learn.precision import check_precision, loss_scaler
from saywhere.learn.processes import Processes, join_processes
from saywhere.learn.progress import ProgressDisplay
from saywhere.learn.provenance import provenance
from saywhere.learn.randomness import generator_for, preserved_global_rng, seed_globals
from saywhere.learn.recipe import Recipe, changes_that_matter, parse_recipe
from saywhere.learn.records import Event, Note, TrainerState, TrainResult, write_json
from saywhere.learn.registry import load_recipe, make_task
from saywhere.learn.task import Task
from saywhere.learn.trained import Which, init_from, load_run
from saywhere.learn.trainer import Trainer

if sys.platform != "win32":
    import fcntl

_Model = TypeVar("_Model", bound=nn.Module)


def train(
    recipe: Recipe | str | Path,
    out_dir: str | Path,
    *,
    resume: bool = True,
    overrides: Sequence[str] = (),
    on_event: Callable[[Event], None] | None = None,
    console: Console | None = None,
) -> TrainResult:
    """Run a recipe, or go on with a run that was cut off: the result is that of never having stopped.

    recipe: or the path of its TOML file. overrides: `key.path=value` to put into it. resume: whether to go on from the
    newest intact checkpoint in `out_dir`; without it a folder that holds a run is refused. on_event: called with every
    step, validation, checkpoint and note. console: where to show progress; nothing is shown without one. Under
    torchrun every process calls this; the first writes the files, which the others must be able to read.
    """
    if isinstance(recipe, Recipe):
        recipe = recipe.with_overrides(overrides)
    else:
        recipe = load_recipe(recipe, overrides)
    check_installed(recipe.log)
    with ExitStack() as stack:
        stack.enter_context(preserved_global_rng())
        stack.enter_context(_threads(recipe.train.num_threads))
        processes = join_processes(recipe.train.device)
        check_precision(recipe.train.precision, processes.device)
        job = _Job(recipe, Path(out_dir), processes, stack)
        found = job.find_checkpoint(resume)
        trainer = job.prepare(found)
        job.open_loggers(trainer, on_event, console)
        return job.finish(trainer, job.run(trainer, found))


def train_to_end(recipe: Recipe, out_dir: Path, kind: type[_Model], which: Which = "best") -> _Model:
    """Train, unless it was done before, and load the network. What half a run made is never taken for the whole's."""
    if train(recipe, out_dir).status == "interrupted":
        raise KeyboardInterrupt
    model = load_run(out_dir, which).model
    if not isinstance(model, kind):
        raise TypeError(f"the run in {out_dir} made a {type(model).__name__}, not a {kind.__name__}")
    return model


class _Job:
    """The parts of `train` that share the run's folder."""

    def __init__(self, recipe: Recipe, out_dir: Path, processes: Processes, stack: ExitStack) -> None:
        self._recipe, self._out_dir, self._processes, self._stack = recipe, out_dir, processes, stack
        self._checkpoints = out_dir / "checkpoints"
        self._task: Task = make_task(recipe)
        self._about = {**provenance(recipe, self._task.fingerprint()), "processes": processes.size}
        self._loggers: list[Logger] = []
        self._notes: list[str] = []
        same = json.dumps([self._about["recipe"], self._about["data_fingerprint"]])
        processes.check_equal("the recipe or the data", same)

    def find_checkpoint(self, resume: bool) -> Path | None:
        """The checkpoint to go on from, the same on all processes."""
        found: Path | None = None
        if self._processes.is_main:
            self._out_dir.mkdir(parents=True, exist_ok=True)
            self._stack.enter_context(_locked(self._out_dir))
            found = self._newest_checkpoint(resume)
        text = self._processes.broadcast_text(json.dumps(str(found) if found else None))
        name = json.loads(text)
        return Path(name) if name else None

    def _newest_checkpoint(self, resume: bool) -> Path | None:
        if not resume and (list_checkpoints(self._checkpoints) or (self._out_dir / "log.jsonl").exists()):
            raise InvalidFile(self._out_dir, "already holds a run", "resume it, or choose another folder")
        remove_partial(self._checkpoints)
        found, damaged = newest_intact(self._checkpoints)
        if damaged and found is None:
            reasons = "; ".join(f"{Path(error.path).name}: {error.reason}" for error in damaged)
            raise InvalidFile(
                self._checkpoints, f"no checkpoint is intact ({reasons})", "move the run's folder away to start anew"
            )
        for error in damaged:
            aside = quarantine(Path(error.path))
            self._notes.append(f"skipped {Path(error.path).name}: {error.reason}; it is now {aside.name}")
        return found

    def prepare(self, found: Path | None) -> Trainer:
        """Model, learner and trainer, as new or as in the checkpoint."""
        recipe, seed = self._recipe, self._recipe.seed
        items = self._task.train_items()
        seed_globals(seed, "build")
        model = self._task.build(generator_for(seed, "build"))
        state = TrainerState()
        snapshot = load_checkpoint(found) if found is not None else None
        if snapshot is None and recipe.train.init_from is not None:
            init_from(model, recipe.train.init_from)
        scaler = loss_scaler(recipe.train.precision, self._processes.device)
        learner = Learner(self._task, model, recipe.train, seed=seed, processes=self._processes, scaler=scaler)
        if snapshot is not None:
            self._check_same_run(snapshot, found)
            learner.restore(snapshot, found)
            state = msgspec.convert(snapshot.trainer["state"], TrainerState)
        return Trainer(
            recipe,
            self._task,
            items,
            learner,
            state,
            processes=self._processes,
            folder=self._checkpoints,
            about=self._about,
            emit=self._emit,
            before_save=self._sync_logs,
        )

    def _check_same_run(self, snapshot: Snapshot, source: object) -> None:
        saved = snapshot.trainer
        if saved["data_fingerprint"] != self._about["data_fingerprint"]:
            raise InvalidFile(
                source, "the data is not what this run learnt from so far", "choose another output folder"
            )
        changed = changes_that_matter(parse_recipe(saved["recipe"], str(source)), self._recipe)
        if changed:
            listed = ", ".join(f"{key} was {old!r}, is {new!r}" for key, (old, new) in changed.items())
            raise InvalidValue(
                "the recipe", f"is not that of the run to resume: {listed}", "choose another output folder"
            )
        # Checkpoints of earlier versions do not say.
        before, now = saved.get("processes", self._processes.size), self._processes.size
        if before != now:
            self._notes.append(
                f"the number of processes was {before} and is {now}: from here on the run is equal but for rounding to "
                "one that never stopped, no longer bit for bit"
            )

    def open_loggers(self, trainer: Trainer, on_event: Callable[[Event], None] | None, console: Console | None) -> None:
        """Start telling; on the first process only."""
        if not self._processes.is_main:
            return
        recipe, step = self._recipe, trainer.state.step
        self._loggers += [JsonLines(self._out_dir / "log.jsonl", step), History(self._out_dir / "history.jsonl")]
        if recipe.log.tensorboard:
            self._loggers.append(TensorBoard(self._out_dir / "tensorboard", step))
        if recipe.log.wandb:
            self._loggers.append(WeightsAndBiases(self._out_dir, recipe))
        if console is not None:
            total, seconds = trainer.total_steps, recipe.log.line_seconds
            self._loggers.append(ProgressDisplay(console, recipe.name, total, step, seconds))
        for logger in self._loggers:
            self._stack.callback(logger.close)
        if on_event is not None:
            self._loggers.append(_Listener(on_event))

    def _emit(self, event: Event) -> None:
        for logger in self._loggers:
            logger.write(event)

    def _sync_logs(self) -> None:
        for logger in self._loggers:
            if isinstance(logger, JsonLines):
                logger.sync()

    def run(self, trainer: Trainer, found: Path | None) -> str:
        """Let the trainer run; how it ended."""
        step = trainer.state.step
        parameters = sum(parameter.numel() for parameter in trainer.learner.model.parameters())
        if self._processes.is_main:
            machine = {"device": str(self._processes.device), "threads": torch.get_num_threads()}
            write_json(self._out_dir / "run.json", {**self._about, **machine, "parameters": parameters})
        for note in self._notes:
            self._emit(Note(step=step, message=note))
        start = f"resumed {found.name}" if found is not None else "started"
        sizes = f"{parameters:,} parameters, {trainer.plan.items:,} items, {trainer.total_steps:,} steps"
        self._emit(Note(step=step, message=f"{start}: {sizes} on {self._processes.device}"))
        with Interruption() as interruption:
            try:
                return trainer.run(interruption)
            except TrainingDiverged as error:
                self._emit(Note(step=error.step, message=str(error)))
                raise

    def finish(self, trainer: Trainer, status: str) -> TrainResult:
        """Write what came of it."""
        state = trainer.state
        newest = list_checkpoints(self._checkpoints)
        result = TrainResult(
            status=status,
            out_dir=str(self._out_dir),
            checkpoint=str(newest[-1]) if newest else "",
            steps=state.step,
            epochs=state.step / trainer.plan.steps_per_epoch,
            best=state.best,
            metrics=state.metrics,
            seconds=state.seconds,
        )
        if self._processes.is_main:
            write_json(self._out_dir / "result.json", {**self._about, "result": msgspec.to_builtins(result)})
            if self._recipe.log.plot and status != "interrupted":
                draw_curves(self._out_dir / "log.jsonl", self._out_dir / "curves.png", self._recipe.name)
        return result


class _Listener:
    def __init__(self, on_event: Callable[[Event], None]) -> None:
        self.write = on_event

    def close(self) -> None:
        """Nothing to close: the caller's function is the caller's."""


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    if number is not None:
        torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _locked(out_dir: Path) -> Iterator[None]:
    """Refuse a second trainer in the same folder. The system frees the lock when a process dies (not on Windows)."""
    with (out_dir / ".lock").open("wb") as file:
        if sys.platform != "win32":
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise InvalidFile(out_dir, "another process is training in this folder") from error
        yield
