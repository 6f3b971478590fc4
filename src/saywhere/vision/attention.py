"""Attention by whichever way is fastest where it runs; the same numbers but for rounding."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional


def attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None = None, *, causal: bool = False) -> Tensor:
    """(B, heads, n, size) from queries of that shape, keys and values (B, heads, k, size). bias: added to the scores.
    causal: each place sees itself and those before.

    In bfloat16 on a processor torch's fused kernel takes three times as long to learn through as three plain products.
    """
    if query.dtype == torch.bfloat16 and query.device.type == "cpu":
        scores = (query / math.sqrt(query.shape[-1])) @ key.transpose(-1, -2)
        scores = scores if bias is None else scores + bias.to(scores.dtype)
        if causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        return torch.softmax(scores, dim=-1).to(value.dtype) @ value
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=bias, is_causal=causal)
