"""Reading and writing one place at a time, with the keys and values of earlier places kept.

Rows are images × beams, image by image. All beams of an image look at one copy of its memory: they are just more
queries. Nothing here drops out; give it a network at rest (`eval_mode`), whose weights stay as they are meanwhile: what
can be worked out of them once is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from saywhere.language.vocabulary import BEGIN_ID
from saywhere.models.mitr.layers import BOX_SIZE, NORM_EPSILON, Attention, FeedForward, KeysValues, Norm, as_keys
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


class Projection:
    """Linear layers that read the same vectors, as one; behind a norm, if there is one."""

    def __init__(self, norm: Norm | None, *linears: nn.Linear) -> None:
        self.norm = None if norm is None else norm.scale_and_shift()
        one = linears[0]
        self.weight = one.weight if len(linears) == 1 else torch.cat([linear.weight for linear in linears])
        self.bias = one.bias if len(linears) == 1 else torch.cat([linear.bias for linear in linears])

    def __call__(self, x: Tensor) -> Tensor:
        if self.norm is not None:
            x = functional.layer_norm(x, x.shape[-1:], *self.norm, NORM_EPSILON)
        return functional.linear(x, self.weight, self.bias)


class CachedAttention:
    """An attention of each row to its own past, which grows by a place at a time and is not copied as it does.

    other: the keys and values are of the other stream's state; otherwise of the normed vectors that also ask.
    """

    def __init__(self, norm: Norm, attention: Attention, capacity: int, *, other: bool = False) -> None:
        self.heads, self.capacity, self.filled = attention.heads, capacity, 0
        self.query = Projection(norm, attention.query) if other else None
        keys_values = (attention.key, attention.value)
        self.read = Projection(None, *keys_values) if other else Projection(norm, attention.query, *keys_values)
        self.out = Projection(None, attention.out)
        self._block: Tensor | None = None

    def advance(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        """The next place of every row, (images, beams, width), with what it sees of the past added; the same shape."""
        rows, heads, width = x.shape[0] * x.shape[1], self.heads, x.shape[2]
        read = self.read(x if other is None else other).view(rows, -1)
        asked = read[:, :width] if self.query is None else self.query(x)
        new = read[:, -2 * width :].view(rows, 2, heads, -1)
        if self._block is None:
            self._block = new.new_empty(rows, 2, heads, self.capacity, width // heads)
        self._block[:, :, :, self.filled] = new
        self.filled += 1
        keys, values = self._block[:, :, :, : self.filled].unbind(1)
        seen = functional.scaled_dot_product_attention(asked.reshape(rows, heads, 1, -1), keys, values)
        return x + self.out(seen.reshape(x.shape))

    def reorder(self, rows: Tensor) -> None:
        if self._block is None:
            return
        kept = self._block[:, :, :, : self.filled].index_select(0, rows)
        if len(rows) != len(self._block):
            self._block = self._block.new_empty(len(rows), *self._block.shape[1:])
        self._block[:, :, :, : self.filled] = kept


class CrossAttention:
    """An attention to what is there from the start: the image, or the other stream read whole."""

    def __init__(self, norm: Norm, attention: Attention, seen: KeysValues, mask: Tensor) -> None:
        self.split = attention.split
        self.query, self.out = Projection(norm, attention.query), Projection(None, attention.out)
        # Head by head in memory: many short looks are faster.
        self.keys, self.values = (part.contiguous() for part in seen)
        # No mask where nothing is masked.
        self.mask = None if bool(mask.all()) else mask

    def advance(self, x: Tensor) -> Tensor:
        """(images, beams, width) with what it sees added. All beams of an image are queries to one memory."""
        asked = self.split(self.query(x))
        seen = functional.scaled_dot_product_attention(asked, self.keys, self.values, self.mask)
        return x + self.out(seen.transpose(1, 2).flatten(2))


class FeedForwardStep:
    """A feed-forward network."""

    def __init__(self, norm: Norm, feed: FeedForward) -> None:
        self.rise, self.fall = Projection(norm, feed.rise), Projection(None, feed.fall)

    def advance(self, x: Tensor) -> Tensor:
        return x + self.fall(self.rise(x).relu_())


def embedded(embedding: nn.Module, values: Tensor, place: int) -> Tensor:
    """(images, beams) words or (images, beams, 5) boxes, all at one place, as vectors (images, beams, width)."""
    vectors: Tensor = embedding(values.flatten(0, 1)[:, None], place)
    return vectors.view(*values.shape[:2], -1)


def with_area(boxes: Tensor) -> Tensor:
    """(…, 5) boxes with the area that follows from their corners, as the authors feed them back.

    Corners may come in the wrong order from an untrained network; the product is then negative, and stays so.
    """
    x1, y1, x2, y2, _ = boxes.unbind(-1)
    return torch.stack([x1, y1, x2, y2, (x2 - x1) * (y2 - y1)], dim=-1)


class StreamSteps:
    """One stream of a MITR, a place at a time."""

    def __init__(self, stream: Stream, image: Sequence[KeysValues], image_mask: Tensor, capacity: int) -> None:
        self.layers = [
            (
                CachedAttention(layer.self_norm, layer.self_attention, capacity),
                CrossAttention(layer.image_norm, layer.image_attention, one, image_mask),
            )
            for layer, one in zip(stream, image, strict=True)
        ]

    def advance(self, x: Tensor) -> Tensor:
        """The next place of every row: embedded (images, beams, width) to the stream's state, the same shape."""
        for past, image in self.layers:
            x = image.advance(past.advance(x))
        return x

    def reorder(self, rows: Tensor) -> None:
        for past, _ in self.layers:
            past.reorder(rows)


class WholeFusionSteps:
    """A fusion whose other stream, (B, n, width), is read whole before the first place."""

    def __init__(self, fusion: Fusion, other: Tensor, mask: Tensor) -> None:
        seen = fusion.other_attention.keys_values(other)
        self.cross = CrossAttention(fusion.other_norm, fusion.other_attention, seen, as_keys(mask))
        self.feed = FeedForwardStep(fusion.feed_norm, fusion.feed)

    def advance(self, x: Tensor) -> Tensor:
        return self.feed.advance(self.cross.advance(x))


class GrowingFusionSteps:
    """A fusion whose other stream grows too."""

    def __init__(self, fusion: Fusion, capacity: int) -> None:
        self.past = CachedAttention(fusion.other_norm, fusion.other_attention, capacity, other=True)
        self.feed = FeedForwardStep(fusion.feed_norm, fusion.feed)

    def advance(self, x: Tensor, other: Tensor) -> Tensor:
        """other: the other stream's state at the same place, the same shape as x."""
        return self.feed.advance(self.past.advance(x, other))


class CaptionSteps:
    """Task 2: words along a trace that is read whole, once."""

    boxes: Tensor | None = None

    def __init__(self, model: MITR, memory: Memory, boxes: Tensor, box_mask: Tensor, capacity: int) -> None:
        self.model, self.images, self.place = model, len(boxes), 0
        trace = model.trace_stream(model.trace(boxes), as_keys(box_mask), memory.trace, memory.mask)
        self.fusion = WholeFusionSteps(model.caption_fusion, trace, box_mask)
        self.stream = StreamSteps(model.word_stream, memory.words, memory.mask, capacity)

    def begin(self) -> Tensor:
        return torch.full((self.images, 1), BEGIN_ID, device=self.model.device)

    def advance(self, words: Tensor) -> Tensor:
        w = self.stream.advance(embedded(self.model.words, words, self.place))
        self.place += 1
        return self.model.to_words(self.fusion.advance(w))

    def reorder(self, rows: Tensor) -> None:
        self.stream.reorder(rows)


class TraceSteps:
    """Task 1: boxes for a caption that is read whole, once."""

    def __init__(self, model: MITR, memory: Memory, words: Tensor, word_mask: Tensor) -> None:
        self.model, self.place = model, 0
        caption = model.word_stream(model.words(words), as_keys(word_mask), memory.words, memory.mask)
        self.fusion = WholeFusionSteps(model.trace_fusion, caption, word_mask)
        self.stream = StreamSteps(model.trace_stream, memory.trace, memory.mask, words.shape[1])

    def advance(self, boxes: Tensor) -> Tensor:
        """Read one box for each image, (images, 1, 5); returns the next, the same shape."""
        r = self.stream.advance(embedded(self.model.trace, boxes, self.place))
        self.place += 1
        return with_area(self.model.to_boxes(self.model.norm(self.fusion.advance(r))))


class JointSteps:
    """Task 3: a word and its box at a time."""

    def __init__(self, model: MITR, memory: Memory, capacity: int) -> None:
        self.model, self.images, self.place = model, len(memory.mask), 0
        self.words = StreamSteps(model.word_stream, memory.words, memory.mask, capacity)
        self.trace = StreamSteps(model.trace_stream, memory.trace, memory.mask, capacity)
        self.caption_fusion = GrowingFusionSteps(model.joint_caption_fusion, capacity)
        self.trace_fusion = GrowingFusionSteps(model.joint_trace_fusion, capacity)
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
        said, pointed = self.caption_fusion.advance(w, r), self.trace_fusion.advance(r, w)
        box = with_area(model.to_boxes(model.joint_trace_norm(pointed)))
        self._boxes = torch.cat([self._boxes, box[:, :, None]], dim=2)
        return model.to_words(said)

    def reorder(self, rows: Tensor) -> None:
        for part in (self.words, self.trace, self.caption_fusion.past, self.trace_fusion.past):
            part.reorder(rows)
        self._boxes = self._boxes.flatten(0, 1)[rows].view(self.images, -1, *self._boxes.shape[2:])
