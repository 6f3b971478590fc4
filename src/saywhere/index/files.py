"""Which photos of a folder are new, changed or gone."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from saywhere.core.errors import InvalidFile
from saywhere.vision.photo import PHOTO_ENDINGS

_ID_BITS = 63


@dataclass(frozen=True, slots=True)
class FileState:
    """What tells that a file is the one that was seen before: the same size and time are taken for the same content."""

    size: int
    mtime_ns: int
    digest: str = ""

    @classmethod
    def of(cls, path: Path) -> FileState:
        """Without the digest of its content."""
        facts = path.stat()
        return cls(facts.st_size, facts.st_mtime_ns)

    def same_time(self, other: FileState) -> bool:
        return (self.size, self.mtime_ns) == (other.size, other.mtime_ns)


@dataclass(frozen=True, slots=True)
class Changes:
    """Names of photos, sorted. looks: are to be looked at, being new or perhaps changed. gone: are no longer there."""

    looks: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    same: int = 0


def changes(root: Path, known: Mapping[str, FileState]) -> Changes:
    """What has happened to the photos of a folder and its subfolders since they were `known`, by name."""
    here = dict(_photos(root))
    looks = sorted(name for name, state in here.items() if name not in known or not state.same_time(known[name]))
    return Changes(looks, sorted(known.keys() - here.keys()), len(here) - len(looks))


def _photos(root: Path) -> Iterator[tuple[str, FileState]]:
    """Names beneath the folder, with slashes; hidden folders are passed over."""

    def refuse(error: OSError) -> None:
        raise InvalidFile(error.filename, f"cannot be read as a folder: {error.strerror}") from error

    for folder, folders, files in os.walk(root, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in files:
            path = Path(folder, name)
            if path.suffix.lower() in PHOTO_ENDINGS and not name.startswith(".") and path.is_file():
                # Somebody may take it away meanwhile.
                with suppress(FileNotFoundError):
                    yield path.relative_to(root).as_posix(), FileState.of(path)


def content_id(name: str, digest: str) -> int:
    """A number for a file of this name with this content: never another for the same, never the same for another."""
    taken = hashlib.sha256(f"{name}\0{digest}".encode()).digest()
    return int.from_bytes(taken[:8], "big") >> (64 - _ID_BITS)
