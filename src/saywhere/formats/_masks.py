"""Outlines and masks as COCO files have them: polygons in pixels, and run lengths, plain or packed into text.

Run lengths go down the columns, from the left one to the right, and count pixels outside and inside in turn, outside
first. Packed into text they are base-32 digits from "0" on, the lowest first; from the fourth run on, each stands for
its difference to the run two before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec
import numpy as np

from saywhere.core.errors import InvalidValue
from saywhere.core.run_lengths import mask_of_runs, runs_of
from saywhere.core.types import Bools
from saywhere.formats._boxes import Side, check_size

Polygons = tuple[tuple[float, ...], ...]
"""Outlines, each x, y, x, y, … in pixels."""

_LONGEST_RUN_DIGITS = 7


@dataclass(frozen=True, slots=True)
class RunLengths:
    """A mask as run lengths. size_hw: rows and columns. counts: the runs, or their packed text."""

    size_hw: tuple[int, int]
    counts: tuple[int, ...] | str

    def __post_init__(self) -> None:
        rows, cols = self.size_hw
        check_size(cols, rows)
        runs = self.runs()
        if any(run < 0 for run in runs):
            raise InvalidValue("the mask", "has a run of negative length")
        if sum(runs) != rows * cols:
            raise InvalidValue("the mask", f"has runs of {sum(runs)} pixels in all, not {rows} × {cols}")

    def runs(self) -> tuple[int, ...]:
        """Lengths in pixels, outside and inside in turn, outside first."""
        return _unpacked(self.counts) if isinstance(self.counts, str) else self.counts

    def mask(self) -> Bools:
        """(rows, cols) True inside."""
        return mask_of_runs(self.runs(), *self.size_hw)

    @classmethod
    def of(cls, inside: Bools) -> RunLengths:
        """Of a mask (rows, cols).

        >>> RunLengths.of(np.array([[False, True], [True, True]])).counts
        (1, 3)
        """
        return cls((inside.shape[0], inside.shape[1]), tuple(runs_of(inside)))


class RunLengthsEntry(msgspec.Struct, frozen=True, gc=False):
    """Run lengths as decoded from a file."""

    size: tuple[Side, Side]
    counts: str | list[int]

    def value(self) -> RunLengths:
        return RunLengths(self.size, self.counts if isinstance(self.counts, str) else tuple(self.counts))


def check_polygons(polygons: Polygons, size_px: tuple[int, int]) -> None:
    """InvalidValue unless each outline has three points or more and none far outside the image (width, height)."""
    width, height = size_px
    for polygon in polygons:
        if len(polygon) % 2 or len(polygon) < 6:
            raise InvalidValue("the polygon", f"has {len(polygon)} numbers; x and y of three or more points are needed")
        for x, y in zip(polygon[::2], polygon[1::2], strict=True):
            near = -width <= x <= 2 * width and -height <= y <= 2 * height
            if not (math.isfinite(x) and math.isfinite(y) and near):
                raise InvalidValue("the polygon", f"has a point ({x:g}, {y:g}) far outside the image")


def polygon_mask(polygons: Polygons, height: int, width: int) -> Bools:
    """(height, width) True inside any of the outlines, by COCO's rules for pixels at the edge."""
    from pycocotools import mask as coco

    packed = coco.merge(coco.frPyObjects([list(polygon) for polygon in polygons], height, width))
    return RunLengths((height, width), packed["counts"].decode()).mask()


def resampled(mask: Bools, height: int, width: int) -> Bools:
    """(height, width) the mask at the middles of another grid's pixels."""
    rows = ((np.arange(height) + 0.5) * mask.shape[0] / height).astype(np.int64)
    cols = ((np.arange(width) + 0.5) * mask.shape[1] / width).astype(np.int64)
    sampled: Bools = mask[rows[:, None], cols[None, :]]
    return sampled


def _unpacked(text: str) -> tuple[int, ...]:
    runs: list[int] = []
    value = digits = 0
    for character in text:
        code = ord(character) - 48
        if not 0 <= code < 64 or digits == _LONGEST_RUN_DIGITS:
            raise InvalidValue("the mask", f"is not packed run lengths: {character!r} at number {len(runs)}")
        value |= (code & 31) << (5 * digits)
        digits += 1
        if code & 32:
            continue
        if code & 16:
            value -= 1 << (5 * digits)
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
        value = digits = 0
    if digits:
        raise InvalidValue("the mask", "is not packed run lengths: the text ends inside a number")
    return tuple(runs)
