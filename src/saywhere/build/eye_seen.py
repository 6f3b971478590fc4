"""What an eye sees of photos, from what its frozen trunk gave: no photo is looked at again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from saywhere.core.errors import InvalidFile
from saywhere.core.types import Floats32, Progress
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.eye.features import KIND, PHOTOS, Quantiser
from saywhere.models.folder import WEIGHTS
from saywhere.store import Store, StoreWriter
from saywhere.vision.eye_states import open_states
from saywhere.vision.runtime import F32, fast_precision

_BATCH = 16
_WORTH_CONVERTING = 500
"""Photos for which a network is converted to run faster."""


@dataclass(frozen=True, slots=True)
class SeenStore:
    """A store to be written, one row a photo. doing: what progress is called. shard_bytes: what a run that is killed
    loses at most. about: what rows depend on beside the eye and its trunk."""

    folder: Path
    kind: str
    fields: Mapping[str, str]
    doing: str
    shard_bytes: int = 64 << 20
    about: Mapping[str, Any] = field(default_factory=dict)


class EyeStates(NamedTuple):
    """What networks read that stand on an eye, of one photo, as `Seen` has it. whole, contrast: (d,). states: (1 + n,
    d)."""

    whole: Floats32
    contrast: Floats32
    states: Floats32


def write_seen(
    features: Path,
    eye: Path,
    photos: Sequence[str],
    target: SeenStore,
    row_of: Callable[[str, EyeStates], Mapping[str, Any]],
    progress: Progress,
    *,
    bf16: bool = True,
) -> int:
    """Write the target, or go on with it; how many of the photos have no features and were left out.

    features: what `saywhere build eye` wrote. eye: a trained one's folder. row_of: a photo's key and what the eye sees
    of it to the fields of its row. bf16: twice as fast on processors that have it.
    """
    trunk = Store(features / PHOTOS, KIND)
    wanted = [photo for photo in photos if photo in trunk]
    if not wanted:
        raise InvalidFile(features, f"has none of the {len(photos):,} photos")
    about = {
        "eye": hashlib.sha256((eye / WEIGHTS).read_bytes()).hexdigest(),
        "trunk": trunk.about["trunk"],
        **target.about,
    }
    stored = (target.folder, target.kind, target.fields, about)
    with StoreWriter(*stored, shard_bytes=target.shard_bytes) as writer:
        waiting = [photo for photo in wanted if photo not in writer]
        done = len(wanted) - len(waiting)
        for number, (photo, seen) in enumerate(_seen(trunk, eye, waiting, bf16=bf16), 1):
            writer.add(photo, **row_of(photo, seen))
            if number % _BATCH == 0 or number == len(waiting):
                progress(target.doing, done + number, len(wanted))
    return len(photos) - len(wanted)


def _seen(trunk: Store, eye: Path, photos: Sequence[str], *, bf16: bool) -> Iterator[tuple[str, EyeStates]]:
    if not photos:
        return
    kind = "" if len(photos) >= _WORTH_CONVERTING else "torch"
    weights = hashlib.sha256((eye / WEIGHTS).read_bytes()).hexdigest()
    example = torch.from_numpy(_trunk_states(trunk, photos[:1]))
    run = open_states(
        lambda: EyeLearner.from_pretrained(eye).eye, weights, example, kind, fast_precision(kind) if bf16 else F32
    )
    for first in range(0, len(photos), _BATCH):
        some = photos[first : first + _BATCH]
        # By torch, bf16 is autocast's.
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            parts = run(_trunk_states(trunk, some))
        for number, photo in enumerate(some):
            yield photo, EyeStates(*(part[number] for part in parts))


def _trunk_states(trunk: Store, photos: Sequence[str]) -> Floats32:
    quantiser = Quantiser.from_dict(trunk.about["quantiser"])
    return quantiser.to_floats(np.stack([trunk.by_key(photo)["tapped"] for photo in photos]))
