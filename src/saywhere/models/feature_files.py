"""Where features are kept: one array or several under an image's id, in a folder, an h5, an lmdb or a tsv file."""

from __future__ import annotations

import base64
import binascii
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from saywhere import limits
from saywhere.core.errors import InvalidFile, UnknownName
from saywhere.models.h5_file import H5File
from saywhere.models.lmdb_file import LmdbFile
from saywhere.store.arrays import FEATURES, NPY, ZIP, npy_array, npz_arrays

Record = Mapping[str, NDArray[np.generic]]

_LZ4 = b"\x04\x22\x4d\x18"
_RAW_HEADER = 8
# Columns of the two tsv layouts there are: the detector's own, and LXMERT's with classes and attributes.
_TSV_COLUMNS = {
    6: ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features"),
    10: (
        *("img_id", "img_h", "img_w", "objects_id", "objects_conf", "attrs_id", "attrs_conf"),
        *("num_boxes", "boxes", "features"),
    ),
}
_H5_STACKS = {"features": ("image_features", "features"), "boxes": ("image_bb", "boxes")}
_FLAT = "_features"
_H5_IDS = ("image_ids", "image_id", "ids")
_KINDS_READ = "biufSU"


class Records(ABC):
    """Arrays by image id. Files are opened when first needed, once in every process that reads them."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._handle: Any = None
        self._process = -1

    @property
    def handle(self) -> Any:
        if self._process != os.getpid():
            self._handle, self._process = self._open(), os.getpid()
        return self._handle

    def close(self) -> None:
        if self._handle is not None and self._process == os.getpid() and hasattr(self._handle, "close"):
            self._handle.close()
        self._handle, self._process = None, -1

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_handle": None, "_process": -1}

    def missing(self, image_id: str) -> InvalidFile:
        return InvalidFile(self.path, f"holds no image {image_id!r}")

    @abstractmethod
    def _open(self) -> Any: ...

    @abstractmethod
    def ids(self) -> Iterator[str]: ...

    @abstractmethod
    def __contains__(self, image_id: str) -> bool: ...

    @abstractmethod
    def read(self, image_id: str) -> Record: ...


class FolderRecords(Records):
    """A folder with one id.npz or id.npy for each image."""

    def _open(self) -> None:
        return None

    def ids(self) -> Iterator[str]:
        return (file.stem for file in sorted(self.path.iterdir()) if file.suffix in (".npz", ".npy"))

    def _file(self, image_id: str) -> Path | None:
        files = [self.path / f"{image_id}{suffix}" for suffix in (".npz", ".npy")]
        inside = [file for file in files if file.is_file() and file.resolve().is_relative_to(self.path.resolve())]
        return inside[0] if inside else None

    def __contains__(self, image_id: str) -> bool:
        return self._file(image_id) is not None

    def read(self, image_id: str) -> Record:
        file = self._file(image_id)
        if file is None:
            raise self.missing(image_id)
        return arrays_in(limits.read_whole(file, FEATURES), file)


class H5Records(Records):
    """HDF5 in one of three layouts: a group or data set for each id, `id_features` and `id_boxes`, or stacks with ids.

    A stack of ids is named `image_ids`, the others `image_features` and `image_bb`. A file that keeps numbers in other
    files, or links to them, is refused: it would read whatever is on this computer.
    """

    def _open(self) -> H5File:
        return H5File(self.path)

    @cached_property
    def _index(self) -> dict[str, int] | None:
        """Place of each id in stacked data sets, if this file has those."""
        name = next((name for name in _H5_IDS if name in self.handle), None)
        return None if name is None else {one: row for row, one in enumerate(self.handle.texts(name))}

    @cached_property
    def _flat(self) -> dict[str, list[str]]:
        """Names of the data sets of each id in the layout `id_features`; listed once, for a file may hold many."""
        names = self.handle.names()
        parts: dict[str, list[str]] = {name.removesuffix(_FLAT): [] for name in names if name.endswith(_FLAT)}
        for name in names:
            image_id = name.rpartition("_")[0]
            # What follows the id may have underscores of its own: id_image_w.
            while image_id and image_id not in parts:
                image_id = image_id.rpartition("_")[0]
            if image_id:
                parts[image_id].append(name)
        return parts

    def ids(self) -> Iterator[str]:
        if self._index is not None:
            return iter(self._index)
        return iter(sorted(self._flat) or self.handle.names())

    def __contains__(self, image_id: str) -> bool:
        known = self.handle if self._index is None else self._index
        return image_id in known or f"{image_id}{_FLAT}" in self.handle

    def read(self, image_id: str) -> Record:
        file, index = self.handle, self._index
        if index is not None:
            if image_id not in index:
                raise self.missing(image_id)
            stacks = {kind: next((n for n in stack if n in file), None) for kind, stack in _H5_STACKS.items()}
            return {kind: file.row(name, index[image_id]) for kind, name in stacks.items() if name}
        if parts := self._flat.get(image_id):
            return {name.removeprefix(f"{image_id}_"): file.array(name) for name in parts}
        if image_id not in file:
            raise self.missing(image_id)
        if file.is_group(image_id):
            return {name: file.array(f"{image_id}/{name}") for name in file.names(image_id)}
        return {"arr_0": file.array(image_id)}


class LmdbRecords(Records):
    """LMDB with an id for each key, and as value npz, npy, msgpack, or raw float32 after two lengths."""

    def _open(self) -> LmdbFile:
        return LmdbFile(self.path)

    def ids(self) -> Iterator[str]:
        return (key.decode("utf-8", errors="replace") for key in self.handle)

    def __contains__(self, image_id: str) -> bool:
        return self.handle.get(image_id.encode()) is not None

    def read(self, image_id: str) -> Record:
        value = self.handle.get(image_id.encode())
        if value is None:
            raise self.missing(image_id)
        return arrays_in(value, f"{self.path}, image {image_id!r}")


class TsvRecords(Records):
    """The tab-separated files of bottom-up attention: base64 of float32 boxes and features, one image a line."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self._starts: dict[str, tuple[int, int]] | None = None

    def _open(self) -> BinaryIO:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise InvalidFile(self.path, f"cannot be opened: {error.strerror or error}") from error

    def _index(self) -> dict[str, tuple[int, int]]:
        """Line number and first byte of each image's line, found by one pass over the file."""
        if self._starts is None:
            self._starts = {}
            self.handle.seek(0)
            start = number = 0
            while line := self._line():
                number += 1
                if not line.isspace():
                    self._starts[line.split(b"\t", 1)[0].decode("utf-8", errors="replace")] = (number, start)
                start += len(line)
        return self._starts

    def _line(self) -> bytes:
        most = limits.MOST[FEATURES]
        line: bytes = self.handle.readline(most + 1)
        if len(line) > most:
            raise InvalidFile(self.path, f"has a line longer than {most:,} bytes")
        return line

    def ids(self) -> Iterator[str]:
        return iter(self._index())

    def __contains__(self, image_id: str) -> bool:
        return image_id in self._index()

    def read(self, image_id: str) -> Record:
        if image_id not in self._index():
            raise self.missing(image_id)
        number, start = self._index()[image_id]
        self.handle.seek(start)
        fields = self._line().rstrip(b"\r\n").split(b"\t")
        columns = _TSV_COLUMNS.get(len(fields))
        if columns is None:
            raise InvalidFile(self.path, f"line {number}: {len(fields)} columns, not 6 or 10")
        try:
            return _tsv_record(dict(zip(columns, fields, strict=True)))
        except (ValueError, binascii.Error) as error:
            raise InvalidFile(self.path, f"line {number}: {error}") from error


def _tsv_record(fields: Mapping[str, bytes]) -> Record:
    count = int(fields["num_boxes"])
    record: dict[str, NDArray[np.generic]] = {}
    for name in ("boxes", "features"):
        record[name] = np.frombuffer(base64.b64decode(fields[name], validate=True), dtype="<f4").reshape(count, -1)
    sides = ("image_w", "image_h", "img_w", "img_h")
    return record | {name: np.array(float(fields[name])) for name in sides if name in fields}


def arrays_in(content: bytes, where: object) -> Record:
    """The arrays in the bytes of an npz or npy file, of a msgpack map, or of raw float32 numbers.

    Raw: two little-endian uint32 (regions R, size F), then R · F features and R · 4 boxes. Pickles are refused: loading
    one runs whatever code is in it.
    """
    if content.startswith(ZIP):
        return npz_arrays(content, where)
    if content.startswith(NPY):
        return {"arr_0": npy_array(content, where)}
    if content[:1] == b"\x80" and content[1:2] and content[1] <= 5:
        raise InvalidFile(where, "is a pickle, which saywhere never opens", "write it anew as npz")
    if content.startswith(_LZ4):
        raise InvalidFile(where, "is compressed with lz4", "write it anew as npz")
    rows, size = np.frombuffer(content[:_RAW_HEADER], dtype="<u4").tolist() if len(content) >= _RAW_HEADER else (0, 0)
    if rows and size and len(content) == _RAW_HEADER + 4 * rows * (size + 4):
        numbers = np.frombuffer(content, dtype="<f4", offset=_RAW_HEADER)
        return {
            "features": numbers[: rows * size].reshape(rows, size),
            "boxes": numbers[rows * size :].reshape(rows, 4),
        }
    try:
        found = msgspec.msgpack.decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        reason = "is neither npz, npy, msgpack nor raw float32 with its two lengths"
        raise InvalidFile(where, reason, "pickles are not opened") from error
    if not isinstance(found, dict):
        raise InvalidFile(where, f"is a msgpack {type(found).__name__}, not a map of arrays")
    return {_text(name): _msgpack_array(value, where) for name, value in found.items()}


def _msgpack_array(value: object, where: object) -> NDArray[np.generic]:
    """An array as msgpack-numpy writes it, a list of numbers, or a number."""
    try:
        if isinstance(value, dict):
            parts = {_text(name): part for name, part in value.items()}
            kind = np.dtype(_text(parts["type"]))
            array = np.frombuffer(parts["data"], dtype=kind).reshape(parts["shape"])
        else:
            array = np.asarray(value)
    except (KeyError, TypeError, ValueError, OverflowError, SyntaxError) as error:
        raise InvalidFile(where, f"holds an array that cannot be read: {error}") from error
    if array.dtype.kind not in _KINDS_READ:
        raise InvalidFile(where, f"holds an array of {array.dtype}, not of numbers or texts")
    return array


def _text(value: object) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)


_KINDS: dict[str, type[Records]] = {
    ".h5": H5Records,
    ".hdf5": H5Records,
    ".lmdb": LmdbRecords,
    ".mdb": LmdbRecords,
    ".tsv": TsvRecords,
}


def open_records(path: str | Path) -> Records:
    """The reader for a file or folder, by its name."""
    file = Path(path)
    if not file.exists():
        raise InvalidFile(file, "does not exist")
    if file.is_dir() and file.suffix != ".lmdb" and not (file / "data.mdb").exists():
        return FolderRecords(file)
    if file.is_dir():
        return LmdbRecords(file)
    if file.suffix not in _KINDS:
        raise UnknownName("kind of feature file", file.suffix or file.name, [*_KINDS, "folder of .npz"])
    return _KINDS[file.suffix](file)
