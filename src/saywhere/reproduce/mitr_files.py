"""Real narratives made ready for MITR: Localized Narratives with the features of their photos."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from saywhere.core import InvalidFile, Narrative
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.mitr.batch import example_of
from saywhere.models.mitr.prepared import PreparedNarrative, save_prepared
from saywhere.models.region_features import RegionFeatures

_VALIDATION_SHARE, _TEST_SHARE = 0.05, 0.1


def split_of(image_id: str) -> str:
    """Which split an image belongs to: told by its name alone, so that adding narratives moves none."""
    place = int.from_bytes(hashlib.sha256(image_id.encode("utf-8", "surrogatepass")).digest()[:8], "big") / 2**64
    if place < _TEST_SHARE:
        return "test"
    return "validation" if place < _TEST_SHARE + _VALIDATION_SHARE else "train"


def prepare_narratives(
    folder: Path,
    narratives: Iterable[Narrative],
    features: Callable[[str], RegionFeatures | None],
    about: Mapping[str, object],
    max_words: int = 100,
    vocabulary_size: int = 10_000,
) -> dict[str, int]:
    """Write a folder of prepared narratives; how many went to each split, and how many had to be left out.

    features: the regions of an image, or None where there are none; then its narratives are left out, as are those
    without words.
    """
    counts = {"train": 0, "validation": 0, "test": 0, "without features": 0, "without words": 0}
    images: dict[str, RegionFeatures] = {}
    kept: list[tuple[str, Narrative]] = []
    for narrative in narratives:
        if not narrative.words:
            counts["without words"] += 1
            continue
        if narrative.image_id not in images:
            found = features(narrative.image_id)
            if found is None:
                counts["without features"] += 1
                continue
            images[narrative.image_id] = found
        split = split_of(narrative.image_id)
        counts[split] += 1
        kept.append((split, narrative))
    for split in ("train", "validation", "test"):
        if not counts[split]:
            raise InvalidFile(folder, f"no narrative falls into the split {split!r}: too few images have features")
    vocabulary = Vocabulary.of_words([n.caption for split, n in kept if split == "train"], vocabulary_size)
    prepared = []
    for split, narrative in kept:
        one = example_of(images[narrative.image_id], narrative, vocabulary, max_words)
        prepared.append(PreparedNarrative(narrative.image_id, split, one.words, one.boxes, one.located, narrative.id))
    save_prepared(folder, images, prepared, vocabulary, about)
    return counts
