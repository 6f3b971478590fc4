"""Photos cut and mirrored at random, with all that is known of them: nothing learns the same picture twice."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from saywhere.core.types import Floats32
from saywhere.models.eye.features import EyeItem

_LEAST_AREA, _MOST_STRETCH = 0.55, 1.2
_LEAST_LEFT = 0.35
"""Share of a box that must be inside for it to count; a smaller part no longer shows what it was."""
_WHOLE_SHARE = 0.4
"""Of the photos, which are not cut."""


@dataclass(frozen=True, slots=True)
class Variation:
    """A part of a photo, mirrored or not. part_xyxy: fractions of the photo."""

    part_xyxy: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)
    mirrored: bool = False

    @classmethod
    def drawn(cls, generator: torch.Generator, *, may_mirror: bool = True) -> Variation:
        chance, area, stretch, left, top, mirror = torch.rand(6, generator=generator).tolist()
        mirrored = may_mirror and mirror < 0.5
        if chance < _WHOLE_SHARE:
            return cls(mirrored=mirrored)
        side = (_LEAST_AREA + (1 - _LEAST_AREA) * area) ** 0.5
        narrower = _MOST_STRETCH ** (2 * stretch - 1)
        width, height = min(1.0, side * narrower), min(1.0, side / narrower)
        x, y = left * (1 - width), top * (1 - height)
        return cls((x, y, x + width, y + height), mirrored)

    def boxes(self, boxes_xyxy: Floats32) -> tuple[Floats32, NDArray[np.intp]]:
        """(m, 4) → those boxes of which enough is left, where they lie in the part; and their numbers."""
        x1, y1, x2, y2 = self.part_xyxy
        size = np.array([x2 - x1, y2 - y1] * 2, np.float32)
        moved = (boxes_xyxy - np.array([x1, y1] * 2, np.float32)) / size
        inside = moved.clip(0, 1)
        left = _areas(inside) / np.maximum(_areas(moved), 1e-9)
        kept = np.flatnonzero((left >= _LEAST_LEFT) & (_areas(inside) > 0))
        found = inside[kept]
        if self.mirrored:
            found = np.stack([1 - found[:, 2], found[:, 1], 1 - found[:, 0], found[:, 3]], axis=1)
        return found.astype(np.float32), kept

    def pixels(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """(side, side, 3) → the part, as large."""
        return np.asarray(self._part(Image.fromarray(pixels), Image.Resampling.BICUBIC))

    def saliency(self, saliency: Floats32) -> Floats32:
        """(n,) of a square grid, summing to 1 → the part's."""
        side = round(len(saliency) ** 0.5)
        looks = Image.fromarray(saliency.reshape(side, side))
        part: Floats32 = np.asarray(self._part(looks, Image.Resampling.BILINEAR), np.float32).ravel().clip(1e-7)
        shares: Floats32 = part / part.sum()
        return shares

    def _part(self, image: Image.Image, resampling: Image.Resampling) -> Image.Image:
        x1, y1, x2, y2 = self.part_xyxy
        width, height = image.size
        part = image.resize(image.size, resampling, box=(x1 * width, y1 * height, x2 * width, y2 * height))
        return part.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if self.mirrored else part


def varied_photo(item: EyeItem, variation: Variation) -> EyeItem:
    """A photo of pixels as the variation has it. What was said of the whole stays."""
    boxes_xyxy, kept = variation.boxes(item.boxes_xyxy)
    return replace(
        item,
        inputs=variation.pixels(item.inputs.astype(np.uint8, copy=False)),
        boxes_xyxy=boxes_xyxy,
        classes=item.classes[kept],
        saliency=None if item.saliency is None else variation.saliency(item.saliency),
    )


def _areas(boxes_xyxy: Floats32) -> Floats32:
    areas: Floats32 = (boxes_xyxy[:, 2] - boxes_xyxy[:, 0]) * (boxes_xyxy[:, 3] - boxes_xyxy[:, 1])
    return areas
