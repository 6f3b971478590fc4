"""A network one place at a time, with the keys and values of earlier places kept.

Rows are images × beams, image by image. All beams of an image look at one copy of its memory: they are just more
queries. Nothing here drops out; give it a network in `eval_mode`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from saywhere.language.vocabulary import BEGIN_ID
from saywhere.models.common.kv_cache import KVCache
from saywhere.models.mitr.layers import BOX_SIZE, ROW_OFFSET, KeysValues, as_keys
from saywhere.models.mitr.network import MITR, Fusion, Memory, StreamLayer
from saywhere.models.search import Steps


def embedded(embedding: nn.Module, values: Tensor, place: int) -> Tensor:
    """(rows,) words or (rows, 5) boxes, all at one place, as vectors (rows, width)."""
    vectors: Tensor = embedding(values[:, None], place)
    return vectors[:, 0]


def with_area(boxes: Tensor) -> Tensor:
    """(…, 5) boxes with the area that follows from their corners, as the authors feed them back.

    Corners may come in the wrong order from an untrained network; the product is then negative, and stays so.
    """
    x1, y1, x2, y2, _ = boxes.unbind(-1)
    return torch.stack([x1, y1, x2, y2, (x2 - x1) * (y2 - y1)], dim=-1)


class ImageKeysValues:
    """What is there from the start, of each image: keys and values, and their mask (images, 1, 1, n)."""

    def __init__(self, keys_values: Sequence[KeysValues], mask: Tensor) -> None:
        # Head by head in memory: many short looks are faster.
        self.layers = [KeysValues(*(part.contiguous() for part in one)) for one in keys_values]
        # No mask where nothing is masked.
        self.mask = None if bool(mask.all()) else mask

    def take(self, images: Tensor) -> None:
        """Only these images go on."""
        self.layers = [KeysValues(one.keys[images], one.values[images]) for one in self.layers]
        self.mask = None if self.mask is None else self.mask[images]


class StreamSteps:
    """Layers that look at their own past and at the image, a place at a time."""

    def __init__(self, layers: Iterable[StreamLayer], image: Sequence[KeysValues], mask: Tensor, capacity: int) -> None:
        self._layers, self.seen = list(layers), ImageKeysValues(image, mask)
        self.caches = [KVCache(capacity) for _ in self._layers]

    def advance(self, x: Tensor) -> Tensor:
        """The next place of every row: embedded (rows, width) to the stream's state, the same shape."""
        for layer, cache, image in zip(self._layers, self.caches, self.seen.layers, strict=True):
            x = layer.advance(x, cache, image, self.seen.mask)
        return x


class RowSteps(Steps):
    """Steps over words whose rows share images. A token is a row of the word table; see `layers.ROW_OFFSET`."""

    def __init__(
        self, images: int, device: torch.device, caches: Sequence[KVCache], seen: Sequence[ImageKeysValues]
    ) -> None:
        self.place, self._images, self._beams, self._device = 0, images, 1, device
        self._caches, self._seen = caches, seen

    def start(self) -> Tensor:
        return self.advance(torch.full((self._images,), BEGIN_ID - ROW_OFFSET, device=self._device))

    def reorder(self, rows: Tensor) -> None:
        images = torch.unique_consecutive(rows // self._beams)
        if len(images) < self._images:
            for seen in self._seen:
                seen.take(images)
        self._images, self._beams = len(images), len(rows) // len(images)
        for cache in self._caches:
            cache.reorder(rows)


class TraceCaptionSteps(RowSteps):
    """Task 2: words along a trace that is read whole, once."""

    def __init__(self, model: MITR, memory: Memory, boxes: Tensor, box_mask: Tensor, capacity: int) -> None:
        self.model = model
        trace = model.trace_stream(model.trace(boxes), as_keys(box_mask), memory.trace, memory.mask)
        self.trace = ImageKeysValues([model.caption_fusion.other_attention.keys_values(trace)], as_keys(box_mask))
        self.stream = StreamSteps(model.word_stream, memory.words, memory.mask, capacity)
        super().__init__(len(boxes), model.device, self.stream.caches, (self.stream.seen, self.trace))

    def advance(self, tokens: Tensor) -> Tensor:
        w = self.stream.advance(embedded(self.model.words, tokens + ROW_OFFSET, self.place))
        self.place += 1
        return self.model.to_words(fused(self.model.caption_fusion, w, self.trace))


class TraceSteps:
    """Task 1: boxes for a caption that is read whole, once."""

    def __init__(self, model: MITR, memory: Memory, words: Tensor, word_mask: Tensor) -> None:
        self.model, self.place = model, 0
        caption = model.word_stream(model.words(words), as_keys(word_mask), memory.words, memory.mask)
        self.caption = ImageKeysValues([model.trace_fusion.other_attention.keys_values(caption)], as_keys(word_mask))
        self.stream = StreamSteps(model.trace_stream, memory.trace, memory.mask, words.shape[1])

    def advance(self, boxes: Tensor) -> Tensor:
        """Read one box for each image, (images, 5); returns the next, the same shape."""
        r = self.stream.advance(embedded(self.model.trace, boxes, self.place))
        self.place += 1
        fusion = fused(self.model.trace_fusion, r, self.caption)
        return with_area(self.model.to_boxes(self.model.norm(fusion)))


class JointSteps(RowSteps):
    """Task 3: a word and its box at a time; the boxes are the `outputs`."""

    def __init__(self, model: MITR, memory: Memory, capacity: int) -> None:
        self.model = model
        self.words = StreamSteps(model.word_stream, memory.words, memory.mask, capacity)
        self.trace = StreamSteps(model.trace_stream, memory.trace, memory.mask, capacity)
        self.word_cache, self.box_cache = KVCache(capacity), KVCache(capacity)
        images = len(memory.mask)
        # The first box is the all-zero start box.
        self._boxes = torch.zeros(images, 1, BOX_SIZE, device=model.device)
        caches = [*self.words.caches, *self.trace.caches, self.word_cache, self.box_cache]
        super().__init__(images, model.device, caches, (self.words.seen, self.trace.seen))

    @property
    def outputs(self) -> Tensor:
        return self._boxes[:, 1:]

    def advance(self, tokens: Tensor) -> Tensor:
        model = self.model
        w = self.words.advance(embedded(model.words, tokens + ROW_OFFSET, self.place))
        r = self.trace.advance(embedded(model.trace, self._boxes[:, -1], self.place))
        self.place += 1
        said = model.joint_caption_fusion.advance(w, r, self.word_cache)
        pointed = model.joint_trace_fusion.advance(r, w, self.box_cache)
        box = with_area(model.to_boxes(model.joint_trace_norm(pointed)))
        self._boxes = torch.cat([self._boxes, box[:, None]], dim=1)
        return model.to_words(said)

    def reorder(self, rows: Tensor) -> None:
        super().reorder(rows)
        self._boxes = self._boxes[rows]


def fused(fusion: Fusion, x: Tensor, other: ImageKeysValues) -> Tensor:
    """(rows, width) after a fusion whose other stream was read whole before the first place."""
    (seen,) = other.layers
    return fusion.attend(x.view(len(seen.keys), -1, x.shape[-1]), seen, other.mask).view_as(x)
