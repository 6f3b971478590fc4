"""Files of a made world: JSON documents and lines that grow item by item."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any

from saywhere.atomic import write_atomic


def json_bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def write_json(path: Path, value: Any) -> None:
    with write_atomic(path) as file:
        file.write(json_bytes(value))


class Lines:
    """A JSONL file that grows line by line."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.count = file, 0

    def add(self, record: Any) -> None:
        self._file.write(json_bytes(record) + b"\n")
        self.count += 1


class Document:
    """A JSON document whose one long list grows item by item, so that it need not fit into memory.

    head: the members before the list. The list is the member `name`, or the whole document if there is no name.
    """

    def __init__(self, file: IO[bytes], name: str = "", head: dict[str, Any] | None = None) -> None:
        self._file, self._name, self.count = file, name, 0
        if name:
            start = json_bytes(head or {})[:-1]
            file.write(start + (b"," if head else b"") + json_bytes(name) + b":")
        file.write(b"[")

    def add(self, item: Any) -> None:
        self._file.write((b"," if self.count else b"") + json_bytes(item))
        self.count += 1

    def close(self, tail: dict[str, Any] | None = None) -> None:
        """End the list, and the document with further members."""
        self._file.write(b"]")
        if self._name:
            self._file.write((b"," + json_bytes(tail)[1:-1] if tail else b"") + b"}")
