"""What an eye sees of photos, place by place, from what its frozen trunk gave: no photo is looked at again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from saywhere.core import Frame
from saywhere.core.errors import InvalidFile
from saywhere.core.types import Floats32, Progress
from saywhere.models.answerer.data import PLACES, PLACES_FIELDS
from saywhere.models.eye.encoder import EyeLearner, namer_of
from saywhere.models.eye.features import KIND, PHOTOS, Quantiser
from saywhere.models.folder import WEIGHTS
from saywhere.models.patchioner.answering import state_places
from saywhere.models.region_features import REGIONS
from saywhere.store import Store, StoreWriter
from saywhere.vision.eye import EyeConfig, Seen
from saywhere.vision.things import Namer
from saywhere.vision.view import View

_BATCH = 16
# What a run that is killed loses at most.
_SHARD_BYTES = 64 << 20


def see_places(
    features: Path, eye: Path, photos: Sequence[str], out: Path, progress: Progress, *, bf16: bool = True
) -> int:
    """Write out/places, or go on with it; how many of the photos have no features and were left out.

    features: what `saywhere build eye` wrote. eye: a trained one's folder. bf16: three times faster on processors that
    have it.
    """
    store = Store(features / PHOTOS, KIND)
    learner = EyeLearner.from_pretrained(eye)
    wanted = [photo for photo in photos if photo in store]
    if not wanted:
        raise InvalidFile(features, f"has none of the {len(photos):,} photos with questions")
    about = {"eye": hashlib.sha256((eye / WEIGHTS).read_bytes()).hexdigest(), "trunk": store.about["trunk"]}
    with StoreWriter(out / PLACES, REGIONS, PLACES_FIELDS, about, shard_bytes=_SHARD_BYTES) as writer:
        waiting = [photo for photo in wanted if photo not in writer]
        done = len(wanted) - len(waiting)
        for first in range(0, len(waiting), _BATCH):
            some = waiting[first : first + _BATCH]
            for photo, view in zip(some, views_of(learner, _trunk_states(store, some), bf16=bf16), strict=True):
                places = state_places(view)
                writer.add(photo, regions=places.features.astype(np.float16), boxes=places.boxes_xyxy)
            progress("seeing places", done + first + len(some), len(wanted))
    return len(photos) - len(wanted)


def views_of(learner: EyeLearner, trunk_states: Floats32, *, bf16: bool = False) -> Iterator[View]:
    """(B, 1 + n, size) of what the trunk gives → what the eye would see of each photo."""
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        seen: Seen = learner(torch.from_numpy(trunk_states))
    config, namer = learner.eye.config, namer_of(learner)
    cells = _on_grid(seen.cells, config)
    boxes = _on_grid(torch.cat([seen.boxes, seen.things[..., None]], dim=-1), config)
    wholes, states = (part.float().numpy() for part in (seen.whole, seen.states))
    for number in range(len(trunk_states)):
        yield _view(namer, cells[number], boxes[number], wholes[number], states[number])


def _view(namer: Namer, cells: Floats32, boxes: Floats32, whole: Floats32, states: Floats32) -> View:
    return View(Frame.of_grid(*cells.shape[:2]), cells, whole, None, namer.found(cells, boxes), states=states)


def _trunk_states(store: Store, photos: Sequence[str]) -> Floats32:
    quantiser = Quantiser.from_dict(store.about["quantiser"])
    return quantiser.to_floats(np.stack([store.by_key(photo)["tapped"] for photo in photos]))


def _on_grid(values: Tensor, config: EyeConfig) -> Floats32:
    """(B, n, c, d) by patch → (B, rows, cols, d) by place."""
    grid, cuts, size = config.grid, config.cuts, values.shape[-1]
    placed = values.float().view(-1, grid, grid, cuts, cuts, size).transpose(2, 3)
    found: Floats32 = placed.reshape(-1, grid * cuts, grid * cuts, size).numpy()
    return found
