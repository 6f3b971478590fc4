"""One process, or several that live as long as the one that began them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from saywhere.core.errors import InvalidValue
from saywhere.engine.mapping import (
    DEFAULT,
    Engine,
    FailedShard,
    Options,
    Outcome,
    ShardError,
    ShardTask,
    Stage,
    Work,
    in_order,
    plan,
)

S = TypeVar("S")
R = TypeVar("R")
_WAIT_S = 2.0
_WATCH_S = 1.0
_END_S = 5.0
_READY = "ready"
TRIES = 3
"""Workers that may die over one shard."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def open_engine(workers: int) -> Engine:
    """An engine with so many processes; 0 works in this one."""
    return SeveralProcesses(workers) if workers else OneProcess()


@dataclass(frozen=True, slots=True)
class OneProcess:
    """Works in this process."""

    def map(self, stage: Stage[S, R], shards: Iterable[S], options: Options = DEFAULT) -> Iterator[R | FailedShard]:
        """The result of every shard, in their order."""
        work = plan(stage, shards, options)
        return in_order(work, _here(work))


@dataclass(frozen=True, slots=True)
class SeveralProcesses:
    """Works in new processes, one shard each at a time. threads: that each computes with."""

    workers: int
    threads: int = 1

    def __post_init__(self) -> None:
        if self.workers < 1 or self.threads < 1:
            raise InvalidValue("workers, threads", f"are {self.workers}, {self.threads}, not at least 1")

    def map(self, stage: Stage[S, R], shards: Iterable[S], options: Options = DEFAULT) -> Iterator[R | FailedShard]:
        """The result of every shard, in their order."""
        work = plan(stage, shards, options)
        return in_order(work, _elsewhere(work, self.workers, self.threads))


def _here(work: Work[Any, Any]) -> Generator[Outcome, None, None]:
    ready = False
    for task in work.waiting:
        _call(work.options.on_wait)
        try:
            if not ready:
                work.stage.setup()
                ready = True
            outcome = task.run(work.stage)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told with its shard
            outcome = task.error(error, bad_shard=ready)
            outcome.__cause__ = error
        yield task.number, outcome
    _call(work.options.on_wait)


def _call(function: Callable[[], None] | None) -> None:
    if function is not None:
        function()


class _Worker:
    """A process that works on one task after another. ready: whether the stage was set up in it."""

    def __init__(self, stage: Stage[Any, Any]) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.task: ShardTask[Any, Any] | None = None
        self.ready = False
        self._process = context.Process(target=_serve, args=(theirs, stage, os.getpid()), daemon=True)
        self._process.start()
        theirs.close()

    def give(self, task: ShardTask[Any, Any]) -> None:
        self.task = task
        self.connection.send(task)

    def take(self) -> tuple[Any] | None:
        """What came of its task, which may be None, too; no tuple: nothing yet. A `_Died` in it: it died, and says so
        by its silence."""
        try:
            outcome = self.connection.recv()
        except (EOFError, ConnectionError):
            self._process.join(_END_S)
            return (_Died(self._process.exitcode),)
        if outcome == _READY:
            self.ready = True
            return None
        self.task = None
        done: tuple[Any] = outcome
        return done

    def end(self) -> None:
        """At once, whatever it is doing: files are written whole or not at all."""
        self._process.kill()
        self._process.join(_END_S)
        self.connection.close()


@dataclass(frozen=True, slots=True)
class _Died:
    code: int | None

    def error(self, task: ShardTask[Any, Any], *, ready: bool) -> ShardError:
        said = f"(exit code {self.code}): out of memory, or killed?"
        if not ready:
            return ShardError(task.name, f"its worker died while it got ready {said}")
        return ShardError(task.name, f"{TRIES} workers died over it {said}", bad_shard=True)


def _elsewhere(work: Work[Any, Any], most: int, threads: int) -> Generator[Outcome, None, None]:
    """A worker that dies is replaced, and its shard begun anew; over one that kills every worker, it is given up."""
    tasks = deque(work.waiting)
    workers: list[_Worker] = []
    deaths: Counter[int] = Counter()
    try:
        while tasks or any(worker.task for worker in workers):
            with _threads_of_new_processes(threads):
                while tasks and len(workers) < most:
                    workers.append(_Worker(work.stage))
                    workers[-1].give(tasks.popleft())
            busy = {worker.connection: worker for worker in workers if worker.task is not None}
            for connection in wait(list(busy), timeout=_WAIT_S):
                worker = busy[connection]  # type: ignore[index]  # wait() gives back what it was given
                if (task := worker.task) is None or (taken := worker.take()) is None:
                    continue
                (result,) = taken
                if isinstance(result, _Died):
                    worker.end()
                    workers.remove(worker)
                    deaths[task.number] += 1
                    if worker.ready and deaths[task.number] < TRIES:
                        tasks.appendleft(task)
                        continue
                    result = result.error(task, ready=worker.ready)
                elif tasks and not (isinstance(result, ShardError) and not result.bad_shard):
                    worker.give(tasks.popleft())
                yield task.number, result
            _call(work.options.on_wait)
    finally:
        for worker in workers:
            worker.end()


def _serve(connection: Connection, stage: Stage[Any, Any], parent: int) -> None:
    """The life of a worker."""
    # Ctrl-C reaches every process of a terminal: the one that began the work decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with(parent)
    ready = False
    while True:
        try:
            task: ShardTask[Any, Any] = connection.recv()
        except EOFError:
            return
        try:
            if not ready:
                stage.setup()
                ready = True
                connection.send(_READY)
            outcome = task.run(stage)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told with its shard
            outcome = task.error(error, bad_shard=ready)
        try:
            connection.send((outcome,))
        except (TypeError, AttributeError, ValueError) as error:
            connection.send((task.error(error, bad_shard=False),))


@contextmanager
def _threads_of_new_processes(number: int) -> Iterator[None]:
    """Processes that start now compute with so many threads: several that each take all cores wait for one another."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, str(number)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _end_with(parent: int) -> None:
    """End this process soon after its parent: work that was begun anew must not meet a worker of the old one."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_S)
        os._exit(1)

    threading.Thread(target=watch, name="watch of the parent", daemon=True).start()
