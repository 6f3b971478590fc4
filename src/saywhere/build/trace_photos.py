"""What the small body of TraceVLM learns to read of photos: the eye's hidden states, window by window, and true things.

Photos are not looked at again: what the eye's frozen trunk gave of them is at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from saywhere.build.eye_seen import SeenStore, write_seen
from saywhere.core.errors import SaywhereError
from saywhere.core.types import Progress
from saywhere.models.tracevlm.small_input import EyeAndDetector, photo_features
from saywhere.models.tracevlm.small_photos import PHOTOS, PHOTOS_FIELDS, PHOTOS_KIND, PhotoFeatures, window_states
from saywhere.store import Store, StoreWriter
from saywhere.vision import read_photo
from saywhere.vision.eye import Seen

# What a run that is killed loses at most.
_SHARD_BYTES = 32 << 20


def see_photos(
    coco: Store, features: Path, eye: Path, photos: Sequence[str], out: Path, progress: Progress, *, bf16: bool = True
) -> int:
    """Write out/photos, or go on with it; how many of the photos have no features and were left out. See
    `write_seen`."""

    def row_of(photo: str, seen: Seen) -> dict[str, Any]:
        row, states = coco.by_key(photo), seen.states[0].float().numpy()
        return PhotoFeatures.marked(window_states(states), row["boxes_xyxy"], row["classes"]).row()

    target = SeenStore(out / PHOTOS, PHOTOS_KIND, PHOTOS_FIELDS, "seeing photos", _SHARD_BYTES)
    return write_seen(features, eye, photos, target, row_of, progress, bf16=bf16)


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
