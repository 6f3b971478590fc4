"""The loop: steps, validations and checkpoints at their times, until the end, the patience's end or a signal."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import nn

from saywhere.core.errors import UnknownName
from saywhere.learn.batches import Plan, load_steps
from saywhere.learn.checkpoint import newest_intact, remove_old, save_checkpoint
from saywhere.learn.checkpoint_pieces import save_pieces
from saywhere.learn.errors import TrainingDiverged
from saywhere.learn.interruption import Interruption
from saywhere.learn.learner import Learner
from saywhere.learn.processes import Processes
from saywhere.learn.randomness import seed_globals
from saywhere.learn.recipe import Checkpointing, Recipe, Validate
from saywhere.learn.records import Best, Event, Note, Saved, StepDone, TrainerState, Validated
from saywhere.learn.schedule import lr_factor
from saywhere.learn.task import Items, ItemStream, SharedValidation, Task
from saywhere.models.common.sums import Sums


class Trainer:
    """One run, from where it stands to its end.

    folder: for checkpoints. about: what every checkpoint says of where it comes from. emit: takes every event (of the
    first process only). before_save: called before each checkpoint, to bring the logs to the disk.
    """

    def __init__(
        self,
        recipe: Recipe,
        task: Task,
        items: Items | ItemStream,
        learner: Learner,
        state: TrainerState,
        *,
        processes: Processes,
        folder: Path,
        about: Mapping[str, Any],
        emit: Callable[[Event], None],
        before_save: Callable[[], None],
    ) -> None:
        self.recipe, self.learner, self.state = recipe, learner, state
        self._task, self._items, self._processes = task, items, processes
        self._folder, self._about, self._emit, self._before_save = folder, about, emit, before_save
        self.plan = Plan.of(items, recipe.train, recipe.seed)
        self.total_steps = recipe.total_steps(self.plan.steps_per_epoch)
        self._saved: TrainerState | None = state if state.step else None

    @property
    def is_over(self) -> bool:
        """Whether all steps are made, or so many validations were no better that the run stops."""
        patience = self.recipe.validate.patience
        out_of_patience = patience is not None and self.state.validations_since_best >= patience
        return out_of_patience or self.state.step >= self.total_steps

    def run(self, interruption: Interruption) -> str:
        """Learn until done; how it ended: "finished", "stopped early" or "interrupted"."""
        if self.state.step == 0 and self.recipe.validate.at_start:
            self._validate(counts=False)
        train = self.recipe.train
        steps = load_steps(
            self._task,
            self._items,
            self.plan,
            self.state.step,
            self.total_steps,
            self._processes,
            train.accumulate,
            train.workers,
        )
        while not self.is_over:
            started = time.perf_counter()
            self._step(next(steps), started)
            self._validate_and_save_if_due()
            if self._stop_requested(interruption) and not self.is_over:
                self._save()
                self._note(f"interrupted after step {self.state.step}; the same command goes on from here")
                return "interrupted"
        if self.state.validated_step != self.state.step:
            self._validate(counts=True)
        self._save()
        return "stopped early" if self.state.step < self.total_steps else "finished"

    def _step(self, micro_batches: list[Any], started: float) -> None:
        step = self.state.step
        factor = lr_factor(self.recipe.schedule, step, self.total_steps, self.plan.steps_per_epoch)
        lr = self.recipe.train.lr * factor
        try:
            outcome = self.learner.train_step(micro_batches, step, lr)
        except TrainingDiverged as error:
            raise error.keeping(self._save_last_good()) from error
        seconds = time.perf_counter() - started
        self.state = msgspec.structs.replace(self.state, step=step + 1, seconds=self.state.seconds + seconds)
        every = self.recipe.log.every_steps
        if (step + 1) % every == 0 or step == 0 or step + 1 == self.total_steps:
            self._emit(
                StepDone(
                    step=step + 1,
                    epoch=step // self.plan.steps_per_epoch,
                    losses=dict(outcome.losses),
                    lr=lr,
                    grad_norm=outcome.grad_norm,
                    items=micro_batches[0].micro_batch.batch_items,
                    seconds=seconds,
                )
            )

    def _validate_and_save_if_due(self) -> None:
        """Validate and save, if it is time."""
        improved = False
        if self._is_due(self.recipe.validate) or self.state.step == self.total_steps:
            improved = self._validate(counts=True)
        if improved or self._is_due(self.recipe.checkpoint):
            self._save()

    def _is_due(self, when: Validate | Checkpointing) -> bool:
        every = when.every_steps or (when.every_epochs or 1) * self.plan.steps_per_epoch
        return self.state.step % every == 0

    def _validate(self, *, counts: bool) -> bool:
        """Measure and tell; whether it is the best so far. counts: whether it may be the best, or costs patience."""
        started = time.perf_counter()
        model, seed, step = self.learner.eval_model, self.recipe.seed, self.state.step
        metrics = self.learner.validated(lambda processes: measure(self._task, model, seed, step, processes))
        state, rules = self.state, self.recipe.validate
        if rules.metric is not None and rules.metric not in metrics:
            raise UnknownName("validation metric", rules.metric, metrics)
        best, validations_since_best, improved = state.best, state.validations_since_best, False
        if counts and rules.metric is not None:
            value = metrics[rules.metric]
            improved = rules.is_better(value, best.value if best is not None else None)
            best = Best(state.step, rules.metric, value) if improved else best
            validations_since_best = 0 if improved else validations_since_best + 1
        seconds = time.perf_counter() - started
        self.state = msgspec.structs.replace(
            state,
            best=best,
            validations_since_best=validations_since_best,
            metrics={name: value if math.isfinite(value) else None for name, value in metrics.items()},
            validated_step=state.step,
            seconds=state.seconds + seconds,
        )
        epoch = max(0, state.step - 1) // self.plan.steps_per_epoch
        self._emit(Validated(step=state.step, epoch=epoch, metrics=dict(metrics), best=improved, seconds=seconds))
        return improved

    def _stop_requested(self, interruption: Interruption) -> bool:
        wish = torch.tensor([float(bool(interruption.signal_name))], device=self._processes.device)
        self._processes.all_reduce(wish)
        return bool(wish.item())

    def _save(self) -> Path | None:
        """Write a checkpoint unless nothing has changed, and remove those too old to keep."""
        best_step = self.state.best.step if self.state.best is not None else None
        path = self._write_checkpoint()
        if path is not None and self._processes.is_main:
            remove_old(self._folder, self.recipe.checkpoint.keep, best_step)
        return path

    def _write_checkpoint(self) -> Path | None:
        together = self.learner.is_sharded
        if not (self._processes.is_main or together) or self._saved == self.state:
            return None
        self._before_save()
        trainer = {"state": msgspec.to_builtins(self.state), **self._about}
        rules = self.recipe.checkpoint
        snapshot = self.learner.snapshot(trainer, trainable_only=rules.trainable_only, in_pieces=rules.sharded)
        path = self._folder / f"step-{self.state.step:08d}"
        if together and rules.sharded:
            save_pieces(self._folder, self.state.step, snapshot, self._processes)
        elif self._processes.is_main:
            path = save_checkpoint(self._folder, self.state.step, snapshot)
        self._saved = self.state
        self._emit(Saved(step=self.state.step, path=str(path)))
        return path

    def _save_last_good(self) -> Path | None:
        """Where the newest good state is, after saving the present one if it is all numbers. Nothing is removed."""
        if self.state.step and self.learner.is_finite():
            self._write_checkpoint()
        return newest_intact(self._folder)[0]

    def _note(self, message: str) -> None:
        self._emit(Note(step=self.state.step, message=message))


def measure(task: Task, model: nn.Module, seed: int, step: int, processes: Processes) -> dict[str, float]:
    """The task's metrics of a model, the same on all processes; measured in eval mode, without gradients, with the
    randomness of this step alone, by all processes if the task can share it and else by the first."""
    seed_globals(seed, "validate", step)
    was_training = model.training
    model.eval()
    with torch.no_grad():
        if isinstance(task, SharedValidation):
            metrics = _shared(task, model, processes)
        else:
            metrics = _alone(task, model, processes)
    model.train(was_training)
    return metrics


def _shared(task: SharedValidation, model: nn.Module, processes: Processes) -> dict[str, float]:
    own = dict(task.validation_sums(model, processes.rank, processes.size))
    sums = Sums()
    for text in processes.all_gather_text(msgspec.json.encode(own).decode()):
        for name, (total, count) in msgspec.json.decode(text, type=dict[str, tuple[float | None, float]]).items():
            sums.add(name, _number(total), count)
    return sums.means()


def _alone(task: Task, model: nn.Module, processes: Processes) -> dict[str, float]:
    own = {name: float(value) for name, value in task.validate(model).items()} if processes.is_main else {}
    text = processes.broadcast_text(msgspec.json.encode(own).decode())
    return {name: _number(value) for name, value in msgspec.json.decode(text, type=dict[str, float | None]).items()}


def _number(value: float | None) -> float:
    """JSON has no NaN and no infinity: msgspec writes null."""
    return math.nan if value is None else value
