"""Which tag a region shows: regions and tags come from different detectors, so boxes must tell (Sec. 6.1).

A region gets a tag if the tag's box has IoU ≥ 0.6 with the region's, or covers at least 80 % of the region's area.
The paper covers 74 % of the regions of its images so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.core.types import Bools, Floats
from saywhere.explain.rounds import ImageOf
from saywhere.metrics.referring import box_iou, checked_boxes
from saywhere.models.tagged_regions import TaggedRegions

IOU: Final = 0.6
COVER: Final = 0.8
_ROUNDING: Final = 1e-6
"""Boxes are float32: what misses a threshold by less than this reaches it."""

Which = Literal["all", "best"]
_WHICH: Final[tuple[Which, ...]] = get_args(Which)


def box_cover(boxes_xyxy: ArrayLike, by_xyxy: ArrayLike) -> Floats:
    """(n, m) the share of the area of each of (n, 4) boxes that each of (m, 4) others covers; 0 of a box without."""
    inner, outer = checked_boxes(boxes_xyxy, "boxes")[:, None], checked_boxes(by_xyxy, "boxes over them")[None]
    sides = np.minimum(inner[..., 2:], outer[..., 2:]) - np.maximum(inner[..., :2], outer[..., :2])
    shared = sides.clip(min=0).prod(axis=-1)
    area = np.broadcast_to((inner[..., 2:] - inner[..., :2]).prod(axis=-1), shared.shape)
    cover: Floats = np.divide(shared, area, out=np.zeros_like(shared), where=area > 0)
    return cover.clip(max=1.0)


def region_tags(image: TaggedRegions, *, which: Which = "all", iou: float = IOU, cover: float = COVER) -> Bools:
    """(r, t) which of an image's tags each of its regions shows. What is padded shows nothing and is not shown.

    which: "all" that its box allows: a shirt's region lies in the man's box and shows both. This is what an ablation
    needs, which is to leave nothing of the man; and so the default. "best": of these the one with the highest IoU, the
    first where several have it; so that a region counts once.
    Tags without boxes cannot be given to regions: InvalidValue.
    """
    if which not in _WHICH:
        raise UnknownName("way to give tags to regions", str(which), _WHICH)
    shown = np.zeros((len(image.features), len(image.tags)), np.bool_)
    if not shown.size:
        return shown
    if image.tag_boxes_xyxy is None:
        raise InvalidValue("tags", "have no boxes, so it is not known which regions show them", "give tag_boxes_xyxy")
    likeness = box_iou(image.boxes_xyxy, image.tag_boxes_xyxy)
    covered = box_cover(image.boxes_xyxy, image.tag_boxes_xyxy)
    shown = (likeness >= iou - _ROUNDING) | (covered >= cover - _ROUNDING)
    shown &= image.region_present[:, None] & image.tag_present[None, :]
    if which == "best":
        best = np.where(shown, likeness, -1.0).argmax(axis=1)
        shown &= np.arange(len(image.tags)) == best[:, None]
    return shown


@dataclass(frozen=True, slots=True)
class UnusableRecord:
    """Something that could not be used: whose it is, and what is wrong with it."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


@dataclass(frozen=True, slots=True, eq=False)
class Covered:
    """How many regions have a tag. share: (b,) in each image that was used, NaN where it has no region."""

    share: Floats
    refused: tuple[UnusableRecord, ...]

    @property
    def mean(self) -> float:
        """Over images that have regions; NaN if none has. The paper's is 0.74."""
        defined = self.share[~np.isnan(self.share)]
        return float(defined.mean()) if len(defined) else math.nan


def covered_regions(ids: Sequence[str], image_of: ImageOf, *, iou: float = IOU, cover: float = COVER) -> Covered:
    """The share of each image's regions that get a tag. Images whose tags have no boxes are named."""
    shares: list[float] = []
    refused: list[UnusableRecord] = []
    for name in ids:
        image = image_of(name)
        try:
            shown = region_tags(image, iou=iou, cover=cover)
        except InvalidValue as error:
            refused.append(UnusableRecord(name, f"{error.what} {error.reason}"))
            continue
        here = image.region_present
        shares.append(float(shown[here].any(axis=1).mean()) if here.any() else math.nan)
    return Covered(np.array(shares, np.float64), tuple(refused))
