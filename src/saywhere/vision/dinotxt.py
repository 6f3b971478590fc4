"""DINO.txt: DINOv2 with registers, and on top of it the blocks that were trained together with a text encoder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from saywhere.assets.checkpoint import read_tensors
from saywhere.core import InvalidFile, InvalidValue
from saywhere.vision.dino import DinoBackbone
from saywhere.vision.transformer import Backbone, BackboneOutput, on_grid

_BLOCK = re.compile(r"block_list\.(\d+)\.")


@dataclass(frozen=True, slots=True)
class HeadConfig:
    """The head's shape. size: numbers per token. hidden: of the gated feed-forward layers.

    out: numbers after the last projection, or None where there is none.
    """

    size: int
    heads: int
    blocks: int
    hidden: int
    out: int | None = None

    def __post_init__(self) -> None:
        if min(self.size, self.heads, self.blocks, self.hidden) < 1 or self.size % self.heads:
            raise InvalidValue("HeadConfig", f"cannot be {self}")

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor], heads: int) -> HeadConfig:
        """Read off the released tensors; only the number of attention heads does not show in them."""
        blocks = {int(found[1]) for found in map(_BLOCK.match, tensors) if found}
        gate = tensors.get("block_list.0.mlp.w1.weight")
        if gate is None or gate.ndim != 2:
            raise InvalidValue("weights", "hold no 'block_list.0.mlp.w1.weight'", "are they a vision head of DINO.txt?")
        projection = tensors.get("linear_projection.weight")
        return cls(gate.shape[1], heads, len(blocks), gate.shape[0], None if projection is None else len(projection))


class _Scale(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


class _Attention(nn.Module):
    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(size, 3 * size, bias=False)
        self.proj = nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        projected: Tensor = self.proj(mixed.transpose(1, 2).flatten(2))
        return projected


class _Gated(nn.Module):
    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.w1, self.w2, self.w3 = nn.Linear(size, hidden), nn.Linear(size, hidden), nn.Linear(hidden, size)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.w3(functional.silu(self.w1(x)) * self.w2(x))
        return out


class _Block(nn.Module):
    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(config.size), nn.LayerNorm(config.size)
        self.attn, self.mlp = _Attention(config.size, config.heads), _Gated(config.size, config.hidden)
        self.ls1, self.ls2 = _Scale(config.size), _Scale(config.size)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.ls1(self.attn(self.norm1(x)))
        out: Tensor = x + self.ls2(self.mlp(self.norm2(x)))
        return out


class DinoTxtHead(nn.Module):
    """Blocks over all tokens, a norm, and where there is one a projection. Parameters have the released names."""

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.config = config
        self.block_list = nn.ModuleList(_Block(config) for _ in range(config.blocks))
        self.ln_final = nn.LayerNorm(config.size)
        self.linear_projection = nn.Linear(config.size, config.out, bias=False) if config.out else nn.Identity()

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T, size) → (B, T, out)."""
        for block in self.block_list:
            tokens = block(tokens)
        projected: Tensor = self.linear_projection(self.ln_final(tokens))
        return projected


class DinoTxtBackbone(Backbone):
    """DINOv2's tokens, registers among them, through the aligned head.

    Text vectors of DINO.txt are twice as long: their second half is what patches and their mean are compared with, so
    `whole` is that mean. The attention is the backbone's.
    """

    def __init__(self, dino: DinoBackbone, head: DinoTxtHead) -> None:
        super().__init__(dino.pixels, dino.patch_px, dino.native_px)
        if head.config.size != dino.size:
            raise InvalidValue("head", f"takes {head.config.size} numbers per token, the backbone gives {dino.size}")
        self.dino, self.head = dino, head

    @property
    def size(self) -> int:
        return self.head.config.out or self.head.config.size

    def see(self, photos: Tensor) -> BackboneOutput:
        """(B, 3, input_px, input_px) → aligned patches, their mean, and the backbone's attention."""
        tokens, attention = self.dino.tokens(photos)
        patches, grid = self.head(tokens)[:, self.dino.first_patch :], self.grid(photos.shape[-1])
        return BackboneOutput(on_grid(patches, grid), patches.mean(dim=1), on_grid(attention, grid))


def load_head(path: str | Path, heads: int) -> DinoTxtHead:
    """The head from safetensors under the released names. heads: of its attention, the backbone's number."""
    tensors = read_tensors(path)
    try:
        head = DinoTxtHead(HeadConfig.of(tensors, heads))
        head.load_state_dict(tensors)
    except InvalidValue as error:
        raise InvalidFile(path, error.reason, error.hint) from error
    except RuntimeError as error:
        raise InvalidFile(path, f"does not hold a vision head of DINO.txt: {error}") from error
    return head.eval().requires_grad_(False)
