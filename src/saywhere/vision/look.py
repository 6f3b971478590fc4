"""One look through an EfficientNet-Lite: the photo squashed to a square, its feature map, and their mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from saywhere.assets import fetch, find
from saywhere.core import Frame
from saywhere.core.types import Floats32
from saywhere.vision.efficientnet import MEAN_8BIT, SCALE_8BIT, STRIDE, EfficientNetLite, config_of, load_lite
from saywhere.vision.photo import PhotoLike, read_photo
from saywhere.vision.view import Encoder, View, checked_side

INPUT_PX = 448


def open_lite(name: str, input_px: int) -> LiteEncoder:
    """The encoder of this name, its weights fetched if they are not there."""
    config = config_of(name)
    checked_side(input_px, STRIDE)
    weights = find(name).files[0]
    return LiteEncoder(load_lite(fetch(name) / weights.name, config), name, weights.stored_sha256, input_px)


class LiteEncoder(Encoder):
    """An EfficientNet-Lite that looks at photos squashed to input_px × input_px.

    name, sha256: of the weights, for the record. The network is on the CPU or wherever it was put.
    """

    def __init__(self, network: EfficientNetLite, name: str, sha256: str, input_px: int) -> None:
        self.network, self.name, self.sha256 = network, name, sha256
        self.input_px = checked_side(input_px, STRIDE)

    @property
    def fingerprint(self) -> dict[str, str | int]:
        return {"encoder": self.name, "weights_sha256": self.sha256, "input_px": self.input_px, "fit": "squash"}

    @property
    def size(self) -> int:
        return self.network.config.head

    @property
    def classifier(self) -> tuple[Floats32, Floats32] | None:
        """(classes, d) weights and (classes,) biases of the network's own classifier, for the mean of patches."""
        layer = self.network.classifier
        if layer is None:
            return None
        weight, bias = (values.detach().float().cpu().numpy() for values in (layer.weight, layer.bias))
        return weight, bias

    def frame(self, photo_size: tuple[int, int]) -> Frame:
        """How a photo of this width and height, in pixels, becomes the input."""
        return Frame.squash(photo_size, (self.input_px, self.input_px), STRIDE)

    def look_many(self, photos: Sequence[PhotoLike]) -> list[View]:
        """Several photos at once. All are held in memory: give a folder in parts."""
        if not photos:
            return []
        images = [read_photo(photo) for photo in photos]
        with torch.inference_mode():
            seen = self.network.features(self.inputs(images))
        maps = seen.permute(0, 2, 3, 1).float().cpu().numpy()
        return [
            View(self.frame(image.size), patches, patches.mean(axis=(0, 1)))
            for image, patches in zip(images, maps, strict=True)
        ]

    def inputs(self, images: Sequence[Image.Image]) -> Tensor:
        """RGB images → (B, 3, input_px, input_px) as the network takes them."""
        side = (self.input_px, self.input_px)
        pixels = np.stack([np.asarray(image.resize(side, Image.Resampling.BICUBIC)) for image in images])
        where = next(self.network.parameters())
        scaled = (torch.from_numpy(pixels).to(where.device, where.dtype) - MEAN_8BIT) / SCALE_8BIT
        # (B, h, w, 3) seen as (B, 3, h, w): already in the order of memory that the convolutions like best.
        return scaled.permute(0, 3, 1, 2)
