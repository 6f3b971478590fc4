"""What every engine offers, and the part of the work that does not depend on where shards are worked on."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from saywhere.atomic import DiskFull, write_atomic
from saywhere.core.errors import InvalidFile, InvalidValue, SaywhereError
from saywhere.core.types import Progress

S = TypeVar("S")
R = TypeVar("R")
S_in = TypeVar("S_in", contravariant=True)
R_out = TypeVar("R_out", covariant=True)
_STAGE = "stage.json"


class Stage(Protocol[S_in, R_out]):
    """What is done with a shard. It can be pickled, and its repr says all of its settings (a dataclass will do)."""

    def setup(self) -> None:
        """Get ready: called once in every worker, before its first shard. Heavy things (models) are loaded here."""
        ...

    def __call__(self, shard: S_in, /) -> R_out:
        """The result of one shard. SaywhereError says that this shard is bad; anything else is a defect."""
        ...


@dataclass(frozen=True)
class Function(Generic[S, R]):
    """A stage that is a function of a module, and needs no setup."""

    function: Callable[[S], R]

    def setup(self) -> None:
        """Nothing to get ready."""

    def __call__(self, shard: S, /) -> R:
        return self.function(shard)

    def __repr__(self) -> str:
        return f"{self.function.__module__}.{self.function.__qualname__}"


@dataclass(frozen=True, slots=True)
class FailedShard:
    """In place of a result: a shard that could not be worked on, and why."""

    name: str
    reason: str


class ShardError(SaywhereError, RuntimeError):
    """A shard ended the work. shard: its name. where: the worker's traceback, if it was a defect.

    bad_shard: whether the shard itself is to blame, rather than the stage or the machine.
    """

    def __init__(self, shard: str, reason: str, where: str = "", *, bad_shard: bool = False) -> None:
        self.shard, self.reason, self.where, self.bad_shard = shard, reason, where, bad_shard
        super().__init__(f"{shard}: {reason}" + (f"\n{where}" if where else ""))


@dataclass(frozen=True, slots=True)
class Options:
    """How a stage is mapped.

    folder: where the result of every shard is kept as NAME.json, so that a shard that is finished is not done again;
        then results must be JSON values, and what is large is written by the stage itself. name: of a shard.
    intact: whether what a kept result tells of still holds (a file that it names, say); if not, the shard is done anew.
    keep_errors: bad shards become `FailedShard` values, which are tried again next time; else the first ends the work
        at once.
    progress: is told `doing`, how many shards are done, and of how many. on_wait: called now and then, at least every
        few seconds with several processes and before each shard with one.
    """

    folder: Path | None = None
    name: Callable[[Any], str] = str
    intact: Callable[[Any], bool] | None = None
    keep_errors: bool = False
    progress: Progress | None = None
    doing: str = "working"
    on_wait: Callable[[], None] | None = None


DEFAULT = Options()


class Engine(Protocol):
    """Somewhere to work: this process, several, a cluster. All give the same."""

    def map(self, stage: Stage[S, R], shards: Iterable[S], options: Options = DEFAULT) -> Iterator[R | FailedShard]:
        """The result of every shard, in their order. Work goes on while results are asked for."""
        ...


@dataclass(frozen=True)
class ShardTask(Generic[S, R]):
    """One shard's work; picklable. kept: the file of its result."""

    number: int
    name: str
    shard: S
    kept: Path | None = None

    @property
    def is_done(self) -> bool:
        """Whether its result is kept already: a worker that died later may have done it."""
        return self.kept is not None and self.kept.exists()

    def run(self, stage: Stage[S, R]) -> R:
        """The result, which is kept if asked for: whole or not at all. One that is kept is not made again."""
        if self.kept is not None and self.is_done:
            return _read(self.kept)  # type: ignore[no-any-return]
        result = stage(self.shard)
        if self.kept is None:
            return result
        content = _encoded(result, self.name)
        with write_atomic(self.kept) as file:
            file.write(content)
        return msgspec.json.decode(content)  # type: ignore[no-any-return]  # as one that was kept before

    def error(self, error: Exception, *, bad_shard: bool) -> ShardError:
        """What went wrong, with the shard's name; a defect with its place. A full disk is no shard's fault."""
        if isinstance(error, SaywhereError):
            return ShardError(self.name, str(error), bad_shard=bad_shard and not isinstance(error, DiskFull))
        reason = f"{type(error).__name__}: {error}"
        return ShardError(self.name, reason, "".join(traceback.format_exception(error)))


Outcome = tuple[int, Any]
"""The number of a task, and its result or its ShardError."""


@dataclass(frozen=True)
class Work(Generic[S, R]):
    """A stage and its tasks, some of which may be finished. finished: their results, by number."""

    stage: Stage[S, R]
    tasks: Sequence[ShardTask[S, R]]
    options: Options
    finished: dict[int, R] = field(default_factory=dict)

    @property
    def waiting(self) -> list[ShardTask[S, R]]:
        return [task for task in self.tasks if task.number not in self.finished]


def plan(stage: Stage[S, R], shards: Iterable[S], options: Options) -> Work[S, R]:
    """The tasks, with what was kept of them before. A folder with the results of another stage is refused."""
    # Workers of a cluster are in a folder of their own.
    folder = None if options.folder is None else options.folder.absolute()
    tasks: list[ShardTask[S, R]] = [
        ShardTask(i, name, shard, folder / f"{name}.json" if folder is not None else None)
        for i, (name, shard) in enumerate((options.name(shard), shard) for shard in shards)
    ]
    if folder is None:
        return Work(stage, tasks, options)
    names = {task.name for task in tasks}
    if len(names) < len(tasks) or any("/" in name or name in ("", ".", "..") for name in names):
        raise InvalidValue("shards", "have names that are not those of different files", "give Options.name")
    _check_same_stage(folder, repr(stage))
    finished = {task.number: _read(task.kept) for task in tasks if task.kept is not None and task.kept.exists()}
    for task in tasks:
        if task.kept is not None and task.number in finished and options.intact is not None:
            if options.intact(finished[task.number]):
                continue
            task.kept.unlink()
            del finished[task.number]
    return Work(stage, tasks, options, finished)


def results_of(outcomes: Iterable[R | FailedShard]) -> Iterator[R]:
    """What `Engine.map` gives when no bad shard is to be kept."""
    for one in outcomes:
        if isinstance(one, FailedShard):
            raise ShardError(one.name, one.reason, bad_shard=True)
        yield one


def in_order(work: Work[S, R], outcomes: Generator[Outcome, None, None]) -> Iterator[R | FailedShard]:
    """Results in the shards' order, from outcomes in any; progress is told. Errors are raised or become values."""
    options, ready = work.options, dict[int, Any](work.finished)
    done = len(ready)
    # Closed by name: a traceback that somebody keeps would keep the workers, too.
    with closing(outcomes):
        for task in work.tasks:
            while task.number not in ready:
                number, result = next(outcomes)
                if isinstance(result, ShardError):
                    if not (result.bad_shard and options.keep_errors):
                        raise result
                    result = FailedShard(result.shard, result.reason)
                ready[number] = result
                done += 1
                if options.progress is not None:
                    options.progress(options.doing, done, len(work.tasks))
            yield ready.pop(task.number)


def _encoded(result: object, name: str) -> bytes:
    try:
        return msgspec.json.encode(result)
    except TypeError as error:
        raise InvalidValue(f"the result of {name}", f"is not a JSON value: {error}", "write what is large") from error


def _read(path: Path) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes())
    except msgspec.DecodeError as error:
        raise InvalidFile(
            path, f"is not the result of a shard: {error}", "remove it to work on the shard anew"
        ) from error


def _check_same_stage(folder: Path, stage: str) -> None:
    told = folder / _STAGE
    if not told.exists():
        with write_atomic(told) as file:
            file.write(msgspec.json.encode(stage))
    elif _read(told) != stage:
        raise InvalidFile(folder, f"holds the results of {_read(told)}, not of {stage}", "choose another folder")
