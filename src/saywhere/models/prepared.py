"""Folders that networks learn from: a store of images' regions, and one of what was said of them.

images/             a row for each image: its regions in half precision, their boxes, tags if there are any
index.json, shards  a row for each question, caption or narrative; finished last, so that a torn save shows
vocabulary.json     what the word ids mean

An item that cannot be used is left out, named and counted. Splits may have any name; "train" is the one learnt from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec
import numpy as np

from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.region_features import REGIONS, RegionFeatures, stored_source
from saywhere.models.region_source import RegionSource
from saywhere.models.tagged_regions import TaggedRegions
from saywhere.store import Row, Store, StoreWriter
from saywhere.store.digest import folder_fingerprint

TRAIN = "train"
MOST_WORDS = 50_000

REGION_FIELDS = {"regions": "float16", "boxes": "float32", "tags": "json", "tag_boxes": "float32", "hidden": "json"}
_IMAGES, _VOCABULARY = "images", "vocabulary.json"

NO_IMAGE = "its image is not there"
OTHER_SIZE = "its image's features have another size than the first image's"
TOO_LARGE = "its image's features are beyond the range of float16"
NO_WORDS = "its text has no word"
TWICE = "its id was used before"

_T = TypeVar("_T")


class StoredItem(Protocol):
    """What every question, caption or narrative has: an id, the name of its image, a split."""

    @property
    def id(self) -> str: ...

    @property
    def image(self) -> str: ...

    @property
    def split(self) -> str: ...


_Item = TypeVar("_Item", bound=StoredItem)


class Skipped(msgspec.Struct, array_like=True, frozen=True):
    """An item that was left out, and why."""

    id: str
    reason: str


def region_row(image: RegionFeatures | TaggedRegions) -> dict[str, Any]:
    """An image as a row of REGION_FIELDS."""
    row: dict[str, Any] = {"regions": image.features, "boxes": image.boxes_xyxy}
    if isinstance(image, TaggedRegions):
        hidden = [np.flatnonzero(~present).tolist() for present in (image.tag_present, image.region_present)]
        row |= {"tags": image.tags, "tag_boxes": image.tag_boxes_xyxy, "hidden": hidden}
    return row


def region_features(row: Row) -> RegionFeatures:
    return RegionFeatures(row["regions"], row["boxes"])


def tagged_regions(row: Row) -> TaggedRegions:
    image = TaggedRegions(row["regions"], row["boxes"], row["tags"] or (), row["tag_boxes"])
    tags, regions = row["hidden"] or ((), ())
    return image.without(tags, regions) if tags or regions else image


class StoredImages(Mapping[str, _T]):
    """The images of a store by their names, each read when it is asked for."""

    def __init__(self, store: Store, read: Callable[[Row], _T]) -> None:
        self.store, self._read = store, read

    @property
    def source(self) -> RegionSource | None:
        return stored_source(self.store)

    def __getitem__(self, name: str) -> _T:
        if name not in self.store:
            raise KeyError(name)
        return self._read(self.store.by_key(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self.store.rows_by_key)

    def __len__(self) -> int:
        return len(self.store)


class SavedImages(msgspec.Struct, frozen=True):
    """numbers: image → its row. regions: image → how many it has. bad: image → why it is not stored."""

    numbers: dict[str, int]
    regions: dict[str, int]
    bad: dict[str, str]


def save_images(
    folder: str | Path, images: Mapping[str, RegionFeatures] | Mapping[str, TaggedRegions], names: Iterable[str]
) -> SavedImages:
    """Write the regions of the named images. Each is looked up once and then let go of.

    From now on until `save_items` is done, the folder is not one of prepared data.
    """
    (Path(folder) / "index.json").unlink(missing_ok=True)
    saved = SavedImages({}, {}, {})
    size = 0
    source: RegionSource | None = getattr(images, "source", None)
    about = {} if source is None else {"regions": source}
    with StoreWriter(Path(folder) / _IMAGES, REGIONS, REGION_FIELDS, about, resume=False) as writer:
        for name in dict.fromkeys(names):
            image = images.get(name)
            reason = NO_IMAGE if image is None else _unfit(image.features, size)
            if image is None or reason:
                saved.bad[name] = reason
                continue
            size = image.features.shape[1]
            saved.numbers[name], saved.regions[name] = len(saved.numbers), len(image)
            writer.add(name, **region_row(image))
    if not saved.numbers:
        reasons = ", ".join(sorted(set(saved.bad.values()))) or "there are none"
        raise InvalidValue("images", f"none can be stored: {reasons}")
    return saved


def _unfit(features: Any, size: int) -> str:
    """Why an image cannot be stored beside features of this size (0: of any), or nothing."""
    if size and features.shape[1] != size:
        return OTHER_SIZE
    return TOO_LARGE if np.abs(features).max(initial=0) > np.finfo(np.float16).max else ""


def usable_items(
    items: Sequence[_Item], images: SavedImages, unfit: Callable[[_Item, int], str]
) -> tuple[list[_Item], list[Skipped]]:
    """The items that can be stored, and the others with the first reason against each. One of TRAIN must be there.

    unfit: why an item cannot be used with an image of so many regions, or nothing.
    """
    usable: list[_Item] = []
    skipped: list[Skipped] = []
    seen: set[str] = set()
    for one in items:
        reason = TWICE if one.id in seen else images.bad.get(one.image, "")
        reason = reason or unfit(one, images.regions[one.image])
        seen.add(one.id)
        if reason:
            skipped.append(Skipped(one.id, reason))
        else:
            usable.append(one)
    if not any(one.split == TRAIN for one in usable):
        counts = Counter(one.reason for one in skipped).most_common()
        reasons = "; ".join(f"{count} × {reason}" for reason, count in counts)
        raise InvalidValue("items", f"none of the split {TRAIN!r} can be used", reasons or "there are none")
    return usable, skipped


class PreparedIndex(msgspec.Struct, frozen=True):
    """About a whole folder. about: whatever the one who saved it wants to keep. counts: of items, by name.

    max_words: kept of a text. splits: their names; filled in when it is saved.
    """

    about: Mapping[str, Any]
    skipped: Sequence[Skipped] = ()
    counts: Mapping[str, int] = {}
    max_words: int = 0
    splits: Sequence[str] = ()


def save_items(
    folder: str | Path,
    kind: str,
    fields: Mapping[str, str],
    items: Sequence[tuple[StoredItem, Mapping[str, Any]]],
    images: SavedImages,
    vocabulary: Vocabulary,
    saved: PreparedIndex,
) -> None:
    """Write items with the values of their fields, and finish the folder."""
    vocabulary.save(Path(folder) / _VOCABULARY)
    splits = list(dict.fromkeys(one.split for one, _ in items))
    numbers = {split: number for number, split in enumerate(splits)}
    about = msgspec.structs.asdict(msgspec.structs.replace(saved, splits=splits))
    every = {**fields, "split": "int16", "image": "int32"}
    with StoreWriter(folder, kind, every, about, resume=False) as writer:
        for one, values in items:
            writer.add(one.id, **values, split=numbers[one.split], image=images.numbers[one.image])


class PreparedFolder(ABC, Generic[_T]):
    """A folder of prepared data; a family's own says what an item is to its networks.

    counts: given, kept …; given − kept = len(skipped). splits: how many items each has.
    """

    kind: ClassVar[str]
    files: ClassVar[tuple[str, ...]] = (_VOCABULARY,)

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            self.rows, self.images = Store(self.folder, self.kind), Store(self.folder / _IMAGES, REGIONS)
            saved = msgspec.convert(self.rows.about, PreparedIndex)
        except (InvalidFile, msgspec.ValidationError) as error:
            raise InvalidFile(folder, f"is not a folder of prepared {self.kind}: {error}") from error
        self.vocabulary = Vocabulary.load(self.folder / _VOCABULARY)
        self.region_size = int(self.images[0]["regions"].shape[1])
        self.about, self.skipped, self.counts = saved.about, tuple(saved.skipped), saved.counts
        self.max_words = saved.max_words
        self._split_numbers, self._image_numbers = self.rows.flat("split"), self.rows.flat("image")
        self._split_names = saved.splits
        sizes = np.bincount(self._split_numbers, minlength=len(saved.splits)).tolist()
        self.splits: dict[str, int] = dict(zip(saved.splits, sizes, strict=True))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def regions_from(self) -> RegionSource | None:
        """How photos become such regions, as far as it is known."""
        return stored_source(self.images)

    @cached_property
    def fingerprint(self) -> str:
        """16 letters that change with the content of any file."""
        images = (f"{_IMAGES}/{name}" for name in self.images.files)
        return folder_fingerprint(self.folder, [*self.rows.files, *images, *self.files])

    @abstractmethod
    def item(self, index: int) -> _T:
        """One item as the network reads it."""

    def image_name(self, index: int) -> str:
        """The name of an item's image."""
        return self.image_row(index).key

    def regions(self, index: int) -> RegionFeatures:
        """The regions of an item's image."""
        return region_features(self.image_row(index))

    def image_row(self, index: int) -> Row:
        return self.images[int(self._image_numbers[index])]

    def split_name(self, index: int) -> str:
        return self._split_names[int(self._split_numbers[index])]

    def indices(self, split: str) -> list[int]:
        """Which items are in a split, in the order given."""
        if split not in self.splits:
            raise UnknownName("split", split, self.splits)
        chosen: list[int] = np.flatnonzero(self._split_numbers == list(self._split_names).index(split)).tolist()
        return chosen


_Folder = TypeVar("_Folder", bound=PreparedFolder[Any])


class PreparedItems(Sequence[_T], Generic[_Folder, _T]):
    """Some items of a folder, as a map-style data set."""

    def __init__(self, folder: _Folder, indices: Iterable[int]) -> None:
        self.folder, self.indices = folder, tuple(indices)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(self.folder, self.indices[index])
        return self.folder.item(self.indices[index])
