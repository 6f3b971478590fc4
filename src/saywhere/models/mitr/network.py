"""The mirrored transformer: one image encoder, a caption stream and a trace stream that read and write in turn.

Shapes: B narratives, R regions, T words. Boxes are five numbers: x1, y1, x2, y2 in fractions of the image, and area.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from saywhere.core.errors import InvalidValue
from saywhere.models.common.kv_cache import KVCache
from saywhere.models.common.network import VocabularyNetwork
from saywhere.models.mitr.batch import Batch, Images
from saywhere.models.mitr.config import MitrConfig
from saywhere.models.mitr.image import PatchEncoder
from saywhere.models.mitr.layers import (
    BOX_SIZE,
    Attention,
    DrawnWords,
    FeedForward,
    KeysValues,
    Norm,
    RegionEmbedding,
    TraceEmbedding,
    WordEmbedding,
    as_keys,
    causal_mask,
    initialise,
)

if TYPE_CHECKING:
    from saywhere.models.mitr.objective import ObjectiveSettings

_TABLE_PART = 1024


@dataclass(frozen=True, slots=True)
class Memory:
    """An image as the streams see it, encoded once and shared by every task.

    words, trace: for each layer, keys and values that the caption stream and the trace stream look at.
    mask: (B, 1, 1, R) True for real regions.
    """

    words: tuple[KeysValues, ...]
    trace: tuple[KeysValues, ...]
    mask: Tensor

    def take(self, items: Tensor) -> Memory:
        """The memory of these items of the batch, in this order."""
        return Memory(
            tuple(KeysValues(kv.keys[items], kv.values[items]) for kv in self.words),
            tuple(KeysValues(kv.keys[items], kv.values[items]) for kv in self.trace),
            self.mask[items],
        )


class EncoderLayer(nn.Module):
    """Regions look at each other; then a feed-forward network."""

    def __init__(self, config: MitrConfig) -> None:
        super().__init__()
        self.attention_norm = Norm(config.width)
        self.attention = Attention(config.width, config.heads, config.attention_dropout)
        self.feed_norm = Norm(config.width)
        self.feed = FeedForward(config.width, config.feed_forward, config.dropout)
        self.drop = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        normed = self.attention_norm(x)
        x = x + self.drop(self.attention(normed, normed, mask))
        out: Tensor = x + self.drop(self.feed(self.feed_norm(x)))
        return out


class StreamLayer(nn.Module):
    """MHA1 and MHA2 of the paper: a stream looks at itself, then at the image. No feed-forward here."""

    def __init__(self, config: MitrConfig) -> None:
        super().__init__()
        self.self_norm = Norm(config.width)
        self.self_attention = Attention(config.width, config.heads, config.attention_dropout)
        self.image_norm = Norm(config.width)
        self.image_attention = Attention(config.width, config.heads, config.attention_dropout)
        self.drop = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor | None, image: KeysValues, image_mask: Tensor) -> Tensor:
        normed = self.self_norm(x)
        x = x + self.drop(self.self_attention(normed, normed, mask))
        return self.see(x, image, image_mask)

    def see(self, x: Tensor, image: KeysValues, image_mask: Tensor | None) -> Tensor:
        """The half that looks at the image."""
        out: Tensor = x + self.drop(self.image_attention.attend(self.image_norm(x), image, image_mask))
        return out

    def advance(self, x: Tensor, cache: KVCache, image: KeysValues, image_mask: Tensor | None) -> Tensor:
        """The next place of every row, (rows, width). Rows of an image stand side by side and share it."""
        normed = self.self_norm(x)
        x = x + self.self_attention.advance(normed, normed, cache)
        return self.see(x.view(len(image.keys), -1, x.shape[-1]), image, image_mask).view_as(x)


class Stream(nn.Module):
    """The caption stream or the trace stream: N layers, each of which looks at the encoded image."""

    def __init__(self, config: MitrConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(StreamLayer(config) for _ in range(config.layers))

    def __iter__(self) -> Iterator[StreamLayer]:
        return (cast(StreamLayer, layer) for layer in self.layers)

    def keys_values(self, seen: Tensor) -> tuple[KeysValues, ...]:
        """What each layer will look at in the encoded image (B, R, width)."""
        return tuple(layer.image_attention.keys_values(seen) for layer in self)

    def forward(self, x: Tensor, mask: Tensor, image: Sequence[KeysValues], image_mask: Tensor) -> Tensor:
        """Embedded words or boxes (B, T, width) through all layers."""
        for layer, keys_values in zip(self, image, strict=True):
            x = layer(x, mask, keys_values, image_mask)
        return x


class Fusion(nn.Module):
    """MHA3 of the paper and the feed-forward network: one stream looks at the other's raw, un-normalised state."""

    def __init__(self, config: MitrConfig) -> None:
        super().__init__()
        self.other_norm = Norm(config.width)
        self.other_attention = Attention(config.width, config.heads, config.attention_dropout)
        self.feed_norm = Norm(config.width)
        self.feed = FeedForward(config.width, config.feed_forward, config.dropout)
        self.drop = nn.Dropout(config.dropout)

    def attend(self, x: Tensor, other: KeysValues, mask: Tensor | None) -> Tensor:
        return self.feed_forward(x + self.drop(self.other_attention.attend(self.other_norm(x), other, mask)))

    def advance(self, x: Tensor, other: Tensor, cache: KVCache) -> Tensor:
        """The next place of every row; the other stream grows with this one. Both (rows, width)."""
        return self.feed_forward(x + self.other_attention.advance(self.other_norm(x), other, cache))

    def feed_forward(self, x: Tensor) -> Tensor:
        """The feed-forward half."""
        out: Tensor = x + self.drop(self.feed(self.feed_norm(x)))
        return out

    def forward(self, x: Tensor, other: Tensor, mask: Tensor | None) -> Tensor:
        return self.attend(x, self.other_attention.keys_values(other), mask)


class MITR(VocabularyNetwork):
    """Caption along a trace, trace of a caption, or both from the image alone: one network, three sets of masks.

    vocabulary: what the word ids mean, if known; `attach` sets it.
    """

    kind = "mitr"
    config_type = MitrConfig
    must_know_words = False
    config: MitrConfig

    def __init__(self, config: MitrConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.eye = PatchEncoder(config.region_size, config.photo_px) if config.photo_px else None
        self.regions = RegionEmbedding(config.region_size, width, config.input_dropout)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.encoder_norm = Norm(width)
        self.words = WordEmbedding(config.words, width, config.dropout)
        self.trace = TraceEmbedding(width, config.input_dropout)
        self.word_stream, self.trace_stream = Stream(config), Stream(config)
        self.caption_fusion, self.trace_fusion = Fusion(config), Fusion(config)
        self.joint_caption_fusion, self.joint_trace_fusion = Fusion(config), Fusion(config)
        self.norm = Norm(width)
        self.joint_trace_norm = Norm(width)
        self.say = nn.Linear(width, config.words + 1)
        self.point = nn.Linear(width, BOX_SIZE)
        # The authors' model carries one norm that nothing reads. It stays, so that their checkpoints go in and out
        # whole and the number of parameters is theirs.
        self.unread = nn.LayerNorm(width).requires_grad_(False)
        for name, part in self.named_children():
            if name not in ("eye", "regions"):
                initialise(part)

    @classmethod
    def from_released(cls, state: Mapping[str, object] | str | Path, heads: int = 8) -> MITR:
        """A network with the parameters of the authors' model, or their file; see `saywhere.models.mitr.released`."""
        from saywhere.models.mitr.released import from_released

        return from_released(state, heads)

    def forward(self, batch: Batch, settings: ObjectiveSettings, generator: torch.Generator) -> dict[str, Tensor]:
        """The losses of `saywhere.models.mitr.objective`, here so that wrappers of the module see them pass."""
        from saywhere.models.mitr.objective import losses

        return losses(self, batch, settings, generator)

    def encode(self, features: Tensor, boxes: Tensor, mask: Tensor) -> Memory:
        """The image encoder. features: (B, R, region_size); boxes: (B, R, 5); mask: (B, R), True for real regions."""
        return self.memorise(self.hidden(features, boxes, mask), mask)

    def encode_images(self, images: Images) -> Memory:
        """Photos or regions, whichever they are."""
        return self.encode(*region_tensors(images, self.eye, self.config.region_size))

    def hidden(self, features: Tensor, boxes: Tensor, mask: Tensor) -> Tensor:
        """(B, R, width) h_v of the paper; arguments as for `encode`."""
        x = self.regions(features, boxes)
        for layer in self.encoder:
            x = layer(x, as_keys(mask))
        hidden: Tensor = self.encoder_norm(x)
        return hidden

    def memorise(self, hidden: Tensor, mask: Tensor) -> Memory:
        """What the streams will look at of h_v, for as many tasks and steps as there are."""
        return Memory(self.word_stream.keys_values(hidden), self.trace_stream.keys_values(hidden), as_keys(mask))

    def caption(self, memory: Memory, words: Tensor, word_mask: Tensor, boxes: Tensor, box_mask: Tensor) -> Tensor:
        """Task 2. (B, T, V + 1) logits over rows: place t has read words 0 … t and the whole trace.

        words: (B, T) ids, shifted right; word_mask: (B, T). boxes: (B, N, 5) the trace; box_mask: (B, N).
        """
        causal = causal_mask(words.shape[1], words.shape[1], words.device) & as_keys(word_mask)
        w = self.word_stream(self.words(words), causal, memory.words, memory.mask)
        r = self.trace_stream(self.trace(boxes), as_keys(box_mask), memory.trace, memory.mask)
        return self.to_words(self.caption_fusion(w, r, as_keys(box_mask)))

    def ground(self, memory: Memory, words: Tensor | DrawnWords, word_mask: Tensor, boxes: Tensor) -> Tensor:
        """Task 1. (B, T, 5) boxes: place t has read boxes 0 … t and the whole caption.

        words: (B, T) ids, or words drawn; word_mask: (B, T). boxes: (B, T, 5), shifted right.
        """
        w = self.word_stream(self.words(words), as_keys(word_mask), memory.words, memory.mask)
        causal = causal_mask(boxes.shape[1], boxes.shape[1], boxes.device)
        r = self.trace_stream(self.trace(boxes), causal, memory.trace, memory.mask)
        return self.to_boxes(self.norm(self.trace_fusion(r, w, as_keys(word_mask))))

    def joint(self, memory: Memory, words: Tensor, boxes: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Task 3. Logits (B, T, V + 1) and boxes (B, N, 5): place t has read words 0 … t and boxes 0 … t.

        words: (B, T) ids, shifted right; boxes: (B, N, 5), shifted right, N ≤ T; mask: (B, T) real places of both.
        """
        longest, count = words.shape[1], boxes.shape[1]
        causal = causal_mask(longest, longest, words.device) & as_keys(mask)
        w = self.word_stream(self.words(words), causal, memory.words, memory.mask)
        r = self.trace_stream(self.trace(boxes), causal[:, :, :count, :count], memory.trace, memory.mask)
        said = self.joint_caption_fusion(w, r, causal[:, :, :, :count])
        pointed = self.joint_trace_fusion(r, w, causal[:, :, :count])
        return self.to_words(said), self.to_boxes(self.joint_trace_norm(pointed))

    def to_words(self, x: Tensor) -> Tensor:
        """(…, width) the end of a caption fusion to (…, V + 1) logits over rows."""
        normed = self.norm(x)
        if torch.is_grad_enabled() or len(self.say.weight) <= _TABLE_PART:
            logits: Tensor = self.say(normed)
            return logits
        # A few rows against a table that no cache holds: in parts it is read once, and a quarter faster.
        parts = zip(torch.split(self.say.weight, _TABLE_PART), torch.split(self.say.bias, _TABLE_PART), strict=True)
        return torch.cat([functional.linear(normed, weight, bias) for weight, bias in parts], dim=-1)

    def to_boxes(self, x: Tensor) -> Tensor:
        """(…, width) normed vectors to (…, 5) boxes within (0, 1)."""
        boxes: Tensor = self.point(x)
        return boxes.sigmoid()


def region_tensors(images: Images, eye: PatchEncoder | None, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Features (B, R, size), boxes (B, R, 5) and mask (B, R): as given, or of photos that the eye looks at."""
    if images.photos is not None:
        if eye is None:
            raise InvalidValue("photos", "this model has no eye of its own", "give it regions, or set photo_px")
        features: Tensor = eye(images.photos.float() / 255)
        mask = torch.ones(features.shape[:2], dtype=torch.bool, device=features.device)
        return features, eye.boxes.expand(len(features), -1, -1), mask
    if images.regions is None or images.region_boxes is None or images.region_mask is None:
        raise InvalidValue("images", "are neither photos nor regions with boxes and a mask")
    if images.regions.shape[-1] != size:
        reason = f"have {images.regions.shape[-1]} numbers each, but the model reads {size}"
        raise InvalidValue("region features", reason)
    return images.regions, images.region_boxes, images.region_mask
