"""What a detector finds in the photos that an eye learns from, kept beside what the trunk gave: for the networks that
read things by their names. Goes on where it stopped."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from PIL import Image

from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.core.errors import SaywhereError
from saywhere.core.types import Progress
from saywhere.models.eye.features import FOUND, FOUND_FIELDS, FOUND_KIND, KIND, PHOTOS
from saywhere.store import Store, StoreWriter
from saywhere.vision import read_photo
from saywhere.vision.detector import Detected

_LEAST_SCORE, _MOST = 0.05, 40
# What a run that is killed loses at most: about a minute.
_SHARD_BYTES = 1 << 20


class Finder(Protocol):
    """A detector of COCO's kinds."""

    @property
    def fingerprint(self) -> dict[str, str | int]: ...

    def find(self, photo: Image.Image, least_score: float = 0.0) -> Detected: ...


def find_things(coco: Store, features: Path, detector: Finder, progress: Progress) -> int:
    """Write features/found for all photos of features/photos, or go on with it; how many have a row."""
    photos = [row.key for row in Store(features / PHOTOS, KIND)]
    about, shard_bytes = detector.fingerprint, _SHARD_BYTES
    with StoreWriter(features / FOUND, FOUND_KIND, FOUND_FIELDS, about, shard_bytes=shard_bytes) as writer:
        for done, key in enumerate(photos, start=1):
            if key not in writer:
                # One that no longer can be read has nothing in it; `build eye` has named it.
                writer.add(key, **_found(coco.by_key(key)["jpeg"], detector))
            progress("finding things", done, len(photos))
        return len(writer)


def _found(jpeg: bytes, detector: Finder) -> dict[str, Any]:
    things = list(_things(jpeg, detector))[:_MOST]
    return {
        "boxes_xyxy": np.array([one[0] for one in things], np.float16).reshape(-1, 4),
        "kinds": np.array([one[1] for one in things], np.int16),
        "scores": np.array([one[2] for one in things], np.float16),
    }


def _things(jpeg: bytes, detector: Finder) -> Iterator[tuple[tuple[float, float, float, float], int, float]]:
    try:
        photo = read_photo(Image.open(BytesIO(jpeg)))
    except (OSError, SaywhereError):
        return
    for one in detector.find(photo, _LEAST_SCORE).found:
        yield one.box_xyxy, COCO_CLASSES.index(one.name), one.score
