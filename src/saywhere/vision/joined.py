"""Several encoders as one: they see alike where they err apart, so a map learnt from both errs less."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saywhere.core import Frame, InvalidValue
from saywhere.core.types import Floats32
from saywhere.vision.photo import PhotoLike, read_photo
from saywhere.vision.view import Encoder, View


class JoinedEncoder(Encoder):
    """Encoders whose patches lie on the same grid, joined patch by patch. d is the sum of their sizes."""

    def __init__(self, encoders: Sequence[Encoder]) -> None:
        if len(encoders) < 2:
            raise InvalidValue("joined encoders", f"are {len(encoders)}, not at least 2")
        self.encoders = tuple(encoders)
        frames = [one.frame((3, 2)) for one in self.encoders]
        if any(frame != frames[0] for frame in frames):
            grids = ", ".join(f"{frame.grid} of {frame.input_size} px" for frame in frames)
            raise InvalidValue("joined encoders", f"do not see photos on the same grid: {grids}")

    @property
    def fingerprint(self) -> dict[str, str | int]:
        parts = enumerate(one.fingerprint for one in self.encoders)
        return {f"{number}_{key}": value for number, part in parts for key, value in part.items()}

    @property
    def size(self) -> int:
        return sum(one.size for one in self.encoders)

    def frame(self, photo_size: tuple[int, int]) -> Frame:
        return self.encoders[0].frame(photo_size)

    @property
    def classifier(self) -> tuple[Floats32, Floats32] | None:
        """(classes, d) weights and (classes,) biases that give the mean of all scores; None unless all have some."""
        each: list[tuple[Floats32, Floats32] | None] = [getattr(one, "classifier", None) for one in self.encoders]
        known = [one for one in each if one is not None]
        if len(known) < len(each) or len({len(bias) for _, bias in known}) != 1:
            return None
        weight = np.concatenate([weight for weight, _ in known], axis=1) / len(known)
        bias = np.stack([bias for _, bias in known]).mean(axis=0)
        return weight.astype(np.float32), bias.astype(np.float32)

    def look_many(self, photos: Sequence[PhotoLike]) -> list[View]:
        images = [read_photo(photo) for photo in photos]
        return [_joined(views) for views in zip(*(one.look_many(images) for one in self.encoders), strict=True)]


def _joined(views: Sequence[View]) -> View:
    attention = next((view.attention for view in views if view.attention is not None), None)
    patches = np.concatenate([view.patches for view in views], axis=2)
    return View(views[0].frame, patches, np.concatenate([view.whole for view in views]), attention)
