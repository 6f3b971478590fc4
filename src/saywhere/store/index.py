"""index.json of a store: what its rows hold, and in which shards they lie."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from saywhere import limits
from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.store.shard import KEY, check_kind

INDEX = "index.json"
_FORMAT, _VERSION = "saywhere store", 1


class ShardEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A shard as it was written. sha256: of the whole file."""

    file: str
    rows: int
    bytes: int
    sha256: str


class Index(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """kind: what the rows are ("views", "questions", …). fields: name → a numpy type, "bytes" or "json".

    about: where the rows come from. complete: False while a writer is not done.
    """

    kind: str
    fields: dict[str, str]
    about: dict[str, Any]
    shards: tuple[ShardEntry, ...] = ()
    complete: bool = False
    format: str = _FORMAT
    version: int = _VERSION


def new_index(kind: str, fields: Mapping[str, str], about: Mapping[str, Any]) -> Index:
    """An index without rows; `about` as it will be read again, lists for tuples."""
    for name, field_kind in fields.items():
        if not name or "." in name or name == KEY:
            raise InvalidValue("field", f"cannot be called {name!r}")
        check_kind(field_kind)
    return Index(kind, dict(fields), msgspec.json.decode(msgspec.json.encode(dict(about))))


def write_index(folder: Path, index: Index) -> None:
    with write_atomic(folder / INDEX) as file:
        file.write(msgspec.json.format(msgspec.json.encode(index)))


def read_index(folder: Path) -> Index:
    """The index of a store; InvalidFile for a folder that is none, or one of another version."""
    path = folder / INDEX
    try:
        raw = limits.read_whole(path, "bytes of a file")
    except InvalidFile as error:
        raise InvalidFile(folder, f"is not a store: {INDEX} {error.reason}") from error
    try:
        head = msgspec.json.decode(raw, type=dict[str, Any])
        if head.get("format") != _FORMAT:
            raise InvalidFile(path, "is not the index of a store")
        if head.get("version") != _VERSION:
            raise InvalidFile(path, f"is of version {head.get('version')}, not {_VERSION}", "prepare the data anew")
        index = msgspec.convert(head, Index)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidFile(path, f"is not the index of a store: {error}") from error
    for entry in index.shards:
        limits.inside(folder, entry.file)
        if entry.rows < 0 or entry.bytes < 0:
            raise InvalidFile(path, f"{entry.file} cannot have {entry.rows} rows and {entry.bytes} bytes")
    for kind in index.fields.values():
        check_kind(kind)
    return index
