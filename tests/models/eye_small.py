"""Features for an eye, made up: the hidden state of a patch says what lies on it, in the trunk's own language."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saywhere.models.eye.features import WORDS, Quantiser, photo_writer, write_names, write_said

GRID, SIZE, TEXT = 4, 16, 6
NAMES = ("person", "cup", "dog")


def made_photo(rng: np.random.Generator, kind: int, place: int) -> dict[str, Any]:
    """A photo with one thing on one patch, where people look."""
    taps = rng.normal(size=(2, 1 + GRID**2, SIZE)).astype(np.float32) * 0.1
    taps[:, 1 + place, kind] += 3
    row, col = divmod(place, GRID)
    box = np.array([[col, row, col + 1, row + 1]], np.float32) / GRID
    captions = np.eye(TEXT, dtype=np.float32)[[kind, kind]] + rng.normal(size=(2, TEXT)) * 0.05
    saliency = np.full(GRID**2, 0.01, np.float32)
    saliency[place] = 1
    return {"taps": taps, "boxes_xyxy": box, "classes": [kind], "caption_vectors": captions, "saliency": saliency}


def save_features(folder: Path, splits: Sequence[str]) -> None:
    """A features folder with a photo for each of `splits`."""
    rng = np.random.default_rng(0)
    write_names(folder, NAMES, np.eye(TEXT, dtype=np.float32)[: len(NAMES)])
    write_names(folder, NAMES, np.eye(TEXT, dtype=np.float32)[: len(NAMES)], WORDS)
    rows = [made_photo(rng, int(rng.integers(len(NAMES))), int(rng.integers(GRID**2))) for _ in splits]
    quantiser = Quantiser.fit(np.stack([row["taps"] for row in rows]))
    with photo_writer(folder, quantiser, {"trunk": "made up"}) as writer:
        for number, (row, split) in enumerate(zip(rows, splits, strict=True)):
            writer.add(f"{number:012}", **row | {"taps": quantiser.to_bytes(row["taps"]), "split": split})
    write_said(folder, ((f"{number:012}", row["classes"] * 2) for number, row in enumerate(rows)))
