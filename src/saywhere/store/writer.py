"""Rows into a store, one at a time."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.store.index import INDEX, Index, ShardEntry, new_index, read_index, write_index
from saywhere.store.shard import Array, Shard, packed, shard_chunks

SHARD_BYTES = 256 << 20
# Short rows take more room in memory than in the file.
_SHARD_ROWS = 1 << 16
_OURS = re.compile(r"\.?\d{5}-[0-9a-f]{12}\.safetensors(\..*\.part)?")


class StoreWriter:
    """Writes a store, shard by shard; no more than one shard is held in memory.

        with StoreWriter("photos", "photos", {"jpeg": "bytes", "boxes": "float32", "captions": "json"}, {}) as writer:
            for path in paths:
                if path.stem not in writer:
                    writer.add(path.stem, jpeg=path.read_bytes(), boxes=boxes[path.stem], captions=told[path.stem])

    A writer on a folder of the same kind, fields and `about` goes on with it. A block that ends with an error keeps the
    rows so far; one that is killed keeps its whole shards. Where a run stopped does not show in the files of a store.
    One process at a time may write into a folder.
    """

    def __init__(
        self,
        folder: str | Path,
        kind: str,
        fields: Mapping[str, str],
        about: Mapping[str, Any],
        *,
        resume: bool = True,
        shard_bytes: int = SHARD_BYTES,
    ) -> None:
        """fields: name → a numpy type, "bytes" or "json". about: where the rows come from. resume: False to begin anew.

        shard_bytes: most of a shard, but for a row that is larger by itself.
        """
        self.folder, self._shard_bytes = Path(folder), shard_bytes
        self._index = new_index(kind, fields, about)
        if not resume:
            (self.folder / INDEX).unlink(missing_ok=True)
        if (self.folder / INDEX).exists():
            self._go_on(read_index(self.folder))
        self._sealed, self._last = list(self._index.shards[:-1]), list(self._index.shards[-1:])
        self._rows: list[tuple[str, dict[str, Array | None]]] = []
        self._bytes = 0
        # The last shard may have room left: its rows are read again when the first one is added.
        self._last_is_read = not self._last
        self._changed = False
        self._remove_strays()
        self._keys = {key for entry in self._index.shards for key in self._shard(entry).keys}

    def __contains__(self, key: object) -> bool:
        """Whether there is a row with this key."""
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush(complete=kind is None)

    def add(self, key: str, **values: Any) -> None:
        """One row; a field that is not named has no value. Numbers are converted, and must fit."""
        if key in self._keys:
            raise InvalidValue(f"row {key!r}", "is in the store already")
        if unknown := values.keys() - self._index.fields.keys():
            raise InvalidValue(f"row {key!r}", f"has {', '.join(sorted(unknown))}, which the store has not")
        row = {
            name: packed(values.get(name), kind, f"{name} of row {key!r}") for name, kind in self._index.fields.items()
        }
        if not self._last_is_read:
            self._read_last()
        self._append(key, row)
        self._keys.add(key)

    def flush(self, *, complete: bool = False) -> None:
        """Write what was added. complete: and say that these are all; `Store` opens no other."""
        replaced: list[ShardEntry] = []
        if self._changed:
            replaced, self._last = self._last, [self._write()]
            self._changed = False
        index = msgspec.structs.replace(self._index, shards=(*self._sealed, *self._last), complete=complete)
        if index != self._index or not (self.folder / INDEX).exists():
            write_index(self.folder, index)
            self._index = index
        for entry in replaced:
            if entry not in index.shards:
                (self.folder / entry.file).unlink(missing_ok=True)

    def _go_on(self, earlier: Index) -> None:
        was, now = ({"kind": one.kind, "fields": one.fields, **one.about} for one in (earlier, self._index))
        other = [name for name in was | now if was.get(name) != now.get(name)]
        if other:
            reason = f"holds rows with another {' and another '.join(other)}"
            raise InvalidFile(self.folder, reason, "give a new folder, or delete this one")
        self._index = earlier

    def _append(self, key: str, row: dict[str, Array | None]) -> None:
        size = len(key) + sum(value.nbytes for value in row.values() if value is not None)
        if self._rows and (self._bytes + size > self._shard_bytes or len(self._rows) == _SHARD_ROWS):
            self.flush()
            self._sealed, self._last, self._rows, self._bytes = [*self._sealed, *self._last], [], [], 0
        self._rows.append((key, row))
        self._bytes += size
        self._changed = True

    def _read_last(self) -> None:
        self._last_is_read = True
        shard = self._shard(self._last[0])
        for number, key in enumerate(shard.keys):
            values = {name: shard.array(number, name) for name in self._index.fields}
            self._append(key, {name: None if value is None else value.copy() for name, value in values.items()})

    def _write(self) -> ShardEntry:
        rows = [row for _, row in self._rows]
        chunks = shard_chunks([key for key, _ in self._rows], rows, self._index.fields)
        digest, size = hashlib.sha256(), 0
        for chunk in chunks:
            digest.update(chunk)
            size += chunk.nbytes if isinstance(chunk, memoryview) else len(chunk)
        # Named by content: until the index names the new file, the one it replaces is still there.
        name = f"{len(self._sealed):05}-{digest.hexdigest()[:12]}.safetensors"
        with write_atomic(self.folder / name) as file:
            for chunk in chunks:
                file.write(chunk)
        return ShardEntry(name, len(rows), size, digest.hexdigest())

    def _shard(self, entry: ShardEntry) -> Shard:
        return Shard(self.folder / entry.file, self._index.fields, entry.rows, entry.bytes, entry.sha256)

    def _remove_strays(self) -> None:
        """Shards that a killed writer left and no index names."""
        known = {entry.file for entry in self._index.shards}
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            if _OURS.fullmatch(path.name) and path.name not in known:
                path.unlink()
