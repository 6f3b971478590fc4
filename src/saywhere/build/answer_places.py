"""Places of photos that answers are learnt from: as an eye sees them, what the detector found, and a second look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save

from saywhere.atomic import write_atomic
from saywhere.build.eye_seen import EyeStates, SeenStore, write_seen
from saywhere.core.types import Progress
from saywhere.models.answerer.data import PLACES, PLACES_FIELDS, SECOND, read_second
from saywhere.models.answerer.second import SecondReader
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.eye.features import AUXILIARY, AUXILIARY_KIND, FOUND, FOUND_KIND, FoundThings
from saywhere.models.patchioner.answering import LEAST_FOUND, MOST_THINGS, state_places
from saywhere.models.region_features import REGIONS
from saywhere.store import Store
from saywhere.vision.auxiliary import to_floats

_FIT_PHOTOS = 2000
"""Photos that say in which directions second looks differ."""


def see_places(
    features: Path, eye: Path, photos: Sequence[str], out: Path, progress: Progress, *, bf16: bool = True
) -> int:
    """Write out/places, or go on with it; how many of the photos have no features and were left out. See
    `write_seen`. Where photos were looked at a second time, that is among the places."""
    # Rows with a second look have another width than those without.
    about = {} if _second_looks(features) is None else {"second_look": True}
    target = SeenStore(out / PLACES, REGIONS, PLACES_FIELDS, "seeing places", about=about)
    return write_seen(features, eye, photos, target, place_rows(features, eye, photos, out), progress, bf16=bf16)


def place_rows(
    features: Path, eye: Path, photos: Sequence[str], out: Path
) -> Callable[[str, EyeStates], dict[str, Any]]:
    """What of a photo, as the eye sees it, goes into the store of places."""
    found, learner = Store(features / FOUND, FOUND_KIND), EyeLearner.from_pretrained(eye)
    names, seconds = learner.name_vectors.numpy(), _second_looks(features)
    second = None if seconds is None else _fitted(seconds, photos, learner.eye.config.text_size, out / SECOND)

    def row_of(photo: str, seen: EyeStates) -> dict[str, Any]:
        things = FoundThings.of_row(found.by_key(photo)).named(names).surest(MOST_THINGS, LEAST_FOUND)
        again = None
        if seconds is not None and second is not None:
            again = second.read(to_floats(seconds.by_key(photo)["features"]))
        places = state_places(seen.whole, seen.states, things, again)
        return {"regions": places.features.astype(np.float16), "boxes": places.boxes_xyxy}

    return row_of


def _second_looks(features: Path) -> Store | None:
    return Store(features / AUXILIARY, AUXILIARY_KIND) if (features / AUXILIARY).is_dir() else None


def _fitted(seconds: Store, photos: Sequence[str], size: int, path: Path) -> SecondReader:
    """As an earlier run had it, or from photos spread evenly."""
    if not path.exists():
        known = [photo for photo in photos if photo in seconds]
        some = known[:: max(1, len(known) // _FIT_PHOTOS)]
        places = np.concatenate([to_floats(seconds.by_key(photo)["features"]) for photo in some])
        fitted = SecondReader.fit(torch.from_numpy(places), size)
        with write_atomic(path) as file:
            file.write(save({name: one.contiguous() for name, one in fitted.state_dict().items()}))
    return read_second(path)
