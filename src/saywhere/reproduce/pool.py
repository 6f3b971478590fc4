"""Many trainings side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, TypeVar

from saywhere.engine import Function, Options, open_engine

J = TypeVar("J")


class Training(Protocol):
    """A job that trains in a folder of its own."""

    @property
    def folder(self) -> Path: ...

    @property
    def steps(self) -> int: ...

    @property
    def is_done(self) -> bool: ...


def steps_done(jobs: Iterable[Training]) -> tuple[int, int]:
    """How many steps all jobs have made so far, by their logs, and of how many."""
    done, total = 0, 0
    for job in jobs:
        log = job.folder / "log.jsonl"
        total += job.steps
        if job.is_done:
            done += job.steps
        elif log.exists():
            done += min(job.steps, log.read_bytes().count(b"\n"))
    return done, total


def run_jobs(jobs: Iterable[J], run: Callable[[J], object], workers: int, on_tick: Callable[[], None]) -> None:
    """Run all jobs, in their order. workers: processes, each of one thread; 0 runs them in this one. The first failure
    ends it. on_tick: called now and then, and at the end."""
    for _ in open_engine(workers).map(Function(run), jobs, Options(on_wait=on_tick)):
        pass
    on_tick()
