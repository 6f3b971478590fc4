"""From a COCO store to what the eye learns from: every photo through the frozen trunk once, captions as vectors.

Goes on where it stopped. Photos whose bytes are no picture are named and left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from saywhere.build.coco import KIND
from saywhere.core.errors import InvalidFile, InvalidValue, SaywhereError
from saywhere.core.types import Floats32, Progress
from saywhere.formats.coco_classes import COCO_CLASSES
from saywhere.language.coco_aliases import coco_aliases
from saywhere.language.embed import TextEncoder
from saywhere.models.eye.features import PHOTOS, Quantiser, photo_writer, write_names
from saywhere.store import Row, Store
from saywhere.vision import read_photo
from saywhere.vision.eye import EyeConfig
from saywhere.vision.runtime import Runtime

_BATCH = 8
_CALIBRATION = 120
"""Photos that say how hidden states are spread."""
_ALIASES = 4


@dataclass(frozen=True, slots=True)
class BuiltFeatures:
    """rows: photos in the folder. unreadable: keys of photos that were left out."""

    rows: int
    unreadable: tuple[str, ...]


def build_eye_features(
    coco: Store,
    out: Path,
    trunk: Runtime,
    trunk_about: dict[str, Any],
    text_encoder: TextEncoder,
    config: EyeConfig,
    progress: Progress,
) -> BuiltFeatures:
    """trunk: from pixels to the hidden states of the taps; trunk_about: what these depend on."""
    if coco.kind != KIND:
        raise InvalidFile(coco.folder, f"holds {coco.kind}, not {KIND}", "make one with `saywhere build coco`")
    write_names(out, COCO_CLASSES, class_vectors(text_encoder))
    quantiser = _quantiser(coco, out, trunk, config)
    unreadable: list[str] = []
    with photo_writer(out, quantiser, trunk_about) as writer:
        waiting = (row for row in coco if row.key not in writer)
        for rows in _batches(waiting, _BATCH):
            seen = [(row, pixels) for row in rows if (pixels := _pixels(row, config.input_px)) is not None]
            unreadable += sorted({row.key for row in rows} - {row.key for row, _ in seen})
            if seen:
                (taps,) = trunk(np.stack([pixels for _, pixels in seen]))
                for (row, _), states in zip(seen, quantiser.to_bytes(taps), strict=True):
                    writer.add(row.key, taps=states, **_labels(row, text_encoder, config.grid))
            progress("looking at photos", len(writer) + len(unreadable), len(coco))
        return BuiltFeatures(len(writer), tuple(unreadable))


def class_vectors(text_encoder: TextEncoder) -> Floats32:
    """(80, d) of length 1: what each of COCO's classes is called, its own name three times as loud as the others."""
    vectors = []
    for name in COCO_CLASSES:
        names = coco_aliases()[name][:_ALIASES]
        texts = [*(f"a {one}" for one in names), f"a photo of a {names[0]}"]
        weights = np.array([3.0, *(1.0 for _ in names[1:]), 3.0])
        mean = weights @ text_encoder.embed(texts)
        vectors.append(mean / np.linalg.norm(mean))
    return np.stack(vectors).astype(np.float32)


def _quantiser(coco: Store, out: Path, trunk: Runtime, config: EyeConfig) -> Quantiser:
    """As an earlier run had it, or from photos spread evenly over the store."""
    if (out / PHOTOS / "index.json").exists():
        from saywhere.store.index import read_index

        return Quantiser.from_dict(read_index(out / PHOTOS).about["quantiser"])
    rows = (coco[number] for number in np.linspace(0, len(coco) - 1, min(_CALIBRATION, len(coco)), dtype=int).tolist())
    photos = [pixels for row in rows if (pixels := _pixels(row, config.input_px)) is not None]
    if not photos:
        raise InvalidValue("photos", f"none in {coco.folder} can be read")
    taps = [trunk(np.stack(some))[0] for some in _batches(iter(photos), _BATCH)]
    return Quantiser.fit(np.concatenate(taps)[:, :, 1:])


def _labels(row: Row, text_encoder: TextEncoder, grid: int) -> dict[str, Any]:
    captions = row["captions"] or []
    vectors = text_encoder.embed(captions) if captions else np.zeros((0, text_encoder.size), np.float32)
    saliency = row["saliency"] if row["saliency_split"] == "train" else None
    return {
        "boxes_xyxy": row["boxes_xyxy"],
        "classes": row["classes"],
        "caption_vectors": vectors,
        "saliency": None if saliency is None else _shrunk(saliency, grid),
        "split": row["split"],
    }


def _shrunk(saliency: NDArray[np.uint8], grid: int) -> Floats32:
    """(n,) the map on the eye's grid, summing to 1."""
    small = Image.fromarray(saliency).resize((grid, grid), Image.Resampling.BOX)
    values: Floats32 = np.asarray(small, np.float32).ravel() + np.float32(1e-6)
    return values / np.float32(values.sum())


def _pixels(row: Row, side: int) -> NDArray[np.uint8] | None:
    try:
        image = read_photo(Image.open(BytesIO(row["jpeg"])))
    except (OSError, SaywhereError):
        return None
    return np.asarray(image.resize((side, side), Image.Resampling.BICUBIC))


def _batches(values: Iterator[Any], size: int) -> Iterator[Sequence[Any]]:
    while batch := list(islice(values, size)):
        yield batch
