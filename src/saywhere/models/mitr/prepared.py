"""Narratives made ready for training: a prepared folder of words, their boxes, and the regions of their images."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.mitr.batch import NarrativeExample
from saywhere.models.prepared import PreparedFolder, PreparedIndex, PreparedItems, save_images, save_items
from saywhere.models.region_features import RegionFeatures

SPLITS = ("train", "validation", "test")
_VALIDATION_SHARE, _TEST_SHARE = 0.05, 0.1
_FIELDS = {"name": "json", "words": "int32", "boxes": "float32", "located": "bool"}


@dataclass(frozen=True, slots=True)
class PreparedNarrative:
    """A narrative to store. image: its name in `images`. split: one of SPLITS."""

    image: str
    split: str
    words: NDArray[np.int64]
    boxes: NDArray[np.float32]
    located: NDArray[np.bool_]
    name: str


@dataclass(frozen=True, slots=True)
class _Numbered:
    id: str
    image: str
    split: str


def split_of(image_id: str) -> str:
    """Which split an image belongs to: told by its name alone, so that adding narratives moves none."""
    place = int.from_bytes(hashlib.sha256(image_id.encode("utf-8", "surrogatepass")).digest()[:8], "big") / 2**64
    if place < _TEST_SHARE:
        return "test"
    return "validation" if place < _TEST_SHARE + _VALIDATION_SHARE else "train"


def save_prepared(
    folder: Path,
    images: Mapping[str, RegionFeatures],
    narratives: Iterable[PreparedNarrative],
    vocabulary: Vocabulary,
    about: Mapping[str, Any],
) -> None:
    """Write a folder that `Prepared` reads. Images without a narrative are not stored."""
    kept = list(narratives)
    if not kept:
        raise InvalidValue("narratives", "there are none to prepare")
    saved = save_images(folder, images, (one.image for one in kept))
    if saved.bad:
        name, reason = next(iter(saved.bad.items()))
        raise InvalidValue(f"image {name!r}", reason)
    # Narratives may share a name: several people tell of one photo.
    rows = [
        (
            _Numbered(str(number), one.image, one.split),
            {"name": one.name, "words": one.words, "boxes": one.boxes, "located": one.located},
        )
        for number, one in enumerate(kept)
    ]
    save_items(folder, Prepared.kind, _FIELDS, rows, saved, vocabulary, PreparedIndex(about))


class Prepared(PreparedFolder[NarrativeExample]):
    """A folder that `save_prepared` wrote."""

    kind: ClassVar[str] = "narratives"

    def split(self, name: str, most: int | None = None) -> NarrativeItems:
        """The narratives of one split, or the first `most` of them."""
        if name not in SPLITS:
            raise UnknownName("split", name, SPLITS)
        if name not in self.splits:
            raise InvalidFile(self.folder, f"has no narrative in the split {name!r}")
        return NarrativeItems(self, self.indices(name)[:most])

    def item(self, index: int) -> NarrativeExample:
        row = self.rows[index]
        words = row["words"].astype(np.int64)
        return NarrativeExample(self.regions(index), words, row["boxes"], row["located"], row["name"])


class NarrativeItems(PreparedItems[Prepared, NarrativeExample]):
    """Some narratives of a folder."""

    def image_name(self, index: int) -> str:
        return self.folder.image_name(self.indices[index])
