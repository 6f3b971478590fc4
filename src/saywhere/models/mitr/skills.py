"""What a trained MITR can do, in words and values of `saywhere.core`: caption, ground, narrate.

    skills = Skills.from_pretrained("folder-or-hub-id")
    skills.caption(images, traces)        # list[str]
    skills.ground(images, texts)          # list[Grounded]: a box for every word
    skills.narrate(images)                # list[Grounded]: words and boxes from the images alone

An image is `RegionFeatures`, or a photo (height, width, 3) for a model with an eye. One is a batch of one, and gives
the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from saywhere.core import (
    InvalidValue,
    Trace,
    Word,
    WordBoxes,
    word_boxes,
)
from saywhere.core.grounded import WORDS_PER_S, Grounded
from saywhere.models.common.batches import padded
from saywhere.models.common.modes import eval_mode
from saywhere.models.mitr import decode
from saywhere.models.mitr.batch import GUIDED_BOXES, Image, collate_images, guided_boxes
from saywhere.models.mitr.decode import BEAM
from saywhere.models.mitr.network import MITR, Memory
from saywhere.models.search import GenerationConfig, Hypothesis


class Skills:
    """A MITR with a vocabulary. how: words are chosen unless told otherwise."""

    def __init__(self, model: MITR, how: GenerationConfig | None = None) -> None:
        if model.vocabulary is None:
            raise InvalidValue("model", "has no vocabulary, so its words mean nothing", "call model.attach(vocabulary)")
        self.model, self.vocabulary = model, model.vocabulary
        self.how = how or BEAM

    @classmethod
    def from_pretrained(cls, source: str | Path, revision: str | None = None) -> Skills:
        return cls(MITR.from_pretrained(source, revision))

    def caption(
        self,
        images: Sequence[Image],
        traces: Sequence[Trace | WordBoxes],
        how: GenerationConfig | None = None,
    ) -> list[str]:
        """A caption for each image along its trace, or along boxes in the order they are to be told."""
        _same_length(images, traces, "traces")
        boxes = [trace if isinstance(trace, WordBoxes) else boxes_along(trace) for trace in traces]
        if any(not len(one) for one in boxes):
            raise InvalidValue("trace", "points nowhere", "to describe an image without one, call narrate")
        return self._captions(images, [one.encode().astype(np.float32) for one in boxes], how)

    def guided(
        self,
        images: Sequence[Image],
        key_boxes: Sequence[WordBoxes],
        length: int = GUIDED_BOXES,
        how: GenerationConfig | None = None,
    ) -> list[str]:
        """Guided captioning: key boxes in the order they are to be told, filled up to `length` by the whole image."""
        _same_length(images, key_boxes, "key boxes")
        boxes = [guided_boxes(keys.boxes_xyxy, length) for keys in key_boxes]
        return self._captions(images, boxes, how)

    def ground(self, images: Sequence[Image], texts: Sequence[str | Sequence[str]]) -> list[Grounded]:
        """A box for every word of each text. A text may be given as words already."""
        _same_length(images, texts, "texts")
        words = [text.split() if isinstance(text, str) else text for text in texts]
        return self.ground_in(self.memory(images), words)

    def ground_in(self, memory: Memory, texts: Sequence[Sequence[str]]) -> list[Grounded]:
        """The same for images that are encoded already, and texts as words."""
        words = [tuple(text) for text in texts]
        pieces = [self.vocabulary.encode(text) for text in words]
        if any(not piece.ids for piece in pieces):
            raise InvalidValue("text", "has no word")
        ids = padded([np.array(piece.ids, dtype=np.int64) for piece in pieces]).to(self.model.device)
        lengths = torch.tensor([len(piece.ids) for piece in pieces], device=self.model.device)
        boxes = decode.trace(self.model, memory, ids, lengths).cpu().double().numpy()
        return [
            Grounded(text, boxes_of_words(one, piece.owners, len(text)))
            for text, one, piece in zip(words, boxes, pieces, strict=True)
        ]

    def narrate(
        self,
        images: Sequence[Image],
        how: GenerationConfig | None = None,
    ) -> list[Grounded]:
        """Words and boxes for each image, from the image alone."""
        return self.narrate_from(self.memory(images), how)

    def narrate_from(self, memory: Memory, how: GenerationConfig | None = None) -> list[Grounded]:
        """The same for images that are encoded already."""
        return [self._grounded(one) for one in decode.joint(self.model, memory, how or self.how)]

    def along(self, memory: Memory, boxes: Sequence[NDArray[np.float32]], how: GenerationConfig) -> list[Hypothesis]:
        """Words along (n, 5) boxes for each image that is encoded."""
        device = self.model.device
        mask = padded([np.ones(len(one), dtype=np.bool_) for one in boxes]).to(device)
        return decode.caption(self.model, memory, padded(boxes).to(device), mask, how)

    def _captions(
        self,
        images: Sequence[Image],
        boxes: Sequence[NDArray[np.float32]],
        how: GenerationConfig | None,
    ) -> list[str]:
        return [self.vocabulary.text(one.tokens) for one in self.along(self.memory(images), boxes, how or self.how)]

    def _grounded(self, said: Hypothesis) -> Grounded:
        spelled = self.vocabulary.spell(said.tokens)
        if said.outputs is None:
            raise InvalidValue("narration", "came without boxes")
        boxes = said.outputs.cpu().double().numpy()
        return Grounded(spelled.words, boxes_of_words(boxes, spelled.owners, len(spelled.words)))

    def memory(self, images: Sequence[Image]) -> Memory:
        """Images, encoded."""
        with eval_mode(self.model):
            return self.model.encode_images(collate_images(images).to(self.model.device))


def boxes_along(trace: Trace, words_per_s: float = WORDS_PER_S) -> WordBoxes:
    """The boxes of a trace whose words are not known yet: as many as somebody would say words meanwhile."""
    if not len(trace):
        return WordBoxes(np.empty((0, 4)))
    edges_s = np.linspace(trace.start_s, trace.end_s, max(1, round(trace.duration_s * words_per_s)) + 1).tolist()
    return word_boxes([Word("…", start_s, end_s) for start_s, end_s in pairwise(edges_s)], trace)


def boxes_of_words(boxes: NDArray[np.float64], owners: Sequence[int], words: int) -> WordBoxes:
    """One box for each word: the mean over its pieces, all of which were taught the word's box.

    boxes: (pieces or more, 4 or 5). A word without pieces, or with a piece whose box is NaN, is unlocated.
    """
    total = np.zeros((words, 4))
    pieces = np.zeros(words)
    np.add.at(total, list(owners), boxes[: len(owners), :4])
    np.add.at(pieces, list(owners), 1)
    some = pieces > 0
    mean = np.divide(total, pieces[:, None], out=np.full_like(total, np.nan), where=some[:, None])
    corners = np.concatenate([np.minimum(mean[:, :2], mean[:, 2:]), np.maximum(mean[:, :2], mean[:, 2:])], axis=1)
    return WordBoxes(corners.clip(0, 1), ~np.isnan(mean).any(axis=1))


def _same_length(images: Sequence[object], others: Sequence[object], what: str) -> None:
    if len(images) != len(others):
        raise InvalidValue(what, f"{len(others)} for {len(images)} images")
