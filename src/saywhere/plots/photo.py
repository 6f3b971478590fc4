"""The photo under a drawing: read upright, or an empty canvas that says why there is none."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from saywhere.core import InvalidFile, InvalidValue, Trace
from saywhere.vision.photo import PhotoLike as SomePhoto
from saywhere.vision.photo import read_photo

PhotoLike = SomePhoto | None
"""Whatever `saywhere.vision.read_photo` reads, or nothing."""

CANVAS_SIZE = (1000, 750)
NO_PHOTO = "no photo found"
_OVERSHOOT = 0.06


@dataclass(frozen=True, slots=True)
class Photo:
    """An upright RGB image, or None and the reason why there is none."""

    image: Image.Image | None
    missing: str = ""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels; of the empty canvas if there is no photo."""
        return self.image.size if self.image else CANVAS_SIZE

    def shrunk(self, longest_px: int) -> Photo:
        """The same with no side over `longest_px`."""
        if self.image is None or max(self.image.size) <= longest_px:
            return self
        scale = longest_px / max(self.image.size)
        size = tuple(max(1, round(side * scale)) for side in self.image.size)
        return Photo(self.image.resize((size[0], size[1]), Image.Resampling.LANCZOS))

    def jpeg(self, quality: int = 84) -> bytes:
        """The image as JPEG, without any of the file's own metadata."""
        if self.image is None:
            raise InvalidValue("photo", f"cannot be encoded: {self.missing}")
        buffer = io.BytesIO()
        self.image.save(buffer, "JPEG", quality=quality, optimize=True)
        return buffer.getvalue()


def load_photo(photo: PhotoLike) -> Photo:
    """The photo, turned as its camera meant it. One that is absent or damaged gives an empty canvas with the reason."""
    if photo is None:
        return Photo(None, NO_PHOTO)
    try:
        return Photo(read_photo(photo))
    except InvalidFile as error:
        return Photo(None, f"{Path(error.path).name} {error.reason}")


def view_xyxy(trace: Trace) -> tuple[float, float, float, float]:
    """What to show, in fractions of the photo: all of it, and a little more where the trace leaves it."""
    if not len(trace):
        return 0.0, 0.0, 1.0, 1.0
    x1, y1, x2, y2 = trace.bounds_xyxy
    pad = 0.012
    return (
        max(-_OVERSHOOT, min(0.0, x1 - pad)),
        max(-_OVERSHOOT, min(0.0, y1 - pad)),
        min(1 + _OVERSHOOT, max(1.0, x2 + pad)),
        min(1 + _OVERSHOOT, max(1.0, y2 + pad)),
    )


def near_strokes(trace: Trace) -> list[NDArray[np.float64]]:
    """The pen-down strokes, each (n, 3), points very far off the photo moved nearer: no renderer takes any number."""
    return [np.column_stack([np.clip(stroke[:, :2], -10, 11), stroke[:, 2]]) for stroke in trace.segments]
