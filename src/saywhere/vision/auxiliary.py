"""A second, short look at a photo, for what the eye's trunk knows little of: ImageNet's thousand kinds of things.

    auxiliary = open_auxiliary()
    auxiliary.look(image)           # (1 + 16, 1280): the whole, then 4 × 4 windows row by row

An EfficientNet-Lite0 sees the photo squashed to a small square. It tells less of a single place than the eye, but what
it says of the whole photo goes together well with what people say.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from saywhere.assets import cache_folder, fetch, find
from saywhere.core.types import Floats32
from saywhere.vision.efficientnet import MEAN_8BIT, SCALE_8BIT, EfficientNetLite, config_of, load_lite
from saywhere.vision.runtime import Runtime, open_runtime

NAME, INPUT_PX = "efficientnet-lite0", 256
WINDOWS = 4
"""Rows and columns of windows."""
LARGEST = 6.0
"""No feature is below 0 or above this."""


class AuxiliaryNet(nn.Module):
    """Pixels to the means of features over the whole photo and over windows."""

    def __init__(self, network: EfficientNetLite) -> None:
        super().__init__()
        self.network = network

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, INPUT_PX, INPUT_PX, 3) 8-bit RGB → (B, 1 + WINDOWS², channels), the whole first."""
        seen = self.network.features((pixels.permute(0, 3, 1, 2).float() - MEAN_8BIT) / SCALE_8BIT)
        windows = functional.avg_pool2d(seen, seen.shape[-1] // WINDOWS).flatten(2).transpose(1, 2)
        return torch.cat([windows.mean(dim=1, keepdim=True), windows], dim=1)


class Auxiliary:
    """What looks. run: as `open_runtime` gives it. size: numbers for each place."""

    def __init__(self, run: Runtime, size: int) -> None:
        self.run, self.size = run, size

    def look(self, image: Image.Image) -> Floats32:
        """(1 + WINDOWS², size) of one RGB image."""
        seen: Floats32 = self.look_many([image])[0]
        return seen

    def look_many(self, images: Sequence[Image.Image]) -> Floats32:
        """(n, 1 + WINDOWS², size); all images are held in memory at once."""
        side = (INPUT_PX, INPUT_PX)
        pixels = [np.asarray(image.resize(side, Image.Resampling.BICUBIC, reducing_gap=None)) for image in images]
        return self.run(np.stack(pixels))[0]


def open_auxiliary(kind: str = "", precision: str = "f32") -> Auxiliary:
    """Its weights are fetched if they are not there. kind, precision: see `open_runtime`."""
    weights, config = find(NAME).files[0], config_of(NAME)

    def network() -> AuxiliaryNet:
        return AuxiliaryNet(load_lite(fetch(NAME) / weights.name, config))

    example = torch.zeros(1, INPUT_PX, INPUT_PX, 3, dtype=torch.uint8)
    key = f"auxiliary {weights.stored_sha256} {WINDOWS}"
    run = open_runtime(network, key, example, cache_folder() / "compiled", kind, precision)
    return Auxiliary(run, config.head)


def to_bytes(features: Floats32) -> NDArray[np.uint8]:
    """Features in a byte a number, as they are stored."""
    stored: NDArray[np.uint8] = np.rint(np.clip(features, 0, LARGEST) * (255 / LARGEST)).astype(np.uint8)
    return stored


def to_floats(stored: ArrayLike) -> Floats32:
    """And back."""
    values: Floats32 = np.asarray(stored, np.float32) * np.float32(LARGEST / 255)
    return values
