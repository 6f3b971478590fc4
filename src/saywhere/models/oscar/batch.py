"""Images and captions as the network reads them: ids, features, and what is there, cut and padded.

b items; c places of [CLS] caption [SEP], t of tags and their [SEP], r regions: of the longest in the batch, not of the
longest there could be. Tags start at their own slot whatever the caption's length, so nothing depends on the padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saywhere.core.errors import InvalidValue
from saywhere.models.common.batches import Movable, padded, padding_mask
from saywhere.models.oscar.config import OscarConfig
from saywhere.models.oscar.words import Words
from saywhere.models.tagged_regions import TaggedRegions

BOX_SIZE = 6
"""x1, y1, x2, y2, width, height."""


@dataclass(frozen=True, slots=True, eq=False)
class Context(Movable):
    """What is known of images. tags: (b, t) ids with their [SEP]. tag_index: (b, t) which tag of its image, or −1.

    regions: (b, r, f + 6) features and boxes. tags_there: (b, t), regions_there: (b, r) bool: False for [PAD].
    """

    tags: Tensor
    tag_index: Tensor
    tags_there: Tensor
    regions: Tensor
    regions_there: Tensor

    def __len__(self) -> int:
        return len(self.tags)

    @property
    def there(self) -> Tensor:
        """(b, t + r)."""
        return torch.cat([self.tags_there, self.regions_there], dim=1)


@dataclass(frozen=True, slots=True, eq=False)
class TaggedCaptionBatch(Movable):
    """captions: (b, c) ids, [CLS] first, [SEP] last, [PAD] after. lengths: (b,) with both. levels: (b,) numbers."""

    context: Context
    captions: Tensor
    lengths: Tensor
    levels: Tensor

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def there(self) -> Tensor:
        """(b, c) which places of the captions are not padding."""
        return padding_mask(self.lengths, self.captions.shape[1])


class Reader:
    """Puts images and texts into ids and arrays. It remembers the pieces of every text it has read."""

    def __init__(self, config: OscarConfig, words: Words) -> None:
        self.config, self.words = config, words
        self._pieces: dict[str, tuple[int, ...]] = {}

    def caption(self, text: str) -> tuple[int, ...]:
        """[CLS], the text, [SEP]; a text that is too long is cut before its [SEP]."""
        return (self.words.cls_id, *self._read(text)[: self.config.caption_slots - 2], self.words.sep_id)

    def context(self, images: Sequence[TaggedRegions], *, full: bool = False) -> Context:
        """Images of any numbers of tags and regions. full: pad to all slots there are, which changes no result."""
        most = self.config.most_regions
        for i, image in enumerate(images):
            if image.region_size != self.config.region_size:
                reason = f"has features of size {image.region_size}, but the network reads {self.config.region_size}"
                raise InvalidValue(f"image {i}", reason)
        tags = [self._tags(image) for image in images]
        there = [image.region_present[:most] for image in images]
        t = self.config.tag_slots if full else max((len(ids) for ids, _, _ in tags), default=0)
        r = most if full else max(map(len, there), default=0)
        return Context(
            padded([ids for ids, _, _ in tags], t, self.words.pad_id),
            padded([index for _, index, _ in tags], t, -1),
            padded([seen for _, _, seen in tags], t).bool(),
            _regions(images, r, self.config.region_size),
            padded(there, r).bool(),
        )

    def batch(
        self, images: Sequence[TaggedRegions], texts: Sequence[str], levels: Sequence[str], *, full: bool = False
    ) -> TaggedCaptionBatch:
        """A caption at its level about each image."""
        rows = [self.caption(text) for text in texts]
        c = self.config.caption_slots if full else max(map(len, rows), default=0)
        return TaggedCaptionBatch(
            self.context(images, full=full),
            padded([np.array(row) for row in rows], c, self.words.pad_id),
            torch.tensor([len(row) for row in rows]),
            torch.tensor([self.config.level_number(level) for level in levels]),
        )

    def _tags(self, image: TaggedRegions) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Ids, tag indices and presence of an image's tags and their [SEP]; tags that do not fit are cut whole."""
        ids: list[int] = []
        index: list[int] = []
        for i, tag in enumerate(image.tags):
            pieces = self._read(tag)
            if len(ids) + len(pieces) >= self.config.tag_slots:
                break
            ids += pieces
            index += [i] * len(pieces)
        owners = np.array([*index, -1])
        there = np.append(image.tag_present[index], True)
        ids_there = np.where(there, [*ids, self.words.sep_id], self.words.pad_id)
        return ids_there, np.where(there, owners, -1), there

    def _read(self, text: str) -> tuple[int, ...]:
        if text not in self._pieces:
            self._pieces[text] = self.words.encode(text)
        return self._pieces[text]


def encoded_boxes(boxes_xyxy: NDArray[np.float32]) -> NDArray[np.float32]:
    """(r, 6) x1, y1, x2, y2, width, height."""
    return np.concatenate([boxes_xyxy, boxes_xyxy[:, 2:] - boxes_xyxy[:, :2]], axis=1)


def _regions(images: Sequence[TaggedRegions], r: int, size: int) -> Tensor:
    block = np.zeros((len(images), r, size + BOX_SIZE), dtype=np.float32)
    for row, image in zip(block, images, strict=True):
        count = min(len(image), r)
        row[:count, :size] = image.features[:count]
        row[:count, size:] = encoded_boxes(image.boxes_xyxy[:count])
    return torch.from_numpy(block)
