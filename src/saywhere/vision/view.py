"""What one look at a photo gives, and what gives it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saywhere import limits
from saywhere.core import Frame, InvalidValue
from saywhere.core.types import Floats32
from saywhere.vision.photo import PhotoLike


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that a detector found.

    box_xyxy: left, top, right and bottom in fractions of the photo, within it and with an area.
    name: what it is, in plain English. score: how sure the detector is, within [0, 1].
    """

    box_xyxy: tuple[float, float, float, float]
    name: str
    score: float

    def __post_init__(self) -> None:
        box = tuple(float(number) for number in self.box_xyxy)
        if len(box) != 4 or not (0 <= box[0] < box[2] <= 1 and 0 <= box[1] < box[3] <= 1):
            raise InvalidValue("Found.box_xyxy", f"is {box}, not left, top, right, bottom within [0, 1] with an area")
        if not self.name.strip():
            raise InvalidValue("Found.name", "is empty")
        if not 0 <= self.score <= 1:
            raise InvalidValue("Found.score", f"is {self.score}, not within [0, 1]")
        object.__setattr__(self, "box_xyxy", box)
        object.__setattr__(self, "score", float(self.score))


@dataclass(frozen=True, slots=True, eq=False)
class Proposals:
    """Places where a detector weighed whether something is there; many overlap.

    boxes_xyxy: (n, 4) float32, fractions of the photo. scores: (n, k) float32 within [0, 1], how sure each place shows
    each kind. names: the k kinds.
    """

    boxes_xyxy: Floats32
    scores: Floats32
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        count, kinds = len(self.boxes_xyxy), len(self.names)
        if self.boxes_xyxy.shape != (count, 4) or self.scores.shape != (count, kinds):
            shapes = f"boxes {self.boxes_xyxy.shape} and scores {self.scores.shape} for {kinds} kinds"
            raise InvalidValue("Proposals", f"do not fit each other: {shapes}")

    def claims(self, box_xyxy: Sequence[float], power: float) -> Floats32:
        """(k,) how sure some place that fits the box shows each kind: the largest of score × IoU to a power."""
        x1, y1, x2, y2 = box_xyxy
        left, top, right, bottom = self.boxes_xyxy.T
        wide = np.clip(np.minimum(right, x2) - np.maximum(left, x1), 0, None)
        high = np.clip(np.minimum(bottom, y2) - np.maximum(top, y1), 0, None)
        common = wide * high
        union = (right - left) * (bottom - top) + (x2 - x1) * (y2 - y1) - common
        fits = (common / np.maximum(union, 1e-12)) ** power
        near = fits > 0
        claims: Floats32 = (self.scores[near] * fits[near, None]).max(axis=0, initial=0.0).astype(np.float32)
        return claims


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One photo as an encoder saw it.

    frame: how the photo became the encoder's input, and where the patches lie on it.
    patches: (rows, cols, d) float32, row by row from the top.
    whole: (d,) float32, the photo in one vector.
    attention: (rows, cols) float32, how much of the encoder's own attention each patch got: at least 0, and made to
        sum to 1 here. None where the encoder has none.
    found: things in the photo, in the order the detector gave them; none where no detector looked.
    states: (k, s) float32, hidden states for networks that read the photo, the whole first; None where the encoder
        gives none.
    contrast: (d,) float32, the photo in a second vector, which tells it from others; `whole` where there is no other.
    present: how likely each kind of thing is somewhere in the photo, by name; empty where the encoder does not tell.
    proposals: what the detector weighed on the way to `found`; None where no detector looked.
    auxiliary: (k, a) float32, what a second look gave, the whole first; None where there was none.
    """

    frame: Frame
    patches: Floats32
    whole: Floats32
    attention: Floats32 | None
    found: tuple[Found, ...]
    states: Floats32 | None
    contrast: Floats32
    present: Mapping[str, float]
    proposals: Proposals | None
    auxiliary: Floats32 | None

    def __init__(
        self,
        frame: Frame,
        patches: ArrayLike,
        whole: ArrayLike,
        attention: ArrayLike | None = None,
        found: Iterable[Found] = (),
        states: ArrayLike | None = None,
        contrast: ArrayLike | None = None,
        present: Mapping[str, float] | None = None,
        proposals: Proposals | None = None,
        auxiliary: Floats32 | None = None,
    ) -> None:
        seen, one = np.array(patches, dtype=np.float32), np.array(whole, dtype=np.float32)
        if seen.ndim != 3 or seen.shape[:2] != frame.grid or not seen.shape[2]:
            raise InvalidValue("View.patches", f"have shape {seen.shape}, not {(*frame.grid, 'd')}")
        if one.shape != seen.shape[2:]:
            raise InvalidValue("View.whole", f"has shape {one.shape}, not {seen.shape[2:]}")
        other = one if contrast is None else np.array(contrast, dtype=np.float32)
        if other.shape != one.shape:
            raise InvalidValue("View.contrast", f"has shape {other.shape}, not {one.shape}")
        if not all(np.isfinite(array).all() for array in (seen, one, other)):
            raise InvalidValue("View", "holds NaN or infinity")
        for array in (seen, one, other):
            array.flags.writeable = False
        object.__setattr__(self, "frame", frame)
        object.__setattr__(self, "patches", seen)
        object.__setattr__(self, "whole", one)
        object.__setattr__(self, "attention", None if attention is None else _shares(attention, frame))
        object.__setattr__(self, "found", tuple(found))
        object.__setattr__(self, "states", None if states is None else np.array(states, dtype=np.float32))
        object.__setattr__(self, "contrast", other)
        object.__setattr__(self, "present", dict(present or {}))
        object.__setattr__(self, "proposals", proposals)
        object.__setattr__(self, "auxiliary", auxiliary)

    def with_found(
        self, found: Iterable[Found], proposals: Proposals | None = None, auxiliary: Floats32 | None = None
    ) -> View:
        """The same view with these things found in it, and with what a second look gave, if that is new."""
        # What was checked when this view was made, and cannot be written to, need be neither checked nor copied.
        other = copy(self)
        object.__setattr__(other, "found", tuple(found))
        object.__setattr__(other, "proposals", proposals)
        object.__setattr__(other, "auxiliary", self.auxiliary if auxiliary is None else auxiliary)
        return other

    def patch_boxes_xyxy(self) -> NDArray[np.float64]:
        """(rows * cols, 4) where each patch lies, in fractions of the photo, row by row from the top."""
        x, y = self.frame.cell_edges()
        rows, cols = self.frame.grid
        left, right = np.tile(x[:-1], rows), np.tile(x[1:], rows)
        top, bottom = np.repeat(y[:-1], cols), np.repeat(y[1:], cols)
        return np.stack([left, top, right, bottom], axis=1)


def _shares(attention: ArrayLike, frame: Frame) -> Floats32:
    """A read-only (rows, cols) copy that sums to 1."""
    given = np.array(attention, dtype=np.float64)
    if given.shape != frame.grid:
        raise InvalidValue("View.attention", f"has shape {given.shape}, not {frame.grid}")
    total = float(given.sum())
    if not math.isfinite(total) or total <= 0 or given.min() < 0:
        raise InvalidValue("View.attention", "must be finite, nowhere below 0 and somewhere above it")
    shares = (given / total).astype(np.float32)
    shares.flags.writeable = False
    return shares


class Encoder(Protocol):
    """Anything that looks at photos. A class that is one by name needs no `look` of its own."""

    @property
    def fingerprint(self) -> dict[str, str | int]:
        """What the features depend on: the encoder, its weights and its input. Equal means equal features."""

    @property
    def size(self) -> int:
        """d, the numbers per patch."""

    def frame(self, photo_size: tuple[int, int]) -> Frame:
        """How a photo of this width and height is brought to the encoder. The grid is the same for every photo."""

    def look(self, photo: PhotoLike) -> View:
        """One photo."""
        return self.look_many([photo])[0]

    def look_many(self, photos: Sequence[PhotoLike]) -> list[View]: ...


def checked_side(input_px: int, patch_px: int) -> int:
    """The side of an input, if it is a multiple of a patch's."""
    most = limits.MOST["pixels of a side"]
    if not patch_px <= input_px <= most or input_px % patch_px:
        raise InvalidValue("input_px", f"is {input_px}, not a multiple of {patch_px} up to {most:,}")
    return input_px
