"""Where features are kept: one array or several under an image's id, in a folder, an h5, an lmdb or a tsv file."""

from __future__ import annotations

import base64
import binascii
import io
import os
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from saywhere.core.errors import InvalidFile, UnknownName, require

Record = Mapping[str, NDArray[np.generic]]

_ZIP, _NPY, _LZ4 = b"PK\x03\x04", b"\x93NUMPY", b"\x04\x22\x4d\x18"
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
        return arrays_in(file.read_bytes(), file)


class H5Records(Records):
    """HDF5 in one of three layouts: a group or data set for each id, `id_features` and `id_boxes`, or stacks with ids.

    A stack of ids is named `image_ids`, the others `image_features` and `image_bb`.
    """

    def _open(self) -> Any:
        h5py = require("h5py", needed_for="reading features from HDF5", extra="models")
        try:
            return h5py.File(self.path, "r")
        except OSError as error:
            raise InvalidFile(self.path, f"cannot be opened as HDF5: {error}") from error

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self._places: dict[str, int] | None = None
        self._parts: dict[str, list[str]] | None = None

    def _index(self) -> dict[str, int] | None:
        """Place of each id in stacked data sets, if this file has those; read once."""
        if self._places is None:
            name = next((name for name in _H5_IDS if name in self.handle), None)
            if name is None:
                return None
            ids = np.asarray(self.handle[name]).tolist()
            self._places = {one.decode() if isinstance(one, bytes) else str(one): i for i, one in enumerate(ids)}
        return self._places

    def _flat(self) -> dict[str, list[str]]:
        """Names of the data sets of each id in the layout `id_features`; listed once, for a file may hold many."""
        if self._parts is None:
            names = list(self.handle)
            self._parts = {name.removesuffix(_FLAT): [] for name in names if name.endswith(_FLAT)}
            for name in names:
                image_id = name.rpartition("_")[0]
                # What follows the id may have underscores of its own: id_image_w.
                while image_id and image_id not in self._parts:
                    image_id = image_id.rpartition("_")[0]
                if image_id:
                    self._parts[image_id].append(name)
        return self._parts

    def ids(self) -> Iterator[str]:
        index = self._index()
        if index is not None:
            return iter(index)
        return iter(sorted(self._flat()) or sorted(self.handle))

    def __contains__(self, image_id: str) -> bool:
        index = self._index()
        return image_id in (index if index is not None else self.handle) or f"{image_id}{_FLAT}" in self.handle

    def read(self, image_id: str) -> Record:
        file, index = self.handle, self._index()
        if index is not None:
            if image_id not in index:
                raise self.missing(image_id)
            names = {k: next((n for n in stack if n in file), None) for k, stack in _H5_STACKS.items()}
            return {kind: np.asarray(file[name][index[image_id]]) for kind, name in names.items() if name}
        if parts := self._flat().get(image_id):
            return {name.removeprefix(f"{image_id}_"): np.asarray(file[name]) for name in parts}
        if image_id not in file:
            raise self.missing(image_id)
        found = file[image_id]
        if hasattr(found, "keys"):
            return {name: np.asarray(found[name]) for name in found}
        return {"arr_0": np.asarray(found)}


class _SharedEnvironment:
    """An LMDB environment, which a process can open only once: all readers of a file share it, the last one closes it.

    A forked process inherits an environment that it must not use: it is closed there, and opened anew.
    """

    _open: ClassVar[dict[Path, _SharedEnvironment]] = {}

    def __init__(self, path: Path) -> None:
        lmdb = require("lmdb", needed_for="reading features from LMDB", extra="models")
        try:
            self.environment = lmdb.open(str(path), subdir=path.is_dir(), readonly=True, lock=False, readahead=False)
        except lmdb.Error as error:
            raise InvalidFile(path, f"cannot be opened as LMDB: {error}") from error
        self.path, self.process, self.readers = path, os.getpid(), 0

    @classmethod
    def of(cls, path: Path) -> _SharedEnvironment:
        shared = cls._open.get(path)
        if shared is not None and shared.process != os.getpid():
            shared.environment.close()
            shared = None
        if shared is None:
            shared = cls._open[path] = cls(path)
        shared.readers += 1
        return shared

    def begin(self) -> Any:
        return self.environment.begin()

    def close(self) -> None:
        self.readers -= 1
        if not self.readers:
            self.environment.close()
            del self._open[self.path]


class LmdbRecords(Records):
    """LMDB with an id for each key, and as value npz, npy, msgpack, or raw float32 after two lengths."""

    def _open(self) -> _SharedEnvironment:
        return _SharedEnvironment.of(self.path.resolve())

    def ids(self) -> Iterator[str]:
        with self.handle.begin() as transaction:
            for key in transaction.cursor().iternext(values=False):
                yield bytes(key).decode("utf-8", errors="replace")

    def _value(self, image_id: str) -> bytes | None:
        with self.handle.begin() as transaction:
            value = transaction.get(image_id.encode())
        return None if value is None else bytes(value)

    def __contains__(self, image_id: str) -> bool:
        return self._value(image_id) is not None

    def read(self, image_id: str) -> Record:
        value = self._value(image_id)
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
            start = 0
            for number, line in enumerate(self.handle, 1):
                if not line.isspace():
                    self._starts[line.split(b"\t", 1)[0].decode("utf-8", errors="replace")] = (number, start)
                start += len(line)
        return self._starts

    def ids(self) -> Iterator[str]:
        return iter(self._index())

    def __contains__(self, image_id: str) -> bool:
        return image_id in self._index()

    def read(self, image_id: str) -> Record:
        if image_id not in self._index():
            raise self.missing(image_id)
        number, start = self._index()[image_id]
        self.handle.seek(start)
        fields = self.handle.readline().rstrip(b"\r\n").split(b"\t")
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
    if content.startswith((_ZIP, _NPY)):
        return _numpy_arrays(content, where)
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
    except msgspec.DecodeError as error:
        reason = "is neither npz, npy, msgpack nor raw float32 with its two lengths"
        raise InvalidFile(where, reason, "pickles are not opened") from error
    if not isinstance(found, dict):
        raise InvalidFile(where, f"is a msgpack {type(found).__name__}, not a map of arrays")
    return {_text(name): _msgpack_array(value, where) for name, value in found.items()}


def _numpy_arrays(content: bytes, where: object) -> Record:
    try:
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
        return {"arr_0": loaded} if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise InvalidFile(
            where, f"cannot be read: {error}", "arrays of objects are pickles, and are not opened"
        ) from error


def _msgpack_array(value: object, where: object) -> NDArray[np.generic]:
    """An array as msgpack-numpy writes it, a list of numbers, or a number."""
    try:
        if isinstance(value, dict):
            parts = {_text(name): part for name, part in value.items()}
            kind = np.dtype(_text(parts["type"]))
            return np.frombuffer(parts["data"], dtype=kind).reshape(parts["shape"])
        array = np.asarray(value)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidFile(where, f"holds an array that cannot be read: {error}") from error
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
