"""Narratives made ready for training: features, words and boxes in a few flat arrays, read by memory map.

A folder holds regions.npy (all images' regions, float16), region_boxes.npy, words.npy, boxes.npy, located.npy, and
index.json: for each image where its regions are, for each narrative its image, words and split; and vocabulary.json.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.mitr.batch import Example
from saywhere.models.region_features import RegionFeatures
from saywhere.store.digest import folder_fingerprint

SPLITS = ("train", "validation", "test")
_ARRAYS = ("regions", "region_boxes", "words", "boxes", "located")


class _Image(msgspec.Struct, array_like=True, frozen=True):
    name: str
    first: int
    stop: int


class _Item(msgspec.Struct, array_like=True, frozen=True):
    name: str
    image: int
    first: int
    stop: int
    split: str


class _Index(msgspec.Struct, frozen=True):
    images: list[_Image]
    items: list[_Item]
    about: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PreparedNarrative:
    """A narrative to store. image: its name in `images`. split: one of SPLITS."""

    image: str
    split: str
    words: NDArray[np.int64]
    boxes: NDArray[np.float32]
    located: NDArray[np.bool_]
    name: str


def save_prepared(
    folder: Path,
    images: Mapping[str, RegionFeatures],
    narratives: Iterable[PreparedNarrative],
    vocabulary: Vocabulary,
    about: Mapping[str, Any],
) -> None:
    """Write a folder. index.json comes last, so a folder that was not finished is not taken for one that was."""
    kept = list(narratives)
    if not kept:
        raise InvalidValue("narratives", "there are none to prepare")
    numbers = {name: i for i, name in enumerate(images)}
    region_stops = np.cumsum([len(image.features) for image in images.values()]).tolist()
    word_stops = np.cumsum([len(one.words) for one in kept]).tolist()
    arrays: dict[str, NDArray[Any]] = {
        "regions": np.concatenate([image.features for image in images.values()]).astype(np.float16),
        "region_boxes": np.concatenate([image.boxes_xyxy for image in images.values()]).astype(np.float32),
        "words": np.concatenate([one.words for one in kept]),
        "boxes": np.concatenate([one.boxes for one in kept]).astype(np.float32),
        "located": np.concatenate([one.located for one in kept]),
    }
    for name, array in arrays.items():
        with write_atomic(folder / f"{name}.npy") as file:
            np.save(file, array)
    vocabulary.save(folder / "vocabulary.json")
    index = _Index(
        [_Image(n, a, b) for n, a, b in zip(images, [0, *region_stops], region_stops, strict=False)],
        [
            _Item(one.name, numbers[one.image], a, b, one.split)
            for one, a, b in zip(kept, [0, *word_stops], word_stops, strict=False)
        ],
        dict(about),
    )
    with write_atomic(folder / "index.json") as file:
        file.write(msgspec.json.encode(index))


class Prepared:
    """A folder that `save_prepared` wrote."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            self._index = msgspec.json.decode((self.folder / "index.json").read_bytes(), type=_Index)
            self._arrays = {n: np.load(self.folder / f"{n}.npy", mmap_mode="r", allow_pickle=False) for n in _ARRAYS}
        except (OSError, ValueError, msgspec.DecodeError) as error:
            raise InvalidFile(folder, f"is not a folder of prepared narratives: {error}") from error
        self.vocabulary = Vocabulary.load(self.folder / "vocabulary.json")
        files = ("index.json", "vocabulary.json", *(f"{name}.npy" for name in _ARRAYS))
        self.fingerprint = folder_fingerprint(self.folder, files)
        self.region_size = int(self._arrays["regions"].shape[1])
        self.about = self._index.about

    def split(self, name: str, most: int | None = None) -> PreparedItems:
        """The narratives of one split, or the first `most` of them."""
        if name not in SPLITS:
            raise UnknownName("split", name, SPLITS)
        chosen = [i for i, item in enumerate(self._index.items) if item.split == name][:most]
        if not chosen:
            raise InvalidFile(self.folder, f"has no narrative in the split {name!r}")
        return PreparedItems(self, chosen)

    def image_name(self, item: int) -> str:
        return self._index.images[self._index.items[item].image].name

    def example(self, item: int) -> Example:
        """One narrative as the network reads it."""
        row = self._index.items[item]
        image = self._index.images[row.image]
        regions = slice(image.first, image.stop)
        words = slice(row.first, row.stop)
        return Example(
            RegionFeatures(
                self._arrays["regions"][regions].astype(np.float32), np.asarray(self._arrays["region_boxes"][regions])
            ),
            np.asarray(self._arrays["words"][words]),
            np.asarray(self._arrays["boxes"][words]),
            np.asarray(self._arrays["located"][words]),
            row.name,
        )


class PreparedItems(Sequence[Example]):
    """Some narratives of a folder, as a map-style data set."""

    def __init__(self, prepared: Prepared, items: Sequence[int]) -> None:
        self._prepared, self._items = prepared, tuple(items)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return PreparedItems(self._prepared, self._items[index])
        return self._prepared.example(self._items[index])

    def image_name(self, index: int) -> str:
        return self._prepared.image_name(self._items[index])
