"""Many photos looked at once and kept: half-precision patches in one memory-mapped file, an index beside it.

    views = extract(sorted(folder.glob("*.jpg")), "features", open_encoder())
    views["kitchen"].patches            # later: open_views("features")

A folder of patches.npy, (photos, rows, cols, d) float16; whole.npy, (photos, d) float16; and index.json, which says
how far they are filled. Stopped at any time, the next call goes on from there.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from saywhere.atomic import write_atomic
from saywhere.core import Frame, InvalidFile, InvalidValue
from saywhere.vision.photo import read_photo
from saywhere.vision.view import Encoder, View

Halves = NDArray[np.float16]
Progress = Callable[[int, int], None]
"""Called with how many photos are done and how many there are."""

_PATCHES, _WHOLE, _INDEX = "patches.npy", "whole.npy", "index.json"
_VERSION = 1
# The index grows with the photos: written after every batch, a large set would spend its time there.
_SAVE_EVERY_S = 10.0


class _Index(msgspec.Struct, forbid_unknown_fields=True):
    """index.json. frames: of the photos done so far; None for one that could not be read, whose rows are zeros."""

    version: int
    encoder: dict[str, str | int]
    grid: tuple[int, int]
    size: int
    ids: list[str]
    frames: list[Frame | None]
    failed: dict[str, str]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {_PATCHES: (len(self.ids), *self.grid, self.size), _WHOLE: (len(self.ids), self.size)}


@dataclass(frozen=True, slots=True, eq=False)
class StoredViews:
    """Views on disk, by photo id, read when asked for.

    ids: all photos, in the order of the rows. patches: (photos, rows, cols, d) float16. whole: (photos, d) float16.
    Both are mapped from their files. frames: one for each photo, None where it failed.
    failed: the photos that could not be read, with the reason. encoder: what made the views.
    """

    ids: tuple[str, ...]
    patches: Halves
    whole: Halves
    frames: tuple[Frame | None, ...]
    failed: dict[str, str]
    encoder: dict[str, str | int]
    _row_of: dict[str, int] = field(repr=False)

    def __len__(self) -> int:
        """How many photos have a view."""
        return len(self.ids) - len(self.failed)

    def __iter__(self) -> Iterator[str]:
        """The ids of the photos that have a view."""
        return (name for name in self.ids if name not in self.failed)

    def __contains__(self, photo_id: object) -> bool:
        return photo_id in self._row_of and photo_id not in self.failed

    def __getitem__(self, photo_id: str) -> View:
        if photo_id not in self._row_of:
            raise InvalidValue(f"photo {photo_id!r}", f"is not among the {len(self.ids)} stored ones")
        row = self._row_of[photo_id]
        frame = self.frames[row]
        if frame is None:
            raise InvalidValue(f"photo {photo_id!r}", f"has no view: {self.failed[photo_id]}")
        return View(frame, self.patches[row], self.whole[row])


def extract(
    photos: Sequence[str | PathLike[str]],
    out: str | PathLike[str],
    encoder: Encoder,
    *,
    batch: int = 8,
    progress: Progress | None = None,
) -> StoredViews:
    """Look at all photos and keep what was seen in the folder `out`; go on where an earlier call stopped.

    A photo's id is its file name without the ending. One that cannot be read is noted under `failed` and passed over.
    """
    if batch < 1:
        raise InvalidValue("batch", f"is {batch}, not at least 1")
    folder, paths = Path(out), [Path(photo) for photo in photos]
    index = _begun(folder, _planned(paths, encoder))
    stored = [_mapped(folder, name, index, "r+") for name in (_PATCHES, _WHOLE)]
    saved_s = time.monotonic()
    try:
        while (done := len(index.frames)) < len(paths):
            _look_and_keep(paths[done : done + batch], stored, index, encoder)
            if time.monotonic() - saved_s > _SAVE_EVERY_S:
                _save(folder, stored, index)
                saved_s = time.monotonic()
            if progress is not None:
                progress(len(index.frames), len(paths))
    finally:
        _save(folder, stored, index)
    return open_views(folder)


def open_views(folder: str | PathLike[str]) -> StoredViews:
    """What `extract` has kept in a folder."""
    place = Path(folder)
    index = _read_index(place)
    if len(index.frames) < len(index.ids):
        raise InvalidFile(
            place, f"only {len(index.frames)} of {len(index.ids)} photos are done", "call extract again to go on"
        )
    patches, whole = (_mapped(place, name, index, "r") for name in (_PATCHES, _WHOLE))
    rows = {name: row for row, name in enumerate(index.ids)}
    return StoredViews(tuple(index.ids), patches, whole, tuple(index.frames), index.failed, index.encoder, rows)


def _planned(paths: Sequence[Path], encoder: Encoder) -> _Index:
    if not paths:
        raise InvalidValue("photos", "are none")
    ids = [path.stem for path in paths]
    twice = [name for name, count in Counter(ids).items() if count > 1]
    if twice:
        raise InvalidValue("photos", f"{len(twice)} names occur more than once, first {twice[0]!r}", "ids must differ")
    return _Index(_VERSION, encoder.fingerprint, encoder.frame((1, 1)).grid, encoder.size, ids, [], {})


def _begun(folder: Path, planned: _Index) -> _Index:
    """The index of an earlier call for the same photos and encoder; or empty files and a new one."""
    if not (folder / _INDEX).exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, shape in planned.shapes.items():
                # Zeros that take no room on the disk until they are written over.
                np.lib.format.open_memmap(folder / name, mode="w+", dtype=np.float16, shape=shape)
        except OSError as error:
            raise InvalidFile(folder, f"cannot be written: {error.strerror or error}") from error
        _write_index(folder, planned)
        return planned
    earlier = _read_index(folder)
    for what, was, now in (
        ("another encoder", earlier.encoder, planned.encoder),
        ("other photos", earlier.ids, planned.ids),
        ("another grid", earlier.shapes, planned.shapes),
    ):
        if was != now:
            raise InvalidFile(folder, f"holds the features of {what}", "give a new folder, or delete this one")
    return earlier


def _look_and_keep(paths: Sequence[Path], stored: Sequence[Halves], index: _Index, encoder: Encoder) -> None:
    first = len(index.frames)
    images: dict[int, Image.Image] = {}
    failed: dict[str, str] = {}
    for place, path in enumerate(paths):
        try:
            images[place] = read_photo(path)
        except InvalidFile as error:
            failed[path.stem] = error.reason
    views = dict(zip(images, encoder.look_many(list(images.values())), strict=True))
    for place, view in views.items():
        for array, values in zip(stored, (view.patches, view.whole), strict=True):
            with np.errstate(over="ignore"):
                array[first + place] = values
            if not np.isfinite(array[first + place]).all():
                raise InvalidValue(f"the features of {paths[place]}", "do not fit half precision")
    index.failed |= failed
    index.frames += [views[place].frame if place in views else None for place in range(len(paths))]


def _save(folder: Path, stored: Sequence[Halves], index: _Index) -> None:
    for array in stored:
        if isinstance(array, np.memmap):
            array.flush()
    _write_index(folder, index)


def _write_index(folder: Path, index: _Index) -> None:
    with write_atomic(folder / _INDEX) as file:
        file.write(msgspec.json.encode(index))


def _read_index(folder: Path) -> _Index:
    path = folder / _INDEX
    try:
        index = msgspec.json.decode(path.read_bytes(), type=_Index)
    except OSError as error:
        raise InvalidFile(path, f"cannot be read: {error.strerror or error}") from error
    except msgspec.DecodeError as error:
        raise InvalidFile(path, f"is not an index of features: {error}") from error
    if index.version != _VERSION:
        raise InvalidFile(path, f"is of version {index.version}, not {_VERSION}")
    return index


def _mapped(folder: Path, name: str, index: _Index, mode: str) -> Halves:
    path = folder / name
    try:
        array = np.lib.format.open_memmap(path, mode=mode)
    except (OSError, ValueError) as error:
        raise InvalidFile(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if array.shape != index.shapes[name] or array.dtype != np.float16:
        raise InvalidFile(path, f"is {array.dtype} {array.shape}, not float16 {index.shapes[name]}")
    return array
