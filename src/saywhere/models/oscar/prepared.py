"""Captions at several levels made ready for training: a prepared folder of texts, and of images with their tags.

Levels may have any name. The vocabulary has the words of the training captions and of their images' tags.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from saywhere.core.errors import UnknownName
from saywhere.language.vocabulary import Vocabulary, plain_words
from saywhere.models.prepared import (
    MOST_WORDS,
    NO_WORDS,
    TRAIN,
    PreparedFolder,
    PreparedIndex,
    PreparedItems,
    StoredImages,
    save_images,
    save_items,
    tagged_regions,
    usable_items,
)
from saywhere.models.tagged_regions import TaggedRegions

NO_LEVEL = "it has no level"


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


def save_level_captions(
    folder: str | Path,
    images: Mapping[str, TaggedRegions],
    captions: Iterable[LevelCaption],
    about: Mapping[str, Any],
    least_word_count: int = 1,
) -> None:
    """Write a folder that `LevelCaptions` reads. least_word_count: rarer words are unknown.

    Images without a caption are not stored.
    """
    given = list(captions)
    saved = save_images(folder, images, (one.image for one in given))
    kept, skipped = usable_items(given, saved, _unfit)
    learnt = [one for one in kept if one.split == TRAIN]
    texts = [one.text for one in learnt]
    texts += [tag for name in dict.fromkeys(one.image for one in learnt) for tag in images[name].tags]
    vocabulary = Vocabulary.of_words(texts, MOST_WORDS, least_word_count)
    rows = [(one, {"level": one.level, "text": one.text}) for one in kept]
    counts = {"given": len(given), "kept": len(kept)}
    fields = {"level": "json", "text": "json"}
    save_items(folder, LevelCaptions.kind, fields, rows, saved, vocabulary, PreparedIndex(about, skipped, counts))


def _unfit(one: LevelCaption, _: int) -> str:
    if not plain_words(one.text):
        return NO_WORDS
    return "" if one.level else NO_LEVEL


class LevelCaptions(PreparedFolder[LevelItem]):
    """A folder that `save_level_captions` wrote. levels: how many captions each has."""

    kind: ClassVar[str] = "level captions"

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder)
        self._levels = [row["level"] for row in self.rows]
        self.levels = dict(Counter(self._levels))
        self._images = StoredImages(self.images, tagged_regions)

    def split(self, name: str, levels: Sequence[str] | None = None, most: int | None = None) -> LevelItems:
        """The captions of a split, at some levels or all, or the first `most` of them, in the order given."""
        for level in levels or ():
            if level not in self.levels:
                raise UnknownName("caption level", level, self.levels)
        chosen = [i for i in self.indices(name) if levels is None or self._levels[i] in levels]
        return LevelItems(self, chosen[:most])

    def image_names(self, split: str) -> list[str]:
        """The names of the images that have a caption in this split, in order."""
        return list(dict.fromkeys(self.image_name(index) for index in self.indices(split)))

    def image(self, name: str) -> TaggedRegions:
        """An image by its name."""
        if name not in self._images:
            raise UnknownName("image", name, self._images)
        return self._images[name]

    def caption(self, index: int) -> LevelCaption:
        row = self.rows[index]
        return LevelCaption(row.key, self.image_name(index), self.split_name(index), row["level"], row["text"])

    def item(self, index: int) -> LevelItem:
        return LevelItem(self.caption(index), tagged_regions(self.image_row(index)))


class LevelItems(PreparedItems[LevelCaptions, LevelItem]):
    """Some captions of a folder."""

    @property
    def captions(self) -> list[LevelCaption]:
        """The captions without their images."""
        return [self.folder.caption(index) for index in self.indices]
