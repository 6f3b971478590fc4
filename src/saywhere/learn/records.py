"""What a run tells about itself, as values: to the log files, the progress bar and whoever listens."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile


class StepDone(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="train"):
    """One step. step: from 1. epoch: from 0. losses: over the whole batch. grad_norm: before clipping.

    seconds: what this step took, loading included. JSON has no NaN and no infinity: they are read back as None.
    """

    step: int
    epoch: int
    losses: dict[str, float | None]
    lr: float
    grad_norm: float | None
    items: int
    seconds: float


class Validated(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="validate"):
    """One validation. step: how many steps the model had learnt. best: whether it is the best so far."""

    step: int
    epoch: int
    metrics: dict[str, float | None]
    best: bool
    seconds: float


class Saved(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="saved"):
    """A checkpoint was written."""

    step: int
    path: str


class Note(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="note"):
    """Something a person should know: a resumed run, a damaged checkpoint, an interruption."""

    step: int
    message: str


LogRecord = StepDone | Validated
Event = StepDone | Validated | Saved | Note


class Best(msgspec.Struct, frozen=True):
    """The best validation so far."""

    step: int
    metric: str
    value: float


class TrainerState(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run stands after some steps; part of every checkpoint.

    validations_since_best: validations in a row that were not better. metrics: of the newest validation, made after
    `validated_step` steps. seconds: spent so far, over all parts of the run.
    """

    step: int = 0
    best: Best | None = None
    validations_since_best: int = 0
    metrics: dict[str, float | None] = {}
    validated_step: int | None = None
    seconds: float = 0.0


class TrainResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended. status: "finished", "stopped early" or "interrupted" (and may be resumed).

    checkpoint: the newest. best: None if the recipe names no metric. metrics: of the last validation.
    """

    status: str
    out_dir: str
    checkpoint: str
    steps: int
    epochs: float
    best: Best | None
    metrics: dict[str, float | None]
    seconds: float


def write_json(path: Path, value: Any) -> None:
    """A JSON file, whole or not at all. NaN, which JSON does not have, becomes null."""
    with write_atomic(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


def read_log(path: Path) -> list[LogRecord]:
    """The steps and validations of a log.jsonl; a torn last line, which a killed run may leave, is left out."""
    return [msgspec.json.decode(line, type=LogRecord) for line in _whole_lines(path)]


def truncate_log(path: Path, step: int) -> None:
    """Cut a log back to what happened up to this step: a resumed run will tell the rest anew."""
    if not path.exists():
        return
    lines = [line for line in _whole_lines(path) if json.loads(line)["step"] <= step]
    with write_atomic(path) as file:
        file.writelines(line + b"\n" for line in lines)


def _whole_lines(path: Path) -> Iterable[bytes]:
    content = path.read_bytes()
    for number, line in enumerate(content.splitlines(keepends=True), start=1):
        if not line.endswith(b"\n"):
            return
        try:
            json.loads(line)
        except ValueError as error:
            raise InvalidFile(path, f"line {number} is not JSON: {error}", "move the file away to go on") from error
        yield line.rstrip(b"\n")
