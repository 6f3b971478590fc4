"""Where a run's numbers go: a JSONL file always, TensorBoard and Weights & Biases if asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec

from saywhere.core.errors import require
from saywhere.learn.recipe import Log, Recipe
from saywhere.learn.records import Event, LogRecord, Note, Saved, StepDone, Validated, truncate_log, write_json


class Logger(Protocol):
    """Something that takes a run's events."""

    def write(self, event: Event) -> None: ...

    def close(self) -> None: ...


def check_installed(log: Log) -> None:
    """Raise MissingDependency if the recipe asks for a logger that is not there."""
    if log.tensorboard:
        require("tensorboard", needed_for="log.tensorboard = true", extra="track")
    if log.wandb:
        require("wandb", needed_for="log.wandb = true", extra="track")


class JsonLines:
    """One line for each step and validation in log.jsonl. A resumed run cuts it back to its checkpoint first."""

    def __init__(self, path: Path, from_step: int) -> None:
        truncate_log(path, from_step)
        self._file = path.open("ab")

    def write(self, event: Event) -> None:
        if isinstance(event, LogRecord):
            self._file.write(msgspec.json.encode(event) + b"\n")
            self._file.flush()

    def sync(self) -> None:
        """Have all lines on the disk: done before a checkpoint, so that the log never lags behind it."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


class History:
    """The run's life in history.jsonl, with the time of day: starts, resumes, checkpoints. It is never cut back."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")

    def write(self, event: Event) -> None:
        if isinstance(event, (Note, Saved)):
            line = {"time": datetime.now(UTC).isoformat(timespec="seconds"), **msgspec.to_builtins(event)}
            self._file.write(msgspec.json.encode(line) + b"\n")
            self._file.flush()

    def close(self) -> None:
        self._file.close()


class TensorBoard:
    """Scalars in the run's folder tensorboard/."""

    def __init__(self, folder: Path, from_step: int) -> None:
        from torch.utils.tensorboard.writer import SummaryWriter  # fails to import where tensorboard is missing

        self._writer = SummaryWriter(str(folder), purge_step=from_step + 1)

    def write(self, event: Event) -> None:
        for name, value in scalars(event):
            self._writer.add_scalar(name, value, event.step)

    def close(self) -> None:
        self._writer.close()


class WeightsAndBiases:
    """A run on Weights & Biases; a resumed run goes on in the same one."""

    def __init__(self, folder: Path, recipe: Recipe) -> None:
        wandb = require("wandb", needed_for="log.wandb = true", extra="track")
        identity = folder / "wandb.json"
        known = msgspec.json.decode(identity.read_bytes())["id"] if identity.exists() else None
        self._run: Any = wandb.init(
            project=recipe.log.wandb_project,
            name=recipe.name,
            config=recipe.to_table(),
            dir=str(folder),
            id=known,
            resume="allow",
        )
        write_json(identity, {"id": self._run.id})

    def write(self, event: Event) -> None:
        values = dict(scalars(event))
        if values:
            self._run.log(values, step=event.step)

    def close(self) -> None:
        self._run.finish()


def scalars(event: Event) -> Iterator[tuple[str, float]]:
    """The numbers of a step or a validation under names with a prefix."""
    values: dict[str, float | None] = {}
    if isinstance(event, StepDone):
        values = {f"train/{name}": value for name, value in event.losses.items()}
        values |= {"train/lr": event.lr, "train/grad_norm": event.grad_norm, "train/seconds": event.seconds}
    elif isinstance(event, Validated):
        values = {f"validate/{name}": value for name, value in event.metrics.items()}
    yield from ((name, value) for name, value in values.items() if value is not None)
