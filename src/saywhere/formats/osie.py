"""OSIE (Xu et al., 2014; Jiang et al., 2015): mouse traces and eye fixations on photos of 800 × 600, MATLAB files.

Mouse, one file an image, named by it ("1001.mat"), with the columns of all subjects one under the other:

    fixations    struct: subj (n, 1), from 1 on; coord (n, 2), [row, column] in pixels; order (n, 1), from 1 on

Eyes, one file for all images:

    fixations    (images, 1) cell of struct: img, "1001.jpg"; subjects, (15, 1) cell of struct: fix_x, fix_y (1, n) in
                 pixels; fix_duration (1, n) in milliseconds. Subjects have no names; they are counted from 1 on.

Positions are read as distances from the left and top edge, x = column / 800: mouse columns go from 1 to 799, rows from
1 to 599, and most traces start at (300, 400), the middle of the photo. Mouse traces carry an order but no times, and
none are made up: see `Gaze.trace`. Positions may leave the image, but not by more than its own size.

One value for each subject of each image. `read` takes a file or a folder of them, by name. A file that cannot be read
is an InvalidFile, or in a folder one InvalidRecord. MATLAB's newest form (7.3, HDF5) is not read.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from saywhere.core._arrays import Floats
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.formats._gaze import Gaze
from saywhere.formats._record import InvalidRecord

__all__ = ["SIZE_PX", "Gaze", "read", "sniff"]

SIZE_PX = (800, 600)
"""Width and height of all photos."""

_MAGIC = b"MATLAB 5.0 MAT-file"
_MOUSE_FIELDS = ("subj", "coord", "order")
_IMAGE_FIELDS = ("img", "subjects")
_EYE_FIELDS = ("fix_x", "fix_y", "fix_duration")


def sniff(path: Path, head: bytes) -> bool:
    """Whether this is a MATLAB file, or a folder of them."""
    return next(path.glob("*.mat"), None) is not None if path.is_dir() else head.startswith(_MAGIC)


def read(path: str | Path) -> Iterator[Gaze | InvalidRecord]:
    """One value for each subject of each image; see the module."""
    path = Path(path)
    if not path.is_dir():
        yield from _read_file(path)
        return
    files = sorted(path.glob("*.mat"))
    if not files:
        raise InvalidFile(path, "holds no .mat files", "name the folder mouse_lab or the file eye/fixations.mat")
    for file in files:
        try:
            yield from _read_file(file)
        except InvalidFile as error:
            yield InvalidRecord(error.path, 0, error.reason)


def _read_file(path: Path) -> Iterator[Gaze | InvalidRecord]:
    fixations = _load(path)
    if fixations.dtype.names is not None:
        yield from _read_mouse(path, fixations)
    elif fixations.dtype == object:
        for index, cell in enumerate(fixations.flat):
            yield from _read_eyes(path, f"fixations{{{index + 1}}}", cell)
    else:
        raise InvalidFile(path, "`fixations` is neither a struct nor a cell array")


def _load(path: Path) -> np.ndarray[Any, Any]:
    """The variable `fixations`. scipy runs no code from the file, but meets broken bytes with errors of many kinds."""
    from scipy.io import loadmat

    if not path.exists():
        raise InvalidFile(path, "does not exist")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about parts of the file that are not used here
            variables = loadmat(str(path), appendmat=False, variable_names=["fixations"])
    except NotImplementedError as error:
        raise InvalidFile(path, "is a MATLAB 7.3 file", "save it again in MATLAB with the option -v7") from error
    except (
        *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, OSError, RecursionError),
        *(TypeError, ValueError, zlib.error),
    ) as error:
        raise InvalidFile(path, f"is not a readable MATLAB file: {error or type(error).__name__}") from error
    fixations = variables.get("fixations")
    if not isinstance(fixations, np.ndarray):
        raise InvalidFile(path, "holds no variable `fixations`")
    return fixations


def _read_mouse(path: Path, fixations: np.ndarray[Any, Any]) -> Iterator[Gaze | InvalidRecord]:
    fields = _struct(fixations, _MOUSE_FIELDS)
    if fields is None:
        raise InvalidFile(path, f"`fixations` is not one struct of {', '.join(_MOUSE_FIELDS)}")
    subjects, coord, order = fields
    n = subjects.size
    if not all(_is_numeric(field) for field in fields) or coord.shape != (n, 2) or order.size != n:
        raise InvalidFile(path, "subj, coord and order are not columns of numbers of one length")
    if not np.isfinite(subjects).all():
        raise InvalidFile(path, "`subj` holds NaN or infinity")
    subjects = subjects.ravel()
    for subject in np.unique(subjects):
        own = subjects == subject
        where = f"subj == {subject:g}"
        try:
            yield _mouse_gaze(path.stem, f"{subject:g}", coord[own], order.ravel()[own])
        except InvalidValue as error:
            yield InvalidRecord(str(path), 0, f"{error.what} {error.reason}", where)


def _mouse_gaze(image_id: str, subject: str, coord: np.ndarray[Any, Any], order: np.ndarray[Any, Any]) -> Gaze:
    steps = order.astype(np.float64)
    if not np.isfinite(steps).all() or len(np.unique(steps)) < len(steps):
        raise InvalidValue("order", "holds NaN or gives two points the same place")
    rows_cols = coord[np.argsort(steps)].astype(np.float64)
    return Gaze(image_id, subject, "mouse", _fractions(rows_cols[:, ::-1]))


def _read_eyes(path: Path, where: str, cell: Any) -> Iterator[Gaze | InvalidRecord]:
    fields = _struct(cell, _IMAGE_FIELDS)
    if fields is None or fields[1].dtype != object or fields[0].dtype.kind != "U" or fields[0].size != 1:
        yield InvalidRecord(str(path), 0, "is not a struct of img, a name, and subjects, a cell array", where)
        return
    image_id = Path(str(fields[0].flat[0])).stem
    for index, subject in enumerate(fields[1].flat):
        try:
            yield _eye_gaze(image_id, str(index + 1), subject)
        except InvalidValue as error:
            yield InvalidRecord(str(path), 0, f"{error.what} {error.reason}", f"{where}.subjects{{{index + 1}}}")


def _eye_gaze(image_id: str, subject: str, cell: Any) -> Gaze:
    fields = _struct(cell, _EYE_FIELDS)
    if fields is None or not all(_is_numeric(field) for field in fields):
        raise InvalidValue("subject", f"is not a struct of {', '.join(_EYE_FIELDS)}, all numbers")
    x, y, durations_ms = (field.astype(np.float64).ravel() for field in fields)
    if not len(x) == len(y) == len(durations_ms):
        raise InvalidValue(", ".join(_EYE_FIELDS), f"have {len(x)}, {len(y)} and {len(durations_ms)} numbers")
    return Gaze(image_id, subject, "eye", _fractions(np.column_stack([x, y])), durations_ms / 1000)


def _fractions(points_px: Floats) -> Floats:
    """(n, 2) x, y in pixels of the photo → fractions of it."""
    points: Floats = points_px / SIZE_PX
    far = ~((points >= -1) & (points <= 2)).all(axis=1)
    if far.any():
        x, y = points_px[int(np.argmax(far))]
        raise InvalidValue(f"point {int(np.argmax(far))}", f"at x = {x:g}, y = {y:g} pixels is far outside the photo")
    return points


def _struct(value: Any, names: tuple[str, ...]) -> list[np.ndarray[Any, Any]] | None:
    """The fields of these names of a 1 × 1 struct; None if it is something else."""
    if not isinstance(value, np.ndarray) or value.size != 1 or not set(names) <= set(value.dtype.names or ()):
        return None
    fields = [value.flat[0][name] for name in names]
    return fields if all(isinstance(field, np.ndarray) for field in fields) else None


def _is_numeric(array: np.ndarray[Any, Any]) -> bool:
    return array.dtype.kind in "iuf"
