"""Places of photos that answers are learnt from: as an eye sees them, and what the detector found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saywhere.build.eye_seen import SeenStore, write_seen
from saywhere.core.types import Progress
from saywhere.models.answerer.data import PLACES, PLACES_FIELDS
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.eye.features import FOUND, FOUND_KIND, FoundThings
from saywhere.models.patchioner.answering import LEAST_FOUND, MOST_THINGS, state_places
from saywhere.models.region_features import REGIONS
from saywhere.store import Store
from saywhere.vision.eye import Seen


def see_places(
    features: Path, eye: Path, photos: Sequence[str], out: Path, progress: Progress, *, bf16: bool = True
) -> int:
    """Write out/places, or go on with it; how many of the photos have no features and were left out. See
    `write_seen`."""
    found, names = Store(features / FOUND, FOUND_KIND), EyeLearner.from_pretrained(eye).name_vectors.numpy()

    def row_of(photo: str, seen: Seen) -> dict[str, Any]:
        things = FoundThings.of_row(found.by_key(photo)).named(names).surest(MOST_THINGS, LEAST_FOUND)
        whole, states = (part[0].float().numpy() for part in (seen.whole, seen.states))
        places = state_places(whole, states, things)
        return {"regions": places.features.astype(np.float16), "boxes": places.boxes_xyxy}

    target = SeenStore(out / PLACES, REGIONS, PLACES_FIELDS, "seeing places")
    return write_seen(features, eye, photos, target, row_of, progress, bf16=bf16)
