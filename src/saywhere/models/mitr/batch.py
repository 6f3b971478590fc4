"""Narratives as a model reads them: examples, batches of them, and guided captioning's key boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional

from saywhere.core import InvalidValue, Narrative, WordBoxes
from saywhere.core.alignment import NOWHERE
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.common.batches import Movable, padded, padding_mask
from saywhere.models.region_features import RegionFeatures

Photo = NDArray[np.uint8]
"""(height, width, 3) RGB."""

Image = RegionFeatures | Photo
"""What a model looks at: the features of an image's regions, or the photo itself for a model with an eye."""

GUIDED_BOXES = 20
"""How many boxes a guided caption is written along, unless told otherwise."""


@dataclass(frozen=True, slots=True, eq=False)
class NarrativeExample:
    """One narrative: an image, its words, and where each of them is.

    words: (T,) ids. boxes: (T, 5) x1, y1, x2, y2, area; the whole image for unlocated words. located: (T,).
    name: whose narrative it is, for reports.
    """

    image: Image
    words: NDArray[np.int64]
    boxes: NDArray[np.float32]
    located: NDArray[np.bool_]
    name: str = ""

    def __post_init__(self) -> None:
        count = len(self.words)
        if not count:
            raise InvalidValue(f"example {self.name!r}", "has no words")
        if self.boxes.shape != (count, 5) or self.located.shape != (count,):
            shapes = f"boxes of shape {self.boxes.shape} and flags of shape {self.located.shape} for {count} words"
            raise InvalidValue(f"example {self.name!r}", shapes)


def example(
    image: Image, words: Sequence[str], boxes: WordBoxes, vocabulary: Vocabulary, max_words: int = 100, name: str = ""
) -> NarrativeExample:
    """Words and their boxes as pieces: each piece has its word's box. Pieces beyond `max_words` are left out."""
    if len(words) != len(boxes):
        raise InvalidValue(f"example {name!r}", f"{len(boxes)} boxes for {len(words)} words")
    pieces = vocabulary.encode(words)
    owners = np.array(pieces.owners[:max_words], dtype=np.int64)
    return NarrativeExample(
        image,
        np.array(pieces.ids[:max_words], dtype=np.int64),
        boxes.encode()[owners].astype(np.float32),
        boxes.located[owners],
        name,
    )


def example_of(image: Image, narrative: Narrative, vocabulary: Vocabulary, max_words: int = 100) -> NarrativeExample:
    """A narrative with timed words and a trace, by the alignment rules of `saywhere.core`."""
    words = [word.text for word in narrative.words]
    return example(image, words, narrative.word_boxes(), vocabulary, max_words, narrative.id)


def guided_example(
    image: Image,
    words: Sequence[str],
    key_boxes_xyxy: ArrayLike,
    vocabulary: Vocabulary,
    max_words: int = 100,
    name: str = "",
) -> NarrativeExample:
    """For guided captioning: key boxes in the order they are to be told, no pairing with words.

    No word counts as located, so only the caption is learned from it; see `trace_of` for what the network reads.
    """
    ids = vocabulary.encode(words).ids[:max_words]
    boxes = guided_boxes(key_boxes_xyxy, len(ids))
    return NarrativeExample(image, np.array(ids, dtype=np.int64), boxes, np.zeros(len(ids), dtype=np.bool_), name)


def guided_boxes(key_boxes_xyxy: ArrayLike, length: int) -> NDArray[np.float32]:
    """(length, 5) the key boxes (n, 4), then the whole image; boxes beyond the length are left out."""
    keys = WordBoxes(key_boxes_xyxy).encode()[:length]
    padding = np.tile(NOWHERE, (length - len(keys), 1))
    return np.concatenate([keys, padding]).astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Images(Movable):
    """Images of a batch: photos (B, 3, H, W) uint8, or regions (B, R, F), their boxes (B, R, 5) and mask (B, R)."""

    photos: Tensor | None = None
    regions: Tensor | None = None
    region_boxes: Tensor | None = None
    region_mask: Tensor | None = None

    def __len__(self) -> int:
        some = self.photos if self.photos is not None else self.regions
        return 0 if some is None else len(some)


@dataclass(frozen=True, slots=True, eq=False)
class Batch(Movable):
    """B examples, padded to the longest, T words.

    words: (B, T) ids, 0 after the end. boxes: (B, T, 5), zeros after the end. located: (B, T), False after the end.
    lengths: (B,) words of each.
    """

    images: Images
    words: Tensor
    boxes: Tensor
    located: Tensor
    lengths: Tensor

    def __len__(self) -> int:
        return len(self.words)


def trace_of(batch: Batch, guided: int = 0) -> tuple[Tensor, Tensor]:
    """The boxes that a caption is written along, and how many of them there are: (B, N, 5) and (B,).

    guided: 0 for a trace, one box for each word. Otherwise the boxes are key boxes (`guided_example`), and every
    narrative gets this many, filled up by the whole image: their number must not tell how long the caption is.
    """
    if not guided:
        return batch.boxes, batch.lengths
    boxes = functional.pad(batch.boxes, (0, 0, 0, max(0, guided - batch.boxes.shape[1])))[:, :guided]
    given = padding_mask(batch.lengths, guided)
    return torch.where(given[:, :, None], boxes, boxes.new_tensor(NOWHERE)), torch.full_like(batch.lengths, guided)


def collate(examples: Sequence[NarrativeExample]) -> Batch:
    """Examples of any lengths and numbers of regions, padded to the longest."""
    lengths = torch.tensor([len(one.words) for one in examples])
    return Batch(
        collate_images([one.image for one in examples]),
        padded([one.words for one in examples]),
        padded([one.boxes for one in examples]),
        padded([one.located for one in examples]),
        lengths,
    )


def collate_images(images: Sequence[Image]) -> Images:
    """Photos of one size, or regions of one feature size and any number."""
    if not images:
        raise InvalidValue("batch", "holds no image")
    regions = [image for image in images if isinstance(image, RegionFeatures)]
    if not regions:
        return Images(photos=_photos([image for image in images if not isinstance(image, RegionFeatures)]))
    if len(regions) != len(images):
        raise InvalidValue("batch", f"mixes {len(regions)} images given as regions with others given as photos")
    sizes = {one.features.shape[1] for one in regions}
    if len(sizes) > 1:
        raise InvalidValue("batch", f"mixes region features of sizes {sorted(sizes)}")
    counts = torch.tensor([len(one.features) for one in regions])
    return Images(
        regions=padded([one.features for one in regions]),
        region_boxes=padded([one.encoded_boxes() for one in regions]),
        region_mask=padding_mask(counts, int(counts.max())),
    )


def _photos(photos: Sequence[Photo]) -> Tensor:
    for photo in photos:
        if not isinstance(photo, np.ndarray) or photo.dtype != np.uint8 or photo.ndim != 3 or photo.shape[2] != 3:
            what = f"{photo.dtype} {photo.shape}" if isinstance(photo, np.ndarray) else type(photo).__name__
            raise InvalidValue("photo", f"is {what}, not uint8 (height, width, 3)")
    if len({photo.shape for photo in photos}) > 1:
        raise InvalidValue("batch", f"mixes photos of sizes {sorted({photo.shape[:2] for photo in photos})}")
    return torch.from_numpy(np.stack(photos)).permute(0, 3, 1, 2)
