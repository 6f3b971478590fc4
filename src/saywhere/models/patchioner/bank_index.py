"""Approximate search in a memory bank that is too large to be read for every vector.

Beside the bank, in NAME.lance, LanceDB keeps its vectors ordered into cells, with one bit a number. Of the cells
nearest to a vector some thousand rows are taken for which those bits promise most; their exact vectors are then read
from the bank. What is found is therefore exact; what may be missed is measured by `python -m bench bank`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, require
from saywhere.core.types import Progress
from saywhere.models.patchioner.bank_file import Halves, Rows16

_ABOUT, _TABLE = "about.json", "rows"
_AT_ONCE = 16_384
_PER_CELL, _MOST_CELLS = 4_096, 1_024
"""Rows of a cell, about; and so many cells at most, because 256 rows of each are in memory while they are found."""
_PROBES = 32
"""Cells that are looked into."""


class _About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """sha256: of the bank. rows, size: of its vectors."""

    sha256: str
    rows: int
    size: int


def index_folder(bank: str | Path) -> Path:
    """Where the index of a bank is.

    >>> index_folder("memory.safetensors").name
    'memory.lance'
    """
    return Path(bank).with_suffix(".lance")


class BankIndex:
    """The index of a bank, open for searching. sha256: of the bank, which must be the one it was made of."""

    def __init__(self, folder: str | Path, sha256: str) -> None:
        lancedb = _lancedb()
        path = Path(folder) / _ABOUT
        try:
            about = msgspec.json.decode(path.read_bytes(), type=_About)
        except (OSError, msgspec.DecodeError) as error:
            raise InvalidFile(folder, f"is not the index of a memory bank: {error}", _HINT) from error
        if about.sha256 != sha256:
            raise InvalidFile(folder, "is the index of another memory bank", _HINT)
        self.rows, self.size = about.rows, about.size
        self._table = lancedb.connect(str(folder)).open_table(_TABLE)

    def nearest(self, vector: NDArray[np.float32], count: int) -> NDArray[np.int64]:
        """(k,) numbers of rows that are probably nearest, in order of their numbers; k ≤ count. vector: of length 1."""
        query = self._table.search(vector, vector_column_name="vector").distance_type("cosine").nprobes(_PROBES)
        found = query.select(["number", "_distance"]).limit(count).to_arrow()["number"].to_numpy()
        return np.sort(found)


def build_index(bank: str | Path, vectors: Rows16, sha256: str, progress: Progress | None = None) -> Path:
    """Make the index of a bank, whole or not at all. vectors: the bank's; they are read once, some at a time."""
    from lancedb.index import IvfFlat, IvfRq

    lancedb, folder = _lancedb(), index_folder(bank)
    rows, size = vectors.rows.shape
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        table = lancedb.connect(str(part)).create_table(_TABLE, data=_batches(vectors, progress))
        if rows >= 2 * _PER_CELL:
            # One bit a number is packed eight by eight; vectors of other lengths are compared as they are.
            kind = IvfFlat if size % 8 else IvfRq
            if progress is not None:
                progress("ordering vectors", 0, rows)
            cells = min(_MOST_CELLS, rows // _PER_CELL)
            table.create_index("vector", config=kind(distance_type="cosine", num_partitions=cells))
        with write_atomic(part / _ABOUT) as file:
            file.write(msgspec.json.encode(_About(sha256, rows, size)))
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def _batches(vectors: Rows16, progress: Progress | None) -> Any:
    import pyarrow as pa

    rows, size = vectors.rows.shape
    schema = pa.schema([("number", pa.int64()), ("vector", pa.list_(pa.float16(), size))])

    def some() -> Iterator[Any]:
        for first in range(0, rows, _AT_ONCE):
            block: Halves = np.array(vectors.rows[first : first + _AT_ONCE])
            vectors.let_go(first, first + len(block))
            numbers = np.arange(first, first + len(block))
            held = pa.FixedSizeListArray.from_arrays(pa.array(block.reshape(-1)), size)
            yield pa.record_batch([pa.array(numbers), held], schema=schema)
            if progress is not None:
                progress("copying vectors", first + len(block), rows)

    return pa.RecordBatchReader.from_batches(schema, some())


def _lancedb() -> Any:
    return require("lancedb", needed_for="approximate search in a memory bank", extra="search")


_HINT = "make it anew: saywhere build memory-index BANK"
