"""Flat arrays in a folder, read by memory map: the regions of many images, and anything beside them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.models.region_features import RegionFeatures

REGIONS, BOXES = "regions", "region_boxes"

NO_IMAGE = "its image is not there"
OTHER_SIZE = "its image's features have another size than the first image's"
TOO_LARGE = "its image's features are beyond the range of float16"


class StoredImage(msgspec.Struct, array_like=True, frozen=True):
    """An image's rows in the arrays of regions and boxes."""

    name: str
    first: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.first


class SavedRegions(msgspec.Struct, frozen=True):
    """images: those stored. bad: for each of the others, why not. digests: SHA-256 of the arrays."""

    images: list[StoredImage]
    bad: dict[str, str]
    digests: dict[str, str]


def save_regions(folder: Path, images: Mapping[str, RegionFeatures], names: Iterable[str]) -> SavedRegions:
    """Write the regions of the named images, float16, and their boxes, float32. Each image is looked up once.

    One at a time, so that images may be read from a file as they are asked for.
    """
    stored: list[StoredImage] = []
    bad: dict[str, str] = {}
    boxes: list[NDArray[np.float32]] = []
    size, stop = 0, 0
    with write_atomic(folder / f"{REGIONS}.npy") as file:
        for name in names:
            image = images.get(name)
            reason = NO_IMAGE if image is None else _unfit(image, size)
            if image is None or reason:
                bad[name] = reason
                continue
            if not stored:
                size = image.features.shape[1]
                _write_header(file, 0, size)
            file.write(image.features.astype(np.float16).tobytes())
            boxes.append(image.boxes_xyxy)
            stored.append(StoredImage(name, stop, stop + len(image)))
            stop += len(image)
        if not stored:
            reasons = ", ".join(sorted(set(bad.values()))) or "there are none"
            raise InvalidValue("images", f"none can be stored: {reasons}")
        file.seek(0)
        _write_header(file, stop, size)
    digests = {REGIONS: _digest(folder / f"{REGIONS}.npy"), **save_arrays(folder, {BOXES: np.concatenate(boxes)})}
    return SavedRegions(stored, bad, digests)


def save_arrays(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> dict[str, str]:
    """Write name.npy for each; returns the SHA-256 of each file."""
    for name, array in arrays.items():
        with write_atomic(folder / f"{name}.npy") as file:
            np.save(file, array)
    return {name: _digest(folder / f"{name}.npy") for name in arrays}


class RegionStore:
    """What `save_regions` wrote, by the image's number."""

    def __init__(self, folder: Path, images: Sequence[StoredImage]) -> None:
        self.images = images
        arrays = open_arrays(folder, (REGIONS, BOXES))
        self._regions, self._boxes = arrays[REGIONS], arrays[BOXES]
        rows = images[-1].stop if images else 0
        if self._regions.ndim != 2 or len(self._regions) != rows or self._boxes.shape != (rows, 4):
            reason = f"holds {len(self._regions)} regions and {len(self._boxes)} boxes where the index has {rows}"
            raise InvalidFile(folder, reason, "was it written by two runs at once?")
        self.region_size = int(self._regions.shape[1])

    def regions(self, image: int) -> NDArray[np.float32]:
        """(r, region_size)."""
        where = self.images[image]
        return np.array(self._regions[where.first : where.stop], dtype=np.float32)

    def boxes(self, image: int) -> NDArray[np.float32]:
        """(r, 4) xyxy."""
        where = self.images[image]
        return np.array(self._boxes[where.first : where.stop], dtype=np.float32)

    def features(self, image: int) -> RegionFeatures:
        """The image's regions and boxes as one value."""
        return RegionFeatures(self.regions(image), self.boxes(image))


def open_arrays(folder: Path, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """name.npy for each, memory-mapped. An array without numbers cannot be mapped, and is read."""
    found: dict[str, NDArray[Any]] = {}
    for name in names:
        path = folder / f"{name}.npy"
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InvalidFile(path, f"is not an array: {error}") from error
        found[name] = array
    return found


def _unfit(image: RegionFeatures, size: int) -> str:
    """Why an image cannot be stored beside features of this size (0: of any), or nothing."""
    if size and image.features.shape[1] != size:
        return OTHER_SIZE
    return TOO_LARGE if np.abs(image.features).max() > np.finfo(np.float16).max else ""


def _write_header(file: IO[bytes], rows: int, size: int) -> None:
    """An .npy header. Its length does not depend on the number of rows: numpy leaves room for them to grow."""
    header = {
        "descr": np.lib.format.dtype_to_descr(np.dtype(np.float16)),
        "fortran_order": False,
        "shape": (rows, size),
    }
    np.lib.format.write_array_header_1_0(file, header)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
