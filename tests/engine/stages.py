"""Stages for the tests: at the top of a module, so that a worker can import them."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from saywhere.core.errors import InvalidValue


@dataclass
class Squared:
    """The square of a number. Writes a line into `folder` for each setup and each shard."""

    folder: Path
    power: int = 2
    ready: list[int] = field(default_factory=list, repr=False)

    def setup(self) -> None:
        self.ready.append(os.getpid())
        _note(self.folder / "setups", str(os.getpid()))

    def __call__(self, shard: int) -> int:
        assert self.ready == [os.getpid()]
        _note(self.folder / "shards", str(shard))
        if shard == 13:
            raise InvalidValue("number", "13 brings bad luck")
        if shard == 14:
            raise ZeroDivisionError("a defect")
        if shard == 15:
            os._exit(3)
        # The first are the slowest, so that results come in another order than that of the shards.
        time.sleep(0.02 * max(0, 3 - shard))
        return shard**self.power


@dataclass
class NeverReady:
    def setup(self) -> None:
        raise InvalidValue("model", "is not there")

    def __call__(self, shard: int) -> int:
        return shard


@dataclass
class DeadlySetup:
    def setup(self) -> None:
        os._exit(4)

    def __call__(self, shard: int) -> int:
        return shard


@dataclass
class Unsendable:
    def setup(self) -> None:
        pass

    def __call__(self, shard: int) -> object:
        return threading.Lock()


def _note(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line + "\n")


def write_pid(path: Path) -> None:
    path.write_text(str(os.getpid()))


def sleep_long(path: Path) -> None:
    write_pid(path)
    time.sleep(120)


def threads(_: int) -> str:
    return os.environ.get("OMP_NUM_THREADS", "all")
