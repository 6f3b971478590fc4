"""Where the tables of a library are: a folder of this machine, or object storage by URL (`stores`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, InvalidValue, SaywhereError, require

_ABOUT = "library.json"
StillMine = Callable[[], None]
"""InvalidFile once somebody else has become the writer. To be called before every change."""


class TablesPlace(Protocol):
    """The tables of a library in LanceDB, a note about them, and a lock for the one who writes. str() is what its user
    calls it; that has no secrets."""

    @property
    def database(self) -> Any:
        """LanceDB's connection; always the same."""
        ...

    def read_note(self) -> bytes | None:
        """What is noted about the library; None if there is none here."""
        ...

    def write_note(self, note: bytes) -> None:
        """Note it, whole or not at all."""
        ...

    def only_writer(self, *, break_lock: bool = False) -> AbstractContextManager[StillMine]:
        """The right to write; InvalidFile if another process has it. break_lock: it is gone, and could not say so."""
        ...

    def told(self, error: Exception) -> InvalidFile:
        """What LanceDB says of this place, in one sentence."""
        ...


@dataclass(frozen=True)
class FolderPlace:
    """A folder of this machine, or one that is mounted."""

    folder: Path

    def __str__(self) -> str:
        return str(self.folder)

    @cached_property
    def database(self) -> Any:
        with working(self):
            return lancedb().connect(str(self.folder))

    def read_note(self) -> bytes | None:
        try:
            return (self.folder / _ABOUT).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InvalidFile(self.folder / _ABOUT, f"cannot be read: {error.strerror or error}") from error

    def write_note(self, note: bytes) -> None:
        with write_atomic(self.folder / _ABOUT) as file:
            file.write(note)

    @contextmanager
    def only_writer(self, *, break_lock: bool = False) -> Iterator[StillMine]:
        """A lock of the system, which it lets go of when a process ends, however it ends."""
        if break_lock:
            reason = f"is for object storage: the lock of {self} ends with the process that writes"
            raise InvalidValue("--break-lock", reason)
        self.folder.mkdir(parents=True, exist_ok=True)
        with system_lock(self.folder / "writer.lock", self):
            yield lambda: None

    def told(self, error: Exception) -> InvalidFile:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        return InvalidFile(self, f"cannot be worked with: {said}", "make room, or delete the folder and index anew")


@contextmanager
def working(place: TablesPlace) -> Iterator[None]:
    """What LanceDB says of a full disk, of damaged files or of a store, as an error that names the library."""
    try:
        yield
    except (RuntimeError, ValueError, OSError) as error:
        if isinstance(error, SaywhereError):
            raise
        raise place.told(error) from error


@contextmanager
def system_lock(path: Path, place: object) -> Iterator[None]:
    """A file that one process of this machine may hold; InvalidFile that names the place if another does."""
    filelock = require("filelock", needed_for="a library of photographs", extra="search")
    try:
        with filelock.FileLock(str(path), timeout=0):
            yield
    except filelock.Timeout as error:
        raise InvalidFile(place, "is being written by another process", "wait for it; reading is possible") from error


def lancedb() -> Any:
    """LanceDB, which warns of every fork. Ours run another program at once, or never come here."""
    found = require("lancedb", needed_for="a library of photographs", extra="search")
    warnings.filterwarnings("ignore", "lancedb fork support", RuntimeWarning)
    return found
