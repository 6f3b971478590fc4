"""The regions of images: out of a View, out of stores, and out of files as the community keeps them.

    with open_features("cocobu.tsv") as features:
        features["391895"]          # → RegionFeatures

Nothing pickled is ever loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Floats32
from saywhere.models.feature_files import Record, Records, open_records
from saywhere.models.region_source import RegionSource
from saywhere.store import Store
from saywhere.store.index import INDEX
from saywhere.vision.stored_views import VIEWS, StoredViews
from saywhere.vision.view import View

REGIONS = "regions"
"""What a store of regions is called."""

# The names that published feature files use, in the order they are tried.
_FEATURES = ("feat", "features", "box_feats", "image_features", "x", "arr_0")
_BOXES = ("bbox", "boxes", "norm_bb", "image_bb", "box", "arr_0")
_WIDTHS = ("image_w", "image_width", "img_w", "width")
_HEIGHTS = ("image_h", "image_height", "img_h", "height")
# Detectors round outwards: a hair over the edge is the edge; more is pixels.
_OVERSHOOT = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class RegionFeatures:
    """What a detector or a patch encoder saw in one image.

    features: (R, F) float32. boxes_xyxy: (R, 4) float32, fractions of the image, clipped to it.
    """

    features: Floats32
    boxes_xyxy: Floats32

    def __init__(self, features: ArrayLike, boxes_xyxy: ArrayLike) -> None:
        seen = np.array(features, dtype=np.float32)
        boxes = np.array(boxes_xyxy, dtype=np.float32)
        if seen.ndim != 2 or not seen.size:
            raise InvalidValue("region features", f"have shape {seen.shape}, not (regions, size)")
        if boxes.shape != (len(seen), 4):
            raise InvalidValue("region boxes", f"have shape {boxes.shape}, not ({len(seen)}, 4)")
        if not (np.isfinite(seen).all() and np.isfinite(boxes).all()):
            raise InvalidValue("region features", "hold NaN or infinity")
        if boxes.min() < -_OVERSHOOT or boxes.max() > 1 + _OVERSHOOT:
            raise InvalidValue("region boxes", "leave the image", "give fractions of its width and height")
        boxes = boxes.clip(0, 1)
        if (boxes[:, :2] > boxes[:, 2:]).any():
            raise InvalidValue("region boxes", "a left or top edge lies beyond the right or bottom edge", "need xyxy")
        for array in (seen, boxes):
            array.flags.writeable = False
        object.__setattr__(self, "features", seen)
        object.__setattr__(self, "boxes_xyxy", boxes)

    def __len__(self) -> int:
        return len(self.features)

    def encoded_boxes(self) -> Floats32:
        """(R, 5) x1, y1, x2, y2, area."""
        x1, y1, x2, y2 = self.boxes_xyxy.T
        return np.column_stack([self.boxes_xyxy, (x2 - x1) * (y2 - y1)])


def view_regions(view: View, pooled: int = 1) -> RegionFeatures:
    """A region for each patch, or for each square of `pooled` × `pooled`; rows and columns left over are left out."""
    rows, cols = (n // pooled for n in view.patches.shape[:2])
    patches = view.patches[: rows * pooled, : cols * pooled]
    means = patches.reshape(rows, pooled, cols, pooled, -1).mean(axis=(1, 3))
    x, y = (edges[::pooled] for edges in view.frame.cell_edges())
    boxes = [(x[c], y[r], x[c + 1], y[r + 1]) for r in range(rows) for c in range(cols)]
    return RegionFeatures(means.reshape(rows * cols, -1), np.clip(boxes, 0, 1))


def stored_source(store: Store) -> RegionSource | None:
    """Where the regions of a store come from, as far as it says."""
    if store.kind == VIEWS:
        return RegionSource(encoder=store.about["encoder"])
    told = {name: store.about[name] for name in ("model", "region_set") if name in store.about}
    about = store.about.get("regions", told)
    return msgspec.convert(about, RegionSource) if about else None


def open_features(
    path: str | Path, boxes: str | Path | None = None, sizes: Mapping[str, tuple[int, int]] | None = None
) -> FeatureFile:
    """The features of many images by their id. The kind of file follows from its name.

    path: what `saywhere look` wrote, a folder of id.npz or id.npy files, an .h5, an .lmdb or a .tsv. boxes: the same
    for boxes, where they are kept apart. sizes: width and height in pixels by id, where boxes are in pixels and the
    file does not say.
    """
    if (Path(path) / INDEX).exists():
        return FeatureFile(_StoreRecords(path), None, {})
    return FeatureFile(open_records(path), None if boxes is None else open_records(boxes), sizes or {})


class _StoreRecords(Records):
    """Regions as they are stored, or those of stored views."""

    def _open(self) -> Store:
        store = Store(self.path)
        if store.kind not in (VIEWS, REGIONS):
            raise InvalidFile(self.path, f"holds {store.kind}, neither {VIEWS} nor {REGIONS}")
        return store

    def ids(self) -> Iterator[str]:
        return iter(self.handle.rows_by_key if self.handle.kind == REGIONS else StoredViews(self.handle))

    def __contains__(self, image_id: str) -> bool:
        return image_id in (self.handle if self.handle.kind == REGIONS else StoredViews(self.handle))

    def read(self, image_id: str) -> Record:
        if image_id not in self:
            raise self.missing(image_id)
        if self.handle.kind == REGIONS:
            row = self.handle.by_key(image_id)
            return {"features": row["regions"], "boxes": row["boxes"]}
        seen = view_regions(StoredViews(self.handle)[image_id])
        return {"features": seen.features, "boxes": seen.boxes_xyxy}


class FeatureFile(Mapping[str, RegionFeatures]):
    """Features by image id, read when asked for."""

    def __init__(self, features: Records, boxes: Records | None, sizes: Mapping[str, tuple[int, int]]) -> None:
        self._features, self._boxes, self._sizes = features, boxes, sizes

    @property
    def source(self) -> RegionSource | None:
        """How photos become such regions: out of a store if these are in one, else unknown but for the file's name."""
        records = self._features
        return (
            stored_source(records.handle)
            if isinstance(records, _StoreRecords)
            else RegionSource(file=records.path.name)
        )

    def __enter__(self) -> FeatureFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for records in (self._features, self._boxes):
            if records is not None:
                records.close()

    def __contains__(self, image_id: object) -> bool:
        return isinstance(image_id, str) and image_id in self._features

    def __iter__(self) -> Iterator[str]:
        """All image ids."""
        return self._features.ids()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def get(self, image_id: str, default: Any = None) -> Any:
        """As of any mapping; an image that is there and cannot be read is an error still."""
        return self[image_id] if image_id in self else default  # noqa: SIM401 - this is what get means

    def __getitem__(self, image_id: str) -> RegionFeatures:
        record = self._features.read(image_id)
        boxes = record if self._boxes is None else self._boxes.read(image_id)
        try:
            return _region_features(record, boxes, self._sizes.get(image_id))
        except InvalidValue as error:
            raise InvalidFile(self._features.path, f"image {image_id!r}: {error}") from error


def _region_features(record: Record, boxes_record: Record, size: tuple[int, int] | None) -> RegionFeatures:
    features = _first(record, _FEATURES, "features")
    boxes = _first(boxes_record, _BOXES, "boxes")
    if features.ndim > 2:
        # A grid of patches, (rows, columns, size).
        features = features.reshape(-1, features.shape[-1])
    if boxes.ndim != 2 or boxes.shape[1] < 4:
        raise InvalidValue("region boxes", f"have shape {boxes.shape}, not (regions, 4)")
    # Some files add width, height or area after the corners.
    corners = boxes[:, :4].astype(np.float32)
    if len(corners) and corners.max() > 1 + _OVERSHOOT:
        corners = corners / np.tile(_size(boxes_record, size) or _size(record, size) or _no_size(), 2)
    return RegionFeatures(features, corners)


def _first(record: Record, names: tuple[str, ...], what: str) -> NDArray[np.generic]:
    for name in names:
        if name in record:
            return record[name]
    raise InvalidValue(
        what, f"are under none of the names {', '.join(names)}; there is {', '.join(record) or 'nothing'}"
    )


def _size(record: Record, size: tuple[int, int] | None) -> tuple[float, float] | None:
    """Width and height in pixels, if they are known."""
    if size is not None:
        return size
    width = next((record[name] for name in _WIDTHS if name in record), None)
    height = next((record[name] for name in _HEIGHTS if name in record), None)
    if width is None or height is None:
        return None
    return float(np.ravel(width)[0]), float(np.ravel(height)[0])


def _no_size() -> tuple[float, float]:
    raise InvalidValue("region boxes", "are in pixels, and the image's size is not known", "give it in `sizes`")
