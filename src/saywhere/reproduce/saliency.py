"""Where a model thinks people look, against where they did: SALICON's validation maps, whose looks nothing learnt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from saywhere.core import InvalidFile
from saywhere.core.types import Floats32, Progress
from saywhere.metrics.attention import cc, nss, sim
from saywhere.store import Row, Store

_TRAIN, _HELD_OUT = "train", "val"
_MEAN_OF = 1000
_DIGITS = 12


def saliency_measures(
    model: Any, store: Store, most: int, progress: Progress, fixations: Path | None = None
) -> dict[str, float]:
    """CC and SIM over at most so many of the store's photos, spread evenly, in percent, and beside them those of the
    mean map of training photos, which knows nothing of the photo. store: as `saywhere build coco` makes it. fixations:
    a folder with a picture of each photo, not black where people looked; NSS is measured with it, too."""
    held_out = _looked_at(store, _HELD_OUT)
    if not held_out:
        raise InvalidFile(store.folder, "has no photo of SALICON's validation part", "name its maps with --saliency")
    points = _points(fixations, held_out)
    held_out = _spread([row for row in held_out if fixations is None or row.key in points], most)
    learnt = _spread(_looked_at(store, _TRAIN), _MEAN_OF)
    mean = np.mean([np.asarray(row["saliency"], np.float32) for row in learnt], axis=0) if learnt else None
    ours: list[dict[str, float]] = []
    plain: list[dict[str, float]] = []
    for done, row in enumerate(held_out, 1):
        guess = model.look(Image.open(BytesIO(row["jpeg"]))).view.attention
        if guess is None:
            return {}
        ours.append(_measured(guess, row, points))
        if mean is not None:
            plain.append(_measured(mean, row, points))
        progress("where people look", done, len(held_out))
    return _means(ours, "") | _means(plain, " of the mean map")


def _measured(guess: Floats32, row: Row, points: Mapping[str, Path]) -> dict[str, float]:
    true = np.asarray(row["saliency"], np.float32)
    same = _resized(guess, true.shape)
    measures = {"CC": 100 * cc(same, true), "SIM": 100 * sim(same, true)}
    if row.key in points:
        with Image.open(points[row.key]) as picture:
            fixated = np.asarray(picture.convert("L")) > 0
        measures["NSS"] = nss(_resized(guess, fixated.shape), fixated)
    return measures


def _means(each: Sequence[Mapping[str, float]], whose: str) -> dict[str, float]:
    names = each[0] if each else ()
    # A photo at which nobody looked, or a map without any difference, has no number.
    return {f"saliency {name}{whose}": float(np.nanmean([one[name] for one in each])) for name in names}


def _points(folder: Path | None, rows: Sequence[Row]) -> dict[str, Path]:
    """Photo → the picture of where people looked; files are named by the photo's number."""
    if folder is None:
        return {}
    by_number = {path.stem[-_DIGITS:]: path for path in sorted(folder.glob("*.png"))}
    found = {row.key: by_number[row.key] for row in rows if row.key in by_number}
    if not found:
        raise InvalidFile(
            folder, "has no picture of a photo of SALICON's validation part", "name them …_000000000133.png"
        )
    return found


def _looked_at(store: Store, split: str) -> list[Row]:
    return [row for row in store.having("saliency") if row["saliency_split"] == split]


def _spread(rows: Sequence[Row], most: int) -> list[Row]:
    return [rows[number] for number in np.linspace(0, len(rows) - 1, min(most, len(rows)), dtype=int).tolist()]


def _resized(values: Floats32, shape: tuple[int, ...]) -> Floats32:
    rows, cols = shape
    picture = Image.fromarray(np.asarray(values, np.float32)).resize((cols, rows), Image.Resampling.BILINEAR)
    resized: Floats32 = np.maximum(np.asarray(picture, np.float32), 0)
    return resized
