"""Captions at several levels made ready for training, in a folder that is read by memory map.

regions.npy, region_boxes.npy   all images' regions, float16, and their boxes; see `saywhere.models.updown.store`
tag_boxes.npy                   boxes of all images' tags, one after another
vocabulary.json                 words of the training captions and of their images' tags
index.json                      tags, captions, what was left out and why; written last, so that a torn save shows

A caption that cannot be used is left out, named and counted. Splits and levels may have any name; the vocabulary comes
from the split "train".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.language.vocabulary import Vocabulary
from saywhere.language.words import plain_words
from saywhere.models.region_features import RegionFeatures
from saywhere.models.tagged_regions import TaggedRegions
from saywhere.models.updown.prepared import MOST_WORDS, NO_WORDS, TRAIN, TWICE
from saywhere.models.updown.rows import Skipped, started
from saywhere.models.updown.store import (
    OTHER_SIZE,
    RegionStore,
    SavedRegions,
    StoredImage,
    open_arrays,
    save_arrays,
    save_regions,
)
from saywhere.store.digest import folder_fingerprint

NO_LEVEL = "it has no level"
_TAG_BOXES = "tag_boxes"


@dataclass(frozen=True, slots=True)
class LevelCaption:
    """A caption. image: its name in `images`. level: "object", "scene", "action", "rationale" or any other name."""

    id: str
    image: str
    split: str
    level: str
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class LevelItem:
    """A caption with its image, to learn from."""

    caption: LevelCaption
    image: TaggedRegions


class _Tags(msgspec.Struct, array_like=True, frozen=True):
    """An image's tags. boxes: where theirs start among all, −1 for none. gone: what is not present, by index."""

    names: tuple[str, ...]
    boxes: int
    gone_tags: tuple[int, ...]
    gone_regions: tuple[int, ...]


class _Row(msgspec.Struct, array_like=True, frozen=True):
    id: str
    image: int
    split: str
    level: str
    text: str


class _Index(msgspec.Struct, frozen=True):
    """index.json. tags: for each image. digests: SHA-256 of every array, to tell data apart."""

    kind: str
    images: list[StoredImage]
    tags: list[_Tags]
    rows: list[_Row]
    skipped: list[Skipped]
    counts: dict[str, int]
    about: dict[str, Any]
    digests: dict[str, str]


_KIND = "level captions"


def save_level_captions(
    folder: str | Path,
    images: Mapping[str, TaggedRegions],
    captions: Iterable[LevelCaption],
    about: Mapping[str, Any],
    least_word_count: int = 1,
) -> None:
    """Write a folder that `LevelCaptions` reads. least_word_count: rarer words are unknown.

    Images without a caption are not stored. At least one image must have a region.
    """
    target, given = started(folder), list(captions)
    regions = _save_images(target, images, list(dict.fromkeys(one.image for one in given)))
    kept, skipped = _usable(given, regions.bad)
    numbers = {image.name: i for i, image in enumerate(regions.images)}
    tags, boxes = _tags([images[image.name] for image in regions.images])
    learnt = [one for one in kept if one.split == TRAIN]
    texts = [one.text for one in learnt]
    texts += [tag for name in dict.fromkeys(one.image for one in learnt) for tag in images[name].tags]
    Vocabulary.of_words(texts, MOST_WORDS, least_word_count).save(target / "vocabulary.json")
    index = _Index(
        _KIND,
        regions.images,
        tags,
        [_Row(one.id, numbers[one.image], one.split, one.level, one.text) for one in kept],
        skipped,
        {"given": len(given), "kept": len(kept)},
        dict(about),
        regions.digests | save_arrays(target, {_TAG_BOXES: boxes}),
    )
    with write_atomic(target / "index.json") as file:
        file.write(msgspec.json.encode(index))


class LevelCaptions:
    """A prepared folder. counts: given, kept; given − kept = len(skipped).

    splits, levels: how many captions each has.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            self._index = msgspec.json.decode((self.folder / "index.json").read_bytes(), type=_Index)
        except (OSError, ValueError, msgspec.DecodeError) as error:
            raise InvalidFile(folder, f"is not a folder of prepared {_KIND}: {error}") from error
        if self._index.kind != _KIND:
            raise InvalidFile(folder, f"holds prepared {self._index.kind}, not {_KIND}")
        self.store = RegionStore(self.folder, self._index.images)
        self._boxes = open_arrays(self.folder, (_TAG_BOXES,))[_TAG_BOXES]
        self._numbers = {image.name: i for i, image in enumerate(self._index.images)}
        self.vocabulary = Vocabulary.load(self.folder / "vocabulary.json")
        files = ("index.json", "vocabulary.json", *(f"{name}.npy" for name in self._index.digests))
        self.fingerprint = folder_fingerprint(self.folder, files)
        self.region_size = self.store.region_size
        self.splits = dict(Counter(row.split for row in self._index.rows))
        self.levels = dict(Counter(row.level for row in self._index.rows))
        self.skipped, self.counts, self.about = tuple(self._index.skipped), self._index.counts, self._index.about

    def __len__(self) -> int:
        return len(self._index.rows)

    def split(self, name: str, levels: Sequence[str] | None = None, most: int | None = None) -> LevelItems:
        """The captions of a split, at some levels or all, or the first `most` of them, in the order given."""
        self._check_split(name)
        for level in levels or ():
            if level not in self.levels:
                raise UnknownName("caption level", level, self.levels)
        chosen = [
            i for i, row in enumerate(self._index.rows) if row.split == name and (levels is None or row.level in levels)
        ]
        return LevelItems(self, chosen[:most])

    def images(self, split: str) -> list[str]:
        """The names of the images that have a caption in this split, in order."""
        self._check_split(split)
        numbers = dict.fromkeys(row.image for row in self._index.rows if row.split == split)
        return [self._index.images[number].name for number in numbers]

    def image(self, name: str) -> TaggedRegions:
        """An image by its name."""
        if name not in self._numbers:
            raise UnknownName("image", name, self._numbers)
        return self._image(self._numbers[name])

    def caption(self, index: int) -> LevelCaption:
        row = self._index.rows[index]
        return LevelCaption(row.id, self._index.images[row.image].name, row.split, row.level, row.text)

    def item(self, index: int) -> LevelItem:
        """One caption with its image."""
        return LevelItem(self.caption(index), self._image(self._index.rows[index].image))

    def _image(self, number: int) -> TaggedRegions:
        tags = self._index.tags[number]
        boxes = None if tags.boxes < 0 else self._boxes[tags.boxes : tags.boxes + len(tags.names)]
        image = TaggedRegions(self.store.regions(number), self.store.boxes(number), tags.names, boxes)
        return image.without(tags.gone_tags, tags.gone_regions) if tags.gone_tags or tags.gone_regions else image

    def _check_split(self, name: str) -> None:
        if name not in self.splits:
            raise UnknownName("split", name, self.splits)


class LevelItems(Sequence[LevelItem]):
    """Some captions of a folder, as a map-style data set."""

    def __init__(self, folder: LevelCaptions, indices: Sequence[int]) -> None:
        self.folder, self.indices = folder, tuple(indices)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return LevelItems(self.folder, self.indices[index])
        return self.folder.item(self.indices[index])

    @property
    def captions(self) -> list[LevelCaption]:
        """The captions without their images."""
        return [self.folder.caption(index) for index in self.indices]


class _WithRegions(Mapping[str, RegionFeatures]):
    """The regions of images that have any, one at a time."""

    def __init__(self, images: Mapping[str, TaggedRegions]) -> None:
        self._images = images

    def __getitem__(self, name: str) -> RegionFeatures:
        image = self._images[name]
        return RegionFeatures(image.features, image.boxes_xyxy)

    def __iter__(self) -> Iterator[str]:
        return iter(self._images)

    def __len__(self) -> int:
        return len(self._images)


def _save_images(folder: Path, images: Mapping[str, TaggedRegions], names: Sequence[str]) -> SavedRegions:
    """Regions of the named images; those without any stand last, with nothing of the arrays."""
    counts = {name: len(images[name]) for name in names if name in images}
    saved = save_regions(folder, _WithRegions(images), [name for name in names if counts.get(name) != 0])
    size, rows = images[saved.images[0].name].region_size, saved.images[-1].stop
    empty = [name for name, count in counts.items() if not count]
    bad = saved.bad | {name: OTHER_SIZE for name in empty if images[name].region_size != size}
    stored = [*saved.images, *(StoredImage(name, rows, rows) for name in empty if name not in bad)]
    return SavedRegions(stored, bad, saved.digests)


def _usable(
    captions: Sequence[LevelCaption], bad_images: Mapping[str, str]
) -> tuple[list[LevelCaption], list[Skipped]]:
    """Captions that can be stored, and why the others cannot."""
    kept: list[LevelCaption] = []
    skipped: list[Skipped] = []
    seen: set[str] = set()
    for one in captions:
        reason = bad_images.get(one.image, "")
        if not reason:
            reason = NO_WORDS if not plain_words(one.text) else "" if one.level else NO_LEVEL
        if not reason and one.id in seen:
            reason = TWICE
        if reason:
            skipped.append(Skipped(one.id, reason))
            continue
        seen.add(one.id)
        kept.append(one)
    if not any(one.split == TRAIN for one in kept):
        reasons = Counter(one.reason for one in skipped).most_common(3)
        raise InvalidValue("captions", f"none of the split {TRAIN!r} can be used: {reasons or 'there are none'}")
    return kept, skipped


def _tags(images: Sequence[TaggedRegions]) -> tuple[list[_Tags], NDArray[np.float32]]:
    """Each image's tags, and all their boxes in one array."""
    rows: list[_Tags] = []
    boxes: list[NDArray[np.float32]] = [np.zeros((0, 4), dtype=np.float32)]
    filled = 0
    for image in images:
        gone_tags, gone_regions = (np.flatnonzero(~flags) for flags in (image.tag_present, image.region_present))
        known = image.tag_boxes_xyxy is not None
        row = _Tags(image.tags, filled if known else -1, tuple(gone_tags.tolist()), tuple(gone_regions.tolist()))
        rows.append(row)
        if image.tag_boxes_xyxy is not None:
            boxes.append(image.tag_boxes_xyxy)
            filled += len(image.tags)
    return rows, np.concatenate(boxes)
