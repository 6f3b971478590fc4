"""Masks out of the six tokens of the codebook: a light two-way decoder for each scale, the finer guided by the coarser.

The coarser scale reads what the language model sees, which perception has enhanced; the finer one reads the patches
before they were merged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from saywhere.models.tracevlm.config import TraceVlmConfig
from saywhere.models.tracevlm.trajectory import sinusoids

SCALES, TOKENS = 2, 3
"""Of the codebook: scales, and tokens of each."""
_GRID = 100.0
"""Steps across the photo that the code of a place tells apart."""


class TwoWayLayer(nn.Module):
    """Tokens look at each other and at the image, the image looks at the tokens."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.among, self.at_image, self.at_tokens = (
            nn.MultiheadAttention(width, heads, batch_first=True) for _ in range(3)
        )
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))

    def forward(self, tokens: Tensor, image: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """(k, t, width) and (k, n, width). places: (n, width) codes of where each of the image's cells is."""
        first, second, third, fourth = self.norms
        tokens = first(tokens + self.among(tokens, tokens, tokens, need_weights=False)[0])
        placed = image + places
        tokens = second(tokens + self.at_image(tokens, placed, image, need_weights=False)[0])
        tokens = third(tokens + self.feed_forward(tokens))
        return tokens, fourth(image + self.at_tokens(placed, tokens, tokens, need_weights=False)[0])


class ScaleDecoder(nn.Module):
    """Masks at one scale, four times as fine as its features."""

    def __init__(self, config: TraceVlmConfig, feature_width: int) -> None:
        super().__init__()
        width = config.mask_width
        self.width = width
        self.project = nn.Linear(feature_width, width)
        self.layers = nn.ModuleList(TwoWayLayer(width, config.mask_heads) for _ in range(config.mask_layers))
        self.finer = nn.Sequential(
            nn.ConvTranspose2d(width, width // 4, 2, stride=2),
            nn.GroupNorm(1, width // 4),
            nn.GELU(),
            nn.ConvTranspose2d(width // 4, width // 8, 2, stride=2),
            nn.GELU(),
        )
        self.select = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width // 8))

    def forward(self, tokens: Tensor, points: Tensor, features: Tensor, coarser: Tensor | None) -> Tensor:
        """(k, 4 rows, 4 cols) logits. tokens: (k, 3, width) of each target. points: (p, width) of the trajectory.
        features: (rows, cols, d). coarser: (k, …) logits of the scale before, which say where to look."""
        rows, cols, _ = features.shape
        image = self.project(features).permute(2, 0, 1).expand(len(tokens), -1, -1, -1)
        if coarser is not None:
            image = image * (resized(coarser, (rows, cols)).sigmoid() + 1)[:, None]
        image = image.flatten(2).transpose(1, 2)
        places = cell_codes(rows, cols, self.width, features.device).to(image.dtype)
        asking = torch.cat([tokens, points.expand(len(tokens), -1, -1)], dim=1)
        for layer in self.layers:
            asking, image = layer(asking, image, places)
        shown = self.finer(image.transpose(1, 2).unflatten(2, (rows, cols)))
        chosen = self.select(asking[:, :TOKENS])
        return torch.einsum("ktc,kchw->khw", chosen, shown) / TOKENS


class MaskDecoder(nn.Module):
    """fusion: how much each scale counts, which is learnt."""

    def __init__(self, config: TraceVlmConfig, width: int, patch_width: int) -> None:
        super().__init__()
        inner = config.mask_width
        self.project = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, inner))
        self.points = nn.Linear(width, inner)
        self.scales = nn.ModuleList(ScaleDecoder(config, size) for size in (width, patch_width))
        self.fusion = nn.Parameter(torch.full((SCALES,), 1 / SCALES))

    def forward(self, states: Tensor, points: Tensor, features: Sequence[Tensor]) -> Tensor:
        """(k, h, w) logits of k targets in one image. states: (k, 6, width) of their tokens. points: (p, width) the
        trajectory's features, refined. features: (rows, cols, d) of each scale, the coarser first."""
        kind = self.fusion.dtype
        tokens = self.project(states.to(kind)).unflatten(1, (SCALES, TOKENS))
        guides = self.points(points.to(kind))
        masks: list[Tensor] = []
        for number, (scale, seen) in enumerate(zip(self.scales, features, strict=True)):
            masks.append(scale(tokens[:, number], guides, seen.to(kind), masks[-1] if masks else None))
        size = (masks[-1].shape[1], masks[-1].shape[2])
        return sum(
            (weight * resized(mask, size) for weight, mask in zip(self.fusion, masks, strict=True)),
            start=torch.zeros_like(masks[-1]),
        )


def resized(masks: Tensor, size: tuple[int, int]) -> Tensor:
    """(k, h, w) logits at another resolution."""
    return functional.interpolate(masks[:, None].float(), size, mode="bilinear", align_corners=False)[:, 0]


def cell_codes(rows: int, cols: int, width: int, device: torch.device) -> Tensor:
    """(rows · cols, width) where on the photo each cell's middle is, y before x."""
    y, x = (sinusoids((torch.arange(n, device=device) + 0.5) / n * _GRID, math.ceil(width / 2)) for n in (rows, cols))
    return torch.cat([y[:, None].expand(-1, cols, -1), x.expand(rows, -1, -1)], dim=-1).flatten(0, 1)
