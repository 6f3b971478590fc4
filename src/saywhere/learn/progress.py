"""How far a run is: a bar with the time left on a terminal, a line now and then anywhere else."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from saywhere.learn.records import Event, Note, Saved, StepDone, Validated

# One step's time says little about the next: the speed is averaged over about this many.
_SPEED_STEPS = 50


class ProgressDisplay:
    """Shows events on a console. total_steps: of the whole run; done: steps made before it was resumed."""

    def __init__(self, console: Console, name: str, total_steps: int, done: int, line_seconds: float) -> None:
        self._console, self._total, self._line_seconds = console, total_steps, line_seconds
        self._last_line = time.monotonic()
        self._seconds_per_step: float | None = None
        self._bar: Progress | None = None
        if console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            left = (TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.fields[numbers]}"))
            self._bar = Progress(*columns, *left, console=console)
            self._job = self._bar.add_task(name, total=total_steps, completed=done, numbers="")
            self._bar.start()

    def write(self, event: Event) -> None:
        match event:
            case StepDone():
                self._step(event)
            case Validated():
                best = "  (best so far)" if event.best else ""
                self._print(f"step {event.step}  validated: {_numbers(event.metrics)}{best}")
            case Note():
                self._print(event.message)
            case Saved():
                pass

    def _step(self, event: StepDone) -> None:
        before = self._seconds_per_step
        self._seconds_per_step = event.seconds if before is None else before + (event.seconds - before) / _SPEED_STEPS
        if self._bar is not None:
            self._bar.update(self._job, completed=event.step, numbers=_numbers({"loss": event.losses["loss"]}))
        elif time.monotonic() - self._last_line >= self._line_seconds or event.step == self._total:
            self._last_line = time.monotonic()
            self._print(self._line(event, self._seconds_per_step))

    def _line(self, event: StepDone, seconds_per_step: float) -> str:
        left = timedelta(seconds=round((self._total - event.step) * seconds_per_step))
        speed = 1 / seconds_per_step if seconds_per_step else float("inf")
        return (
            f"step {event.step}/{self._total}  epoch {event.epoch}  {_numbers(event.losses)}  "
            f"lr {event.lr:.3g}  {speed:.3g} steps/s  {left} left"
        )

    def _print(self, text: str) -> None:
        # The console would otherwise read [brackets] as markup and break lines at its guess of a width.
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _numbers(values: Mapping[str, float | None]) -> str:
    return "  ".join(f"{name} {math.nan if value is None else value:.4g}" for name, value in values.items())
