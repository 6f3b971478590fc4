"""Where a model thinks people look, against where they did: SALICON's validation maps, whose looks nothing learnt."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image

from saywhere.core import InvalidFile
from saywhere.core.types import Floats32, Progress
from saywhere.metrics.attention import cc, sim
from saywhere.store import Row, Store

_TRAIN, _HELD_OUT = "train", "val"
_MEAN_OF = 1000


def saliency_measures(model: Any, store: Store, most: int, progress: Progress) -> dict[str, float]:
    """CC and SIM over at most so many of the store's photos, spread evenly, and beside them those of the mean map of
    training photos, which knows nothing of the photo. store: as `saywhere build coco` makes it."""
    held_out = _spread(_looked_at(store, _HELD_OUT), most)
    if not held_out:
        raise InvalidFile(store.folder, "has no photo of SALICON's validation part", "name its maps with --saliency")
    learnt = _spread(_looked_at(store, _TRAIN), _MEAN_OF)
    mean = np.mean([np.asarray(row["saliency"], np.float32) for row in learnt], axis=0) if learnt else None
    ours, plain = [], []
    for done, row in enumerate(held_out, 1):
        true = np.asarray(row["saliency"], np.float32)
        guess = model.look(Image.open(BytesIO(row["jpeg"]))).view.attention
        if guess is None:
            return {}
        ours.append(_both(_resized(guess, true.shape), true))
        if mean is not None:
            plain.append(_both(mean, true))
        progress("where people look", done, len(held_out))
    measures = dict(zip(("saliency CC", "saliency SIM"), np.mean(ours, axis=0).tolist(), strict=True))
    if plain:
        names = ("saliency CC of the mean map", "saliency SIM of the mean map")
        measures |= dict(zip(names, np.mean(plain, axis=0).tolist(), strict=True))
    return {name: 100 * value for name, value in measures.items()}


def _looked_at(store: Store, split: str) -> list[Row]:
    return [row for row in store.having("saliency") if row["saliency_split"] == split]


def _spread(rows: Sequence[Row], most: int) -> list[Row]:
    return [rows[number] for number in np.linspace(0, len(rows) - 1, min(most, len(rows)), dtype=int).tolist()]


def _both(guess: Floats32, true: Floats32) -> tuple[float, float]:
    return cc(guess, true), sim(guess, true)


def _resized(values: Floats32, shape: tuple[int, ...]) -> Floats32:
    rows, cols = shape
    picture = Image.fromarray(np.asarray(values, np.float32)).resize((cols, rows), Image.Resampling.BILINEAR)
    resized: Floats32 = np.maximum(np.asarray(picture, np.float32), 0)
    return resized
