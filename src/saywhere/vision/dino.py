"""DINO, DINOv2 (with and without registers) and DINOv3: patches after the final norm; and Talk2DINO's image side."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from saywhere.assets.checkpoint import Checkpoint
from saywhere.vision.pixels import IMAGENET, Pixels, pixels_of
from saywhere.vision.transformer import Backbone, BackboneOutput, class_attention, on_grid, outputs_of, sides_of

# The class of transformers that reads each type of checkpoint.
NETWORKS = {
    "vit": "ViTModel",
    "dinov2": "Dinov2Model",
    "dinov2_with_registers": "Dinov2WithRegistersModel",
    "dinov3_vit": "DINOv3ViTModel",
}


class DinoBackbone(Backbone):
    """A DINO of any generation. `whole` is the class token, in the space of the patches; registers are dropped."""

    def __init__(self, network: Any, pixels: Pixels) -> None:
        super().__init__(pixels, *sides_of(network))
        self.network = network
        self.first_patch = 1 + int(getattr(network.config, "num_register_tokens", 0))

    @property
    def size(self) -> int:
        return int(self.network.config.hidden_size)

    @property
    def heads(self) -> int:
        return int(self.network.config.num_attention_heads)

    def see(self, photos: Tensor) -> BackboneOutput:
        """(B, 3, input_px, input_px) → patches, class token, and the class token's attention in the last block."""
        tokens, attention = self.tokens(photos)
        grid = self.grid(photos.shape[-1])
        return BackboneOutput(on_grid(tokens[:, self.first_patch :], grid), tokens[:, 0], on_grid(attention, grid))

    def tokens(self, photos: Tensor) -> tuple[Tensor, Tensor]:
        """(B, 3, H, W) → (B, 1 + registers + n, D) after the final norm, and (B, n) the class token's attention."""
        last = self._layers()[-1].attention
        # The oldest keeps its input's size unless told otherwise; the others always interpolate.
        asked = {"interpolate_pos_encoding": True} if self.network.config.model_type == "vit" else {}
        with outputs_of(query=last.q_proj, key=last.k_proj) as kept:
            tokens: Tensor = self.network(pixel_values=photos, **asked).last_hidden_state
        keys = kept["key"][:, self.first_patch :]
        if self.network.config.model_type == "dinov3_vit":
            keys = self._turned(keys, photos)
        return tokens, class_attention(kept["query"][:, 0], keys, self.heads)

    def _layers(self) -> Any:
        match self.network.config.model_type:
            case "dinov3_vit":
                return self.network.model.layer
            case "vit":
                return self.network.layers
            case _:
                return self.network.encoder.layer

    def _turned(self, keys: Tensor, photos: Tensor) -> Tensor:
        """The patches' keys with their rotary positions. The class token has none, so its query stays."""
        cos, sin = (angles[:, None] for angles in self.network.rope_embeddings(photos))
        per_head = keys.reshape(*keys.shape[:2], self.heads, -1)
        front, back = per_head.chunk(2, dim=-1)
        turned: Tensor = (per_head * cos + torch.cat((-back, front), dim=-1) * sin).flatten(-2)
        return turned


class Talk2DinoBackbone(Backbone):
    """DINOv2's patches as Talk2DINO meets them with text.

    The class token is not in that space, so `whole` is the mean of the patches weighted by its attention.
    """

    def __init__(self, dino: DinoBackbone) -> None:
        super().__init__(dino.pixels, dino.patch_px, dino.native_px)
        self.dino = dino

    @property
    def size(self) -> int:
        return self.dino.size

    def see(self, photos: Tensor) -> BackboneOutput:
        """(B, 3, input_px, input_px) → patches, their attention-weighted mean, and that attention."""
        tokens, attention = self.dino.tokens(photos)
        patches, grid = tokens[:, self.dino.first_patch :], self.grid(photos.shape[-1])
        whole = torch.einsum("bn,bnd->bd", attention, patches)
        return BackboneOutput(on_grid(patches, grid), whole, on_grid(attention, grid))


def load_dino(checkpoint: Checkpoint, *model_types: str) -> DinoBackbone:
    """A DINO from a checkpoint of one of these types."""
    kind = NETWORKS.get(checkpoint.model_type, "")
    # Checkpoints of the first DINO have no pooler, which nobody asks for here.
    options = {"add_pooling_layer": False} if kind == "ViTModel" else {}
    network = checkpoint.load(kind, model_types, **options)
    return DinoBackbone(network, pixels_of(checkpoint, IMAGENET))
