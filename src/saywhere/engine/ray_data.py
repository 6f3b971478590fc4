"""Work on a Ray cluster, through Ray Data: it places workers, feeds them, streams results and tries again after deaths.

Every worker sets the stage up once, and keeps results as any other engine does. Ray begins a task anew as often as its
worker dies, and would do so for ever with a shard that kills its worker, or a stage that does while it gets ready: what
was begun and not ended is counted, and ends the shard or the work after some tries. Ray gives a worker several tasks at
once if there are very many, and begins all of them anew: those that were ended do not count. Ray moves Python values
between its own processes by pickling them; nothing pickled is read from a file.
"""

from __future__ import annotations

import logging
import socket
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import saywhere
from saywhere.core.errors import InvalidValue, SaywhereError, require
from saywhere.engine.mapping import (
    DEFAULT,
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
from saywhere.engine.processes import TRIES

S = TypeVar("S")
R = TypeVar("R")
_MOST_BLOCKS = 10_000
_ANSWERS_WITHIN_S = 5.0


class NoCluster(SaywhereError, ConnectionError):
    """A Ray cluster that cannot be used, and why."""

    def __init__(self, address: str, reason: str) -> None:
        self.address, self.reason = address, reason
        super().__init__(f"the Ray cluster {address}: {reason}")


@dataclass(frozen=True, slots=True)
class RayData:
    """Works on a Ray cluster. address: as `ray.init` takes it; empty begins one on this machine. workers: at most; 0
    for as many as the cluster has cores. cpus: that each worker computes with."""

    address: str = ""
    workers: int = 0
    cpus: float = 1.0

    def __post_init__(self) -> None:
        if self.workers < 0 or self.cpus <= 0:
            raise InvalidValue("workers, cpus", f"are {self.workers}, {self.cpus}, not at least 0 and above 0")

    def map(self, stage: Stage[S, R], shards: Iterable[S], options: Options = DEFAULT) -> Iterator[R | FailedShard]:
        """The result of every shard, in their order."""
        work = plan(stage, shards, options)
        return in_order(work, self._outcomes(work))

    def _outcomes(self, work: Work[Any, Any]) -> Generator[Outcome, None, None]:
        waiting = work.waiting
        if not waiting:
            return
        ray = joined(self.address)
        from ray.data import ActorPoolStrategy

        most = self.workers or max(1, int(ray.cluster_resources().get("CPU", 1) // self.cpus))
        blocks = min(len(waiting), _MOST_BLOCKS)
        outcomes = ray.data.from_items([{"task": task} for task in waiting], override_num_blocks=blocks).map(
            _Worker,
            fn_constructor_args=(work.stage, ray.remote(num_cpus=0)(_Begun).remote(), saywhere.__version__),
            compute=ActorPoolStrategy(min_size=1, max_size=min(most, len(waiting))),
            num_cpus=self.cpus,
        )
        try:
            for row in outcomes.iter_rows():
                yield row["number"], row["outcome"]
                if work.options.on_wait is not None:
                    work.options.on_wait()
        except ray.exceptions.RayError as error:
            raise ShardError("the work", f"Ray gave up: {_in_one_line(error)}") from error


class _Begun:
    """How often each task was begun since it was last ended, on the whole cluster, and getting ready for it."""

    def __init__(self) -> None:
        self.times: Counter[tuple[str, int]] = Counter()

    def count(self, what: str, number: int) -> int:
        self.times[what, number] += 1
        return self.times[what, number]

    def ended(self, what: str, number: int) -> None:
        del self.times[what, number]


class _Worker:
    """What Ray begins on its nodes."""

    def __init__(self, stage: Stage[Any, Any], begun: Any, version: str) -> None:
        self.stage, self.begun, self.version, self.ready = stage, begun, version, False

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        task: ShardTask[Any, Any] = row["task"]
        return {"number": task.number, "outcome": self._outcome(task)}

    def _outcome(self, task: ShardTask[Any, Any]) -> Any:
        import ray

        if saywhere.__version__ != self.version:
            reason = f"a worker has saywhere {saywhere.__version__}, not {self.version}: install the same everywhere"
            return ShardError(task.name, reason)
        try:
            if task.is_done:
                return task.run(self.stage)
            if not self.ready:
                if ray.get(self.begun.count.remote("setup", task.number)) > TRIES:
                    return ShardError(task.name, f"{TRIES} workers died while they got ready")
                self.stage.setup()
                self.ready = True
                self.begun.ended.remote("setup", task.number)
            if ray.get(self.begun.count.remote("task", task.number)) > TRIES:
                return ShardError(task.name, f"{TRIES} workers died over it", bad_shard=True)
            result = task.run(self.stage)
            self.begun.ended.remote("task", task.number)
            return result
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told with its shard
            return task.error(error, bad_shard=self.ready)


def joined(address: str) -> Any:
    """Ray, connected to a cluster; without an address to one on this machine that ends with this process."""
    ray = require("ray", needed_for="--engine ray", extra="scale")
    require("ray.data", needed_for="--engine ray", extra="scale")
    if ray.is_initialized():
        return ray
    _check_answers(address)
    try:
        ray.init(
            address or "local",
            include_dashboard=False if not address else None,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise NoCluster(address or "on this machine", _in_one_line(error)) from error
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    return ray


def _check_answers(address: str) -> None:
    """See that somebody listens at an address with a port: Ray itself tries for minutes before it says so."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWERS_WITHIN_S).close()
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        reason = f"nothing answers there ({why}): is its head running, and the port open?"
        raise NoCluster(address, reason) from error


def _in_one_line(error: BaseException) -> str:
    """What an error says, or the last line of a traceback in it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any(line.startswith(("Traceback", "ray::")) for line in lines):
        lines = lines[-1:]
    return " ".join(lines) or type(error).__name__
