"""Files written whole or not at all. Every package may import this one; it stands beside them, not inside."""

from __future__ import annotations

import errno
import gzip
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, cast

from saywhere.core.errors import InvalidFile

if sys.platform != "win32":
    import fcntl

_PART = re.compile(r"\.(.+)\.[a-z0-9_]{8}\.part")
# Asking sets it for a moment, in which another thread's files would be open to all: asked once, before there are any.
_MASK = os.umask(0)
os.umask(_MASK)
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What the system says when there is no room: on the disk, in somebody's share of it, or for so large a file."""


class DiskFull(InvalidFile):
    """There is no room for a file. What was there before is as it was."""

    def __init__(self, path: object) -> None:
        hint = "free some room, or write to another disk; what was there before is as it was"
        super().__init__(path, "cannot be written: the disk is full", hint)


@contextmanager
def write_atomic(path: str | Path) -> Iterator[IO[bytes]]:
    """A file that appears whole when the block ends, or not at all if it raises. Gzipped if the name ends in .gz.

    What a killed process was writing for it is swept out first.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.absolute())
        handle, name = _begun(target)
    except OSError as error:
        if error.errno in FULL:
            raise DiskFull(path) from error
        raise InvalidFile(path, f"cannot be written: {error.strerror or error}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            if target.suffix == ".gz":
                # No name and no time in the header: the same content gives the same bytes.
                with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                    yield cast(IO[bytes], packed)
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
            if sys.platform != "win32":  # Still locked.
                _replace(name, target)
        if sys.platform == "win32":  # Where no open file gets another name.
            _replace(name, target)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        if error.errno not in FULL:
            raise
        raise DiskFull(path) from error
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _begun(target: Path) -> tuple[int, str]:
    """A new file beside the target, locked as long as it is open: the system frees the lock when a process dies."""
    while True:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
        if sys.platform != "win32":
            with suppress(OSError):  # Some disks know no locks; on them nothing is swept.
                fcntl.flock(handle, fcntl.LOCK_EX)
            if not os.fstat(handle).st_nlink:  # It was swept out before it was locked.
                os.close(handle)
                continue
        return handle, name


def _sweep(target: Path) -> None:
    if sys.platform == "win32":
        return
    for part in _left_over(target.parent).pop(target.name, ()):
        with suppress(OSError), part.open("rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()


@lru_cache(maxsize=64)
def _left_over(folder: Path) -> dict[str, list[Path]]:
    """What processes before this one may have left in a folder, by target. Looked for once: folders may be large."""
    found: dict[str, list[Path]] = {}
    with suppress(OSError):  # Some may be written to and not be read.
        for path in folder.iterdir():
            if named := _PART.fullmatch(path.name):
                found.setdefault(named[1], []).append(path)
    return found


def _replace(name: str, target: Path) -> None:
    # mkstemp makes private files; the result gets what a plain open() would have given it.
    Path(name).chmod(0o666 & ~_MASK)
    try:
        Path(name).replace(target)
    except OSError as error:
        raise InvalidFile(target, f"cannot be written: {error.strerror or error}") from error
