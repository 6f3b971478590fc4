"""What the small body of TraceVLM learns to read of photos: the eye's hidden states, window by window, and things.

Photos are not looked at again: what the eye's frozen trunk gave of them is at hand, and what the detector found in
them, or else the things that people marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from saywhere.build.eye_seen import EyeStates, SeenStore, write_seen
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.core.errors import SaywhereError
from saywhere.core.types import Floats32, Progress
from saywhere.models.eye.features import FOUND, FOUND_KIND, FoundThings
from saywhere.models.tracevlm.small_input import EyeAndDetector, photo_features
from saywhere.models.tracevlm.small_photos import (
    PHOTOS,
    PHOTOS_FIELDS,
    PHOTOS_KIND,
    PhotoFeatures,
    of_things,
    window_states,
)
from saywhere.store import Store, StoreWriter
from saywhere.vision import read_photo
from saywhere.vision.view import Found

# What a run that is killed loses at most.
_SHARD_BYTES = 32 << 20


def see_photos(
    coco: Store, features: Path, eye: Path, photos: Sequence[str], out: Path, progress: Progress, *, bf16: bool = True
) -> int:
    """Write out/photos, or go on with it; how many of the photos have no features and were left out. See
    `write_seen`. Things are those of features/found; the true ones of photos that it lacks."""
    found = Store(features / FOUND, FOUND_KIND) if (features / FOUND).is_dir() else None

    def row_of(photo: str, seen: EyeStates) -> dict[str, Any]:
        windows = window_states(seen.states)
        if found is not None and photo in found:
            return as_detected(windows, FoundThings.of_row(found.by_key(photo))).row()
        row = coco.by_key(photo)
        return PhotoFeatures.marked(windows, row["boxes_xyxy"], row["classes"]).row()

    target = SeenStore(out / PHOTOS, PHOTOS_KIND, PHOTOS_FIELDS, "seeing photos", _SHARD_BYTES)
    return write_seen(features, eye, photos, target, row_of, progress, bf16=bf16)


def as_detected(windows: Floats32, things: FoundThings) -> PhotoFeatures:
    """A photo with what the detector found in it, as the body reads it when it looks for itself."""
    rows = zip(things.boxes_xyxy.tolist(), things.kinds.tolist(), things.scores.tolist(), strict=True)
    # What is stored in half precision may have lost its area.
    kept = [(tuple(box), COCO_CLASSES[kind], score) for box, kind, score in rows if box[0] < box[2] and box[1] < box[3]]
    return of_things(windows, [Found(*one) for one in kept])


def look_at_photos(folder: Path, names: Sequence[str], out: Path, progress: Progress) -> list[str]:
    """Go on with out/photos: photos of a folder, by the names of their files, as the shipped eye and the detector see
    them; those that cannot be read."""
    inputs = EyeAndDetector()
    about = Store(out / PHOTOS, PHOTOS_KIND).about
    unread: list[str] = []
    with StoreWriter(out / PHOTOS, PHOTOS_KIND, PHOTOS_FIELDS, about, shard_bytes=_SHARD_BYTES) as writer:
        for number, name in enumerate(names, 1):
            if name not in writer:
                try:
                    writer.add(name, **photo_features(inputs.look(read_photo(folder / name))).row())
                except SaywhereError:
                    unread.append(name)
            progress("looking at photos", number, len(names))
    return unread
