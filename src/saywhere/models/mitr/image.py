"""A small convolutional eye, trained with the rest, for the simulated world and other small photos."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from saywhere.core.errors import InvalidValue

GRID = 8
"""Rows and columns of patches, whatever the photo's size."""

_CHANNELS = (32, 64, 96)


class PatchEncoder(nn.Module):
    """Square photos to 8 × 8 patches with a feature and a box each.

    Strided convolutions halve the photo until 8 × 8 places are left; group norm, because batches are small and a
    photo's features must not depend on its neighbours in the batch. A last 1 × 1 convolution gives `size` numbers.
    """

    boxes: Tensor

    def __init__(self, size: int, photo_px: int) -> None:
        super().__init__()
        halvings = (photo_px // GRID).bit_length() - 1
        if photo_px != GRID << halvings or halvings < 1:
            raise InvalidValue("photo_px", f"{photo_px} is not 8 times a power of two, 16 or more")
        self.photo_px = photo_px
        layers: list[nn.Module] = []
        before = 3
        for i in range(halvings):
            after = _CHANNELS[min(i, len(_CHANNELS) - 1)]
            layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.GroupNorm(8, after), nn.ReLU()]
            before = after
        layers += [nn.Conv2d(before, before, 3, padding=1), nn.GroupNorm(8, before), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.out = nn.Conv2d(before, size, 1)
        self.register_buffer("boxes", grid_boxes(GRID, GRID)[None], persistent=False)

    def forward(self, photos: Tensor) -> Tensor:
        """photos: (B, 3, photo_px, photo_px) in [0, 1]. Returns (B, 64, size), row by row."""
        if photos.shape[1:] != (3, self.photo_px, self.photo_px):
            side = self.photo_px
            raise InvalidValue("photos", f"have shape {tuple(photos.shape)}, not (batch, 3, {side}, {side})")
        features: Tensor = self.out(self.body(photos * 2 - 1))
        return features.flatten(2).transpose(1, 2)


def grid_boxes(rows: int, columns: int) -> Tensor:
    """(rows · columns, 5) the boxes of a grid's patches, row by row: x1, y1, x2, y2, area in fractions."""
    y, x = torch.meshgrid(torch.arange(rows) / rows, torch.arange(columns) / columns, indexing="ij")
    corners = torch.stack([x, y, x + 1 / columns, y + 1 / rows], dim=-1).flatten(0, 1)
    return torch.cat([corners, torch.full((rows * columns, 1), 1 / (rows * columns))], dim=1)
