"""COCO instances (Lin et al., 2014): one JSON document, {"images", "annotations", "categories", …}.

    images       [{"id", "file_name", "width", "height", …}], pixels
    annotations  [{"id", "image_id", "category_id", "bbox": [x, y, width, height], "area", "iscrowd", "segmentation"}],
                 pixels; segmentation is [[x, y, x, y, …], …], or {"size": [height, width], "counts"} with the runs as a
                 list or as text, or empty or absent
    categories   [{"id", "name", "supercategory"}]

One value for each annotation, in the file's order. Bad records are: an image that is not listed with its size (boxes
could not be fractions), an unknown category, a box without area or outside the image (lapping over its edge is fine),
a polygon of an odd count or fewer than six numbers or far outside, run lengths that do not fit the image. Bad entries
of `images` and `categories` are reported, too, and come first. Ids that repeat are kept. Written files hold the same
numbers that were read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidValue
from saywhere.core.regions import Mask, Polygon
from saywhere.core.types import Bools
from saywhere.formats._boxes import BoxXywh, BoxXyxy, check_box, check_size, fractions, xyxy
from saywhere.formats._coco import ImageEntry, annotation_keys, image_entries, read_images
from saywhere.formats._documents import Id, Node, built, decoded, document, encoded, listed, members
from saywhere.formats._masks import Polygons, RunLengths, RunLengthsEntry, check_polygons, polygon_mask, resampled
from saywhere.formats.record import InvalidRecord

__all__ = ["Instance", "RunLengths", "read", "resampled", "sniff", "write"]


@dataclass(frozen=True, slots=True)
class Instance:
    """One object in one image.

    width, height: of the image, pixels. box_xywh_px: left, top, width, height. area_px: of the mask, in pixels, as the
    file has it. segmentation: outlines in pixels, or run lengths, or None. iscrowd: a group marked as one.
    """

    image_id: int | str
    annotation_id: int | str
    category: str
    category_id: int | str
    width: int
    height: int
    box_xywh_px: BoxXywh
    area_px: float
    segmentation: Polygons | RunLengths | None = None
    iscrowd: bool = False
    file_name: str = ""
    supercategory: str = ""

    def __post_init__(self) -> None:
        check_size(self.width, self.height)
        check_box(xyxy(self.box_xywh_px), (self.width, self.height))
        if not (math.isfinite(self.area_px) and self.area_px >= 0):
            raise InvalidValue("the area", f"is {self.area_px}, not a number of at least 0")
        outline = self.segmentation
        if isinstance(outline, RunLengths):
            if outline.size_hw != (self.height, self.width):
                rows, cols = outline.size_hw
                raise InvalidValue("the mask", f"is {cols} × {rows} pixels, the image {self.width} × {self.height}")
        elif outline is not None:
            if not outline:
                raise InvalidValue("the segmentation", "has no polygon", "use None if there is none")
            check_polygons(outline, (self.width, self.height))

    @property
    def box_xyxy(self) -> BoxXyxy:
        """Left, top, right, bottom, fractions of the image."""
        return fractions(xyxy(self.box_xywh_px), self.width, self.height)

    @property
    def area_share(self) -> float:
        """The mask's share of the image."""
        return self.area_px / (self.width * self.height)

    def mask(self, height: int | None = None, width: int | None = None) -> Bools:
        """(height, width) True on the object, by COCO's rules; of the image's own size unless another is given."""
        rows, cols = self._grid(height, width)
        if self.segmentation is None:
            raise InvalidValue(f"instance {self.annotation_id}", "has no segmentation", "its box is all there is")
        if isinstance(self.segmentation, RunLengths):
            own = self.segmentation.mask()
            return own if own.shape == (rows, cols) else resampled(own, rows, cols)
        scale = cols / self.width, rows / self.height
        scaled = tuple(tuple(c * scale[i % 2] for i, c in enumerate(polygon)) for polygon in self.segmentation)
        return polygon_mask(scaled, rows, cols)

    def region(self) -> Polygon | Mask:
        """Where it is: the outline if it is a single one, otherwise the mask."""
        if isinstance(self.segmentation, tuple) and len(self.segmentation) == 1:
            points = self.segmentation[0]
            return Polygon([(x / self.width, y / self.height) for x, y in zip(points[::2], points[1::2], strict=True)])
        return Mask(self.mask())

    def _grid(self, height: int | None, width: int | None) -> tuple[int, int]:
        if height is None and width is None:
            return self.height, self.width
        if height is None or width is None:
            raise InvalidValue("mask size", "needs both height and width")
        check_size(width, height)
        return height, width


class _Annotation(msgspec.Struct, frozen=True, gc=False):
    id: Id
    image_id: Id
    category_id: Id
    bbox: tuple[float, float, float, float]
    area: float
    iscrowd: int = 0
    segmentation: list[list[float]] | RunLengthsEntry | None = None


class _Category(msgspec.Struct, frozen=True, gc=False):
    id: Id
    name: str
    supercategory: str = ""


_ANNOTATION = msgspec.json.Decoder(_Annotation)
_CATEGORY = msgspec.json.Decoder(_Category)


def sniff(path: Path, head: bytes) -> bool:
    """Whether the annotations of the document are boxes of categories."""
    return annotation_keys(path, head) >= {"image_id", "category_id", "bbox"}


def read(path: str | Path) -> Iterator[Instance | InvalidRecord]:
    """One value for each annotation; see the module."""
    root = document(path)
    found, problems = members(root, "images", "annotations", "categories")
    annotations = decoded(listed(found, "annotations", root.path), _ANNOTATION)
    images, bad_images = read_images(found, root.path)
    categories, bad_categories = _read_categories(found, root.path)
    yield from bad_images
    yield from bad_categories
    yield from built(annotations, lambda entry: _instance(entry, images, categories))
    yield from problems


def write(path: str | Path, values: Iterable[Instance]) -> int:
    """Write the official form, atomically; how many instances there were."""
    instances = list(values)
    categories: dict[int | str, dict[str, Any]] = {}
    for value in instances:
        entry = {"supercategory": value.supercategory, "id": value.category_id, "name": value.category}
        if categories.setdefault(value.category_id, entry) != entry:
            raise InvalidValue(f"category {value.category_id}", "has two names")
    content = {
        "images": image_entries(instances),
        "annotations": [_entry(value) for value in instances],
        "categories": sorted(categories.values(), key=lambda entry: (str(type(entry["id"])), entry["id"])),
    }
    with write_atomic(path) as file:
        file.write(encoded(content))
    return len(instances)


def _read_categories(found: dict[str, Node], path: str) -> tuple[dict[int | str, _Category], list[InvalidRecord]]:
    categories: dict[int | str, _Category] = {}
    bad: list[InvalidRecord] = []
    for item in decoded(listed(found, "categories", path), _CATEGORY):
        if isinstance(item, InvalidRecord):
            bad.append(item)
        elif categories.setdefault(item.value.id, item.value) != item.value:
            bad.append(item.node.invalid(f"category {item.value.id} was listed before with another name"))
    return categories, bad


def _instance(
    entry: _Annotation, images: dict[int | str, ImageEntry], categories: dict[int | str, _Category]
) -> Instance:
    image = images.get(entry.image_id)
    if image is None or image.width is None or image.height is None:
        raise InvalidValue(f"image {entry.image_id}", "is not listed with its size, so boxes cannot be fractions")
    category = categories.get(entry.category_id)
    if category is None:
        raise InvalidValue(f"category {entry.category_id}", "is not listed")
    if entry.iscrowd not in (0, 1):
        raise InvalidValue("iscrowd", f"is {entry.iscrowd}, not 0 or 1")
    outline: Polygons | RunLengths | None = None
    if isinstance(entry.segmentation, RunLengthsEntry):
        outline = entry.segmentation.value()
    elif entry.segmentation:
        outline = tuple(tuple(polygon) for polygon in entry.segmentation)
    return Instance(
        image_id=entry.image_id,
        annotation_id=entry.id,
        category=category.name,
        category_id=entry.category_id,
        width=image.width,
        height=image.height,
        box_xywh_px=entry.bbox,
        area_px=entry.area,
        segmentation=outline,
        iscrowd=bool(entry.iscrowd),
        file_name=image.file_name,
        supercategory=category.supercategory,
    )


def _entry(value: Instance) -> dict[str, Any]:
    outline: Any = value.segmentation or []
    if isinstance(value.segmentation, RunLengths):
        outline = {"size": value.segmentation.size_hw, "counts": value.segmentation.counts}
    return {
        "id": value.annotation_id,
        "image_id": value.image_id,
        "category_id": value.category_id,
        "bbox": value.box_xywh_px,
        "area": value.area_px,
        "iscrowd": int(value.iscrowd),
        "segmentation": outline,
    }
