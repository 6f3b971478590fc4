"""Files written whole or not at all. Every package may import this one; it stands beside them, not inside."""

from __future__ import annotations

import errno
import gzip
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from saywhere.core.errors import InvalidFile

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What the system says when there is no room: on the disk, in somebody's share of it, or for so large a file."""


class DiskFull(InvalidFile):
    """There is no room for a file. What was there before is as it was."""

    def __init__(self, path: object) -> None:
        hint = "free some room, or write to another disk; what was there before is as it was"
        super().__init__(path, "cannot be written: the disk is full", hint)


@contextmanager
def write_atomic(path: str | Path) -> Iterator[IO[bytes]]:
    """A file that appears whole when the block ends, or not at all if it raises. Gzipped if the name ends in .gz."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
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
        # mkstemp makes private files; the result gets what a plain open() would have given it.
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        _replace(name, target)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        if error.errno not in FULL:
            raise
        raise DiskFull(path) from error
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _replace(name: str, target: Path) -> None:
    try:
        Path(name).replace(target)
    except OSError as error:
        raise InvalidFile(target, f"cannot be written: {error.strerror or error}") from error
