"""Pseudo-traces of real narrations whose words carry a tag: the boxes of that tag, always called so, because nobody's
pointer went through these boxes.

A word's pseudo-box is the largest box of its tag's class on the photo; a word whose tag is stuff (sky, wall …), or has
no box, is unlocated.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from saywhere.core import Box, InvalidFile, WordBoxes
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.formats.files import read_bytes
from saywhere.formats.trecs import TaggedNarration

Boxes = Mapping[str, Mapping[str, tuple[float, float, float, float]]]
"""Image → class → the largest box of that class, x1, y1, x2, y2 in fractions."""


def read_boxes(path: str | Path) -> Boxes:
    """A JSON object of image → [[class number, centre x, centre y, width, height], …] in fractions."""
    try:
        raw = msgspec.json.decode(read_bytes(path), type=dict[str, list[tuple[int, float, float, float, float]]])
    except msgspec.DecodeError as error:
        raise InvalidFile(path, f"is not boxes of images: {error}") from error
    found: dict[str, dict[str, tuple[float, float, float, float]]] = {}
    for image_id, rows in raw.items():
        largest: dict[str, tuple[float, float, float, float]] = {}
        for number, x, y, width, height in sorted(rows, key=lambda row: row[3] * row[4]):
            if not 0 <= number < len(COCO_CLASSES):
                raise InvalidFile(path, f"image {image_id}: there is no class {number}")
            corners = np.clip([x - width / 2, y - height / 2, x + width / 2, y + height / 2], 0, 1)
            largest[COCO_CLASSES[number]] = Box(*corners.tolist()).xyxy
        found[image_id] = largest
    return found


def pseudo_boxes(narration: TaggedNarration, boxes: Mapping[str, tuple[float, float, float, float]]) -> WordBoxes:
    """A pseudo-box for each word; see the module."""
    nowhere = (np.nan,) * 4
    return WordBoxes([boxes.get(tag.replace("-", " "), nowhere) for tag in narration.tags])
