"""An image as a captioner with anchors reads it: regions, and the names of the things in it as tags."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Floats32
from saywhere.models.region_features import RegionFeatures
from saywhere.vision.view import Found

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class TaggedRegions:
    """What was seen in one image. r regions, t tags; either may be 0: a photo in which nothing was detected.

    features: (r, f) float32. boxes_xyxy: (r, 4) float32, fractions of the image. Surest first: a reader that has room
        for fewer keeps the first ones.
    tags: names of things, surest first; a name may have several words and come more than once.
    tag_boxes_xyxy: (t, 4) float32, where each named thing is; None where that is not known.
    region_present: (r,) bool, tag_present: (t,) bool. False is [PAD]: it keeps its place, and nothing sees it.
    """

    features: Floats32
    boxes_xyxy: Floats32
    tags: tuple[str, ...]
    tag_boxes_xyxy: Floats32 | None
    region_present: Bools
    tag_present: Bools

    def __init__(
        self,
        features: ArrayLike,
        boxes_xyxy: ArrayLike,
        tags: Sequence[str] = (),
        tag_boxes_xyxy: ArrayLike | None = None,
        region_present: ArrayLike | None = None,
        tag_present: ArrayLike | None = None,
    ) -> None:
        if isinstance(tags, str) or not all(isinstance(name, str) and name.strip() for name in tags):
            raise InvalidValue("tags", f"are {tags!r}, not names")
        # A numpy string is a str too, but no file format takes it.
        seen, names = _features(features), tuple(str(name) for name in tags)
        values = {
            "features": seen,
            "boxes_xyxy": _boxes(boxes_xyxy, len(seen), "region boxes"),
            "tags": names,
            "tag_boxes_xyxy": None if tag_boxes_xyxy is None else _boxes(tag_boxes_xyxy, len(names), "tag boxes"),
            "region_present": _present(region_present, len(seen), "region_present"),
            "tag_present": _present(tag_present, len(names), "tag_present"),
        }
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        """r, the regions, those that are not present among them."""
        return len(self.features)

    @property
    def region_size(self) -> int:
        """f, the numbers of a region's feature."""
        return int(self.features.shape[1])

    def without(self, tags: Collection[int] = (), regions: Collection[int] = ()) -> TaggedRegions:
        """The same image with these tags and regions, by index, put out of sight."""
        region_present, tag_present = self.region_present.copy(), self.tag_present.copy()
        for present, gone, what in ((tag_present, tags, "tags"), (region_present, regions, "regions")):
            wrong = [index for index in gone if not 0 <= index < len(present)]
            if wrong:
                raise InvalidValue(what, f"there is none with index {wrong[0]}; there are {len(present)}")
            present[list(gone)] = False
        boxes = self.tag_boxes_xyxy
        return TaggedRegions(self.features, self.boxes_xyxy, self.tags, boxes, region_present, tag_present)


def of_found(features: RegionFeatures, found: Sequence[Found]) -> TaggedRegions:
    """A real photo: an encoder's regions, with what a detector found as tags.

    One tag for each thing, the surest first, so that every tag has its own box; three chairs are three tags.
    """
    things = sorted(found, key=lambda one: -one.score)
    boxes = np.array([one.box_xyxy for one in things], dtype=np.float32).reshape(-1, 4)
    return TaggedRegions(features.features, features.boxes_xyxy, [one.name for one in things], boxes)


def _features(features: ArrayLike) -> Floats32:
    seen = np.array(features, dtype=np.float32)
    if seen.ndim != 2 or not seen.shape[1]:
        raise InvalidValue("region features", f"have shape {seen.shape}, not (regions, size)", "(0, size) for none")
    if not np.isfinite(seen).all():
        raise InvalidValue("region features", "hold NaN or infinity")
    return seen


def _boxes(values: ArrayLike, count: int, what: str) -> Floats32:
    boxes = np.array(values, dtype=np.float32)
    if not count and not boxes.size:
        boxes = boxes.reshape(0, 4)
    if boxes.shape != (count, 4):
        raise InvalidValue(what, f"have shape {boxes.shape}, not ({count}, 4)")
    # Written so that NaN is refused too.
    if not ((boxes >= 0) & (boxes <= 1)).all():
        raise InvalidValue(what, "leave the image", "give fractions of its width and height")
    if (boxes[:, :2] > boxes[:, 2:]).any():
        raise InvalidValue(what, "a left or top edge lies beyond the right or bottom edge", "need xyxy")
    return boxes


def _present(values: ArrayLike | None, count: int, what: str) -> Bools:
    present = np.ones(count, dtype=bool) if values is None else np.array(values)
    if not count and not present.size:
        return np.zeros(0, dtype=bool)
    if present.shape != (count,) or present.dtype != bool:
        raise InvalidValue(what, f"is {present.dtype} of shape {present.shape}, not bool of shape ({count},)")
    return present
