"""Whether a picture may be a photograph at all: models that learnt from photographs are sure of nothing else."""

from __future__ import annotations

import numpy as np
from PIL import Image

_SIDE_PX = 512
_LONGEST = 8.0
"""Longer side by shorter one."""
_FLAT_SHARE, _NEAR = 0.7, 6
"""A drawing, a page of text or a plain surface: so much of it is within so many 8-bit steps of its commonest colour."""
_LEAST_ALIKE = 0.35
"""Neighbouring pixels of a photograph are alike: the correlation of brightness; that of noise is 0."""


def why_no_photo(image: Image.Image) -> str:
    """What speaks against a picture's being a photograph; empty if nothing does.

    >>> why_no_photo(Image.new("RGB", (64, 64), "red"))
    'it is mostly of one colour'
    """
    width, height = image.size
    if max(width, height) > _LONGEST * min(width, height):
        return f"it is {width} × {height} pixels"
    pixels = np.asarray(image.convert("RGB").crop(_middle(width, height)), np.int16)
    commonest = np.median(pixels.reshape(-1, 3), axis=0)
    if (np.abs(pixels - commonest).max(axis=-1) <= _NEAR).mean() > _FLAT_SHARE:
        return "it is mostly of one colour"
    bright = pixels.mean(axis=-1)
    beside, right = bright[:, :-1].ravel(), bright[:, 1:].ravel()
    if beside.std() and right.std() and np.corrcoef(beside, right)[0, 1] < _LEAST_ALIKE:
        return "it is noise"
    return ""


def _middle(width: int, height: int) -> tuple[int, int, int, int]:
    """The middle of a picture, at its own size: shrinking would make noise smooth."""
    wide, high = min(width, _SIDE_PX), min(height, _SIDE_PX)
    left, top = (width - wide) // 2, (height - high) // 2
    return left, top, left + wide, top + high
