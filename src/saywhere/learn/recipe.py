"""Recipes: everything that decides what a run learns, in one TOML file that is checked before any work."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from saywhere.core.errors import InvalidFile
from saywhere.learn.schedule import Constant, Cosine, Linear, StepDecay, depends_on_length
from saywhere.learn.tables import as_table, checked, differences, override

_Count = Annotated[int, Meta(ge=1)]
_Positive = Annotated[float, Meta(gt=0, lt=1e30)]
_NotNegative = Annotated[float, Meta(ge=0, lt=1e30)]
_Beta = Annotated[float, Meta(ge=0, lt=1)]

# What may change between a run's parts, because no step that was already made depends on it.
_FREE_ON_RESUME = (
    "name",
    "log.",
    "checkpoint.",
    "validate.every_",
    "validate.patience",
    "validate.at_start",
    "train.accumulate",
    "train.device",
    "train.init_from",
    "train.num_threads",
    "train.shard",
    "train.workers",
)
_LENGTH = ("train.epochs", "train.steps")


class ParameterGroup(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Parameters with settings of their own. modules: names of modules or parameters ("encoder.layers.0"), with all
    that is in them; a parameter belongs to the first group that names it. lr: what the schedule scales."""

    modules: Annotated[tuple[str, ...], Meta(min_length=1)]
    lr: _Positive | None = None
    weight_decay: _NotNegative | None = None


class Train(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the weights move.

    epochs, steps: how long, one of them. batch_size: items that one step learns from, over all processes.
    accumulate: micro-batches into which each process cuts its part of the batch, to need less memory; same result.
    shuffle_buffer: of a stream, how many items wait to be drawn from at random; 1 keeps the stream's order.
    workers: processes that load data beside the trainer. clip_value, clip_norm: bounds of each gradient element and
    then of the whole gradient's length. ema_decay: keep a moving average of the weights, and validate that one;
    ema_warmup: step t (from 1) averages with min(ema_decay, (1 + t) / (10 + t)), so that a short run forgets its start.
    init_from: a run, a checkpoint or a safetensors file whose weights to start with. groups: modules with another
    rate or decay. decay_norms_and_biases: whether weight decay is also for parameters that are no matrices. shard:
    spread weights, gradients and moments over the processes (FSDP), for networks that are too large for one GPU.
    """

    batch_size: _Count
    lr: _Positive
    epochs: _Count | None = None
    steps: _Count | None = None
    accumulate: _Count = 1
    shuffle_buffer: _Count = 1024
    workers: Annotated[int, Meta(ge=0)] = 0
    optimizer: Literal["adam", "adamw"] = "adamw"
    betas: tuple[_Beta, _Beta] = (0.9, 0.999)
    eps: _Positive = 1e-8
    weight_decay: _NotNegative = 0.0
    decay_norms_and_biases: bool = True
    groups: tuple[ParameterGroup, ...] = ()
    clip_value: _Positive | None = None
    clip_norm: _Positive | None = None
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    ema_decay: Annotated[float, Meta(gt=0, lt=1)] | None = None
    ema_warmup: bool = True
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    num_threads: _Count | None = None
    init_from: Path | None = None
    shard: bool = False

    def __post_init__(self) -> None:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("give either epochs or steps")
        if self.shard and (self.ema_decay is not None or self.precision == "fp16"):
            raise ValueError("shard goes neither with ema_decay nor with precision fp16")


class Validate(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When to measure, and what counts as better.

    every_steps, every_epochs: one of them; each epoch if neither. metric: one of the names that the task's `validate`
    returns; it decides the best checkpoint. patience: stop after so many validations in a row that were not better.
    min_change: how much better counts. at_start: measure before the first step too, which finds mistakes early.
    """

    every_steps: _Count | None = None
    every_epochs: _Count | None = None
    metric: str | None = None
    mode: Literal["min", "max"] = "min"
    patience: _Count | None = None
    min_change: _NotNegative = 0.0
    at_start: bool = True

    def __post_init__(self) -> None:
        if self.every_steps is not None and self.every_epochs is not None:
            raise ValueError("give every_steps or every_epochs, not both")
        if self.patience is not None and self.metric is None:
            raise ValueError("patience needs a metric")

    def is_better(self, value: float, than: float | None) -> bool:
        """Whether a value is an improvement; NaN never is."""
        if than is None:
            return value == value
        gain = value - than if self.mode == "max" else than - value
        return gain > self.min_change


class Checkpointing(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """every_steps, every_epochs: one of them; each epoch if neither. keep: the newest so many stay, and the best.

    trainable_only: leave out frozen parameters, which the task builds anew; a digest tells whether they are the same.
    sharded: with train.shard, every process writes its own piece of weights and moments; else the first writes all.
    """

    every_steps: _Count | None = None
    every_epochs: _Count | None = None
    keep: _Count = 2
    trainable_only: bool = False
    sharded: bool = False

    def __post_init__(self) -> None:
        if self.every_steps is not None and self.every_epochs is not None:
            raise ValueError("give every_steps or every_epochs, not both")


class Log(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """every_steps: how often a line goes to log.jsonl (and TensorBoard, Weights & Biases if asked for).

    line_seconds: how often a line is printed where no terminal can show a progress bar. plot: curves.png at the end.
    """

    every_steps: _Count = 1
    tensorboard: bool = False
    wandb: bool = False
    wandb_project: str = "saywhere"
    line_seconds: _Positive = 30.0
    plot: bool = True


class Recipe(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One run. model, data: tables that the task itself describes."""

    name: Annotated[str, Meta(min_length=1)]
    task: Annotated[str, Meta(min_length=1)]
    train: Train
    seed: Annotated[int, Meta(ge=0)] = 0
    model: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    schedule: Constant | StepDecay | Cosine | Linear = field(default_factory=Constant)
    validate: Validate = field(default_factory=Validate)
    checkpoint: Checkpointing = field(default_factory=Checkpointing)
    log: Log = field(default_factory=Log)

    def to_table(self) -> dict[str, Any]:
        """Plain tables for a JSON file; `parse_recipe` reads them back."""
        return as_table(self)

    def with_overrides(self, assignments: Sequence[str]) -> Recipe:
        """The recipe with `key.path=value` put in."""
        return parse_recipe(self.to_table(), f"recipe {self.name!r}", assignments)

    def total_steps(self, steps_per_epoch: int) -> int:
        """How many steps the whole run makes."""
        return self.train.steps if self.train.steps is not None else (self.train.epochs or 0) * steps_per_epoch


def parse_recipe(table: Mapping[str, Any], source: str, overrides: Sequence[str] = ()) -> Recipe:
    """A recipe from plain tables. source: the file to name in an error."""
    return checked(override(table, overrides), Recipe, source=source)


def read_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """A recipe from its TOML file. The task's own tables are checked by `registry.check_sections`."""
    try:
        with Path(path).open("rb") as file:
            table = tomllib.load(file)
    except OSError as error:
        raise InvalidFile(path, f"cannot be opened: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidFile(path, f"is not TOML: {error}") from error
    return parse_recipe(table, str(path), overrides)


def changes_that_matter(old: Recipe, new: Recipe) -> dict[str, tuple[Any, Any]]:
    """Keys that differ and on which steps already made depend, with the old and the new value."""
    free = _FREE_ON_RESUME if depends_on_length(new.schedule) else _FREE_ON_RESUME + _LENGTH
    found = differences(old.to_table(), new.to_table())
    return {key: values for key, values in found.items() if not key.startswith(free)}
