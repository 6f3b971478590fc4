"""One shard: rows of named values in a safetensors file, written at once and read by memory map.

A field of n rows is two tensors: `name`, all its values one after another, flat; and `name.shape`, (n, dimensions)
int64, filled up with −1; a row that begins with −2 has no value. `key` and `key.shape` hold the rows' keys in the same
way. Bytes are uint8, JSON is its UTF-8.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName

KEY = "key"
BYTES, JSON = "bytes", "json"
Array = NDArray[Any]
Chunks = list[bytes | memoryview]
_CODES = {
    **{"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "int16": "I16"},
    **{"int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL"},
}
_FILL, _ABSENT = -1, -2
_HEADER = 8
_Decoded = TypeVar("_Decoded")


def check_kind(kind: str) -> None:
    """Refuse a kind of field that shards cannot hold."""
    if kind not in (BYTES, JSON) and kind not in _CODES:
        raise UnknownName("kind of field", kind, (*_CODES, BYTES, JSON))


def packed(value: Any, kind: str, what: str) -> Array | None:
    """A value as a shard holds it, a copy; None stays None. Numbers that `kind` cannot hold are refused."""
    if value is None:
        return None
    if kind == JSON:
        return np.frombuffer(msgspec.json.encode(value), np.uint8)
    if kind == BYTES:
        return np.frombuffer(bytes(value), np.uint8)
    given = np.asarray(value)
    if given.dtype.kind not in "biuf":
        raise InvalidValue(what, f"is of type {given.dtype}, not numbers")
    with np.errstate(all="ignore"):
        array = given.astype(kind, order="C")
    fits = np.isfinite(array) == np.isfinite(given) if array.dtype.kind == "f" else array == given
    if given.dtype != array.dtype and not np.all(fits):
        raise InvalidValue(what, f"holds numbers beyond what {kind} can")
    return array


def shard_chunks(keys: Sequence[str], rows: Sequence[Mapping[str, Array | None]], fields: Mapping[str, str]) -> Chunks:
    """The bytes of a shard's file, piece by piece, so that no second copy of the rows is made."""
    columns: dict[str, list[Array | None]] = {
        KEY: [np.frombuffer(key.encode("utf-8", "surrogatepass"), np.uint8) for key in keys]
    }
    columns |= {name: [row[name] for row in rows] for name in fields}
    tensors: list[tuple[str, str, tuple[int, ...], list[Array]]] = []
    for name, values in columns.items():
        there = [value for value in values if value is not None]
        dtype = np.dtype(_stored(fields, name))
        shapes = _shapes(values)
        tensors.append((f"{name}.shape", "I64", shapes.shape, [shapes]))
        tensors.append((name, _CODES[dtype.name], (sum(value.size for value in there),), there))
    # Wide numbers first: every array is then aligned, as the format wants it.
    tensors.sort(key=lambda one: -_itemsize(one[1]))
    header: dict[str, Any] = {}
    stop = 0
    for name, code, shape, arrays in tensors:
        start, stop = stop, stop + sum(array.nbytes for array in arrays)
        header[name] = {"dtype": code, "shape": shape, "data_offsets": (start, stop)}
    text = msgspec.json.encode(header)
    text += b" " * (-len(text) % _HEADER)
    return [len(text).to_bytes(_HEADER, "little"), text, *(a.data for _, _, _, some in tensors for a in some if a.size)]


def _stored(fields: Mapping[str, str], name: str) -> str:
    """The numpy type in which a field's values lie in the file."""
    kind = fields.get(name, BYTES)
    return "uint8" if kind in (BYTES, JSON) else kind


def _itemsize(code: str) -> int:
    return next(np.dtype(name).itemsize for name, known in _CODES.items() if known == code)


def _shapes(values: Sequence[Array | None]) -> NDArray[np.int64]:
    most = max((value.ndim for value in values if value is not None), default=1)
    shapes = np.full((len(values), max(1, most)), _FILL, np.int64)
    for row, value in zip(shapes, values, strict=True):
        if value is None:
            row[0] = _ABSENT
        else:
            row[: value.ndim] = value.shape
    return shapes


class Column:
    """A field of a mapped shard. values: flat. starts: (n + 1,) where each row's begin. has: (n,) which have any."""

    __slots__ = ("_shapes", "has", "starts", "values")

    def __init__(self, values: Array, shapes: NDArray[np.int64]) -> None:
        sizes = np.where(shapes == _FILL, 1, shapes).prod(axis=1)
        self.has: NDArray[np.bool_] = shapes[:, 0] != _ABSENT
        sizes[~self.has] = 0
        if (shapes < _ABSENT).any() or sizes.sum() != len(values):
            raise ValueError("values and shapes do not belong together")
        self.values, self._shapes = values, shapes
        self.starts = np.concatenate([[0], np.cumsum(sizes)])

    def __getitem__(self, row: int) -> Array | None:
        shape = self._shapes[row].tolist()
        if shape[0] == _ABSENT:
            return None
        dimensions = shape.index(_FILL) if _FILL in shape else len(shape)
        return self.values[self.starts[row] : self.starts[row + 1]].reshape(shape[:dimensions])


class Row(Mapping[str, Any]):
    """One row by its fields' names; a value is read when it is asked for. Arrays are views of the file, read-only."""

    __slots__ = ("_number", "_shard")

    def __init__(self, shard: Shard, number: int) -> None:
        self._shard, self._number = shard, number

    def __getitem__(self, field: str) -> Any:
        return self._shard.value(self._number, field)

    def __iter__(self) -> Iterator[str]:
        return iter(self._shard.fields)

    def __len__(self) -> int:
        return len(self._shard.fields)

    @property
    def key(self) -> str:
        return self._shard.key(self._number)

    def decoded(self, field: str, kind: type[_Decoded]) -> _Decoded:
        """A JSON field as a value of this type."""
        return msgspec.json.decode(self._shard.raw(self._number, field), type=kind)


class Shard:
    """The rows of one file. Picklable: the file is mapped when it is first read, once in every process.

    fields: as in the index. rows, bytes: how many rows the file should hold, and its size.
    """

    def __init__(self, path: Path, fields: Mapping[str, str], rows: int, size: int, sha256: str) -> None:
        self.path, self.fields, self.sha256 = path, dict(fields), sha256
        self._rows, self._size = rows, size
        self._columns: dict[str, Column] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_columns": None}

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, number: int) -> Row:
        if not 0 <= number < self._rows:
            raise IndexError(f"row {number} of {self._rows}")
        return Row(self, number)

    def __iter__(self) -> Iterator[Row]:
        return (Row(self, number) for number in range(self._rows))

    @property
    def keys(self) -> list[str]:
        return [self.key(number) for number in range(self._rows)]

    def key(self, number: int) -> str:
        try:
            return self.raw(number, KEY).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise self._damaged(number, KEY, error) from error

    def value(self, number: int, field: str) -> Any:
        """An array, bytes or what JSON gives, by the field's kind; None where the row has none."""
        if field not in self.fields:
            raise UnknownName("field", field, self.fields)
        array, kind = self.array(number, field), self.fields[field]
        if array is None or kind not in (BYTES, JSON):
            return array
        try:
            return array.tobytes() if kind == BYTES else msgspec.json.decode(array.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._damaged(number, field, error) from error

    def _damaged(self, number: int, field: str, error: Exception) -> InvalidFile:
        return InvalidFile(self.path, f"row {number} has a damaged {field!r}: {error}", "copy or prepare it anew")

    def array(self, number: int, field: str) -> Array | None:
        """A value as it lies in the file; bytes and JSON as uint8."""
        return self._column(field)[number]

    def raw(self, number: int, field: str) -> bytes:
        """The bytes of a value; b"" where the row has none."""
        array = self.array(number, field)
        return b"" if array is None else array.tobytes()

    def has(self, field: str) -> NDArray[np.bool_]:
        """(rows,) which rows have a value."""
        return self._column(field).has

    def flat(self, field: str) -> Array:
        """All rows' values of a field, one after another."""
        return self._column(field).values

    @property
    def is_open(self) -> bool:
        return self._columns is not None

    def close(self) -> None:
        """Let go of the file. Arrays that were read stay as they are; reading on maps it again."""
        self._columns = None

    def _column(self, field: str) -> Column:
        if self._columns is None:
            self._columns = self._mapped()
        return self._columns[field]

    def _mapped(self) -> dict[str, Column]:
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, 2)
                if size != self._size:
                    raise InvalidFile(self.path, f"has {size:,} bytes, not {self._size:,}: truncated or foreign")
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise InvalidFile(self.path, f"cannot be read: {error.strerror or error}", "is it missing?") from error
        try:
            return _columns(content, self.fields, self._rows)
        except (ValueError, KeyError, msgspec.DecodeError) as error:
            raise InvalidFile(self.path, f"is not a shard of this store: {error}") from error


class _Tensor(msgspec.Struct):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def _columns(content: mmap.mmap, fields: Mapping[str, str], rows: int) -> dict[str, Column]:
    first = _HEADER + int.from_bytes(content[:_HEADER], "little")
    header = msgspec.json.decode(content[_HEADER:first], type=dict[str, _Tensor])

    def mapped(name: str, dtype: str) -> Array:
        tensor = header[name]
        start, stop = tensor.data_offsets
        if tensor.dtype != _CODES[dtype]:
            raise ValueError(f"{name!r} is {tensor.dtype}, not {_CODES[dtype]}")
        whole = np.frombuffer(content, np.uint8)[first + start : first + stop]
        return whole.view(dtype).reshape(tensor.shape)

    columns = {
        name: Column(mapped(name, _stored(fields, name)), mapped(f"{name}.shape", "int64")) for name in (KEY, *fields)
    }
    wrong = next((name for name, column in columns.items() if len(column.starts) != rows + 1), None)
    if wrong is not None:
        raise ValueError(f"{wrong!r} has {len(columns[wrong].starts) - 1} rows, not {rows}")
    return columns
