"""Reading and writing one place at a time, with the keys and values of earlier places kept.

Rows are images × beams, image by image. All beams of an image look at one copy of its memory: they are just more
queries. Nothing here drops out; give it a network at rest (`resting`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor, nn

from saywhere.language.vocabulary import BEGIN_ID
from saywhere.models.mitr.layers import BOX_SIZE, Attention, KeysValues, as_keys
from saywhere.models.mitr.network import MITR, Fusion, Memory, Stream


class WordSteps(Protocol):
    """What a search needs: say how likely each next word is, and follow when beams are chosen."""

    @property
    def boxes(self) -> Tensor | None:
        """(images, beams, places, 5) the boxes that came with the words, if boxes do."""

    def begin(self) -> Tensor:
        """(images, 1) the id to read first."""

    def advance(self, words: Tensor) -> Tensor:
        """Read one word for each row, (images, beams) ids; returns (images, beams, V + 1) logits for the next."""

    def reorder(self, rows: Tensor) -> None:
        """Row i goes on from what was row `rows[i]`. The number of beams may change."""


@contextmanager
def resting(model: nn.Module) -> Iterator[None]:
    """The network without dropout and gradients, whatever it was doing; afterwards as before."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)


class Cache:
    """Keys and values of the places read so far, in one block that is not copied as it fills."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.filled = capacity, 0
        self._block: KeysValues | None = None

    def append(self, new: KeysValues) -> KeysValues:
        """Add one place, each (rows, heads, 1, size); returns all places so far."""
        if self._block is None:
            rows, heads, _, size = new.keys.shape
            self._block = KeysValues(*(part.new_empty(rows, heads, self.capacity, size) for part in new))
        for block, part in zip(self._block, new, strict=True):
            block[:, :, self.filled : self.filled + 1] = part
        self.filled += 1
        return KeysValues(*(block[:, :, : self.filled] for block in self._block))

    def reorder(self, rows: Tensor) -> None:
        if self._block is None:
            return
        kept = [part[:, :, : self.filled].index_select(0, rows) for part in self._block]
        if len(rows) != len(self._block.keys):
            self._block = KeysValues(*(part.new_empty(len(rows), *part.shape[1:]) for part in self._block))
        for block, part in zip(self._block, kept, strict=True):
            block[:, :, : self.filled] = part


def packed(memory: KeysValues) -> KeysValues:
    """The same keys and values, head by head in memory: many short looks at them are faster."""
    return KeysValues(*(part.contiguous() for part in memory))


def or_none(mask: Tensor) -> Tensor | None:
    """No mask where nothing is masked."""
    return None if bool(mask.all()) else mask


def look_back(attention: Attention, x: Tensor, read: Tensor, cache: Cache) -> Tensor:
    """Each row looks at its own past: queries x and the new place `read`, both (images, beams, width)."""
    past = cache.append(attention.keys_values(read.flatten(0, 1)[:, None]))
    return attention.look(x.flatten(0, 1)[:, None], past, None).view_as(x)


def look_at_other(fusion: Fusion, x: Tensor, other: Tensor, cache: Cache) -> Tensor:
    """A fusion whose other stream grows too: `other`, the same shape as x, is its new place."""
    return fusion.think(x + look_back(fusion.other_attention, fusion.other_norm(x), other, cache))


def embedded(embedding: nn.Module, values: Tensor, place: int) -> Tensor:
    """(images, beams) words or (images, beams, 5) boxes, all at one place, as vectors (images, beams, width)."""
    vectors: Tensor = embedding(values.flatten(0, 1)[:, None], place)
    return vectors.view(*values.shape[:2], -1)


def measured(boxes: Tensor) -> Tensor:
    """(…, 5) boxes with the area that follows from their corners, as the authors feed them back.

    Corners may come in the wrong order from an untrained network; the product is then negative, and stays so.
    """
    x1, y1, x2, y2, _ = boxes.unbind(-1)
    return torch.stack([x1, y1, x2, y2, (x2 - x1) * (y2 - y1)], dim=-1)


class StreamSteps:
    """One stream of a MITR, a place at a time."""

    def __init__(self, stream: Stream, image: Sequence[KeysValues], image_mask: Tensor, capacity: int) -> None:
        self.stream, self.image, self.image_mask = stream, [packed(one) for one in image], or_none(image_mask)
        self.caches = [Cache(capacity) for _ in image]

    def advance(self, x: Tensor) -> Tensor:
        """The next place of every row: embedded (images, beams, width) to the stream's state, the same shape."""
        for layer, image, cache in zip(self.stream, self.image, self.caches, strict=True):
            normed = layer.self_norm(x)
            x = x + look_back(layer.self_attention, normed, normed, cache)
            x = x + layer.image_attention.look(layer.image_norm(x), image, self.image_mask)
        return x

    def reorder(self, rows: Tensor) -> None:
        for cache in self.caches:
            cache.reorder(rows)


class CaptionSteps:
    """Task 2: words along a trace that is read whole, once."""

    boxes: Tensor | None = None

    def __init__(self, model: MITR, memory: Memory, boxes: Tensor, box_mask: Tensor, capacity: int) -> None:
        self.model, self.place = model, 0
        trace = model.trace_stream(model.trace(boxes), as_keys(box_mask), memory.trace, memory.mask)
        self.trace = packed(model.caption_fusion.other_attention.keys_values(trace))
        self.trace_mask = or_none(as_keys(box_mask))
        self.stream = StreamSteps(model.word_stream, memory.words, memory.mask, capacity)

    def begin(self) -> Tensor:
        return torch.full((len(self.trace.keys), 1), BEGIN_ID, device=self.trace.keys.device)

    def advance(self, words: Tensor) -> Tensor:
        w = self.stream.advance(embedded(self.model.words, words, self.place))
        self.place += 1
        return self.model.to_words(self.model.caption_fusion.look(w, self.trace, self.trace_mask))

    def reorder(self, rows: Tensor) -> None:
        self.stream.reorder(rows)


class TraceSteps:
    """Task 1: boxes for a caption that is read whole, once."""

    def __init__(self, model: MITR, memory: Memory, words: Tensor, word_mask: Tensor) -> None:
        self.model, self.place = model, 0
        caption = model.word_stream(model.words(words), as_keys(word_mask), memory.words, memory.mask)
        self.caption = packed(model.trace_fusion.other_attention.keys_values(caption))
        self.caption_mask = or_none(as_keys(word_mask))
        self.stream = StreamSteps(model.trace_stream, memory.trace, memory.mask, words.shape[1])

    def advance(self, boxes: Tensor) -> Tensor:
        """Read one box for each image, (images, 1, 5); returns the next, the same shape."""
        r = self.stream.advance(embedded(self.model.trace, boxes, self.place))
        self.place += 1
        pointed = self.model.trace_fusion.look(r, self.caption, self.caption_mask)
        return measured(self.model.to_boxes(self.model.norm(pointed)))


class JointSteps:
    """Task 3: a word and its box at a time."""

    def __init__(self, model: MITR, memory: Memory, capacity: int) -> None:
        self.model, self.images, self.place = model, len(memory.mask), 0
        self.words = StreamSteps(model.word_stream, memory.words, memory.mask, capacity)
        self.trace = StreamSteps(model.trace_stream, memory.trace, memory.mask, capacity)
        self.seen_by_words, self.seen_by_trace = Cache(capacity), Cache(capacity)
        # The first box is the all-zero start box.
        self._boxes = torch.zeros(self.images, 1, 1, BOX_SIZE, device=model.device)

    def begin(self) -> Tensor:
        return torch.full((self.images, 1), BEGIN_ID, device=self._boxes.device)

    @property
    def boxes(self) -> Tensor:
        return self._boxes[:, :, 1:]

    def advance(self, words: Tensor) -> Tensor:
        model = self.model
        w = self.words.advance(embedded(model.words, words, self.place))
        r = self.trace.advance(embedded(model.trace, self._boxes[:, :, -1], self.place))
        self.place += 1
        said = look_at_other(model.joint_caption_fusion, w, r, self.seen_by_words)
        pointed = look_at_other(model.joint_trace_fusion, r, w, self.seen_by_trace)
        box = measured(model.to_boxes(model.joint_trace_norm(pointed)))
        self._boxes = torch.cat([self._boxes, box[:, :, None]], dim=2)
        return model.to_words(said)

    def reorder(self, rows: Tensor) -> None:
        for part in (self.words, self.trace, self.seen_by_words, self.seen_by_trace):
            part.reorder(rows)
        self._boxes = self._boxes.flatten(0, 1)[rows].view(self.images, -1, *self._boxes.shape[2:])
