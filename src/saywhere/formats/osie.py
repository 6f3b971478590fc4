"""OSIE (Xu et al., 2014; Jiang et al., 2015): mouse traces and eye fixations on photos of 800 × 600, MATLAB files.

Mouse, one file an image, named by it ("1001.mat"), with the columns of all subjects one under the other:

    fixations    struct: subj (n, 1), from 1 on; coord (n, 2), [row, column] in pixels; order (n, 1), from 1 on

Eyes, one file for all images:

    fixations    (images, 1) cell of struct: img, "1001.jpg"; subjects, (15, 1) cell of struct: fix_x, fix_y (1, n) in
                 pixels; fix_duration (1, n) in milliseconds. Subjects have no names; they are counted from 1 on.

Positions are read as distances from the left and top edge, x = column / 800: mouse columns go from 1 to 799, rows from
1 to 599, and most traces start at (300, 400), the middle of the photo. Mouse traces carry an order but no times, and
none are made up: see `Gaze.trace`. Positions may leave the image, but not by more than its own size.

One value for each subject of each image. `read` takes a file, or a folder whose files it reads in order of their names.
A file that cannot be read is an InvalidFile, or in a folder one InvalidRecord. MATLAB's form 7.3 (HDF5) is not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Floats
from saywhere.formats._gaze import Gaze
from saywhere.formats._mat5 import Cells, Structs, Value, read_variable
from saywhere.formats.files import read_bytes
from saywhere.formats.record import InvalidRecord

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
    try:
        fixations = read_variable(read_bytes(path), "fixations")
    except InvalidValue as error:
        raise InvalidFile(path, f"cannot be read: {error.what} {error.reason}") from error
    if isinstance(fixations, Structs):
        yield from _read_mouse(path, fixations)
    elif isinstance(fixations, Cells):
        for index, cell in enumerate(fixations.items):
            yield from _read_eyes(path, f"fixations{{{index + 1}}}", cell)
    else:
        raise InvalidFile(path, "`fixations` is neither a struct nor a cell array")


def _read_mouse(path: Path, fixations: Structs) -> Iterator[Gaze | InvalidRecord]:
    fields = _fields(fixations, _MOUSE_FIELDS)
    if fields is None:
        raise InvalidFile(path, f"`fixations` is not one struct of {', '.join(_MOUSE_FIELDS)}")
    subjects, coord, order = fields
    if not (isinstance(subjects, np.ndarray) and isinstance(coord, np.ndarray) and isinstance(order, np.ndarray)):
        raise InvalidFile(path, "subj, coord and order are not columns of numbers")
    if coord.shape != (subjects.size, 2) or order.size != subjects.size:
        raise InvalidFile(path, "subj, coord and order are not columns of numbers of one length")
    if not np.isfinite(subjects).all():
        raise InvalidFile(path, "`subj` holds NaN or infinity")
    for subject in np.unique(subjects):
        own = subjects.ravel() == subject
        try:
            yield _mouse_gaze(path.stem, f"{subject:g}", coord[own], order.ravel()[own])
        except InvalidValue as error:
            yield InvalidRecord(str(path), 0, f"{error.what} {error.reason}", f"subj == {subject:g}")


def _mouse_gaze(image_id: str, subject: str, rows_cols_px: Floats, order: Floats) -> Gaze:
    if not np.isfinite(order).all() or len(np.unique(order)) < len(order):
        raise InvalidValue("order", "holds NaN or gives two points the same place")
    return Gaze(image_id, subject, "mouse", _fractions(rows_cols_px[np.argsort(order), ::-1]))


def _read_eyes(path: Path, where: str, cell: Value) -> Iterator[Gaze | InvalidRecord]:
    fields = _fields(cell, _IMAGE_FIELDS)
    if fields is None or not (isinstance(fields[0], str) and fields[0] and isinstance(fields[1], Cells)):
        yield InvalidRecord(str(path), 0, "is not a struct of img, a name, and subjects, a cell array", where)
        return
    for index, subject in enumerate(fields[1].items):
        try:
            yield _eye_gaze(Path(fields[0]).stem, str(index + 1), subject)
        except InvalidValue as error:
            yield InvalidRecord(str(path), 0, f"{error.what} {error.reason}", f"{where}.subjects{{{index + 1}}}")


def _eye_gaze(image_id: str, subject: str, cell: Value) -> Gaze:
    columns = [field.ravel() for field in _fields(cell, _EYE_FIELDS) or () if isinstance(field, np.ndarray)]
    if len(columns) != len(_EYE_FIELDS):
        raise InvalidValue("the subject", f"is not a struct of {', '.join(_EYE_FIELDS)}, all numbers")
    x, y, durations_ms = columns
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


def _fields(value: Value, names: tuple[str, ...]) -> list[Value] | None:
    """The fields of these names of a 1 × 1 struct; None if it is something else."""
    if not isinstance(value, Structs) or len(value.items) != 1 or not set(names) <= set(value.items[0]):
        return None
    return [value.items[0][name] for name in names]
