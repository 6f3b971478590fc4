"""What one look at a photo gives, and what gives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saywhere.core import Frame, InvalidValue
from saywhere.vision.photo import PhotoLike

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One photo as an encoder saw it.

    frame: how the photo became the encoder's input, and where the patches lie on it.
    patches: (rows, cols, d) float32, row by row from the top.
    whole: (d,) float32, the photo in one vector.
    """

    frame: Frame
    patches: Floats
    whole: Floats

    def __init__(self, frame: Frame, patches: ArrayLike, whole: ArrayLike) -> None:
        seen, one = np.array(patches, dtype=np.float32), np.array(whole, dtype=np.float32)
        if seen.ndim != 3 or seen.shape[:2] != frame.grid or not seen.shape[2]:
            raise InvalidValue("View.patches", f"have shape {seen.shape}, not {(*frame.grid, 'd')}")
        if one.shape != seen.shape[2:]:
            raise InvalidValue("View.whole", f"has shape {one.shape}, not {seen.shape[2:]}")
        if not (np.isfinite(seen).all() and np.isfinite(one).all()):
            raise InvalidValue("View", "holds NaN or infinity")
        for array in (seen, one):
            array.flags.writeable = False
        object.__setattr__(self, "frame", frame)
        object.__setattr__(self, "patches", seen)
        object.__setattr__(self, "whole", one)

    def patch_boxes_xyxy(self) -> NDArray[np.float64]:
        """(rows * cols, 4) where each patch lies, in fractions of the photo, row by row from the top."""
        x, y = self.frame.cell_edges()
        rows, cols = self.frame.grid
        left, right = np.tile(x[:-1], rows), np.tile(x[1:], rows)
        top, bottom = np.repeat(y[:-1], cols), np.repeat(y[1:], cols)
        return np.stack([left, top, right, bottom], axis=1)


class Encoder(Protocol):
    """Anything that looks at photos."""

    @property
    def fingerprint(self) -> dict[str, str | int]:
        """What the features depend on: the encoder, its weights and its input. Equal means equal features."""

    @property
    def size(self) -> int:
        """d, the numbers per patch."""

    def frame(self, photo_size: tuple[int, int]) -> Frame:
        """How a photo of this width and height is brought to the encoder. The grid is the same for every photo."""

    def look(self, photo: PhotoLike) -> View: ...

    def look_many(self, photos: Sequence[PhotoLike]) -> list[View]: ...
