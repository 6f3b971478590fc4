"""What people said, as lines of JSON added at the end of a file, each on the disk before it counts.

Nothing is ever taken out of the file. What holds is found by reading it from the start; lines that do not count are
named with a reason. One process writes a file; somebody with an editor may, too.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from saywhere.atomic import FULL, DiskFull
from saywhere.core.errors import InvalidFile, InvalidValue

Line = TypeVar("Line")
_Line = TypeVar("_Line", contravariant=True)


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that does not count, and why. number: from 1."""

    number: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.number}: {self.reason}"


class LogState(Protocol[_Line]):
    """What holds after some lines."""

    bad_lines: list[BadLine]

    def check(self, line: _Line, /) -> None:
        """InvalidValue unless the line is right and goes with what holds."""

    def take(self, line: _Line, /) -> None:
        """Let a line count that was checked."""


State = TypeVar("State", bound=LogState)  # type: ignore[type-arg]


class LineLog(Generic[Line, State]):
    """One file of lines. Threads may share it.

    kind: what a line is decoded to. nothing: makes what holds before the first line. name: of a line, for people.
    """

    def __init__(self, path: Path, kind: type[Line], nothing: Callable[[], State], name: str) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._kind, self._nothing, self._name = kind, nothing, name
        self._given, self._size = nothing(), 0

    @property
    def given(self) -> State:
        """What holds now. The file is read again if somebody else wrote it, such as the lab with an editor."""
        with self.lock:
            if self._file_size() != self._size:
                self._given, self._size = self.read(), self._file_size()
            return self._given

    def add(self, line: Line) -> None:
        """Write a line and let it count. InvalidValue if it does not go with what holds; nothing is written then."""
        with self.lock:
            given = self.given
            given.check(line)
            self._append(line)
            given.take(line)
            self._size = self._file_size()

    def read(self) -> State:
        """What holds, read from the file; nothing if there is no file."""
        given = self._nothing()
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return given
        except OSError as error:
            raise InvalidFile(self.path, f"cannot be read: {error.strerror or error}") from error
        for number, text in enumerate(lines, 1):
            if not text.strip():
                continue
            try:
                line = msgspec.json.decode(text, type=self._kind)
                given.check(line)
                given.take(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                given.bad_lines.append(BadLine(number, f"is not {self._name}: {error}"))
            except InvalidValue as error:
                given.bad_lines.append(BadLine(number, error.reason))
        return given

    def _file_size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise InvalidFile(self.path, f"cannot be read: {error.strerror or error}") from error

    def _append(self, line: Line) -> None:
        try:
            # Without a buffer: what cannot be written must not be tried again when the file is closed.
            with self.path.open("a+b", buffering=0) as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - 1))
                # A line that was torn by a crash was never confirmed; it must not swallow this one.
                torn = size > 0 and file.read(1) != b"\n"
                try:
                    content = b"\n" * torn + msgspec.json.encode(line) + b"\n"
                    if file.write(content) != len(content):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    os.fsync(file.fileno())
                except OSError:
                    # A part of the line may be there already.
                    os.ftruncate(file.fileno(), size)
                    raise
        except OSError as error:
            if error.errno in FULL:
                raise DiskFull(self.path) from error
            raise InvalidFile(self.path, f"cannot be written: {error.strerror or error}") from error


def now() -> str:
    """The time of a line: ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
