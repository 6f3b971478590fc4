"""The tables of a library in LanceDB, and what makes several of them change as one.

A row of `photos` is what counts: regions belong to a photo by its `id`, which is made of the photo's name and content,
and regions whose photo is not in `photos` do not exist for a reader. So a writer adds regions first, then the photos at
one stroke, then takes away what was replaced; killed in between, it leaves rows that nobody sees, and the next writer
removes them (`recover`). `said` and `sources` stand to each other in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from saywhere.index.places import StillMine, TablesPlace, working

PHOTOS, REGIONS, SAID, SOURCES = "photos", "regions", "said", "sources"
_BOX = pa.list_(pa.float32(), 4)
# How many ids one filter names.
_SOME = 2_000


def _schemas(size: int) -> dict[str, pa.Schema]:
    vector = pa.list_(pa.float16(), size)
    file = [("size", pa.int64()), ("mtime_ns", pa.int64()), ("digest", pa.string())]
    return {
        # A photo that cannot be read has an error and no vector.
        PHOTOS: pa.schema(
            [
                *(("id", pa.int64()), ("name", pa.string()), ("image_id", pa.string()), *file),
                *(("error", pa.string()), ("words", pa.list_(pa.string())), ("vector", vector)),
            ]
        ),
        # name: of a thing that was found; empty for a part of the photo that draws the eye.
        REGIONS: pa.schema(
            [("photo", pa.int64()), ("name", pa.string()), ("score", pa.float32()), ("box", _BOX), ("vector", vector)]
        ),
        # A piece of what somebody said. number: of the narrative in its file.
        SAID: pa.schema(
            [
                *(("source", pa.int64()), ("number", pa.int64()), ("image_id", pa.string()), ("who", pa.string())),
                *(("text", pa.string()), ("start_s", pa.float64()), ("end_s", pa.float64())),
                *(("box", _BOX), ("vector", vector)),
            ]
        ),
        # A file of narratives. done: how many of its records are in `said` or are bad.
        SOURCES: pa.schema(
            [("id", pa.int64()), ("path", pa.string()), *file, ("done", pa.int64()), ("bad", pa.int64())]
        ),
    }


class LibraryTables:
    """photos, regions, said, sources: tables of LanceDB, each as it was when it was opened."""

    def __init__(
        self, place: TablesPlace, size: int, *, create: bool = False, still_mine: StillMine = lambda: None
    ) -> None:
        """size: numbers of a vector. still_mine: is asked before every change, and raises to prevent it."""
        self.place, self.size, self.schemas, self._still_mine = place, size, _schemas(size), still_mine
        database = place.database
        with working(place):
            if create:
                self._tables = {
                    name: database.create_table(name, schema=schema, exist_ok=True)
                    for name, schema in self.schemas.items()
                }
            else:
                # Regions before photos: a photo that comes in between is not missed, it has no regions yet.
                self._tables = {name: database.open_table(name) for name in (REGIONS, SAID, PHOTOS, SOURCES)}

    def __getitem__(self, name: str) -> Any:
        return self._tables[name]

    def columns(self, name: str, columns: Sequence[str], where: str = "") -> pa.Table:
        """Some columns of all rows, or of those where an SQL condition holds."""
        query = self[name].search().select(list(columns))
        with working(self.place):
            return (query.where(where) if where else query).to_arrow()

    def add(self, name: str, rows: Iterable[dict[str, Any]]) -> None:
        table = pa.Table.from_pylist(list(rows), schema=self.schemas[name])
        if table.num_rows:
            self._still_mine()
            with working(self.place):
                self[name].add(table)

    def replace(self, name: str, key: str, rows: Iterable[dict[str, Any]]) -> None:
        """Rows in place of those with the same key, and new ones: all at one stroke."""
        table = pa.Table.from_pylist(list(rows), schema=self.schemas[name])
        if table.num_rows:
            merge = self[name].merge_insert(key).when_matched_update_all().when_not_matched_insert_all()
            self._still_mine()
            # The schema has checked how long vectors are; LanceDB would take a photo without one for a mistake.
            with working(self.place):
                merge.execute(table, on_bad_vectors="null")

    def delete(self, name: str, column: str, values: Collection[int]) -> None:
        """The rows whose number in a column is one of some."""
        ordered = sorted(values)
        for first in range(0, len(ordered), _SOME):
            self.delete_where(name, one_of(column, ordered[first : first + _SOME]))

    def delete_where(self, name: str, condition: str) -> None:
        """The rows where an SQL condition holds."""
        self._still_mine()
        with working(self.place):
            self[name].delete(condition)

    def recover(self) -> None:
        """Remove what a writer that was killed has left."""
        for rows, column, owners in ((REGIONS, "photo", PHOTOS), (SAID, "source", SOURCES)):
            known = self.columns(owners, ["id"])["id"].to_numpy()
            found = np.unique(self.columns(rows, [column])[column].to_numpy())
            self.delete(rows, column, np.setdiff1d(found, known).tolist())
        for source in self.columns(SOURCES, ["id", "done"]).to_pylist():
            self.delete_where(SAID, f"source = {source['id']} and number >= {source['done']}")


def one_of(column: str, values: Iterable[int]) -> str:
    """The SQL condition that a number is one of some."""
    return f"{column} in ({', '.join(str(int(value)) for value in values)})"
