"""What people said, as lines of JSON, each in the database and on the disk before it counts.

Nothing is ever taken out. What holds is found by reading from the start; lines that do not count are named with a
reason. Several processes may write: each sees the others' lines before it adds its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.studio.database import Line as NumberedLine
from saywhere.studio.database import Project
from saywhere.studio.participants import has_database

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
    """One log of a folder's project. Threads may share it.

    log: what it is called; earlier versions kept it in a file of this name. kind: what a line is decoded to; nothing:
    makes what holds before the first line. name: of a line, for people.
    """

    def __init__(self, folder: Path, log: str, kind: object, nothing: Callable[[], State], name: str) -> None:
        self.folder, self.log = folder, log
        self.lock = threading.RLock()
        self._decode: Callable[[bytes], Line] = msgspec.json.Decoder(kind).decode
        self._nothing, self._name = nothing, name
        self._project: Project | None = None
        self._given, self._seen = nothing(), 0

    @property
    def given(self) -> State:
        """What holds now, with what other processes have written."""
        with self.lock:
            self._check_migrated()
            if self._project is not None or has_database(self.folder):
                self._catch_up(self.project.lines(self.log, self._seen))
            return self._given

    @property
    def project(self) -> Project:
        """Where the lines are; made when it is first asked for."""
        with self.lock:
            self._check_migrated()
            self._project = self._project or Project(self.folder)
            return self._project

    def add(self, *lines: Line) -> None:
        """Write lines and let them count, all or none: InvalidValue if one does not go with what holds."""
        with self.lock:
            project = self.project
            try:
                with project.writing() as connection:
                    self._catch_up(project.lines(self.log, self._seen, connection))
                    first = self._seen + 1
                    for line in lines:
                        self._given.check(line)
                        self._given.take(line)
                        self._seen += 1
                    bodies = (_encoded(line) for line in lines)
                    project.put(connection, self.log, list(enumerate(bodies, first)))
            except BaseException:
                # Nothing was kept: what holds is read anew.
                self._given, self._seen = self._nothing(), 0
                raise

    def close(self) -> None:
        """Let go of the database."""
        with self.lock:
            if self._project is not None:
                self._project.close()
            self._project = None

    def _catch_up(self, lines: Iterable[NumberedLine]) -> None:
        for number, body in lines:
            self._seen = number
            if not body.strip():
                continue
            try:
                line = self._decode(body)
                self._given.check(line)
                self._given.take(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                self._given.bad_lines.append(BadLine(number, f"is not {self._name}: {error}"))
            except InvalidValue as error:
                self._given.bad_lines.append(BadLine(number, error.reason))

    def _check_migrated(self) -> None:
        path = self.folder / f"{self.log}.jsonl"
        if path.exists():
            hint = f"take it into the database: saywhere database migrate {self.folder}"
            raise InvalidFile(path, "is of an earlier version", hint)


def _encoded(line: object) -> bytes:
    try:
        return msgspec.json.encode(line)
    except UnicodeEncodeError as error:
        raise InvalidValue("the text", "holds half a character (a lone surrogate)") from error


def now() -> str:
    """The time of a line: ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
