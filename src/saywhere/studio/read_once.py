"""Files of which little is needed, and often: read again only if they were written since."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from saywhere.core.errors import InvalidFile

_Value = TypeVar("_Value")


class ReadOnce(Generic[_Value]):
    """decode: what is needed of a file, from its bytes. Threads may share it."""

    def __init__(self, decode: Callable[[bytes], _Value]) -> None:
        self._decode = decode
        self._known: dict[Path, tuple[tuple[int, int], _Value]] = {}

    def each(self, paths: Iterable[Path]) -> list[_Value]:
        """Of all these files, in their order, without those that were deleted meanwhile; the others are forgotten.
        InvalidFile if one is damaged."""
        before = self._known
        found: dict[Path, tuple[tuple[int, int], _Value]] = {}
        for path in paths:
            try:
                facts = path.stat()
                written = (facts.st_mtime_ns, facts.st_ino)
                known = before.get(path)
                if known is None or known[0] != written:
                    known = (written, self._decode(path.read_bytes()))
                found[path] = known
            except FileNotFoundError:
                continue
            except msgspec.DecodeError as error:
                raise InvalidFile(path, f"is damaged: {error}") from error
        self._known = found
        return [value for _, value in found.values()]
