"""Stages for the tests: at the top of a module, so that a worker can import them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saywhere.atomic import DiskFull
from saywhere.build.mapped_texts import EmbedTexts
from saywhere.core.errors import InvalidValue
from saywhere.core.types import Progress
from saywhere.language.embed import TextEncoder
from tests.build.batch.kill_batch import TinyStage


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


def no_room(number: int) -> None:
    raise DiskFull(f"{number}.parquet")


class LetterEncoder:
    """A text is how often each letter is in it."""

    name, size = "letters", 26
    fingerprint: dict[str, str | int] = {"text_encoder": "letters"}  # noqa: RUF012 - as the protocol has it

    def embed(self, texts: Sequence[str], *, batch: int = 64, progress: Progress | None = None) -> NDArray[np.float32]:
        rows = np.array([[0.01 + text.lower().count(chr(97 + i)) for i in range(26)] for text in texts])
        if progress is not None:
            progress("embedding", len(texts), len(texts))
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


class EmbedLetters(EmbedTexts):
    """The stage with an encoder that needs no files."""

    def open(self) -> TextEncoder:
        return LetterEncoder()


class DyingStage(TinyStage):
    """Looks at photos, and is killed once over each part that a file beside the results names: NUMBER-before it is
    worked on, or NUMBER-after."""

    def __call__(self, shard: Any, /) -> Any:
        self._die(f"{shard[0]}-before")
        result = super().__call__(shard)
        self._die(f"{shard[0]}-after")
        return result

    def _die(self, name: str) -> None:
        doom = Path(self.out).parent / "doomed" / name
        if doom.exists():
            doom.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    def __repr__(self) -> str:
        # What is noted of a run must not depend on who died in it.
        return super().__repr__().replace(type(self).__qualname__, TinyStage.__qualname__)


class WaitingStage(TinyStage):
    """Looks at photos; each part waits, when it is begun, for a file `go` beside the results, and says in `began` on
    which node of Ray it waits. The first of them do not wait, if a file `free` says how many."""

    def __call__(self, shard: Any, /) -> Any:
        import ray

        beside = Path(self.out).parent
        (beside / "began" / str(shard[0])).write_text(ray.get_runtime_context().get_node_id())
        free = beside / "free"
        while not (beside / "go").exists() and not (free.exists() and shard[0] < int(free.read_text())):
            time.sleep(0.05)
        return super().__call__(shard)

    def __repr__(self) -> str:
        # What is noted of a run must not depend on who waited in it.
        return super().__repr__().replace(type(self).__qualname__, TinyStage.__qualname__)
