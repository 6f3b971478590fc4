"""CLIP, and three ways to make its patches say what is where: INViTE, MaskCLIP and ProxyCLIP.

In all of them a patch goes through CLIP's last norm and projection, which puts it into the space of the texts; and
`whole` is what plain CLIP says of the photo.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from saywhere.assets.checkpoint import Checkpoint
from saywhere.core import InvalidValue
from saywhere.vision.dino import DinoBackbone
from saywhere.vision.pixels import CLIP, Pixels, pixels_of
from saywhere.vision.transformer import Backbone, BackboneOutput, class_attention, on_grid, outputs_of, sides_of

# ProxyCLIP's published constants.
BETA, GAMMA = 1.2, 3.0


class ClipBackbone(Backbone):
    """Plain CLIP. Its last block mixes the patches, so what they say is blurred."""

    def __init__(self, network: Any, pixels: Pixels) -> None:
        super().__init__(pixels, *sides_of(network))
        self.network = network

    @property
    def size(self) -> int:
        return int(self.network.visual_projection.out_features)

    @property
    def layers(self) -> Any:
        return self.network.vision_model.encoder.layers

    def see(self, photos: Tensor) -> BackboneOutput:
        """(B, 3, input_px, input_px) → patches, image vector, and the class token's attention in the last block."""
        states, whole, attention = self.states(photos)
        grid = self.grid(photos.shape[-1])
        patches = self.projected(self.patch_states(states, grid))
        return BackboneOutput(patches, whole, on_grid(attention, grid))

    def patch_states(self, states: tuple[Tensor, ...], grid: tuple[int, int]) -> Tensor:
        """The patches before the last norm, (B, rows, cols, D). states: what enters each block, and the last's."""
        return on_grid(states[-1][:, 1:], grid)

    def states(self, photos: Tensor) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
        """What enters each block and leaves the last, (B, 1 + n, D) each; the image vector; the attention (B, n)."""
        last = self.layers[-1].self_attn
        with outputs_of(query=last.q_proj, key=last.k_proj) as kept:
            out = self.network(pixel_values=photos, interpolate_pos_encoding=True, output_hidden_states=True)
        heads = int(self.network.config.num_attention_heads)
        attention = class_attention(kept["query"][:, 0], kept["key"][:, 1:], heads)
        return out.hidden_states, out.image_embeds, attention

    def projected(self, states: Tensor) -> Tensor:
        """(..., D) → (..., d) in the space of the texts."""
        into_text: Tensor = self.network.visual_projection(self.network.vision_model.post_layernorm(states))
        return into_text


class InviteBackbone(ClipBackbone):
    """INViTE: in the last blocks each token attends to itself alone, so a patch stays a patch.

    attention_off: how many blocks. With 0 it is plain CLIP; the released captioner uses 1.
    """

    def __init__(self, network: Any, pixels: Pixels, attention_off: int = 1) -> None:
        super().__init__(network, pixels)
        if not 0 <= attention_off <= len(self.layers):
            raise InvalidValue("attention_off", f"is {attention_off}, not within 0 … {len(self.layers)} blocks")
        self.attention_off = attention_off

    def patch_states(self, states: tuple[Tensor, ...], grid: tuple[int, int]) -> Tensor:
        first = len(self.layers) - self.attention_off
        alone = states[first][:, 1:]
        for layer in self.layers[first:]:
            alone = alone + own_value(layer, alone)
            alone = alone + layer.mlp(layer.layer_norm2(alone))
        return on_grid(alone, grid)


class MaskClipBackbone(ClipBackbone):
    """The last block gives each patch its own value, projected, and nothing else: no query, no key, no way past."""

    def patch_states(self, states: tuple[Tensor, ...], grid: tuple[int, int]) -> Tensor:
        return on_grid(own_value(self.layers[-1], states[-2][:, 1:]), grid)


class ProxyClipBackbone(ClipBackbone):
    """In the last block DINO says which patches belong together, and CLIP what they are.

    The grid is DINO's, and so is the attention. Each sees the same input, DINO's resized to a multiple of its patch.
    """

    def __init__(
        self, network: Any, pixels: Pixels, dino: DinoBackbone, beta: float = BETA, gamma: float = GAMMA
    ) -> None:
        super().__init__(network, pixels)
        self.dino, self.beta, self.gamma = dino, beta, gamma

    def grid(self, input_px: int) -> tuple[int, int]:
        return self.dino.grid(self._dino_px(input_px))

    def see(self, photos: Tensor) -> BackboneOutput:
        """(B, 3, input_px, input_px) → patches on DINO's grid, CLIP's image vector, DINO's attention."""
        side = self._dino_px(photos.shape[-1])
        proxies = self.pixels.seen_by(self.dino.pixels, photos)
        if side != photos.shape[-1]:
            proxies = functional.interpolate(proxies, (side, side), mode="bilinear", align_corners=False)
        guide = self.dino.see(proxies)
        states, whole, _ = self.states(photos)
        own_grid = super().grid(photos.shape[-1])
        weights = affinities(guide.patches.flatten(1, 2), self.beta, self.gamma)
        mixed = self.mixed(states[-2][:, 1:], own_grid, weights, self.grid(photos.shape[-1]))
        return BackboneOutput(self.projected(mixed), whole, guide.attention)

    def mixed(self, states: Tensor, own_grid: tuple[int, int], weights: Tensor, grid: tuple[int, int]) -> Tensor:
        """(B, n, D) patches on CLIP's grid → (B, rows, cols, D): their values on another grid, mixed by the weights.

        weights: (B, rows * cols, rows * cols); row i says of which patches patch i is made.
        """
        layer = self.layers[-1]
        values = on_grid(layer.self_attn.v_proj(layer.layer_norm1(states)), own_grid).movedim(-1, 1)
        if grid != own_grid:
            values = functional.interpolate(values, grid, mode="bilinear", align_corners=False)
        # All heads share the weights, so they need not be told apart.
        blended: Tensor = layer.self_attn.out_proj(weights @ values.flatten(2).mT)
        return on_grid(blended, grid)

    def _dino_px(self, input_px: int) -> int:
        return max(1, round(input_px / self.dino.patch_px)) * self.dino.patch_px


def own_value(layer: Any, states: Tensor) -> Tensor:
    """What a block's attention gives to tokens that attend to themselves alone: (B, n, D) → (B, n, D)."""
    value: Tensor = layer.self_attn.out_proj(layer.self_attn.v_proj(layer.layer_norm1(states)))
    return value


def affinities(patches: Tensor, beta: float = BETA, gamma: float = GAMMA) -> Tensor:
    """(B, n, D) → (B, n, n) rows that sum to 1: softmax of γ·(cosine - β·mean cosine), nothing where that is below 0.

    The mean is the photo's own (the released code takes the batch's, so that a photo's features depend on the others).
    A patch always belongs to itself: on a blank photo it would otherwise belong to none.
    """
    directions = functional.normalize(patches, dim=-1)
    cosines = directions @ directions.mT
    scores = gamma * (cosines - beta * cosines.mean(dim=(1, 2), keepdim=True))
    itself = torch.eye(scores.shape[-1], dtype=torch.bool, device=scores.device)
    return scores.masked_fill((scores < 0) & ~itself, -torch.inf).softmax(dim=-1)


def load_clip(checkpoint: Checkpoint) -> tuple[Any, Pixels]:
    """CLIP's image tower with its projection, and how it takes its photos."""
    network = checkpoint.load("CLIPVisionModelWithProjection", ("clip", "clip_vision_model"))
    return network, pixels_of(checkpoint, CLIP)
