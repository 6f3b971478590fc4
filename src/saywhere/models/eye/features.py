"""What the eye learns from: what its frozen trunk gives, computed once, beside what people marked and said.

FOLDER/photos   a store, one row a photo: what the trunk gives, boxes, classes, vectors of captions, where people looked
FOLDER/names    a store, one row a class: what it is called, as a vector
FOLDER/told     a store, one row a photo that people told of: its captions, and what its boxes may be called
FOLDER/words    a store, one row a word that people say of photos, as a vector; FOLDER/said: for each photo, which ones
FOLDER/found    a store, one row a photo: what a detector found in it, for networks that read that beside the eye
FOLDER/auxiliary    a store, one row a photo: what a second look gave, see `saywhere.vision.auxiliary`; for the same

What the trunk gives is kept in a byte a number: of every channel the mean and a step, five standard deviations in 127
parts, are in the store's `about`. A thousand photos take 160 MB.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from saywhere.core.errors import InvalidFile
from saywhere.core.types import Floats32
from saywhere.store import Row, Store, StoreWriter
from saywhere.vision.photo import read_photo
from saywhere.vision.things import NamedThings

PHOTOS, NAMES, WORDS, CAPTION_WORDS, CAPTIONS = "photos", "names", "words", "said", "told"
KIND, NAMES_KIND, CAPTION_WORDS_KIND = "eye features", "class names", "words said of photos"
CAPTIONS_KIND = "what photos are told by"
FOUND, FOUND_KIND = "found", "things found"
FOUND_FIELDS = {"boxes_xyxy": "float16", "kinds": "int16", "scores": "float16"}
AUXILIARY, AUXILIARY_KIND, AUXILIARY_FIELDS = "auxiliary", "second looks", {"features": "uint8"}
FIELDS = {
    "tapped": "int8",
    "boxes_xyxy": "float32",
    "classes": "int16",
    "caption_vectors": "float16",
    "statement_vectors": "float16",
    "saliency": "float32",
    "split": "json",
}
_SPREADS, _LARGEST = 5.0, 127


@dataclass(frozen=True, slots=True, eq=False)
class Quantiser:
    """What the trunk gives to bytes and back. mean, step: (size,), of each channel."""

    mean: Floats32
    step: Floats32

    @classmethod
    def fit(cls, trunk_states: Floats32) -> Quantiser:
        """From (B, n, size) of some photos."""
        spread = trunk_states.std(axis=(0, 1))
        return cls(trunk_states.mean(axis=(0, 1)), np.maximum(spread, 1e-6) * _SPREADS / _LARGEST)

    def to_bytes(self, trunk_states: Floats32) -> NDArray[np.int8]:
        """(…, size) → the same, rounded; what lies further out than five standard deviations is brought in."""
        rounded = np.rint((trunk_states - self.mean) / self.step)
        clipped: NDArray[np.int8] = np.clip(rounded, -_LARGEST, _LARGEST).astype(np.int8)
        return clipped

    def to_floats(self, trunk_states: ArrayLike) -> Floats32:
        values: Floats32 = np.asarray(trunk_states, np.float32) * self.step + self.mean
        return values

    def to_dict(self) -> dict[str, Any]:
        return {"mean": self.mean.tolist(), "step": self.step.tolist()}

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> Quantiser:
        return cls(np.array(kept["mean"], np.float32), np.array(kept["step"], np.float32))


@dataclass(frozen=True, slots=True, eq=False)
class EyeItem:
    """One photo. inputs: (1 + n, size) float32 that the frozen trunk gave; or, for an eye that learns from pixels,
    (side, side, 3) 8-bit RGB. boxes_xyxy: (m, 4) fractions; classes: (m,) numbers of names.

    caption_vectors: (k, d), k may be 0. statement_vectors: (j, d), what questions and their answers say of a photo
    without captions. saliency: (n,) summing to 1, or None where nobody's looks were recorded. words: numbers of words
    in its captions, each as often as there are captions that have it.
    """

    inputs: Floats32 | NDArray[np.uint8]
    boxes_xyxy: Floats32
    classes: NDArray[np.int64]
    caption_vectors: Floats32
    statement_vectors: Floats32
    saliency: Floats32 | None
    words: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class FoundThings:
    """What a detector found, surest first. boxes_xyxy: (m, 4) fractions. kinds: (m,) numbers of names. scores: (m,)."""

    boxes_xyxy: Floats32
    kinds: NDArray[np.int64]
    scores: Floats32

    @classmethod
    def of_row(cls, row: Row) -> FoundThings:
        boxes = np.array(row["boxes_xyxy"], np.float32).reshape(-1, 4)
        return cls(boxes, np.array(row["kinds"], np.int64), np.array(row["scores"], np.float32))

    def named(self, name_vectors: Floats32) -> NamedThings:
        """name_vectors: (names, d), what their kinds are called."""
        return NamedThings(name_vectors[self.kinds], self.boxes_xyxy, self.scores)

    @classmethod
    def none(cls) -> FoundThings:
        return cls(np.zeros((0, 4), np.float32), np.zeros(0, np.int64), np.zeros(0, np.float32))


def write_names(folder: Path, names: Sequence[str], vectors: Floats32, part: str = NAMES) -> None:
    """What classes are called, in the order of their numbers; or words, as the part WORDS."""
    with StoreWriter(folder / part, NAMES_KIND, {"vector": "float32"}, {}, resume=False) as writer:
        for name, vector in zip(names, vectors, strict=True):
            writer.add(name, vector=vector)


def write_caption_words(folder: Path, photo_words: Iterable[tuple[str, Sequence[int]]]) -> None:
    """For each photo's key the numbers of the words in its captions, as in `EyeItem`."""
    with StoreWriter(folder / CAPTION_WORDS, CAPTION_WORDS_KIND, {"words": "int16"}, {}, resume=False) as writer:
        for key, words in photo_words:
            writer.add(key, words=words)


class RegionNames(msgspec.Struct, frozen=True, array_like=True):
    """A box of a photo and what it may be called."""

    box_xyxy: tuple[float, float, float, float]
    texts: tuple[str, ...]


def write_captions(folder: Path, photos: Iterable[tuple[str, Sequence[str], Sequence[RegionNames]]]) -> None:
    """For each photo's key its captions and what its boxes may be called."""
    with StoreWriter(
        folder / CAPTIONS, CAPTIONS_KIND, {"captions": "json", "called": "json"}, {}, resume=False
    ) as writer:
        for key, captions, region_names in photos:
            writer.add(key, captions=captions, called=region_names)


def photo_writer(folder: Path, quantiser: Quantiser | None, trunk: dict[str, Any]) -> StoreWriter:
    """Where photos' rows go. quantiser: None where rows have labels alone. trunk: what the hidden states depend on; a
    folder made with another is refused."""
    kept = None if quantiser is None else quantiser.to_dict()
    return StoreWriter(folder / PHOTOS, KIND, FIELDS, {"quantiser": kept, "trunk": trunk})


class PhotoPixels:
    """The photos of a COCO store as squares of pixels, by their keys; (side, side, 3) 8-bit RGB."""

    def __init__(self, store: str | Path, side: int) -> None:
        self._store, self._side = Store(Path(store)), side

    def __call__(self, key: str) -> NDArray[np.uint8]:
        image = read_photo(Image.open(BytesIO(self._store.by_key(key)["jpeg"])))
        return np.asarray(image.resize((self._side, self._side), Image.Resampling.BICUBIC))


class EyeFeatures:
    """The photos of a features folder that belong to one split, as items."""

    def __init__(self, folder: str | Path, split: str, pixels: PhotoPixels | None = None) -> None:
        """pixels: gives the photos themselves instead of what the trunk gave of them."""
        self._store, self._pixels = Store(Path(folder) / PHOTOS, KIND), pixels
        kept = self._store.about["quantiser"]
        self.quantiser = None if kept is None else Quantiser.from_dict(kept)
        names, words = (Store(Path(folder) / part, NAMES_KIND) for part in (NAMES, WORDS))
        self.names, self.words = (tuple(row.key for row in some) for some in (names, words))
        self.name_vectors = _vectors(names)
        self.word_vectors = _vectors(words) if len(words) else np.zeros((0, self.name_vectors.shape[1]), np.float32)
        self._caption_words = Store(Path(folder) / CAPTION_WORDS, CAPTION_WORDS_KIND)
        self._rows = [number for number, row in enumerate(self._store) if row["split"] == split]
        if not self._rows:
            raise InvalidFile(folder, f"has no photo of the split {split!r}")
        parts = (self._store, names, words, self._caption_words)
        self.fingerprint = "-".join([*(part.fingerprint for part in parts), split])

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> EyeItem:
        row = self._store[self._rows[index]]
        saliency = row["saliency"]
        return EyeItem(
            self._inputs(row),
            np.array(row["boxes_xyxy"]).reshape(-1, 4),
            np.array(row["classes"], np.int64),
            self.caption_vectors(index),
            self._vectors(row["statement_vectors"]),
            None if saliency is None else np.array(saliency, np.float32) / np.float32(max(np.sum(saliency), 1e-9)),
            self.caption_words(index),
        )

    def _inputs(self, row: Row) -> Floats32 | NDArray[np.uint8]:
        if self._pixels is not None:
            return self._pixels(row.key)
        if self.quantiser is None:
            reason, advice = (
                "has labels alone, not what the trunk gives",
                "run `saywhere build eye` without --labels-only",
            )
            raise InvalidFile(self._store.folder, reason, advice)
        return self.quantiser.to_floats(row["tapped"])

    def caption_words(self, index: int) -> NDArray[np.int64]:
        """Of one photo; see `EyeItem`."""
        key = self._store[self._rows[index]].key
        words = self._caption_words.by_key(key)["words"] if key in self._caption_words else ()
        return np.array(words, np.int64)

    def key(self, index: int) -> str:
        """What the photo is called."""
        return self._store[self._rows[index]].key

    def caption_vectors(self, index: int) -> Floats32:
        """(k, d) of one photo, without reading its hidden states."""
        return self._vectors(self._store[self._rows[index]]["caption_vectors"])

    def sayings(self, index: int) -> Floats32:
        """(k, d) of one photo's captions, or, where it has none, of what questions and answers say of it."""
        row = self._store[self._rows[index]]
        captions = self._vectors(row["caption_vectors"])
        return captions if len(captions) else self._vectors(row["statement_vectors"])

    def _vectors(self, stored: NDArray[np.float16] | None) -> Floats32:
        return np.array(() if stored is None else stored, np.float32).reshape(-1, self.name_vectors.shape[1])

    @cached_property
    def every_caption(self) -> NDArray[np.float16]:
        """(m, d) the vectors of all photos' captions, held in memory: 150 MB for COCO's."""
        every = [np.array(row["caption_vectors"], np.float16) for row in map(self._store.__getitem__, self._rows)]
        return np.concatenate([some.reshape(-1, self.name_vectors.shape[1]) for some in every])

    def class_counts(self, classes: int) -> NDArray[np.int64]:
        """How many boxes of each class there are."""
        counts = np.zeros(classes, np.int64)
        for row in self._rows:
            counts += np.bincount(self._store[row]["classes"], minlength=classes)
        return counts

    def word_shares(self) -> Floats32:
        """(W,) the share of photos with captions that each word is said of."""
        counts, photos = np.zeros(len(self.words), np.int64), 0
        for index in range(len(self)):
            photo_words = self.caption_words(index)
            counts[np.unique(photo_words)] += 1
            photos += bool(len(photo_words))
        shares: Floats32 = ((counts + 0.5) / (photos + 1)).astype(np.float32)
        return shares


def _vectors(names: Store) -> Floats32:
    return np.stack([np.array(row["vector"]) for row in names])
