"""The photos that no training saw, with all that people said about them and drew on them.

A folder with photos/ (files named by the photo's 12-digit number), captions_val2017.json, boxes.json and
val_coco.{ids,words,cleaned_tags}.txt; and, if it is there, entities/coco_entities_test.json beside that folder.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Literal

from saywhere.build.region_texts import ClassBox, read_class_boxes
from saywhere.core import Box, BoxSet, InvalidFile, InvalidValue, Region, WholeImage, WordBoxes
from saywhere.formats import InvalidRecord, coco_captions, entities, trecs
from saywhere.formats.coco_captions import CaptionRecord
from saywhere.formats.entities import EntitiesCaption
from saywhere.formats.files import read_bytes
from saywhere.reproduce.pseudo_traces import pseudo_boxes, read_boxes

CAPTIONS, BOXES, NARRATIONS = "captions_val2017.json", "boxes.json", "val_coco.ids.txt"
ENTITIES = Path("entities") / "coco_entities_test.json"
_ENDINGS = (".webp", ".jpg", ".jpeg", ".png")
_ID = re.compile(r"[0-9]{12}")
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
            raise InvalidValue(f"{self.kind} captioning", "has no items", _left_out_text(self.left_out))
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


def _left_out_text(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in left_out.items())


@dataclass(frozen=True, slots=True, eq=False)
class PlacedNarration:
    """What somebody said about a photo. placed: the pseudo-box of each word."""

    image_id: str
    words: tuple[str, ...]
    placed: WordBoxes


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """photos: name → file, in the list's order; everything else is about these. images, boxes, sets: the tasks.

    boxes: the reference of an item is its class. sets: None if there are no entities for these photos.
    counts: what became of what was listed and read, for the report.
    """

    photos: dict[str, Path]
    images: RegionTask
    boxes: RegionTask
    class_boxes: tuple[ClassBox, ...]
    sets: RegionTask | None
    narrations: tuple[PlacedNarration, ...]
    counts: dict[str, int]


def listed_photos(path: Path | None = None) -> tuple[str, ...]:
    """The names in a list, one a line; by default those that come with the package."""
    shipped = path is None
    source = Path(str(files("saywhere.build") / "test_photos.txt")) if path is None else path
    try:
        names = read_bytes(source).decode("utf-8").split()
    except UnicodeDecodeError as error:
        raise InvalidFile(source, "is not text") from error
    for name in names:
        if not _ID.fullmatch(name):
            raise InvalidFile(source, f"{name[:40]!r} is not the name of a photo", "12 digits, one photo a line")
    if len(set(names)) < len(names):
        raise InvalidFile(source, "names a photo twice")
    if not names:
        raise InvalidFile(source, "names no photo", "" if shipped else "one 12-digit name a line")
    return tuple(names)


def read_held_out(folder: Path, names: Sequence[str], limit: int | None = None) -> HeldOut:
    """All that is known of these photos. limit: only the first so many that are here and have captions."""
    photos, captions, sizes, counts = _photos(folder, names, limit)
    boxes = [box for box in read_class_boxes(folder / BOXES) if box.image_id in photos]
    if not boxes:
        raise InvalidFile(folder / BOXES, f"has no box on any of the {len(photos)} photos")
    by_photo: dict[str, list[ClassBox]] = defaultdict(list)
    for box in boxes:
        by_photo[box.image_id].append(box)
    ordered = tuple(box for name in photos for box in by_photo[name])
    narrations, told = _narrations(folder, photos)
    beside = folder.resolve().parent / ENTITIES
    return HeldOut(
        photos,
        image_task(record for name in photos for record in captions[name]),
        box_task(ordered),
        ordered,
        _sets(beside, photos, sizes, counts) if beside.is_file() else None,
        narrations,
        {**counts, "captions": sum(len(captions[name]) for name in photos), "boxes": len(ordered), **told},
    )


def _photos(
    folder: Path, names: Sequence[str], limit: int | None
) -> tuple[dict[str, Path], dict[str, list[CaptionRecord]], dict[str, tuple[int, int]], dict[str, int]]:
    """Files, captions, sizes of the originals in pixels, and counts."""
    if limit is not None and limit < 1:
        raise InvalidValue("limit", f"is {limit}, not at least 1")
    if not (folder / "photos").is_dir():
        raise InvalidFile(folder / "photos", "is not there", "a folder of photos named by their 12-digit numbers")
    here = {path.stem: path for path in sorted((folder / "photos").iterdir()) if path.suffix.lower() in _ENDINGS}
    captions: dict[str, list[CaptionRecord]] = defaultdict(list)
    sizes: dict[str, tuple[int, int]] = {}
    bad = 0
    for record in coco_captions.read(folder / CAPTIONS):
        if isinstance(record, InvalidRecord):
            bad += 1
            continue
        name = str(record.image_id).zfill(12)
        captions[name].append(replace(record, image_id=name))
        if record.width is not None and record.height is not None:
            sizes[name] = record.width, record.height
    usable = [name for name in names if name in here and name in captions]
    if not usable:
        reason = f"none of the {len(names)} listed photos is there with a caption"
        raise InvalidFile(folder, reason, "is this the folder that the list is about?")
    counts = {
        "photos listed": len(names),
        "listed, but not here": sum(name not in here for name in names),
        "listed, but without captions": sum(name in here and name not in captions for name in names),
        "listed, but beyond the limit": len(usable) - len(usable[:limit]),
        "photos": len(usable[:limit]),
        "captions that could not be read": bad,
    }
    return {name: here[name] for name in usable[:limit]}, captions, sizes, counts


def _narrations(folder: Path, photos: Mapping[str, Path]) -> tuple[tuple[PlacedNarration, ...], dict[str, int]]:
    boxes = read_boxes(folder / BOXES)
    kept: list[PlacedNarration] = []
    counts = {"narrations": 0, "narrations without a pseudo-box": 0, "narrations that could not be read": 0}
    for told in trecs.read(folder / NARRATIONS):
        if isinstance(told, InvalidRecord):
            counts["narrations that could not be read"] += 1
            continue
        name = told.image_id.zfill(12)
        if name not in photos:
            continue
        placed = pseudo_boxes(told, boxes.get(name, {}))
        if placed.located.any():
            kept.append(PlacedNarration(name, told.words, placed))
            counts["narrations"] += 1
        else:
            counts["narrations without a pseudo-box"] += 1
    return tuple(kept), counts


def _sets(
    path: Path, photos: Mapping[str, Path], sizes: Mapping[str, tuple[int, int]], counts: dict[str, int]
) -> RegionTask | None:
    """Region sets of these photos; None if there are none. Adds to counts."""
    kept: list[EntitiesCaption] = []
    bad = 0
    for one in entities.read(path):
        if isinstance(one, InvalidRecord):
            bad += 1
            continue
        name = one.image_id.zfill(12)
        if name in photos:
            kept.append(replace(one, image_id=name))
    with_boxes = [one for one in kept if one.boxes_xyxy_px and one.image_id in sizes]
    counts |= {
        "captions of region sets": len(with_boxes),
        "captions of region sets, left out": len(kept) - len(with_boxes),
        "captions of region sets that could not be read": bad,
    }
    return region_set_task(with_boxes, sizes) if with_boxes else None
