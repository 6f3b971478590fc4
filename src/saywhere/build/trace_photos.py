"""What the small body of TraceVLM learns to read of photos: the eye's hidden states, window by window, and true things.

Photos are not looked at again: what the eye's frozen trunk gave of them is at hand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from saywhere.core.errors import InvalidFile, SaywhereError
from saywhere.core.types import Floats32, Progress
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.eye.features import KIND, Quantiser
from saywhere.models.eye.features import PHOTOS as TRUNK
from saywhere.models.folder import WEIGHTS
from saywhere.models.tracevlm.small_input import EyeAndDetector, photo_features
from saywhere.models.tracevlm.small_photos import PHOTOS, PHOTOS_FIELDS, PHOTOS_KIND, PhotoFeatures, window_states
from saywhere.store import Store, StoreWriter
from saywhere.vision import read_photo

_BATCH = 16
# What a run that is killed loses at most.
_SHARD_BYTES = 32 << 20


def see_photos(
    coco: Store, features: Path, eye: Path, photos: Sequence[str], out: Path, progress: Progress, *, bf16: bool = True
) -> int:
    """Write out/photos, or go on with it; how many of the photos have no features and were left out.

    features: what `saywhere build eye` wrote. eye: a trained one's folder. bf16: four times faster on processors that
    have it.
    """
    trunk = Store(features / TRUNK, KIND)
    learner = EyeLearner.from_pretrained(eye)
    wanted = [photo for photo in photos if photo in trunk]
    if not wanted:
        raise InvalidFile(features, f"has none of the {len(photos):,} photos")
    about = {"eye": hashlib.sha256((eye / WEIGHTS).read_bytes()).hexdigest(), "trunk": trunk.about["trunk"]}
    with StoreWriter(out / PHOTOS, PHOTOS_KIND, PHOTOS_FIELDS, about, shard_bytes=_SHARD_BYTES) as writer:
        waiting = [photo for photo in wanted if photo not in writer]
        done = len(wanted) - len(waiting)
        for first in range(0, len(waiting), _BATCH):
            some = waiting[first : first + _BATCH]
            for photo, states in zip(some, _states(learner, trunk, some, bf16=bf16), strict=True):
                row = coco.by_key(photo)
                seen = PhotoFeatures.marked(window_states(states), row["boxes_xyxy"], row["classes"])
                writer.add(photo, **seen.row())
            progress("seeing photos", done + first + len(some), len(wanted))
    return len(photos) - len(wanted)


def _states(learner: EyeLearner, trunk: Store, photos: Sequence[str], *, bf16: bool) -> Floats32:
    quantiser = Quantiser.from_dict(trunk.about["quantiser"])
    tapped = quantiser.to_floats(np.stack([trunk.by_key(photo)["tapped"] for photo in photos]))
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        states: Floats32 = learner(torch.from_numpy(tapped)).states.float().numpy()
    return states


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
