"""The loop: steps, validations and checkpoints at their times, until the end, the patience's end or a signal."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import torch

from saywhere.core.errors import UnknownName
from saywhere.learn.batches import Plan, load_steps
from saywhere.learn.checkpoint import newest_intact, remove_old, save_checkpoint
from saywhere.learn.errors import TrainingDiverged
from saywhere.learn.interruption import Interruption
from saywhere.learn.learner import Learner
from saywhere.learn.processes import Processes
from saywhere.learn.randomness import seed_globals
from saywhere.learn.recipe import Checkpoint, Recipe, Validate
from saywhere.learn.records import Best, Event, Note, Saved, Standing, StepDone, Validated
from saywhere.learn.schedule import rate_factor
from saywhere.learn.task import Items, Task


class Trainer:
    """One run, from where it stands to its end.

    folder: for checkpoints. about: what every checkpoint says of where it comes from. tell: takes every event (of the
    first process only). before_save: called before each checkpoint, to bring the logs to the disk.
    """

    def __init__(
        self,
        recipe: Recipe,
        task: Task,
        items: Items,
        learner: Learner,
        standing: Standing,
        *,
        processes: Processes,
        folder: Path,
        about: Mapping[str, Any],
        tell: Callable[[Event], None],
        before_save: Callable[[], None],
    ) -> None:
        self.recipe, self.learner, self.standing = recipe, learner, standing
        self._task, self._items, self._processes = task, items, processes
        self._folder, self._about, self._tell, self._before_save = folder, about, tell, before_save
        self.plan = Plan(len(items), recipe.train.batch_size, recipe.seed)
        self.total_steps = recipe.total_steps(self.plan.steps_per_epoch)
        self._saved: Standing | None = standing if standing.step else None

    @property
    def is_over(self) -> bool:
        """Whether all steps are made, or so many validations were no better that the run stops."""
        patience = self.recipe.validate.patience
        out_of_patience = patience is not None and self.standing.since_best >= patience
        return out_of_patience or self.standing.step >= self.total_steps

    def run(self, interruption: Interruption) -> str:
        """Learn until done; how it ended: "finished", "stopped early" or "interrupted"."""
        if self.standing.step == 0 and self.recipe.validate.at_start:
            self._validate(counts=False)
        train = self.recipe.train
        steps = load_steps(
            self._task,
            self._items,
            self.plan,
            self.standing.step,
            self.total_steps,
            self._processes,
            train.accumulate,
            train.workers,
        )
        while not self.is_over:
            started = time.perf_counter()
            self._step(next(steps), started)
            self._keep_up()
            if self._someone_wants_to_stop(interruption) and not self.is_over:
                self._save()
                self._note(f"interrupted after step {self.standing.step}; the same command goes on from here")
                return "interrupted"
        if self.standing.validated_step != self.standing.step:
            self._validate(counts=True)
        self._save()
        return "stopped early" if self.standing.step < self.total_steps else "finished"

    def _step(self, pieces: list[Any], started: float) -> None:
        step = self.standing.step
        factor = rate_factor(self.recipe.schedule, step, self.total_steps, self.plan.steps_per_epoch)
        lr = self.recipe.train.lr * factor
        try:
            outcome = self.learner.learn(pieces, step, lr)
        except TrainingDiverged as error:
            raise error.keeping(self._save_last_good()) from error
        seconds = time.perf_counter() - started
        self.standing = msgspec.structs.replace(self.standing, step=step + 1, seconds=self.standing.seconds + seconds)
        every = self.recipe.log.every_steps
        if (step + 1) % every == 0 or step == 0 or step + 1 == self.total_steps:
            self._tell(
                StepDone(
                    step=step + 1,
                    epoch=step // self.plan.steps_per_epoch,
                    losses=dict(outcome.losses),
                    lr=lr,
                    grad_norm=outcome.grad_norm,
                    items=pieces[0].piece.batch_items,
                    seconds=seconds,
                )
            )

    def _keep_up(self) -> None:
        """Validate and save, if it is time."""
        improved = False
        if self._is_time(self.recipe.validate) or self.standing.step == self.total_steps:
            improved = self._validate(counts=True)
        if improved or self._is_time(self.recipe.checkpoint):
            self._save()

    def _is_time(self, when: Validate | Checkpoint) -> bool:
        every = when.every_steps or (when.every_epochs or 1) * self.plan.steps_per_epoch
        return self.standing.step % every == 0

    def _validate(self, *, counts: bool) -> bool:
        """Measure and tell; whether it is the best so far. counts: whether it may be the best, or costs patience."""
        started = time.perf_counter()
        metrics = self._metrics()
        standing, rules = self.standing, self.recipe.validate
        if rules.metric is not None and rules.metric not in metrics:
            raise UnknownName("validation metric", rules.metric, metrics)
        best, since_best, improved = standing.best, standing.since_best, False
        if counts and rules.metric is not None:
            value = metrics[rules.metric]
            improved = rules.is_better(value, best.value if best is not None else None)
            best = Best(standing.step, rules.metric, value) if improved else best
            since_best = 0 if improved else since_best + 1
        seconds = time.perf_counter() - started
        self.standing = msgspec.structs.replace(
            standing,
            best=best,
            since_best=since_best,
            metrics={name: value if math.isfinite(value) else None for name, value in metrics.items()},
            validated_step=standing.step,
            seconds=standing.seconds + seconds,
        )
        epoch = max(0, standing.step - 1) // self.plan.steps_per_epoch
        self._tell(Validated(step=standing.step, epoch=epoch, metrics=dict(metrics), best=improved, seconds=seconds))
        return improved

    def _metrics(self) -> dict[str, float]:
        """The first process's measure of the model, on all processes."""
        text = "{}"
        if self._processes.first:
            model = self.learner.measured_model
            text = msgspec.json.encode(measure(self._task, model, self.recipe.seed, self.standing.step)).decode()
        numbers = msgspec.json.decode(self._processes.text_from_first(text), type=dict[str, float | None])
        return {name: math.nan if value is None else value for name, value in numbers.items()}

    def _someone_wants_to_stop(self, interruption: Interruption) -> bool:
        wish = torch.tensor([float(bool(interruption.signal_name))], device=self._processes.device)
        self._processes.add_up(wish)
        return bool(wish.item())

    def _save(self) -> Path | None:
        """Write a checkpoint unless nothing has changed, and remove those too old to keep."""
        best_step = self.standing.best.step if self.standing.best is not None else None
        path = self._write_checkpoint()
        if path is not None:
            remove_old(self._folder, self.recipe.checkpoint.keep, best_step)
        return path

    def _write_checkpoint(self) -> Path | None:
        if not self._processes.first or self._saved == self.standing:
            return None
        self._before_save()
        trainer = {"standing": msgspec.to_builtins(self.standing), **self._about}
        path = save_checkpoint(self._folder, self.standing.step, self.learner.snapshot(trainer))
        self._saved = self.standing
        self._tell(Saved(step=self.standing.step, path=str(path)))
        return path

    def _save_last_good(self) -> Path | None:
        """Where the newest good state is, after saving the present one if it is all numbers. Nothing is removed."""
        if self.standing.step and self.learner.is_finite():
            self._write_checkpoint()
        return newest_intact(self._folder)[0]

    def _note(self, message: str) -> None:
        self._tell(Note(step=self.standing.step, message=message))


def measure(task: Task, model: torch.nn.Module, seed: int, step: int) -> dict[str, float]:
    """The task's metrics of a model, in eval mode, without gradients, with the randomness of this step alone."""
    seed_globals(seed, "validate", step)
    was_training = model.training
    model.eval()
    with torch.no_grad():
        metrics = {name: float(value) for name, value in task.validate(model).items()}
    model.train(was_training)
    return metrics
