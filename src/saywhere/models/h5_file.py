"""HDF5 files that hold what they say, and read nothing but themselves.

HDF5 may keep numbers in any other file of the computer: as external storage, behind links, or as virtual data sets. It
may also claim arrays of any size whose numbers were never written. Both are refused here.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from saywhere import limits
from saywhere.core.errors import InvalidFile, require
from saywhere.store.arrays import FEATURES

_INDEX = "bytes of an index"
_PATIENCE_S = 60.0
# What h5py raises where a file is damaged.
_DAMAGE = (OSError, RuntimeError, ValueError, TypeError, KeyError, MemoryError)


class H5File:
    """The groups and arrays of one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._h5py = require("h5py", needed_for="reading features from HDF5", extra="models")
        with self._damage("it"):
            self._file = self._h5py.File(path, "r")

    def close(self) -> None:
        self._file.close()

    def __contains__(self, name: str) -> bool:
        with self._damage(name):
            return name in self._file

    def names(self, group: str = "") -> list[str]:
        """What is in a group, by default in the file itself."""
        with self._damage(group):
            inside = self._own(group) if group else self._file
            return sorted(name for name in inside if isinstance(name, str))

    def is_group(self, name: str) -> bool:
        return hasattr(self._own(name), "keys")

    def array(self, name: str, what: str = FEATURES, kinds: str = "biuf") -> NDArray[Any]:
        """A whole array of numbers. what: the limit of `saywhere.limits` that it is held to."""
        found = self._numbers(name, kinds)
        limits.check(what, int(found.nbytes), self.path)
        with self._damage(name):
            # Numbers that were never written take no room in the file, and all the memory that they claim.
            if found.chunks is None and found.size and found.id.get_storage_size() < found.nbytes:
                raise InvalidFile(self.path, f"{name!r} claims {found.nbytes:,} bytes, which the file does not hold")
            return np.asarray(found)

    def row(self, name: str, row: int) -> NDArray[Any]:
        """One row of an array of numbers."""
        stack = self._numbers(name, "biuf")
        if not stack.shape or row >= len(stack):
            raise InvalidFile(self.path, f"{name!r} has fewer rows than there are ids")
        limits.check(FEATURES, int(stack.nbytes // len(stack)), self.path)
        with self._damage(name):
            return np.asarray(stack[row])

    def texts(self, name: str) -> list[str]:
        """An array of texts or whole numbers, as texts."""
        found = self._numbers(name, "OSiu")
        if found.dtype.kind == "O":
            return self._long_texts(name)
        entries = self.array(name, _INDEX, "Siu").ravel().tolist()
        return [one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one) for one in entries]

    def _long_texts(self, name: str) -> list[str]:
        """Texts of any length, read in a process of their own; see `_h5_texts`."""
        most = limits.MOST[_INDEX]
        command = [sys.executable, "-m", "saywhere.models._h5_texts", str(self.path), name, str(most)]
        try:
            read = subprocess.run(command, capture_output=True, timeout=_PATIENCE_S, check=False)
            if not read.returncode:
                return msgspec.json.decode(read.stdout, type=list[str])
        except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError) as error:
            raise InvalidFile(self.path, f"the texts {name!r} cannot be read: {error}", "is the file whole?") from error
        said = read.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = said[-1] if said else f"they are longer than {most:,} bytes"
        raise InvalidFile(self.path, f"the texts {name!r} cannot be read: {reason}")

    def _numbers(self, name: str, kinds: str) -> Any:
        found = self._own(name)
        with self._damage(name):
            if not hasattr(found, "chunks") or found.dtype.kind not in kinds:
                raise InvalidFile(self.path, f"{name!r} is not an array of numbers")
        return found

    def _own(self, name: str) -> Any:
        """What stands under a name, if it is in this file."""
        found = self._file
        with self._damage(name):
            for part in name.strip("/").split("/"):
                link = found.get(part, getlink=True)
                found = found[part] if isinstance(link, self._h5py.HardLink) else None
                if found is None or not hasattr(found, "keys"):
                    break
            if found is None or getattr(found, "external", None) or getattr(found, "is_virtual", False):
                raise InvalidFile(self.path, f"{name!r} lies elsewhere, in another file", "write it into this one")
        return found

    @contextmanager
    def _damage(self, name: str) -> Iterator[None]:
        try:
            yield
        except InvalidFile:
            raise
        except _DAMAGE as error:
            raise InvalidFile(self.path, f"cannot be read as HDF5: {name}: {error}") from error
