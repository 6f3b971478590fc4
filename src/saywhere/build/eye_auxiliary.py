"""What a second look gives of the photos that an eye learns from, kept beside what the trunk gave: for the networks
that read it. Goes on where it stopped."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from PIL import Image

from saywhere.core.errors import SaywhereError
from saywhere.core.types import Floats32, Progress
from saywhere.models.eye.features import AUXILIARY, AUXILIARY_FIELDS, AUXILIARY_KIND, KIND, PHOTOS
from saywhere.store import Store, StoreWriter
from saywhere.vision import read_photo
from saywhere.vision.auxiliary import NAME, to_bytes

_BATCH = 16


class Looker(Protocol):
    """What looks a second time."""

    def look_many(self, images: list[Image.Image]) -> Floats32: ...


def look_again(coco: Store, features: Path, auxiliary: Looker, progress: Progress) -> int:
    """Write features/auxiliary for all photos of features/photos, or go on with it; how many have a row."""
    photos = [row.key for row in Store(features / PHOTOS, KIND)]
    about: dict[str, Any] = {"encoder": NAME}
    with StoreWriter(features / AUXILIARY, AUXILIARY_KIND, AUXILIARY_FIELDS, about) as writer:
        waiting = [key for key in photos if key not in writer]
        for first in range(0, len(waiting), _BATCH):
            keys = waiting[first : first + _BATCH]
            seen = auxiliary.look_many([_photo(coco.by_key(key)["jpeg"]) for key in keys])
            for key, one in zip(keys, seen, strict=True):
                writer.add(key, features=to_bytes(one))
            progress("looking a second time", len(photos) - len(waiting) + first + len(keys), len(photos))
        return len(writer)


def _photo(jpeg: bytes) -> Image.Image:
    """One that no longer can be read is grey; `build eye` has named it."""
    try:
        return read_photo(Image.open(BytesIO(jpeg)))
    except (OSError, SaywhereError):
        return Image.fromarray(np.full((8, 8, 3), 127, np.uint8))
