"""What the decoder is built of: blocks of a causal transformer, and what they keep between words."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional

from saywhere.core.errors import InvalidValue
from saywhere.models.common.batches import Packed
from saywhere.models.common.kv_cache import KVCache

_SPREAD = 0.02


class Block(nn.Module):
    """Norm, attention to the places before; norm, feed-forward network; both added to what came in.

    Attention itself never drops out: on a CPU that costs a quarter of the training time and gains little.
    """

    def __init__(self, width: int, heads: int, feed_forward: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.feed_norm = nn.LayerNorm(width)
        self.rise = nn.Linear(width, feed_forward)
        self.fall = nn.Linear(feed_forward, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, cache: KVCache | None = None, packed: Packed | None = None) -> Tensor:
        """x: (rows, n, width), or (N, width) if it is packed; the result has the same shape.

        With a cache, x holds the places after those kept: one, or any number if none is kept yet.
        """
        x = x + self.drop(self._attend(self.attention_norm(x), cache, packed))
        added: Tensor = self.drop(self.fall(functional.gelu(self.rise(self.feed_norm(x)))))
        return x + added

    def _attend(self, x: Tensor, cache: KVCache | None, packed: Packed | None) -> Tensor:
        joined = self.query_key_value(x)
        if packed is not None:
            joined = packed.unpack(joined)
        rows, n, width = joined.shape[0], joined.shape[1], x.shape[-1]
        split = joined.view(rows, n, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        memory = split[1:] if cache is None else cache.append(split[1:])
        seen = functional.scaled_dot_product_attention(split[0], memory[0], memory[1], is_causal=n > 1)
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
