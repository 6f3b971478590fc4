"""Features for an eye, made up: the hidden state of a patch says what lies on it, in the trunk's own language."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from saywhere.language.vocabulary import Vocabulary
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.eye.features import (
    AUXILIARY,
    AUXILIARY_FIELDS,
    AUXILIARY_KIND,
    FOUND,
    FOUND_FIELDS,
    FOUND_KIND,
    PHOTOS,
    WORDS,
    Quantiser,
    RegionNames,
    photo_writer,
    write_caption_words,
    write_captions,
    write_names,
)
from saywhere.models.patchioner.decoder import DecoderConfig, PrefixDecoder
from saywhere.store import Store, StoreWriter
from saywhere.vision.auxiliary import to_bytes
from saywhere.vision.eye import EyeConfig, EyeNet

GRID, SIZE, TEXT = 4, 16, 6
TAPPED = SIZE + 12
NAMES = ("person", "cup", "dog")


def made_photo(rng: np.random.Generator, kind: int, place: int) -> dict[str, Any]:
    """A photo with one thing on one patch, where people look."""
    trunk_states = rng.normal(size=(1 + GRID**2, TAPPED)).astype(np.float32) * 0.1
    trunk_states[1 + place, kind] += 3
    row, col = divmod(place, GRID)
    box = np.array([[col, row, col + 1, row + 1]], np.float32) / GRID
    captions = np.eye(TEXT, dtype=np.float32)[[kind, kind]] + rng.normal(size=(2, TEXT)) * 0.05
    saliency = np.full(GRID**2, 0.01, np.float32)
    saliency[place] = 1
    return {
        "tapped": trunk_states,
        "boxes_xyxy": box,
        "classes": [kind],
        "caption_vectors": captions,
        "saliency": saliency,
    }


def save_features(folder: Path, splits: Sequence[str], untold: int = 0) -> None:
    """A features folder with a photo for each of `splits`. untold: so many of the first have no captions, but what
    questions say of them."""
    rng = np.random.default_rng(0)
    write_names(folder, NAMES, np.eye(TEXT, dtype=np.float32)[: len(NAMES)])
    write_names(folder, NAMES, np.eye(TEXT, dtype=np.float32)[: len(NAMES)], WORDS)
    rows = [made_photo(rng, int(rng.integers(len(NAMES))), int(rng.integers(GRID**2))) for _ in splits]
    for row in rows[:untold]:
        row["statement_vectors"] = row.pop("caption_vectors")[:1]
    quantiser = Quantiser.fit(np.stack([row["tapped"] for row in rows]))
    with photo_writer(folder, quantiser, {"trunk": "made up"}) as writer:
        for number, (row, split) in enumerate(zip(rows, splits, strict=True)):
            writer.add(f"{number:012}", **row | {"tapped": quantiser.to_bytes(row["tapped"]), "split": split})
    write_caption_words(folder, ((f"{number:012}", row["classes"] * 2) for number, row in enumerate(rows)))


def save_found(folder: Path) -> None:
    """What a detector would find: each photo's own thing."""
    with StoreWriter(folder / FOUND, FOUND_KIND, FOUND_FIELDS, {}) as writer:
        for row in Store(folder / PHOTOS):
            writer.add(row.key, boxes_xyxy=row["boxes_xyxy"], kinds=row["classes"], scores=[0.9])


def save_auxiliary(folder: Path) -> None:
    """What a second look would give: each photo's own kind, everywhere."""
    with StoreWriter(folder / AUXILIARY, AUXILIARY_KIND, AUXILIARY_FIELDS, {}) as writer:
        for row in Store(folder / PHOTOS):
            kinds = np.eye(len(NAMES), dtype=np.float32)[row["classes"]]
            writer.add(row.key, features=to_bytes(np.repeat(kinds, 5, axis=0)))


def small_eye(seed: int = 0) -> EyeLearner:
    """An eye with random weights that fits the features."""
    torch.manual_seed(seed)
    net = EyeNet(EyeConfig(size=SIZE, heads=2, layers=1, text_size=TEXT, input_px=14 * GRID, cell_size=8, kinds=3))
    torch.nn.init.normal_(net.cell.weight)
    named = dict(zip(NAMES, torch.eye(TEXT), strict=False))
    return EyeLearner(net, named, named).eval()


def save_captions(folder: Path, splits: Sequence[str], untold: int = 0) -> None:
    """Features, an eye, a decoder, and for each photo two captions and a name of its thing."""
    save_features(folder, splits, untold)
    save_found(folder)
    texts = [f"a {name} on a table" for name in NAMES]
    box = (0.0, 0.0, 0.5, 0.5)
    write_captions(
        folder,
        (
            (
                f"{number:012}",
                [texts[number % 3], texts[(number + 1) % 3]],
                [RegionNames(box, (f"a {NAMES[number % 3]}",))],
            )
            for number in range(len(splits))
        ),
    )
    small_eye().save_pretrained(folder / "eye")
    words = Vocabulary.of_words(texts)
    config = DecoderConfig(len(words), TEXT, width=16, layers=1, heads=2, feed_forward=32, max_words=9, dropout=0.0)
    PrefixDecoder.fresh(config, words, 0).save_pretrained(folder / "decoder")
