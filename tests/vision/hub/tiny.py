"""Tiny random networks saved as transformers saves them, so that no test needs the hub."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import nn

from saywhere.vision.dinotxt import DinoTxtHead, HeadConfig

SIZE, HEADS, BLOCKS, PATCH, SIDE = 16, 4, 3, 4, 16
_TOWER = {
    "hidden_size": SIZE,
    "num_attention_heads": HEADS,
    "num_hidden_layers": BLOCKS,
    "patch_size": PATCH,
    "image_size": SIDE,
}


def randomized(network: nn.Module, seed: int = 0) -> nn.Module:
    """Weights large enough that attention is far from even and no two tokens are alike."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng) * 0.4)
    return network.eval()


def clip() -> Any:
    """Both towers, as checkpoints on the hub have them."""
    vision = _TOWER | {"intermediate_size": 32, "projection_dim": 8}
    text = {"hidden_size": 12, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 16}
    text |= {"vocab_size": 30, "max_position_embeddings": 10, "projection_dim": 8}
    config = transformers.CLIPConfig(vision_config=vision, text_config=text, projection_dim=8)
    return randomized(transformers.CLIPModel(config))


def dinov2(patch: int = PATCH) -> Any:
    tower = _TOWER | {"patch_size": patch}
    return randomized(transformers.Dinov2Model(transformers.Dinov2Config(**tower, mlp_ratio=2)))


def dinov2_with_registers() -> Any:
    config = transformers.Dinov2WithRegistersConfig(**_TOWER, mlp_ratio=2, num_register_tokens=2)
    return randomized(transformers.Dinov2WithRegistersModel(config))


def dinov3() -> Any:
    config = transformers.DINOv3ViTConfig(**_TOWER, intermediate_size=32, num_register_tokens=2)
    return randomized(transformers.DINOv3ViTModel(config))


def dino() -> Any:
    return randomized(transformers.ViTModel(transformers.ViTConfig(**_TOWER, intermediate_size=32), False))


def siglip() -> Any:
    return randomized(transformers.SiglipVisionModel(transformers.SiglipVisionConfig(**_TOWER, intermediate_size=32)))


def naflex() -> Any:
    tower = {name: value for name, value in _TOWER.items() if name != "image_size"}
    config = transformers.Siglip2VisionConfig(**tower, intermediate_size=32, num_patches=(SIDE // PATCH) ** 2)
    return randomized(transformers.Siglip2VisionModel(config))


def dinotxt_head(out: int | None = 6) -> DinoTxtHead:
    config = HeadConfig(size=SIZE, heads=HEADS, blocks=2, hidden=24, out=out)
    head = randomized(DinoTxtHead(config), seed=1)
    assert isinstance(head, DinoTxtHead)
    return head


MAKERS = {
    "clip": clip,
    "dinov2": dinov2,
    "dinov2_with_registers": dinov2_with_registers,
    "dinov2_coarse": lambda: dinov2(patch=8),
    "dinov3": dinov3,
    "dino": dino,
    "siglip": siglip,
    "naflex": naflex,
}
