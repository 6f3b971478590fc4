"""A layer of BERT: attention, then a feed-forward network, each added to what came in and normed."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from saywhere.models.common.batches import Packed
from saywhere.models.oscar.config import OscarConfig

_SPREAD, _SPREAD_WIDTH = 0.02, 768
"""BERT-base's. A network of width 128 that starts as small learns half as fast: its layers add next to nothing."""


class Layer(nn.Module):
    """Norms come last, as in BERT. Masks are what is added to scores, (b, 1, queries, keys)."""

    def __init__(self, config: OscarConfig) -> None:
        super().__init__()
        width, self.heads, self.attention_dropout = config.width, config.heads, config.attention_dropout
        self.query_key_value = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.attention_norm = nn.LayerNorm(width, config.norm_epsilon)
        self.fc1 = nn.Linear(width, config.feed_forward)
        self.fc2 = nn.Linear(config.feed_forward, width)
        self.norm = nn.LayerNorm(width, config.norm_epsilon)
        self.drop = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor, packed: Packed) -> Tensor:
        """(N, width) what is there of the batch, without padding."""
        query, key, value = self.split(packed.unpack(self.query_key_value(x)), 3)
        return self.finish(x, packed.pack(self.look(query, key, value, mask)))

    def at(self, x: Tensor, mask: Tensor, packed: Packed, rows: Tensor, mask_rows: Tensor) -> Tensor:
        """(b, k, width) for some places alone: the last layer's other places are never asked for.

        rows: (b, k) where they lie in x. mask_rows: (b, k) which of the mask's rows are theirs.
        """
        width = x.shape[-1]
        weight, bias = self.query_key_value.weight, self.query_key_value.bias
        key, value = self.split(packed.unpack(functional.linear(x, weight[width:], bias[width:])), 2)
        asked = x[rows]
        (query,) = self.split(functional.linear(asked, weight[:width], bias[:width]), 1)
        seen = mask[torch.arange(len(mask), device=x.device)[:, None], 0, mask_rows][:, None]
        return self.finish(asked, self.look(query, key, value, seen))

    def explained(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(b, n, width), and the attention (b, heads, n, n) written out. Without attention dropout."""
        query, key, value = self.split(self.query_key_value(x), 3)
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]) + mask
        shares = scores.softmax(dim=-1)
        return self.finish(x, _joined(shares @ value)), shares

    def split(self, joined: Tensor, count: int) -> tuple[Tensor, ...]:
        """(b, n, count · width) as `count` tensors (b, heads, n, width / heads)."""
        b, n, all_of_them = joined.shape
        return joined.view(b, n, count, self.heads, all_of_them // (count * self.heads)).permute(2, 0, 3, 1, 4).unbind()

    def look(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """(b, n, width) what the queries find."""
        dropout = self.attention_dropout if self.training else 0.0
        return _joined(functional.scaled_dot_product_attention(query, key, value, mask, dropout))

    def finish(self, x: Tensor, seen: Tensor) -> Tensor:
        """Everything after attention, for each place alone."""
        x = self.attention_norm(x + self.drop(self.out(seen)))
        out: Tensor = self.norm(x + self.drop(self.fc2(functional.gelu(self.fc1(x)))))
        return out


def initialise(module: nn.Module, width: int) -> None:
    """BERT's start: small normal weights (larger in narrower networks, so that layers add as much), no biases."""
    spread = _SPREAD * math.sqrt(_SPREAD_WIDTH / width)
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=spread)
        if isinstance(part, nn.Linear):
            nn.init.zeros_(part.bias)


def _joined(seen: Tensor) -> Tensor:
    """(b, heads, n, size) to (b, n, heads · size)."""
    return seen.transpose(1, 2).flatten(2)
