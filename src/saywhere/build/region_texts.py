"""What boxes of known classes may be called: for learning to caption regions from COCO's boxes.

A box is called by its class ("a dog"), and by the phrases in its photo's captions that name this class and no other: "a
brown dog on a lawn", but not "a brown dog lying on a couch".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from saywhere.core import Box, InvalidFile, UnknownName
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.formats.files import read_bytes
from saywhere.language.coco_aliases import classes_named
from saywhere.language.nouns import phrases_in

BoxXyxy = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class ClassBox:
    """A true box. box_xyxy: fractions of the image."""

    image_id: str
    class_name: str
    box_xyxy: BoxXyxy

    def __post_init__(self) -> None:
        Box(*self.box_xyxy)
        if self.class_name not in COCO_CLASSES:
            raise UnknownName("class of COCO", self.class_name, COCO_CLASSES)


def read_class_boxes(path: str | Path) -> list[ClassBox]:
    """All boxes of a JSON object of image → [[class number, centre x, centre y, width, height], …] in fractions."""
    try:
        raw = msgspec.json.decode(read_bytes(path), type=dict[str, list[tuple[int, float, float, float, float]]])
    except msgspec.DecodeError as error:
        raise InvalidFile(path, f"is not boxes of images: {error}") from error
    boxes = []
    for image_id, rows in raw.items():
        for number, x, y, width, height in rows:
            if not 0 <= number < len(COCO_CLASSES):
                raise InvalidFile(path, f"image {image_id}: there is no class {number}")
            x1, y1, x2, y2 = np.clip([x - width / 2, y - height / 2, x + width / 2, y + height / 2], 0, 1).tolist()
            if x1 >= x2 or y1 >= y2:
                raise InvalidFile(path, f"image {image_id}: a box has no area on the photo")
            boxes.append(ClassBox(image_id, COCO_CLASSES[number], (x1, y1, x2, y2)))
    return boxes


@dataclass(frozen=True, slots=True)
class BoxNames:
    """A box of a photo and what it may be called, its class first."""

    image_id: str
    box_xyxy: BoxXyxy
    texts: tuple[str, ...]


def box_names(
    boxes: Iterable[ClassBox],
    captions: Mapping[str, Sequence[str]],
    most_each: int = 3,
    most_texts: int = 5,
    most_small: int = 0,
) -> list[BoxNames]:
    """Boxes of the photos in `captions`, the largest `most_each` of each class in each photo, with their texts; and as
    many as `most_small` of the next largest, of which captions hardly speak, with the name of their class alone."""
    by_kind: dict[tuple[str, str], list[ClassBox]] = defaultdict(list)
    for box in boxes:
        if box.image_id in captions:
            by_kind[box.image_id, box.class_name].append(box)
    names = sorted({image_id for image_id, _ in by_kind})
    said = phrases_in([" . ".join(captions[name]) for name in names])
    phrases = {name: [(text, classes_named(text)) for text in texts] for name, texts in zip(names, said, strict=True)}
    found = []
    for (image_id, class_name), alike in sorted(by_kind.items()):
        about = [text for text, named in phrases[image_id] if named == {class_name}]
        texts = dict.fromkeys((with_article(class_name), *about))
        by_size = sorted(alike, key=lambda box: -_area(box.box_xyxy))[: most_each + most_small]
        for number, box in enumerate(by_size):
            found.append(BoxNames(image_id, box.box_xyxy, tuple(texts)[: most_texts if number < most_each else 1]))
    return found


def with_article(name: str) -> str:
    """ "dog" → "a dog"; classes that are many or a pair go without."""
    if name in ("scissors", "skis"):
        return name
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _area(box_xyxy: BoxXyxy) -> float:
    return (box_xyxy[2] - box_xyxy[0]) * (box_xyxy[3] - box_xyxy[1])
