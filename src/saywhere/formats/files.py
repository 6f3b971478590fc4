"""Bytes in: plain or gzipped files, whole or line by line, with bounded memory."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from saywhere.core.errors import InvalidFile
from saywhere.formats.record import InvalidRecord, excerpt
from saywhere.limits import MOST, read_at_most

MAX_LINE_BYTES = MOST["bytes of a line"]
_CHUNK = 2**20
_GZIP_MAGIC = b"\x1f\x8b"


def open_bytes(path: str | Path) -> BinaryIO:
    """A file for reading, unpacked on the fly if its content (not its name) is gzip."""
    try:
        raw = Path(path).open("rb", buffering=_CHUNK)  # noqa: SIM115 - handed to the caller
    except OSError as error:
        raise InvalidFile(path, f"cannot be opened: {error.strerror or error}") from error
    magic = raw.read(len(_GZIP_MAGIC))
    if magic == _GZIP_MAGIC:
        raw.close()
        return cast(BinaryIO, gzip.open(path, "rb"))  # which, unlike one around `raw`, closes its file
    raw.seek(0)
    return raw


def read_lines(path: str | Path, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes] | InvalidRecord]:
    """Number (from 1) and content of every line that is not blank, memory bounded by the longest allowed line.

    A line over `max_line_bytes`, and a compressed file that ends early or is damaged, come out as InvalidRecord.
    """
    number = 0
    with open_bytes(path) as file:
        while True:
            try:
                line = file.readline(max_line_bytes + 1)
                if len(line) > max_line_bytes:
                    _skip_line(file, line)
            except (EOFError, OSError, zlib.error) as error:
                yield InvalidRecord(str(path), number + 1, f"the compressed file is cut off or damaged: {error}")
                return
            if not line:
                return
            number += 1
            if len(line) > max_line_bytes:
                reason = f"the line is longer than {max_line_bytes / 2**20:.0f} MiB"
                yield InvalidRecord(str(path), number, reason, excerpt=excerpt(line))
            elif not line.isspace():
                yield number, line


def _skip_line(file: BinaryIO, part: bytes) -> None:
    while part and not part.endswith(b"\n"):
        part = file.readline(_CHUNK)


def read_bytes(path: str | Path, max_bytes: int = MOST["bytes of a file"]) -> bytes:
    """The whole file, unpacked if it is gzip."""
    with open_bytes(path) as file:
        try:
            return read_at_most(file, max_bytes, path)
        except (EOFError, OSError, zlib.error) as error:
            raise InvalidFile(path, f"the compressed file is cut off or damaged: {error}") from error


_PHOTO_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".JPG", ".PNG")


def find_photo(folder: Path, image_id: str) -> Path | None:
    """The photo of an image, by the names data sets give: the id, or for COCO the id in twelve digits."""
    if Path(image_id).name != image_id:
        return None
    names = [image_id] + ([image_id.zfill(12)] if image_id.isascii() and image_id.isdigit() else [])
    for name in names:
        for candidate in (folder / name, *(folder / f"{name}{suffix}" for suffix in _PHOTO_SUFFIXES)):
            if candidate.is_file():
                return candidate
    return None
