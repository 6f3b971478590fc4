"""Arrays out of the bytes of npy and npz files, without believing what they say of their own size.

numpy's reader makes room for the array that a header describes before it looks for the numbers. Here an array is a view
of bytes that are there, and an archive is unpacked up to a limit.
"""

from __future__ import annotations

import io
import math
import tokenize
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from saywhere.core.errors import InvalidFile
from saywhere.limits import MOST, read_at_most

ZIP, NPY = b"PK\x03\x04", npy.MAGIC_PREFIX
FEATURES = "bytes of one image's features"
_SUFFIX = ".npy"
_MOST_HEADER = 10_000
_PLAIN_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What numpy raises on headers that are no Python.
_NO_HEADER = (ValueError, TypeError, EOFError, MemoryError, RecursionError, SyntaxError, tokenize.TokenError)
_NO_PICKLES = "arrays of objects are pickles, and are not opened"
# What zipfile raises on damaged archives, and on kinds it does not know.
_DAMAGE = (ValueError, OSError, EOFError, KeyError, IndexError, RuntimeError, zipfile.BadZipFile, zlib.error)


def npy_array(content: bytes, where: object) -> NDArray[Any]:
    """The array in the bytes of an npy file: a view of them, so it takes no memory of its own.

    >>> file = io.BytesIO()
    >>> np.save(file, np.arange(3, dtype=np.int8))
    >>> npy_array(file.getvalue(), "here").tolist()
    [0, 1, 2]
    """
    file = io.BytesIO(content)
    try:
        version = npy.read_magic(file)
        header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, by_column, kind = header(file, max_header_size=_MOST_HEADER)
    except _NO_HEADER as error:
        raise InvalidFile(where, f"cannot be read as npy: {error}") from error
    if kind.hasobject:
        raise InvalidFile(where, "holds an array of objects", _NO_PICKLES)
    count = math.prod(shape)
    left = len(content) - file.tell()
    if any(side < 0 for side in shape) or count * kind.itemsize != left:
        raise InvalidFile(where, f"says {shape} numbers of {kind.itemsize} bytes, but holds {left:,} bytes")
    try:
        flat = np.frombuffer(content, kind, count, file.tell()) if count else np.empty(0, kind)
        return flat.reshape(shape, order="F" if by_column else "C")
    except ValueError as error:
        raise InvalidFile(where, f"cannot be read as npy: {error}") from error


def npz_arrays(content: bytes, where: object, what: str = FEATURES) -> dict[str, NDArray[Any]]:
    """The arrays of an npz file by name. what: the limit of `saywhere.limits` that all together are held to."""
    left = MOST[what]
    arrays: dict[str, NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for info in archive.infolist():
                if not info.filename.endswith(_SUFFIX) or info.compress_type not in _PLAIN_METHODS:
                    raise InvalidFile(where, f"holds {info.filename!r}, which is not an array", _NO_PICKLES)
                with archive.open(info) as member:
                    unpacked = read_at_most(member, left, where)
                left -= len(unpacked)
                arrays[info.filename.removesuffix(_SUFFIX)] = npy_array(unpacked, where)
    except InvalidFile:
        raise
    except _DAMAGE as error:
        raise InvalidFile(where, f"cannot be read: {error}", _NO_PICKLES) from error
    return arrays
