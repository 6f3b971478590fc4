"""TinyViT (Wu et al. 2022) as MobileSAM (Zhang et al. 2023) has it: a photo to the map of features that SAM reads.

Two stages of convolutions, then three of attention inside windows, each block with a convolution between attention and
feed-forward. The last stage keeps the grid of the one before, so that a cell is 16 pixels. Modules are named as in the
released weights, but for `conv` and `norm`, which are `c` and `bn` there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import fuse_conv_bn_eval

from saywhere.core.errors import InvalidValue

STRIDE = 16
"""Input pixels to one cell of the map, each way."""
MEAN_RGB, SPREAD_RGB = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
"""Of 8-bit values."""
_WIDEN = 4
_STAGES = 4
_UNUSED = ("norm_head.", "head.")
"""Of the classifier that the encoder was first trained with."""


@dataclass(frozen=True, slots=True)
class TinyVitConfig:
    """The size of an encoder. widths, depths, heads, windows: of its four stages; the first has no attention, so its
    heads and window are not used. out: channels of the map."""

    widths: tuple[int, ...] = (64, 128, 160, 320)
    depths: tuple[int, ...] = (2, 2, 6, 2)
    heads: tuple[int, ...] = (2, 4, 5, 10)
    windows: tuple[int, ...] = (7, 7, 14, 7)
    out: int = 256

    def __post_init__(self) -> None:
        stages = (self.widths, self.depths, self.heads, self.windows)
        if any(len(one) != _STAGES or min(one) < 1 for one in stages) or self.out < 1:
            raise InvalidValue("TinyVitConfig", f"needs {_STAGES} numbers of at least 1 for its stages, not {self}")
        if any(width % heads for width, heads in zip(self.widths, self.heads, strict=True)):
            raise InvalidValue("TinyVitConfig", f"heads do not divide widths: {self}")


class TinyViT(nn.Module):
    """From 8-bit pixels to SAM's map of features.

    >>> small = TinyViT(TinyVitConfig((8, 8, 8, 8), (1, 1, 1, 1), (1, 1, 1, 1), (2, 2, 2, 2), 4)).eval()
    >>> small(torch.zeros(1, 64, 64, 4, dtype=torch.uint8)).shape
    torch.Size([1, 4, 4, 4])
    """

    mean: Tensor
    spread: Tensor

    def __init__(self, config: TinyVitConfig) -> None:
        super().__init__()
        self.config = config
        first, last = config.widths[0], config.widths[-1]
        stem = nn.Sequential(_TinyConv(3, first // 2, 3, 2), nn.GELU(), _TinyConv(first // 2, first, 3, 2))
        self.patch_embed = nn.ModuleDict({"seq": stem})
        self.layers = nn.ModuleList(_stages(config))
        self.neck = nn.Sequential(
            nn.Conv2d(last, config.out, 1, bias=False),
            _ChannelNorm(config.out),
            nn.Conv2d(config.out, config.out, 3, padding=1, bias=False),
            _ChannelNorm(config.out),
        )
        self.register_buffer("mean", torch.tensor(MEAN_RGB), persistent=False)
        self.register_buffer("spread", torch.tensor(SPREAD_RGB), persistent=False)

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, H, W, 4) 8-bit RGB with alpha → (B, out, H / 16, W / 16). Alpha is 0 where there is no photo."""
        # Beside the photo the network is used to zeros, which are no colour.
        seen = (pixels[..., :3].float() - self.mean) / self.spread * (pixels[..., 3:] > 0)
        x = self.patch_embed["seq"](seen.permute(0, 3, 1, 2))
        for layer in self.layers:
            x = layer(x)
        features: Tensor = self.neck(x)
        return features

    def load_released(self, released: Mapping[str, Tensor]) -> None:
        """Take the tensors of the released encoder. All must be there, and all but the classifier must be used."""
        named = {_our_name(name): tensor for name, tensor in released.items() if not name.startswith(_UNUSED)}
        ours = self.state_dict()
        if different := sorted(ours.keys() ^ named.keys()):
            raise InvalidValue("weights", f"{len(different)} tensors are missing or too many, first {different[0]!r}")
        for name, tensor in named.items():
            if tensor.shape != ours[name].shape:
                reason = f"{name!r} has shape {tuple(tensor.shape)}, not {tuple(ours[name].shape)}"
                raise InvalidValue("weights", reason, "is it another variant?")
        self.load_state_dict(named)

    def fold(self) -> TinyViT:
        """Itself, faster and fixed: batch norms become part of the convolutions."""
        for module in list(self.eval().modules()):
            if isinstance(module, _TinyConv):
                module.fold()
        return self.requires_grad_(False)


def _our_name(released: str) -> str:
    return released.replace(".c.", ".conv.").replace(".bn.", ".norm.")


def _stages(config: TinyVitConfig) -> list[_Stage]:
    stages = []
    widths = [*config.widths, 0]
    for number, (width, after) in enumerate(pairwise(widths)):
        blocks: list[nn.Module] = [
            _TinyBlock(width, config.heads[number], config.windows[number]) if number else _WideConv(width)
            for _ in range(config.depths[number])
        ]
        # Into the last stage the grid stays as it is.
        merge = _Merge(width, after, 1 if number == _STAGES - 2 else 2) if after else None
        stages.append(_Stage(blocks, merge))
    return stages


class _TinyConv(nn.Module):
    """Convolution and batch norm."""

    def __init__(self, into: int, out: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(into, out, kernel, stride, kernel // 2, groups=groups, bias=False)
        self.norm: nn.Module = nn.BatchNorm2d(out)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.norm(self.conv(x))
        return made

    def fold(self) -> None:
        """Put the norm's fixed numbers into the convolution."""
        if isinstance(self.norm, nn.BatchNorm2d):
            self.conv = fuse_conv_bn_eval(self.conv, self.norm)
            self.norm = nn.Identity()


class _ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of (B, C, H, W)."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class _WideConv(nn.Module):
    """Widen, look around channel by channel, narrow; with a way past it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        wide = _WIDEN * width
        self.conv1 = _TinyConv(width, wide)
        self.conv2 = _TinyConv(wide, wide, 3, groups=wide)
        self.conv3 = _TinyConv(wide, width)

    def forward(self, x: Tensor) -> Tensor:
        wide = functional.gelu(self.conv2(functional.gelu(self.conv1(x))))
        return functional.gelu(x + self.conv3(wide))


class _Merge(nn.Module):
    """From one stage to the next: other channels, and half the grid at stride 2."""

    def __init__(self, into: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _TinyConv(into, out)
        self.conv2 = _TinyConv(out, out, 3, stride, groups=out)
        self.conv3 = _TinyConv(out, out)

    def forward(self, x: Tensor) -> Tensor:
        merged: Tensor = self.conv3(functional.gelu(self.conv2(functional.gelu(self.conv1(x)))))
        return merged


class _Stage(nn.Module):
    """Some blocks, then the way to the next stage, if there is one."""

    def __init__(self, blocks: list[nn.Module], merge: _Merge | None) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.downsample = merge

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x if self.downsample is None else self.downsample(x)


class _WindowAttention(nn.Module):
    """Attention among the cells of a window, with a number for each distance along the two axes."""

    places: Tensor

    def __init__(self, width: int, heads: int, window: int) -> None:
        super().__init__()
        self.heads, self.window = heads, window
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.attention_biases = nn.Parameter(torch.zeros(heads, window**2))
        rows, cols = torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")
        away = [(one.flatten()[:, None] - one.flatten()[None, :]).abs() for one in (rows, cols)]
        self.register_buffer("places", away[0] * window + away[1], persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """(B, H, W, C) → the same; edges are filled up to whole windows with zeros, before the norm."""
        _, height, width, channels = x.shape
        side = self.window
        x = functional.pad(x, (0, 0, 0, -width % side, 0, -height % side))
        rows, cols = x.shape[1] // side, x.shape[2] // side
        cut = x.reshape(-1, rows, side, cols, side, channels).transpose(2, 3).reshape(-1, side * side, channels)
        # Of each head in turn: query, key, value.
        parts = self.qkv(self.norm(cut)).reshape(-1, side * side, self.heads, 3 * channels // self.heads)
        query, key, value = parts.transpose(1, 2).chunk(3, dim=-1)
        bias = self.attention_biases[:, self.places]
        read = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        out = self.proj(read.transpose(1, 2).reshape(-1, side * side, channels))
        out = out.reshape(-1, rows, cols, side, side, channels).transpose(2, 3)
        joined: Tensor = out.reshape(-1, rows * side, cols * side, channels)[:, :height, :width]
        return joined


class _TinyFeedForward(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, _WIDEN * width)
        self.fc2 = nn.Linear(_WIDEN * width, width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.fc2(functional.gelu(self.fc1(self.norm(x))))
        return out


class _TinyBlock(nn.Module):
    """Attention in windows, a convolution across their borders, feed-forward."""

    def __init__(self, width: int, heads: int, window: int) -> None:
        super().__init__()
        self.attn = _WindowAttention(width, heads, window)
        self.mlp = _TinyFeedForward(width)
        self.local_conv = _TinyConv(width, width, 3, groups=width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) → the same."""
        cells = x.permute(0, 2, 3, 1)
        cells = cells + self.attn(cells)
        cells = self.local_conv(cells.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        out: Tensor = (cells + self.mlp(cells)).permute(0, 3, 1, 2)
        return out
