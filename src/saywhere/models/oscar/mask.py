"""Who sees whom. The order of places is caption, tags, regions.

A caption's place sees the caption up to itself, all tags and all regions. Tags and regions see each other and never the
caption, so that what is known of the image does not change while a caption is written.
"""

from __future__ import annotations

import torch
from torch import Tensor


def attention_mask(caption: Tensor, context: Tensor) -> Tensor:
    """(b, n, n) bool: row sees column. caption: (b, c), context: (b, x) bool, what is there; n = c + x.

    Nobody sees padding. A padded place sees what its neighbours see: it has no say, but its numbers stay finite.
    """
    c, n = caption.shape[1], caption.shape[1] + context.shape[1]
    rule = torch.zeros(n, n, dtype=torch.bool, device=caption.device)
    rule[:c, :c] = _causal(c, caption.device)
    rule[:, c:] = True
    return rule & torch.cat([caption, context], dim=1)[:, None]


def twinned_mask(caption: Tensor, context: Tensor) -> Tensor:
    """The same with a [MASK] beside each of the caption's places but the first: (b, n, n), n = c + (c − 1) + x.

    The twin of a place stands after the caption, sees the places before its own, itself, tags and regions; nobody else
    sees it. So it reads what it would if the caption were being written and had come so far.
    """
    c, x, device = caption.shape[1], context.shape[1], caption.device
    twins = c - 1
    rule = torch.zeros(c + twins + x, c + twins + x, dtype=torch.bool, device=device)
    rule[:c, :c] = _causal(c, device)
    rule[c : c + twins, :twins] = _causal(twins, device)
    rule[c : c + twins, c : c + twins] = torch.eye(twins, dtype=torch.bool, device=device)
    rule[:, c + twins :] = True
    return rule & torch.cat([caption, caption[:, 1:], context], dim=1)[:, None]


def additive(mask: Tensor) -> Tensor:
    """(b, 1, q, k) of what is added to scores: 0 where a (b, q, k) mask is True, −∞ elsewhere."""
    return torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, -torch.inf)[:, None]


def _causal(count: int, device: torch.device) -> Tensor:
    return torch.ones(count, count, dtype=torch.bool, device=device).tril()
