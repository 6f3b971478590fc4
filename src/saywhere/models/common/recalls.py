"""How often a text finds its own photo among others."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def recalls(photos: Tensor, texts: Tensor, owners: Sequence[int], most: Sequence[int] = (1, 5, 10)) -> dict[str, float]:
    """r1, r5, r10: how often the own photo is among the nearest 1, 5 and 10. photos: (n, d), texts: (m, d), of length
    1. owners: (m,), whose each text is; a photo that is as near as the own one does not count as nearer."""
    if not len(photos):
        return {}
    cosines = texts @ photos.T
    own = cosines.gather(1, torch.tensor(owners)[:, None])
    nearer = (cosines > own).sum(dim=1)
    return {f"r{count}": float((nearer < count).float().mean()) for count in most}
