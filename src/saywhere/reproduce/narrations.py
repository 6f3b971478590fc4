"""MITR on real narrations whose words carry a tag: the boxes of that tag make a *pseudo-trace*, always called that.

Nobody's pointer went through these boxes. A word's pseudo-box is the largest box of its tag's class on the photo; a
word whose tag is stuff (sky, wall …), or has no box, is unlocated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from saywhere.core import Box, InvalidFile, InvalidValue, WordBoxes
from saywhere.formats.coco_classes import COCO_CLASSES
from saywhere.formats.files import read_bytes
from saywhere.formats.trecs import TaggedNarration
from saywhere.language.vocabulary import Vocabulary
from saywhere.metrics import lbm_many
from saywhere.models.mitr.batch import Example, example
from saywhere.models.mitr.prepared import NarrativeItems, Prepared, PreparedNarrative, save_prepared, split_of
from saywhere.models.region_features import RegionFeatures

Boxes = Mapping[str, Mapping[str, tuple[float, float, float, float]]]
"""Image → class → the largest box of that class, x1, y1, x2, y2 in fractions."""


def read_boxes(path: str | Path) -> Boxes:
    """A JSON object of image → [[class number, centre x, centre y, width, height], …] in fractions."""
    try:
        raw = msgspec.json.decode(read_bytes(path), type=dict[str, list[tuple[int, float, float, float, float]]])
    except msgspec.DecodeError as error:
        raise InvalidFile(path, f"is not boxes of images: {error}") from error
    found: dict[str, dict[str, tuple[float, float, float, float]]] = {}
    for image_id, rows in raw.items():
        largest: dict[str, tuple[float, float, float, float]] = {}
        for number, x, y, width, height in sorted(rows, key=lambda row: row[3] * row[4]):
            if not 0 <= number < len(COCO_CLASSES):
                raise InvalidFile(path, f"image {image_id}: there is no class {number}")
            corners = np.clip([x - width / 2, y - height / 2, x + width / 2, y + height / 2], 0, 1)
            largest[COCO_CLASSES[number]] = Box(*corners.tolist()).xyxy
        found[image_id] = largest
    return found


def pseudo_boxes(narration: TaggedNarration, boxes: Mapping[str, tuple[float, float, float, float]]) -> WordBoxes:
    """A pseudo-box for each word; see the module."""
    nowhere = (np.nan,) * 4
    return WordBoxes([boxes.get(tag.replace("-", " "), nowhere) for tag in narration.tags])


@dataclass(frozen=True, slots=True)
class NarrationScale:
    """max_words: longer narrations are cut there. size: numbers that a region's feature is brought down to."""

    max_words: int = 50
    size: int = 192
    words: int = 3000


def prepare_narrations(
    folder: Path,
    narrations: Iterable[TaggedNarration],
    boxes: Boxes,
    look: Callable[[str], RegionFeatures | None],
    scale: NarrationScale,
) -> dict[str, int]:
    """Write a folder of prepared narratives. look: regions of a photo, or None if it is not here."""
    counts = {"train": 0, "validation": 0, "test": 0, "without photo": 0, "without any pseudo-box": 0}
    seen: dict[str, RegionFeatures] = {}
    kept: list[tuple[str, TaggedNarration, WordBoxes]] = []
    for narration in narrations:
        image = narration.image_id.zfill(12)
        regions = seen.get(image) or (look(image) if image in boxes else None)
        if regions is None:
            counts["without photo"] += 1
            continue
        placed = pseudo_boxes(narration, boxes[image])
        if not placed.located[: scale.max_words].any():
            counts["without any pseudo-box"] += 1
            continue
        seen[image] = regions
        kept.append((split_of(image), narration, placed))
        counts[split_of(image)] += 1
    if not kept:
        raise InvalidValue("narrations", "none of them has a photo with boxes here")
    smaller = _smaller({name: r for name, r in seen.items() if split_of(name) == "train"}, scale.size)
    images = {name: RegionFeatures(smaller(r.features), r.boxes_xyxy) for name, r in seen.items()}
    vocabulary = Vocabulary.of_words([" ".join(n.words) for split, n, _ in kept if split == "train"], scale.words)
    prepared = []
    for split, narration, placed in kept:
        image = narration.image_id.zfill(12)
        name = f"{narration.image_id}_{narration.annotator_id}"
        one = example(images[image], narration.words, placed, vocabulary, scale.max_words, name)
        prepared.append(PreparedNarrative(image, split, one.words, one.boxes, one.located, name))
    save_prepared(folder, images, prepared, vocabulary, {"pseudo-traces": True, "max_words": scale.max_words})
    return counts


def _smaller(train: Mapping[str, RegionFeatures], size: int) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    """Principal components of the training photos' regions, each brought to a spread of 1."""
    every = np.concatenate([regions.features for regions in train.values()]).astype(np.float64)
    mean = every.mean(axis=0)
    values, vectors = np.linalg.eigh((every - mean).T @ (every - mean) / len(every))
    keep = np.argsort(values)[::-1][:size]
    weights = vectors[:, keep] / np.sqrt(np.maximum(values[keep], 1e-8))
    return lambda features: ((features - mean) @ weights).astype(np.float32)


def guesses(prepared: Prepared, test: NarrativeItems) -> dict[str, list[NDArray[np.float64]]]:
    """Baselines that see no photo: for each, boxes (T, 4) for every test narrative."""
    train = prepared.split("train")
    by_word: dict[int, list[NDArray[np.float32]]] = defaultdict(list)
    for one in (train[i] for i in range(len(train))):
        for word, box, located in zip(one.words.tolist(), one.boxes, one.located, strict=True):
            if located:
                by_word[word].append(box[:4])
    everywhere = np.concatenate([np.stack(rows) for rows in by_word.values()]).mean(axis=0)
    prior = {word: np.mean(rows, axis=0) for word, rows in by_word.items()}
    items = [test[i] for i in range(len(test))]
    return {
        "the whole image": [np.tile([0.0, 0.0, 1.0, 1.0], (len(one.words), 1)) for one in items],
        "a box in the centre": [np.tile([0.25, 0.25, 0.75, 0.75], (len(one.words), 1)) for one in items],
        "the mean box": [np.tile(everywhere, (len(one.words), 1)).astype(np.float64) for one in items],
        "the mean box of the word": [
            np.array([prior.get(word, everywhere) for word in one.words.tolist()], dtype=np.float64) for one in items
        ],
    }


def distances(boxes: Sequence[NDArray[np.float64]], test: Sequence[Example]) -> dict[str, float]:
    """LBM at the located words."""
    truths = [one.boxes[one.located][:, :4].astype(np.float64) for one in test]
    placed = [guess[one.located] for guess, one in zip(boxes, test, strict=True)]
    return {f"LBM (k={k})": float(lbm_many(placed, truths, k).mean()) for k in (0, 1)}
