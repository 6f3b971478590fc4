"""The things of a photo by class, read from files with bad boxes named, and which classes are usual beside which."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from saywhere.build.region_texts import BoxXyxy, ClassBox
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.core.errors import InvalidFile
from saywhere.formats import coco_instances
from saywhere.formats.coco_instances import Instance
from saywhere.formats.files import open_bytes, read_bytes
from saywhere.formats.record import InvalidRecord

_SNIFFED = 2**16
_LIKELY = 8
"""Of the classes that a photo does not have, so many count as usual there."""

# Where one of a group is seen, another may be seen in it or left unmarked: it is never said to be absent.
_ALIKE = (
    ("car", "truck", "bus"),
    ("bicycle", "motorcycle"),
    ("cup", "wine glass", "bowl", "vase", "bottle"),
    ("chair", "couch", "bench", "bed"),
    ("handbag", "backpack", "suitcase"),
    ("skis", "snowboard"),
    ("snowboard", "skateboard", "surfboard"),
    ("tv", "laptop"),
    ("laptop", "keyboard"),
    ("fork", "knife", "spoon"),
    ("sheep", "cow", "horse"),
    ("orange", "apple"),
    ("donut", "cake"),
    ("sandwich", "hot dog"),
    ("oven", "microwave", "toaster"),
    ("bear", "teddy bear"),
    ("cell phone", "remote"),
    ("potted plant", "vase"),
)
# Things that mostly stand on a table, which is often not marked when little of it is seen.
_ON_TABLES = (
    *("chair", "cup", "bowl", "fork", "knife", "spoon", "bottle", "wine glass", "laptop", "keyboard", "mouse", "book"),
    *("pizza", "cake", "sandwich", "donut", "hot dog", "vase"),
)


@dataclass(frozen=True, slots=True)
class PhotoBoxes:
    """What is on one photo. boxes: class → its boxes, fractions of the photo. crowds: classes that also have a group
    marked as one, so that their boxes cannot be counted."""

    image: str
    boxes: Mapping[str, tuple[BoxXyxy, ...]]
    crowds: frozenset[str] = frozenset()

    @property
    def classes(self) -> frozenset[str]:
        return self.crowds | self.boxes.keys()

    def clear(self, smallest: float) -> dict[str, tuple[BoxXyxy, ...]]:
        """Classes of which every single thing covers at least this share of the photo, and that are no crowd."""
        return {
            name: boxes
            for name, boxes in self.boxes.items()
            if name not in self.crowds and min(map(area, boxes)) >= smallest
        }


def area(box_xyxy: BoxXyxy) -> float:
    """Share of the photo."""
    return (box_xyxy[2] - box_xyxy[0]) * (box_xyxy[3] - box_xyxy[1])


def by_photo(boxes: Iterable[ClassBox], crowds: Iterable[ClassBox] = ()) -> list[PhotoBoxes]:
    """Boxes gathered by photo, photos in the order of their names. crowds: groups marked as one."""
    found: dict[str, dict[str, list[BoxXyxy]]] = defaultdict(lambda: defaultdict(list))
    for box in boxes:
        found[box.image_id][box.class_name].append(box.box_xyxy)
    groups: dict[str, set[str]] = defaultdict(set)
    for crowd in crowds:
        groups[crowd.image_id].add(crowd.class_name)
    return [
        PhotoBoxes(
            image, {name: tuple(alike) for name, alike in sorted(found[image].items())}, frozenset(groups[image])
        )
        for image in sorted(found.keys() | groups.keys())
    ]


def read_photo_boxes(path: str | Path) -> tuple[list[PhotoBoxes], list[InvalidRecord]]:
    """The photos of COCO's instances file, or of image → [[class number, centre x, centre y, width, height], …].

    Photos are called by their names of twelve digits where the file has numbers. Bad boxes are left out and listed.
    """
    with open_bytes(path) as file:
        instances = coco_instances.sniff(Path(path), file.read(_SNIFFED))
    boxes: list[ClassBox] = []
    crowds: list[ClassBox] = []
    bad: list[InvalidRecord] = []
    for one in _instances(path) if instances else _centred(path):
        if isinstance(one, InvalidRecord):
            bad.append(one)
        else:
            (crowds if one[1] else boxes).append(one[0])
    return by_photo(boxes, crowds), bad


def photo_name(image_id: int | str) -> str:
    """COCO's name of a photo: its number in twelve digits; names that are no numbers stay."""
    text = str(image_id)
    return text.zfill(12) if text.isascii() and text.isdigit() else text


def _instances(path: str | Path) -> Iterator[tuple[ClassBox, bool] | InvalidRecord]:
    for one in coco_instances.read(path):
        if not isinstance(one, Instance):
            yield one
            continue
        if one.category not in COCO_CLASSES:
            yield InvalidRecord(
                str(path), 0, f"{one.category!r} is no class of COCO", f"annotation {one.annotation_id}"
            )
            continue
        x1, y1, x2, y2 = np.clip(one.box_xyxy, 0, 1).tolist()
        yield ClassBox(photo_name(one.image_id), one.category, (x1, y1, x2, y2)), one.iscrowd


def _centred(path: str | Path) -> Iterator[tuple[ClassBox, bool] | InvalidRecord]:
    try:
        rows = msgspec.json.decode(read_bytes(path), type=dict[str, list[msgspec.Raw]])
    except msgspec.DecodeError as error:
        raise InvalidFile(path, f"is not boxes of images: {error}", "or COCO's instances_*.json") from error
    for image, raws in rows.items():
        for place, raw in enumerate(raws):
            made = _centred_box(photo_name(image), raw)
            yield InvalidRecord(str(path), 0, made, f"{image}[{place}]") if isinstance(made, str) else (made, False)


def _centred_box(image: str, raw: msgspec.Raw) -> ClassBox | str:
    """The box, or what is wrong with it."""
    try:
        number, x, y, width, height = msgspec.json.decode(raw, type=tuple[int, float, float, float, float])
    except msgspec.DecodeError as error:
        return f"is not [class number, centre x, centre y, width, height]: {error}"
    if not 0 <= number < len(COCO_CLASSES):
        return f"there is no class {number}"
    x1, y1, x2, y2 = np.clip([x - width / 2, y - height / 2, x + width / 2, y + height / 2], 0, 1).tolist()
    if x1 >= x2 or y1 >= y2:
        return "the box has no area on the photo"
    return ClassBox(image, COCO_CLASSES[number], (x1, y1, x2, y2))


@dataclass(frozen=True, slots=True, eq=False)
class Usual:
    """Which classes are usual beside which. together: (classes, classes) share of the photos with the row's class that
    also have the column's."""

    together: np.ndarray

    @classmethod
    def of(cls, photos: Sequence[PhotoBoxes]) -> Usual:
        seen = np.zeros((len(photos), len(COCO_CLASSES)))
        for row, photo in enumerate(photos):
            seen[row, [_NUMBER[name] for name in photo.classes]] = 1
        both = seen.T @ seen
        return cls(both / np.maximum(np.diag(both)[:, None], 1))

    def absent(self, photo: PhotoBoxes, named: Collection[str] = ()) -> tuple[list[str], list[str]]:
        """Classes that are certainly not on the photo: those most usual beside what is there, and all the others.

        named: classes that somebody says are there. Neither they nor what looks like anything there count as absent.
        """
        here = photo.classes | set(named)
        certain = [name for name in COCO_CLASSES if name not in here and not _MIGHT_BE[name] & here]
        rows = [_NUMBER[name] for name in photo.classes]
        chance = self.together[rows].sum(axis=0) if rows else np.zeros(len(COCO_CLASSES))
        ranked = sorted(certain, key=lambda name: -chance[_NUMBER[name]])
        likely = [name for name in ranked[:_LIKELY] if chance[_NUMBER[name]] > 0]
        return likely, [name for name in certain if name not in likely]


def _might_be() -> dict[str, frozenset[str]]:
    alike: dict[str, set[str]] = {name: set() for name in COCO_CLASSES}
    for group in _ALIKE:
        for name in group:
            alike[name] |= set(group) - {name}
    alike["dining table"] |= set(_ON_TABLES)
    return {name: frozenset(others) for name, others in alike.items()}


_NUMBER = {name: number for number, name in enumerate(COCO_CLASSES)}
_MIGHT_BE = _might_be()
