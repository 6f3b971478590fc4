"""What an eye sees of photos, from what its frozen trunk gave: no photo is looked at again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from saywhere.core.errors import InvalidFile
from saywhere.core.types import Floats32, Progress
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.eye.features import KIND, PHOTOS, Quantiser
from saywhere.models.folder import WEIGHTS
from saywhere.store import Store, StoreWriter
from saywhere.vision.eye import Seen

_BATCH = 16


@dataclass(frozen=True, slots=True)
class SeenStore:
    """A store to be written, one row a photo. doing: what progress is called. shard_bytes: what a run that is killed
    loses at most."""

    folder: Path
    kind: str
    fields: Mapping[str, str]
    doing: str
    shard_bytes: int = 64 << 20


def write_seen(
    features: Path,
    eye: Path,
    photos: Sequence[str],
    target: SeenStore,
    row_of: Callable[[str, Seen], Mapping[str, Any]],
    progress: Progress,
    *,
    bf16: bool = True,
) -> int:
    """Write the target, or go on with it; how many of the photos have no features and were left out.

    features: what `saywhere build eye` wrote. eye: a trained one's folder. row_of: a photo's key and what the eye sees
    of it, a batch of one, to the fields of its row. bf16: three times faster on processors that have it.
    """
    trunk, learner = Store(features / PHOTOS, KIND), EyeLearner.from_pretrained(eye)
    wanted = [photo for photo in photos if photo in trunk]
    if not wanted:
        raise InvalidFile(features, f"has none of the {len(photos):,} photos")
    about = {"eye": hashlib.sha256((eye / WEIGHTS).read_bytes()).hexdigest(), "trunk": trunk.about["trunk"]}
    stored = (target.folder, target.kind, target.fields, about)
    with StoreWriter(*stored, shard_bytes=target.shard_bytes) as writer:
        waiting = [photo for photo in wanted if photo not in writer]
        done = len(wanted) - len(waiting)
        for first in range(0, len(waiting), _BATCH):
            some = waiting[first : first + _BATCH]
            with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                seen: Seen = learner(torch.from_numpy(_trunk_states(trunk, some)))
            for number, photo in enumerate(some):
                writer.add(photo, **row_of(photo, Seen(*(part[number : number + 1] for part in seen))))
            progress(target.doing, done + first + len(some), len(wanted))
    return len(photos) - len(wanted)


def _trunk_states(trunk: Store, photos: Sequence[str]) -> Floats32:
    quantiser = Quantiser.from_dict(trunk.about["quantiser"])
    return quantiser.to_floats(np.stack([trunk.by_key(photo)["tapped"] for photo in photos]))
