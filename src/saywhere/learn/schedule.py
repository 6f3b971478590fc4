"""How the learning rate moves: a pure function of the step, so there is no state to save or to lose."""

from __future__ import annotations

import math
from typing import Annotated

from msgspec import Meta, Struct

_Steps = Annotated[int, Meta(ge=0)]
_Share = Annotated[float, Meta(ge=0, le=1)]


class Constant(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="constant"):
    """The base rate. warmup_steps (of any schedule): before all else the rate rises to it in this many equal parts."""

    warmup_steps: _Steps = 0


class StepDecay(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="step"):
    """Multiplied by `factor` after every `every_epochs` epochs, counted from the start of the run."""

    every_epochs: Annotated[int, Meta(ge=1)]
    factor: Annotated[float, Meta(gt=0, le=1)]
    warmup_steps: _Steps = 0


class Cosine(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="cosine"):
    """Half a cosine from the base rate after the warm-up down to `floor` times it at the end of the run."""

    floor: _Share = 0.0
    warmup_steps: _Steps = 0


class Linear(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="linear"):
    """A straight line from the base rate after the warm-up down to `floor` times it at the end of the run."""

    floor: _Share = 0.0
    warmup_steps: _Steps = 0


Schedule = Constant | StepDecay | Cosine | Linear


def depends_on_length(schedule: Schedule) -> bool:
    """Whether a longer run would have had other rates from its start."""
    return isinstance(schedule, (Cosine, Linear))


def lr_factor(schedule: Schedule, step: int, total_steps: int, steps_per_epoch: int) -> float:
    """What the base learning rate is multiplied by in this step. step: counted from 0."""
    if step < schedule.warmup_steps:
        return (step + 1) / schedule.warmup_steps
    past_warmup = min(1.0, (step - schedule.warmup_steps) / max(1, total_steps - schedule.warmup_steps))
    match schedule:
        case StepDecay():
            return float(schedule.factor ** (step // steps_per_epoch // schedule.every_epochs))
        case Cosine():
            return schedule.floor + (1 - schedule.floor) * (1 + math.cos(math.pi * past_warmup)) / 2
        case Linear():
            return 1 - (1 - schedule.floor) * past_warmup
        case Constant():
            return 1.0
