"""What the decoder is built of: blocks of a causal transformer, and what they keep between words."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional

from saywhere.core.errors import InvalidValue
from saywhere.models.common.batches import Packed
from saywhere.models.common.kv_cache import KVCache
from saywhere.vision.runtime import attention

_SPREAD = 0.02
_PLACE_NUMBERS = 7
"""Four edges, two sides, a score."""


class PhotoKeys(NamedTuple):
    """What a layer's cross-attention reads of photos, each of which has equally many texts, side by side.

    keys, values: (photos, heads, k, size). bias: (texts, k), added to the scores of each text.
    """

    keys: Tensor
    values: Tensor
    bias: Tensor


class CrossAttention(nn.Module):
    """Norm, attention to the hidden states of a photo. Adds nothing at first."""

    def __init__(self, width: int, heads: int, states_size: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(states_size, 2 * width)
        self.out = nn.Linear(width, width)

    def photo(self, states: Tensor, bias: Tensor) -> PhotoKeys:
        """states: (photos, k, states_size). bias: (texts, k)."""
        split = self.key_value(states).unflatten(-1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return PhotoKeys(split[0], split[1], bias)

    def forward(self, x: Tensor, photo: PhotoKeys) -> Tensor:
        """(texts, n, width) → the same."""
        texts, n, _ = x.shape
        photos, each = len(photo.keys), texts // len(photo.keys)
        query = self.query(self.norm(x)).view(photos, each * n, self.heads, -1).transpose(1, 2)
        bias = photo.bias.view(photos, 1, each, 1, -1).expand(-1, -1, -1, n, -1).flatten(2, 3)
        seen = attention(query, photo.keys, photo.values, bias)
        out: Tensor = self.out(seen.transpose(1, 2).reshape(texts, n, -1))
        return out


class ThingReader(nn.Module):
    """Things found in a photo as further states to attend to: what each is called, where it is, how sure that is."""

    def __init__(self, things_size: int, states_size: int) -> None:
        super().__init__()
        self.name = nn.Linear(things_size, states_size)
        self.where = nn.Linear(_PLACE_NUMBERS, states_size)
        self.norm = nn.LayerNorm(states_size)

    def forward(self, names: Tensor, boxes_xyxy: Tensor, scores: Tensor) -> Tensor:
        """(…, states_size) of (…, things_size) vectors of length 1, (…, 4) fractions and (…) scores."""
        scaled = names * math.sqrt(names.shape[-1])
        sides = boxes_xyxy[..., 2:] - boxes_xyxy[..., :2]
        where = torch.cat([boxes_xyxy, sides, scores[..., None]], dim=-1)
        read: Tensor = self.norm(self.name(scaled) + self.where(where))
        return read


class DecoderBlock(nn.Module):
    """Norm, attention to the places before; the same to a photo, if it reads one; norm, feed-forward network; each is
    added to what came in.

    Attention itself never drops out: on a CPU that costs a quarter of the training time and gains little.
    """

    def __init__(self, width: int, heads: int, feed_forward: int, dropout: float, states_size: int = 0) -> None:
        super().__init__()
        self.look = CrossAttention(width, heads, states_size) if states_size else None
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.feed_norm = nn.LayerNorm(width)
        self.rise = nn.Linear(width, feed_forward)
        self.fall = nn.Linear(feed_forward, width)
        self.drop = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        cache: KVCache | None = None,
        packed: Packed | None = None,
        photo: PhotoKeys | None = None,
    ) -> Tensor:
        """x: (rows, n, width), or (N, width) if it is packed; the result has the same shape.

        With a cache, x holds the places after those kept: one, or any number if none is kept yet.
        """
        x = x + self.drop(self._attend(self.attention_norm(x), cache, packed))
        if self.look is not None and photo is not None:
            looked = self.look(x, photo) if packed is None else packed.pack(self.look(packed.unpack(x), photo))
            x = x + self.drop(looked)
        added: Tensor = self.drop(self.fall(functional.gelu(self.rise(self.feed_norm(x)))))
        return x + added

    def _attend(self, x: Tensor, cache: KVCache | None, packed: Packed | None) -> Tensor:
        joined = self.query_key_value(x)
        if packed is not None:
            joined = packed.unpack(joined)
        rows, n, width = joined.shape[0], joined.shape[1], x.shape[-1]
        split = joined.view(rows, n, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        memory = split[1:] if cache is None else cache.append(split[1:])
        seen = attention(split[0], memory[0], memory[1], causal=n > 1)
        seen = seen.transpose(1, 2).reshape(rows, n, width)
        out: Tensor = self.out(seen if packed is None else packed.pack(seen))
        return out


def initialise(module: nn.Module, layers: int) -> None:
    """GPT-2's start: small normal weights, smaller still where a block adds to the stream."""
    for name, part in module.named_modules():
        if isinstance(part, nn.Linear):
            adds = name.endswith((".out", ".fall"))
            nn.init.normal_(part.weight, std=_SPREAD / math.sqrt(2 * layers) if adds else _SPREAD)
            nn.init.zeros_(part.bias)
        elif isinstance(part, nn.Embedding):
            nn.init.normal_(part.weight, std=_SPREAD)
    for part in module.modules():
        if isinstance(part, CrossAttention):
            nn.init.zeros_(part.out.weight)


def unit(vectors: Tensor) -> Tensor:
    """(…, d) with rows of length 1; a row of zeros stays one."""
    return functional.normalize(vectors, dim=-1)


def as_vectors(values: ArrayLike, what: str, size: int) -> Tensor:
    """(m, size) finite float32 from any array; InvalidValue names what is wrong."""
    array = np.asarray(values, dtype=np.float32)
    if array.ndim != 2 or array.shape[1] != size:
        raise InvalidValue(what, f"have shape {array.shape}, not (m, {size})")
    wrong = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if wrong.size:
        raise InvalidValue(what, f"row {int(wrong[0])} holds NaN or infinity")
    return torch.from_numpy(np.array(array))
