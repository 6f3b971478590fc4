"""Many runs side by side in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

_Job = TypeVar("_Job")
_EVERY_S = 2.0
_WATCHED_EVERY_S = 1.0
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


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


def run_jobs(jobs: Iterable[_Job], run: Callable[[_Job], object], workers: int, on_tick: Callable[[], None]) -> None:
    """Run all jobs, in their order. workers: processes, each of one thread; 0 runs them in this one. The first failure
    ends it.

    on_tick: called every two seconds, or without processes before each job; and at the end.
    """
    if not workers:
        for job in jobs:
            on_tick()
            run(job)
        on_tick()
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_end_with, initargs=(os.getpid(),))
    with _one_thread_each(), pool:
        waiting: set[Future[object]] = {pool.submit(run, job) for job in jobs}
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=_EVERY_S, return_when=FIRST_COMPLETED)
                for finished in done:
                    finished.result()
                on_tick()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that start now compute with one thread: several that each take all cores wait for one another."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _end_with(parent: int) -> None:
    """End this process soon after its parent: a run that was begun anew must not meet a worker of the old one."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCHED_EVERY_S)
        # At once, whatever it is doing: files are written whole or not at all.
        os._exit(1)

    threading.Thread(target=watch, name="watch of the parent", daemon=True).start()
