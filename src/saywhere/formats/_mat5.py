"""One variable of a MATLAB file (level 5, what MATLAB saves as -v6 and -v7), with memory bounded by the file's size.

Read here rather than by scipy.io.loadmat, because that believes the sizes a file claims before it looks for the data: a
few wrong bytes make it ask for many gigabytes. Numbers, text, cells and structs are read; sparse, complex, object and
function variables are refused.

The file is a header of 128 bytes and then elements: kind and size (4 bytes each) and content, filled up to 8 bytes; or,
if it takes 4 bytes or fewer, size and kind (2 bytes each) and content. An array is an element made of elements: flags,
dimensions, name, and then its numbers, or its cells, or the names of its fields and their values.
"""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass

import numpy as np

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Floats

_HEADER_BYTES = 128
MAX_UNPACKED_BYTES = 2**28
_MAX_DEPTH = 16
_ORDERS = {b"IM": "<", b"MI": ">"}
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_ARRAY, _PACKED = 14, 15
_ENCODINGS = {1: "utf-8", 2: "utf-8", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
_CELL_CLASS, _STRUCT_CLASS, _TEXT_CLASS = 1, 2, 4
_NUMBER_CLASSES = range(6, 16)
_COMPLEX_FLAG = 0x800


@dataclass(frozen=True, slots=True)
class Cells:
    """A cell array, column by column."""

    items: list[Value]


@dataclass(frozen=True, slots=True)
class Structs:
    """A struct array, column by column; each item maps the names of the fields to their values."""

    items: list[dict[str, Value]]


Value = Floats | str | Cells | Structs


def read_variable(content: bytes, name: str, max_unpacked_bytes: int = MAX_UNPACKED_BYTES) -> Value:
    """The variable of this name. InvalidValue if the file is damaged, of another kind, or does not have it.

    max_unpacked_bytes: how large a packed variable may become.
    """
    order = _ORDERS.get(content[126:_HEADER_BYTES])
    if order is None:
        raise InvalidValue("the file", "is not a MATLAB file of level 5")
    if struct.unpack(f"{order}H", content[124:126])[0] != 0x100:
        raise InvalidValue("the file", "is of another version than MATLAB's 5 to 7; save it again with the option -v7")
    elements = _Elements(memoryview(content)[_HEADER_BYTES:], order)
    while elements.more:
        kind, body = elements.next()
        if kind == _PACKED:
            kind, body = _Elements(_unpacked(body, max_unpacked_bytes), order).next()
        if kind == _ARRAY and body:
            parts = _Elements(body, order)
            head = _read_head(parts)
            if head.name == name:
                return _read_array(head, parts, depth=0)
    raise InvalidValue("the file", f"holds no variable `{name}`")


class _Elements:
    """Goes through elements that lie one after the other."""

    def __init__(self, data: memoryview, order: str) -> None:
        self.data, self.order, self._at = data, order, 0

    @property
    def more(self) -> bool:
        return self._at < len(self.data)

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return max(0, len(self.data) - self._at)

    def next(self) -> tuple[int, memoryview]:
        """Kind and content of the next element."""
        if self.left < 8:
            raise InvalidValue("the file", "ends inside an element")
        kind, size = struct.unpack_from(f"{self.order}II", self.data, self._at)
        start, after = self._at + 8, self._at + 8 + size + (0 if kind == _PACKED else -size % 8)
        if kind >> 16:
            kind, size, start, after = kind & 0xFFFF, kind >> 16, self._at + 4, self._at + 8
        if start + size > min(after, len(self.data)):
            raise InvalidValue("the file", "ends inside an element")
        self._at = after
        return kind, self.data[start : start + size]

    def numbers(self) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
        """The next element as numbers."""
        kind, body = self.next()
        dtype = np.dtype(self.order + _NUMBERS.get(kind, "V0"))
        if not dtype.itemsize or len(body) % dtype.itemsize:
            raise InvalidValue("an array", f"has content of the unknown kind {kind} or of a broken size")
        return np.frombuffer(body, dtype)


@dataclass(frozen=True, slots=True)
class _Head:
    kind: int
    is_complex: bool
    shape: tuple[int, ...]
    name: str


def _read_head(parts: _Elements) -> _Head:
    flags, shape = parts.numbers(), parts.numbers()
    _, name = parts.next()
    whole = flags.dtype.kind in "iu" and shape.dtype.kind in "iu"
    if not whole or len(flags) != 2 or len(shape) < 2 or any(side < 0 for side in shape.tolist()):
        raise InvalidValue("an array", "has no valid flags or dimensions")
    word = int(flags.tolist()[0])
    return _Head(word & 0xFF, bool(word & _COMPLEX_FLAG), tuple(shape.tolist()), bytes(name).decode("latin-1"))


def _read_array(head: _Head, parts: _Elements, depth: int) -> Value:
    count = math.prod(head.shape)
    if depth > _MAX_DEPTH:
        raise InvalidValue("an array", "is nested too deeply")
    if head.kind == _CELL_CLASS:
        return Cells([_read_inner(parts, depth) for _ in range(count)])
    if head.kind == _STRUCT_CLASS:
        names = _read_field_names(parts)
        if count * 8 > parts.left:  # a field takes 8 bytes at least, and without fields there is nothing to read
            raise InvalidValue("a struct", f"claims {count} items, more than the file has")
        return Structs([{name: _read_inner(parts, depth) for name in names} for _ in range(count)])
    if head.kind == _TEXT_CLASS:
        return _read_text(head, parts)
    if head.kind not in _NUMBER_CLASSES or head.is_complex:
        raise InvalidValue("an array", f"is of a class ({head.kind}) or of complex numbers, which are not read")
    numbers = parts.numbers()
    if len(numbers) != count:
        raise InvalidValue("an array", f"has {len(numbers)} numbers, not {count}")
    array: Floats = numbers.astype(np.float64).reshape(head.shape, order="F")
    return array


def _read_inner(parts: _Elements, depth: int) -> Value:
    kind, body = parts.next()
    if kind != _ARRAY:
        raise InvalidValue("a cell or field", f"is an element of kind {kind}, not an array")
    if not body:
        return np.empty((0, 0))
    inner = _Elements(body, parts.order)
    return _read_array(_read_head(inner), inner, depth + 1)


def _read_field_names(parts: _Elements) -> list[str]:
    width = parts.numbers().tolist()
    _, packed = parts.next()
    if len(width) != 1 or not isinstance(width[0], int) or not 0 < width[0] <= 64 or len(packed) % width[0]:
        raise InvalidValue("a struct", "has no valid field names")
    text = bytes(packed)
    return [text[at : at + width[0]].split(b"\0")[0].decode("latin-1") for at in range(0, len(text), width[0])]


def _read_text(head: _Head, parts: _Elements) -> str:
    kind, body = parts.next()
    encoding = _ENCODINGS.get(kind)
    if encoding is None or head.shape[0] > 1:
        raise InvalidValue("text", f"is of the unknown kind {kind} or of several rows")
    suffix = "" if encoding == "utf-8" else "-le" if parts.order == "<" else "-be"
    try:
        return bytes(body).decode(encoding + suffix)
    except UnicodeDecodeError as error:
        raise InvalidValue("text", f"is not {encoding}") from error


def _unpacked(body: memoryview, max_bytes: int) -> memoryview:
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(body, max_bytes)
    except zlib.error as error:
        raise InvalidValue("the file", f"is damaged: {error}") from error
    if unpacker.unconsumed_tail:
        raise InvalidValue("the file", f"unpacks to more than {max_bytes / 2**20:g} MiB")
    return memoryview(content)
