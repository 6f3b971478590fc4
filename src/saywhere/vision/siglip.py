"""SigLIP and SigLIP 2: the pooling head, which makes one vector of a photo, makes one of each patch alone."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from saywhere.assets.checkpoint import Checkpoint
from saywhere.core import InvalidFile
from saywhere.vision.pixels import SIGLIP, Pixels, pixels_of
from saywhere.vision.transformer import Backbone, BackboneOutput, on_grid, sides_of, square_side

_FIXED = ("siglip", "siglip_vision_model")
_FLEXIBLE = ("siglip2", "siglip2_vision_model")


class SiglipBackbone(Backbone):
    """A SigLIP of either form. There is no class token, hence no attention.

    Most SigLIP 2 checkpoints are for one resolution and have SigLIP's own form; those called NaFlex take patches.
    """

    def __init__(self, network: Any, pixels: Pixels) -> None:
        takes_patches = network.config.model_type in _FLEXIBLE
        if takes_patches:
            patch_px = square_side(network.config.patch_size, "patch_size")
            sides = patch_px, math.isqrt(int(network.config.num_patches)) * patch_px
        else:
            sides = sides_of(network)
        super().__init__(pixels, *sides)
        self.network, self.takes_patches = network, takes_patches

    @property
    def size(self) -> int:
        return int(self.network.config.hidden_size)

    def see(self, photos: Tensor) -> BackboneOutput:
        """(B, 3, input_px, input_px) → patches and image vector."""
        grid = self.grid(photos.shape[-1])
        out = self._patches_seen(photos, grid) if self.takes_patches else self._seen(photos)
        tokens = out.last_hidden_state
        pooled = self.network.head(tokens.flatten(0, 1).unsqueeze(1))
        return BackboneOutput(on_grid(pooled.unflatten(0, tokens.shape[:2]), grid), out.pooler_output)

    def _seen(self, photos: Tensor) -> Any:
        return self.network(pixel_values=photos, interpolate_pos_encoding=True)

    def _patches_seen(self, photos: Tensor, grid: tuple[int, int]) -> Any:
        rows, cols = grid
        squares = photos.reshape(len(photos), 3, rows, self.patch_px, cols, self.patch_px)
        # (B, 3, rows, y, cols, x) → one row per patch; within it y, x, colour.
        patches = squares.permute(0, 2, 4, 3, 5, 1).flatten(3).flatten(1, 2)
        shapes = torch.tensor([grid] * len(photos), device=photos.device)
        every = torch.ones(patches.shape[:2], dtype=torch.long, device=photos.device)
        return self.network(pixel_values=patches, pixel_attention_mask=every, spatial_shapes=shapes)


def load_siglip(checkpoint: Checkpoint) -> SiglipBackbone:
    """SigLIP's image tower from a checkpoint of either form."""
    flexible = checkpoint.model_type in _FLEXIBLE
    network = checkpoint.load("Siglip2VisionModel" if flexible else "SiglipVisionModel", (*_FIXED, *_FLEXIBLE))
    if not network.use_head:
        raise InvalidFile(checkpoint.folder, "has no pooling head, which patches need")
    return SiglipBackbone(network, pixels_of(checkpoint, SIGLIP))
