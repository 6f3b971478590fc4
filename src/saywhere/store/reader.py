"""Rows out of a store: by number, by key and by shard."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.provenance import sha256_of
from saywhere.store.digest import folder_fingerprint
from saywhere.store.index import INDEX, read_index
from saywhere.store.shard import Row, Shard

# A mapped file keeps a file descriptor, and many systems allow a process 1,024.
_MOST_OPEN = 256


def is_finished(folder: str | Path) -> bool:
    """Whether a folder holds a store that its writer is done with."""
    return (Path(folder) / INDEX).exists() and read_index(Path(folder)).complete


class Store:
    """What a `StoreWriter` wrote, read when it is asked for.

        photos = Store("photos")
        photos.by_key("000000000139")["jpeg"]
        for shard in photos.shards:         # picklable, so that each may go to another process
            for row in shard: ...

    folder; kind, fields, about: as they were given to the writer. shards: in order. Picklable.
    """

    def __init__(self, folder: str | Path, kind: str | None = None) -> None:
        """kind: refuse a store of any other."""
        self.folder = Path(folder)
        index = read_index(self.folder)
        if kind is not None and index.kind != kind:
            raise InvalidFile(folder, f"holds {index.kind}, not {kind}")
        if not index.complete:
            rows = sum(entry.rows for entry in index.shards)
            raise InvalidFile(folder, f"is not finished: {rows:,} rows so far", "run again what writes it: it goes on")
        self.kind, self.fields, self.about = index.kind, index.fields, index.about
        self.shards = tuple(
            Shard(self.folder / one.file, index.fields, one.rows, one.bytes, one.sha256) for one in index.shards
        )
        self._stops = list(accumulate(len(shard) for shard in self.shards))
        self._opened: deque[Shard] = deque()

    def __len__(self) -> int:
        return self._stops[-1] if self._stops else 0

    def __getitem__(self, number: int) -> Row:
        """A row by its number, in the order in which rows were added."""
        if not 0 <= number < len(self):
            raise IndexError(f"row {number} of {len(self)} in {self.folder}")
        place = bisect_right(self._stops, number)
        shard = self.shards[place]
        if not shard.is_open:
            self._opened.append(shard)
            if len(self._opened) > _MOST_OPEN:
                self._opened.popleft().close()
        return shard[number - self._stops[place] + len(shard)]

    def __iter__(self) -> Iterator[Row]:
        return (self[number] for number in range(len(self)))

    def __contains__(self, key: object) -> bool:
        return key in self.rows_by_key

    @cached_property
    def rows_by_key(self) -> dict[str, int]:
        """Each key's row number, in the order of the rows."""
        return {row.key: number for number, row in enumerate(self)}

    def by_key(self, key: str) -> Row:
        if key not in self.rows_by_key:
            raise InvalidValue(f"row {key!r}", f"is not among the {len(self):,} of {self.folder}")
        return self[self.rows_by_key[key]]

    def having(self, field: str) -> Iterator[Row]:
        """The rows that have a value in a field."""
        return (shard[int(number)] for shard in self.shards for number in np.flatnonzero(shard.has(field)))

    def flat(self, field: str) -> NDArray[Any]:
        """All rows' values of a field, one after another: one for each row where every row has one number."""
        return np.concatenate([np.empty(0, self.fields[field]), *(shard.flat(field) for shard in self.shards)])

    @property
    def files(self) -> list[str]:
        """The names of its files."""
        return [INDEX, *(shard.path.name for shard in self.shards)]

    @cached_property
    def fingerprint(self) -> str:
        """16 letters that tell data apart: of the index, and of sampled blocks of every shard as it is on the disk."""
        return folder_fingerprint(self.folder, self.files)

    def verify(self) -> None:
        """Read every shard whole; InvalidFile for one whose content is not what was written."""
        for shard in self.shards:
            try:
                found = sha256_of(shard.path)
            except OSError as error:
                raise InvalidFile(shard.path, f"cannot be read: {error.strerror or error}") from error
            if found != shard.sha256:
                raise InvalidFile(shard.path, "is not what was written: its SHA-256 differs", "prepare the data anew")
