"""SALICON fixations (Jiang et al., CVPR 2015): one JSON document in COCO's manner.

    images       [{"id", "file_name", "width", "height", …}], pixels
    annotations  [{"id", "image_id", "worker_id", "fixations": [[row, column], …]}]

People saw blurred photos that were sharp around the mouse pointer; the pointer's path, cleaned to "fixations", stands
for gaze. Rows and columns are pixel indices from 1 on, so that column 1 of 640 is at x = 0.5 / 640, the pixel's middle.
The file gives no times. One value for each annotation, in the file's order, with kind "mouse" and the worker as
subject. Bad records are: an image that is not listed with its size, an empty list, pixels outside the image. Bad
entries of `images` are reported, too, and come first.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from saywhere.core.errors import InvalidValue
from saywhere.formats._coco import ImageEntry, annotation_keys, read_images
from saywhere.formats._documents import Id, built, decoded, document, listed, members
from saywhere.formats._gaze import Gaze
from saywhere.formats.record import InvalidRecord

__all__ = ["Gaze", "read", "sniff"]


class _Annotation(msgspec.Struct, frozen=True, gc=False):
    image_id: Id
    worker_id: Id
    fixations: list[tuple[float, float]]


_ANNOTATION = msgspec.json.Decoder(_Annotation)


def sniff(path: Path, head: bytes) -> bool:
    """Whether the annotations of the document are fixations."""
    return annotation_keys(path, head) >= {"image_id", "fixations"}


def read(path: str | Path) -> Iterator[Gaze | InvalidRecord]:
    """One value for each annotation; see the module."""
    root = document(path)
    found, problems = members(root, "images", "annotations")
    annotations = decoded(listed(found, "annotations", root.path), _ANNOTATION)
    images, bad_images = read_images(found, root.path)
    yield from bad_images
    yield from built(annotations, lambda entry: _gaze(entry, images))
    yield from problems


def _gaze(entry: _Annotation, images: dict[int | str, ImageEntry]) -> Gaze:
    image = images.get(entry.image_id)
    if image is None or image.width is None or image.height is None:
        raise InvalidValue(f"image {entry.image_id}", "is not listed with its size, so fixations cannot be fractions")
    pixels = np.array(entry.fixations, dtype=np.float64).reshape(-1, 2)
    outside = ((pixels < 1) | (pixels > (image.height, image.width))).any(axis=1)
    if outside.any():
        row, col = pixels[int(np.argmax(outside))]
        raise InvalidValue(
            f"fixation {int(np.argmax(outside))}",
            f"is row {row:g}, column {col:g}, outside the image of {image.height} rows and {image.width} columns",
        )
    points_xy = (pixels[:, ::-1] - 0.5) / (image.width, image.height)
    return Gaze(entry.image_id, str(entry.worker_id), "mouse", points_xy)
