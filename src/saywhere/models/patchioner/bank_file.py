"""A memory bank on disk: one safetensors file, so that vectors and sentences cannot be parted.

    vectors   F16 (n, d)   rows of length 1; or I8 (n, d), in a byte a number, to be multiplied by
    steps     F32 (n,)     which only such a file has
    text      U8  (bytes)  all sentences in UTF-8, one after the other
    ends      I64 (n,)     where each sentence ends in `text`
    queries   I8 (n, d)    if there are any: the sentences read as texts that are to find photos, in bytes, too
    query_steps   F32 (n,)

Its metadata say what it is, which text encoder made the vectors and from what, and the SHA-256 of all together.
A small bank may be in bytes, which takes half the room; a large one is mapped, and read only where it is needed.
"""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile

Halves = NDArray[np.float16]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

KIND, _FORMAT = "memory-bank", "1"
_STEPS = ("steps", "query_steps")
_LARGEST_HEADER = 2**24
_HASHED_AT_ONCE = 2**22
# Pages of the file beyond this many bytes are let go once they were used: a bank may be larger than the memory.
_RESIDENT_BYTES = 128 * 2**20


class _Tensor(msgspec.Struct):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


class _Metadata(msgspec.Struct):
    kind: str
    format: str
    encoder: str
    source: str
    sha256: str


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    about: _Metadata = msgspec.field(name="__metadata__")
    vectors: _Tensor
    text: _Tensor
    ends: _Tensor
    steps: _Tensor | None = None
    queries: _Tensor | None = None
    query_steps: _Tensor | None = None

    @property
    def layout(self) -> list[tuple[str, _Tensor, str, int, int]]:
        """Name, tensor, type, bytes of a number and dimensions, as they follow each other."""
        found = [("vectors", self.vectors, "F16" if self.steps is None else "I8", 2 if self.steps is None else 1, 2)]
        found += [] if self.steps is None else [("steps", self.steps, "F32", 4, 1)]
        found += [("text", self.text, "U8", 1, 1), ("ends", self.ends, "I64", 8, 1)]
        if self.queries is not None and self.query_steps is not None:
            found += [("queries", self.queries, "I8", 1, 2), ("query_steps", self.query_steps, "F32", 4, 1)]
        return found


class Sentences(Sequence[str]):
    """The sentences of a bank, decoded when asked for. text: UTF-8. ends: where each ends in it."""

    def __init__(self, text: Bytes, ends: Ints) -> None:
        self.text, self.ends = text, ends

    @classmethod
    def packed(cls, sentences: Sequence[str]) -> Sentences:
        parts = [sentence.encode() for sentence in sentences]
        ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        return cls(np.frombuffer(b"".join(parts), dtype=np.uint8), ends)

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        start = int(self.ends[place - 1]) if place else 0
        return self.text[start : int(self.ends[place])].tobytes().decode()


class UnpackedRows:
    """Rows that were in a byte a number, as float16 in memory. rows: (n, d)."""

    def __init__(self, packed: NDArray[np.int8], steps: NDArray[np.float32]) -> None:
        rows = packed.astype(np.float32) * steps[:, None]
        self.rows: Halves = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)

    def let_go(self, first: int, stop: int) -> None:
        """They stay where they are."""


class Mapping16:
    """Rows of float16 that lie in a mapped file.

    rows: (n, d). `let_go` gives back pages that were used, so that the whole file never is in memory at once.
    """

    def __init__(self, mapped: mmap.mmap, offset: int, shape: tuple[int, int]) -> None:
        self._mapped, self._offset, self._row_bytes = mapped, offset, 2 * shape[1]
        self.rows: Halves = np.frombuffer(mapped, np.float16, shape[0] * shape[1], offset).reshape(shape)

    def let_go(self, first: int, stop: int) -> None:
        """Rows first … stop are not needed now. The first 128 MB of the file stay where they are."""
        start = max(_RESIDENT_BYTES, self._offset + first * self._row_bytes)
        start -= start % mmap.PAGESIZE
        end = self._offset + stop * self._row_bytes
        end -= end % mmap.PAGESIZE
        if end > start and hasattr(mmap, "MADV_DONTNEED"):
            self._mapped.madvise(mmap.MADV_DONTNEED, start, end - start)


Rows16 = Mapping16 | UnpackedRows


@dataclass(frozen=True, slots=True, eq=False)
class BankFile:
    """What a file holds, mapped. queries: see `MemoryBank.queries`. encoder: fingerprint of the text encoder. source:
    where the sentences came from. sha256: of all that it holds."""

    vectors: Rows16
    queries: UnpackedRows | None
    sentences: Sentences
    encoder: dict[str, Any]
    source: dict[str, Any]
    sha256: str


def write_bank(
    path: str | Path,
    vectors: Halves,
    sentences: Sentences,
    encoder: Mapping[str, Any],
    source: Mapping[str, Any],
    *,
    queries: Halves | None = None,
    int8: bool = False,
) -> None:
    """Write a bank, whole or not at all. int8: vectors in a byte a number, as queries always are."""
    parts: list[tuple[str, str, NDArray[Any]]] = [
        *(_packed(vectors, "vectors", "steps") if int8 else [("vectors", "F16", np.ascontiguousarray(vectors))]),
        ("text", "U8", sentences.text),
        ("ends", "I64", sentences.ends),
        *([] if queries is None else _packed(queries, "queries", "query_steps")),
    ]
    digest = hashlib.sha256()
    for _, _, array in parts:
        digest.update(array.data if array.size else b"")
    about = {"kind": KIND, "format": _FORMAT, "encoder": json.dumps(encoder), "source": json.dumps(source)}
    header: dict[str, object] = {"__metadata__": about | {"sha256": digest.hexdigest()}}
    at = 0
    for name, dtype, array in parts:
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with write_atomic(path) as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for _, _, array in parts:
            file.write(array.data if array.size else b"")


def _packed(vectors: Halves, name: str, steps_name: str) -> list[tuple[str, str, NDArray[Any]]]:
    rows = vectors.astype(np.float32)
    steps = np.maximum(np.abs(rows).max(axis=1), 1e-12) / np.float32(127)
    return [(name, "I8", np.rint(rows / steps[:, None]).astype(np.int8)), (steps_name, "F32", steps)]


def open_bank(path: str | Path, *, verify: bool) -> BankFile:
    """Map a bank. verify: read it once to see that vectors and sentences are those that were written together."""
    try:
        with Path(path).open("rb") as file:
            header, start = _header(path, file)
            size = file.seek(0, 2)
            shape = _checked_layout(path, header, size - start)
            if verify:
                _check_digest(path, file, start, header.about.sha256)
            # A private mapping: torch wants memory that could be written, and what is written stays out of the file.
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except OSError as error:
        raise InvalidFile(path, f"cannot be opened: {error.strerror or error}") from error
    text_at, ends_at = start + header.text.data_offsets[0], start + header.ends.data_offsets[0]
    text = np.frombuffer(mapped, np.uint8, header.text.shape[0], text_at)
    # Copied: it may lie at an odd place, and is small.
    ends = np.frombuffer(mapped, np.uint8, 8 * shape[0], ends_at).copy().view(np.int64)
    if ends[-1] != len(text) or (np.diff(ends, prepend=0) < 1).any():
        raise InvalidFile(path, "the ends of its sentences do not fit its text")
    vectors: Rows16
    if header.steps is None:
        vectors = Mapping16(mapped, start + header.vectors.data_offsets[0], shape)
    else:
        vectors = _unpacked(path, mapped, shape, start, header.vectors, header.steps)
    queries = None
    if header.queries is not None and header.query_steps is not None:
        queries = _unpacked(path, mapped, shape, start, header.queries, header.query_steps)
    encoder, source = (_object(path, value) for value in (header.about.encoder, header.about.source))
    return BankFile(vectors, queries, Sentences(text, ends), encoder, source, header.about.sha256)


def _unpacked(
    path: str | Path, mapped: mmap.mmap, shape: tuple[int, int], start: int, rows: _Tensor, steps: _Tensor
) -> UnpackedRows:
    packed = np.frombuffer(mapped, np.int8, shape[0] * shape[1], start + rows.data_offsets[0]).reshape(shape)
    # Copied: it may lie at an odd place.
    copied = np.frombuffer(mapped, np.uint8, 4 * shape[0], start + steps.data_offsets[0]).copy()
    unpacked = UnpackedRows(packed, copied.view(np.float32))
    if not np.isfinite(unpacked.rows).all():
        raise InvalidFile(path, "has vectors without a length")
    return unpacked


def _header(path: str | Path, file: BinaryIO) -> tuple[_Header, int]:
    """The header, and where the data begin."""
    length = int.from_bytes(file.read(8), "little")
    encoded = file.read(length) if 0 < length <= _LARGEST_HEADER else b""
    try:
        header = msgspec.json.decode(encoded, type=_Header)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidFile(path, f"is not a memory bank: {error}", "make one with: saywhere build memory") from error
    if (header.about.kind, header.about.format) != (KIND, _FORMAT):
        found = f"{header.about.kind!r} of format {header.about.format!r}"
        raise InvalidFile(path, f"holds {found}; this reads {KIND!r} of format {_FORMAT!r}")
    return header, 8 + length


def _checked_layout(path: str | Path, header: _Header, size: int) -> tuple[int, int]:
    """(n, d), once all three tensors are of their kinds and fill the file."""
    at, shapes = 0, []
    for name, tensor, dtype, bytes_each, dimensions in header.layout:
        wanted = (at, at + bytes_each * int(np.prod(tensor.shape, dtype=object)))
        if tensor.dtype != dtype or len(tensor.shape) != dimensions or tensor.data_offsets != wanted:
            raise InvalidFile(path, f"its tensor {name!r} is not the {dtype} of a memory bank")
        at = wanted[1]
        shapes.append(tensor.shape)
    if at != size:
        raise InvalidFile(path, f"has {size:,} bytes of data, not {at:,}", "was it cut off?")
    (count, width), (ends,) = shapes[0], header.ends.shape
    wide = {name: tensor.shape for name, tensor, _, _, dimensions in header.layout if dimensions == 2}
    long = {name: tensor.shape for name, tensor, *_ in header.layout if name in _STEPS}
    if count < 1 or width < 1 or ends != count or any(one != [count, width] for one in wide.values()):
        raise InvalidFile(path, f"has {count} vectors of {width} numbers and {ends} sentences")
    if any(one != [count] for one in long.values()):
        raise InvalidFile(path, f"has {count} vectors, but steps for {', '.join(map(str, long.values()))}")
    return count, width


def _check_digest(path: str | Path, file: BinaryIO, start: int, sha256: str) -> None:
    digest = hashlib.sha256()
    file.seek(start)
    while part := file.read(_HASHED_AT_ONCE):
        digest.update(part)
    if digest.hexdigest() != sha256:
        raise InvalidFile(path, "is not as it was written: its SHA-256 differs", "make or fetch it again")


def _object(path: str | Path, text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InvalidFile(path, f"its metadata are damaged: {error}") from error
