"""The region tasks of Patch-ioner: captions of true boxes, sets of boxes and whole photos, each a list of items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from saywhere.build.region_texts import ClassBox
from saywhere.core import Box, BoxSet, InvalidValue, Region, WholeImage
from saywhere.formats.coco_captions import CaptionRecord
from saywhere.formats.entities import EntitiesCaption

Kind = Literal["dense", "region set", "image"]


@dataclass(frozen=True, slots=True, eq=False)
class RegionItem:
    """A region to be captioned, and what people wrote about it."""

    item_id: str
    image_id: str
    region: Region
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RegionTask:
    """left_out: reason → captions that could not become items."""

    kind: Kind
    items: tuple[RegionItem, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.items:
            raise InvalidValue(f"{self.kind} captioning", "has no items", _told(self.left_out))
        if len({item.item_id for item in self.items}) != len(self.items):
            raise InvalidValue(f"{self.kind} captioning", "has two items of one id")

    @property
    def by_image(self) -> dict[str, list[RegionItem]]:
        found: dict[str, list[RegionItem]] = defaultdict(list)
        for item in self.items:
            found[item.image_id].append(item)
        return dict(found)


def box_task(boxes: Iterable[ClassBox]) -> RegionTask:
    """Each box is an item; its reference is its class. The true boxes are given, as in the paper, and not found."""
    return _task("dense", ((box.image_id, Box(*box.box_xyxy), (box.class_name,)) for box in boxes))


def region_set_task(
    captions: Iterable[EntitiesCaption], sizes_px: Mapping[str, tuple[int, int]] | None = None
) -> RegionTask:
    """Captions of one photo that share their boxes are references of one item.

    sizes_px: width and height of the original photos, for files that do not tell them. Left out are captions without
    boxes and those of photos of unknown size.
    """
    grouped: dict[tuple[str, tuple[tuple[float, ...], ...]], list[str]] = defaultdict(list)
    left_out: dict[str, int] = defaultdict(int)
    for one in captions:
        size = one.size_px or (sizes_px or {}).get(one.image_id)
        if not one.boxes_xyxy_px:
            left_out["without boxes"] += 1
        elif size is None:
            left_out["photo of unknown size"] += 1
        else:
            grouped[one.image_id, one.boxes_xyxy(size)].append(one.caption)
    items = (
        (image_id, BoxSet(tuple(Box(*box) for box in boxes)), tuple(texts))
        for (image_id, boxes), texts in grouped.items()
    )
    return _task("region set", items, left_out)


def image_task(captions: Iterable[CaptionRecord]) -> RegionTask:
    """One item for each photo, with all its captions."""
    grouped: dict[str, list[str]] = defaultdict(list)
    for one in captions:
        grouped[str(one.image_id)].append(one.caption)
    return _task("image", ((image_id, WholeImage(), tuple(texts)) for image_id, texts in grouped.items()))


def _task(
    kind: Kind, rows: Iterable[tuple[str, Region, tuple[str, ...]]], left_out: Mapping[str, int] | None = None
) -> RegionTask:
    counts: dict[str, int] = defaultdict(int)
    items = []
    for image_id, region, references in rows:
        items.append(RegionItem(f"{image_id}/{counts[image_id]}", image_id, region, references))
        counts[image_id] += 1
    return RegionTask(kind, tuple(items), dict(left_out or {}))


def _told(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in left_out.items())
