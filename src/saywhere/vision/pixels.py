"""How a photo becomes the numbers a network was trained on: its place in the input, and the scale of its colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from saywhere.assets.checkpoint import PREPROCESSOR, Checkpoint, read_json
from saywhere.core import Frame, InvalidFile, InvalidValue, UnknownName

FITS = ("squash", "centre_crop", "letterbox")


@dataclass(frozen=True, slots=True)
class Pixels:
    """Colours from 0 to 1 are seen as (value - mean) / std. resample: Pillow's number of the filter for resizing."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    resample: int = int(Image.Resampling.BICUBIC)

    def __post_init__(self) -> None:
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) != 3 or not np.isfinite(values).all():
                raise InvalidValue(f"Pixels.{name}", f"is {values}, not three numbers")
        if min(self.std) <= 0:
            raise InvalidValue("Pixels.std", f"is {self.std}, not above 0")
        if self.resample not in tuple(Image.Resampling):
            raise InvalidValue("Pixels.resample", f"is {self.resample}, none of Pillow's filters")

    def __str__(self) -> str:
        return f"mean {self.mean} std {self.std} resample {self.resample}"

    def tensor(self, images: Sequence[Image.Image], frames: Sequence[Frame], where: Tensor) -> Tensor:
        """RGB images → (B, 3, H, W) on the device and of the type of `where`."""
        stacked = np.stack([self._placed(image, frame) for image, frame in zip(images, frames, strict=True)])
        values = torch.from_numpy(stacked).to(where.device, where.dtype).permute(0, 3, 1, 2) / 255
        mean, std = (where.new_tensor(numbers)[:, None, None] for numbers in (self.mean, self.std))
        return (values - mean) / std

    def seen_by(self, other: Pixels, values: Tensor) -> Tensor:
        """(B, 3, H, W) as this one scales them → the same photos as the other does."""
        mine, theirs = ([values.new_tensor(n)[:, None, None] for n in (p.mean, p.std)] for p in (self, other))
        return (values * mine[1] + mine[0] - theirs[0]) / theirs[1]

    def _placed(self, image: Image.Image, frame: Frame) -> NDArray[np.uint8]:
        """The input in 8 bits; around the photo lies the mean colour, which the network sees as 0."""
        (width, height), (left, top) = frame.input_size, frame.offset
        x1, y1 = max(0, left), max(0, top)
        x2, y2 = min(width, left + frame.span[0]), min(height, top + frame.span[1])
        # Only what is seen is resized: a long, thin photo would become gigabytes before it is cropped.
        corners_px = frame.to_photo(frame.from_input([(x1, y1), (x2, y2)]))
        (x1_px, y1_px), (x2_px, y2_px) = np.clip(corners_px, 0, image.size).tolist()
        box_px = (x1_px, y1_px, x2_px, y2_px)
        part = image.resize((x2 - x1, y2 - y1), Image.Resampling(self.resample), box=box_px)
        canvas = Image.new("RGB", (width, height), tuple(round(value * 255) for value in self.mean))
        canvas.paste(part, (x1, y1))
        return np.asarray(canvas)


IMAGENET = Pixels((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CLIP = Pixels((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
SIGLIP = Pixels((0.5, 0.5, 0.5), (0.5, 0.5, 0.5), int(Image.Resampling.BILINEAR))


def pixels_of(checkpoint: Checkpoint, family: Pixels) -> Pixels:
    """What preprocessor_config.json says; what it does not say, or where there is none, is the family's."""
    path = checkpoint.folder / PREPROCESSOR
    if not path.is_file():
        return family
    said = read_json(path)
    try:
        return Pixels(
            tuple(said.get("image_mean", family.mean)),
            tuple(said.get("image_std", family.std)),
            int(said.get("resample", family.resample)),
        )
    except (TypeError, InvalidValue) as error:
        raise InvalidFile(path, f"does not say how colours are scaled: {error}") from error


def frame_of(photo_size: tuple[int, int], input_px: int, grid: tuple[int, int], fit: str) -> Frame:
    """How a photo of this width and height lies on a square input covered by a grid of rows and columns."""
    side = (input_px, input_px)
    match fit:
        case "squash":
            frame = Frame.squash(photo_size, side, 1)
        case "centre_crop":
            frame = Frame.centre_crop(photo_size, input_px, side, 1)
        case "letterbox":
            frame = Frame.letterbox(photo_size, side, 1)
        case _:
            raise UnknownName("fit", fit, FITS)
    return Frame(frame.photo_size, frame.input_size, grid, frame.span, frame.offset)
