"""AttentionMap: how much people attend to each part of one image."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.errors import InvalidValue
from saywhere.core.frame import Frame
from saywhere.core.regions import area_sums
from saywhere.core.trace import Trace
from saywhere.core.types import Floats, owned

DEFAULT_SHAPE = (64, 64)


@dataclass(frozen=True, slots=True, eq=False)
class AttentionMap:
    """values: (h, w), at least 0 and not all 0, laid evenly over the whole image. Only ratios mean something.

    >>> AttentionMap([[0, 1], [2, 1]])
    <AttentionMap of 2×2>
    """

    values: Floats

    def __init__(self, values: ArrayLike) -> None:
        array = owned(values, "attention map", (None, None))
        if array.size == 0 or (array < 0).any():
            raise InvalidValue("attention map", "is empty" if array.size == 0 else "holds negative values")
        if not array.any():
            raise InvalidValue("attention map", "is zero everywhere: it says nothing about where people look")
        object.__setattr__(self, "values", array)

    def __repr__(self) -> str:
        rows, cols = self.values.shape
        return f"<AttentionMap of {rows}×{cols}>"

    @classmethod
    def from_trace(cls, trace: Trace, shape: tuple[int, int] = DEFAULT_SHAPE, sigma: float = 0.02) -> AttentionMap:
        """Time spent at each place, blurred. sigma: in fractions of the image's width and height; 0: no blur."""
        return cls(_blurred(trace.dwell_map(Frame.of_grid(*shape)), sigma))

    @classmethod
    def from_fixations(
        cls,
        points_xy: ArrayLike,
        durations_s: ArrayLike | None = None,
        shape: tuple[int, int] = DEFAULT_SHAPE,
        sigma: float = 0.04,
    ) -> AttentionMap:
        """(n, 2) fixated places, each counting once or for its duration, blurred. Those off the image are left out."""
        points = owned(points_xy, "fixations", (None, 2))
        amounts = np.ones(len(points)) if durations_s is None else owned(durations_s, "durations", (len(points),))
        frame = Frame.of_grid(*shape)
        seen = frame.sees(points)
        rows, cols = frame.cells(points[seen]).T
        grid = np.zeros(shape)
        np.add.at(grid, (rows, cols), amounts[seen])
        return cls(_blurred(grid, sigma))

    @classmethod
    def from_boxes(cls, boxes_xyxy: ArrayLike, shape: tuple[int, int] = DEFAULT_SHAPE) -> AttentionMap:
        """(n, 4) boxes: each adds 1 to what it covers, in proportion at its edges."""
        along_y, along_x = Frame.of_grid(*shape).coverages(boxes_xyxy)
        return cls(along_y.T @ along_x)

    @classmethod
    def from_masks(cls, masks: Iterable[ArrayLike], shape: tuple[int, int] = DEFAULT_SHAPE) -> AttentionMap:
        """(h, w) masks over the image, of any resolutions: each adds up to 1 where it lies."""
        frame = Frame.of_grid(*shape)
        total = np.zeros(shape)
        for mask in masks:
            array = owned(mask, "mask", (None, None))
            total += area_sums(array, frame) * (shape[0] * shape[1] / array.size)
        return cls(total)

    def resized(self, shape: tuple[int, int]) -> AttentionMap:
        """The same map in another resolution, by area; its mean stays."""
        sums = area_sums(self.values, Frame.of_grid(*shape))
        return AttentionMap(sums * (shape[0] * shape[1] / self.values.size))

    @property
    def density(self) -> Floats:
        """(h, w), summing to 1."""
        density: Floats = self.values / self.values.sum()
        return density

    def importance(self, boxes_xyxy: ArrayLike) -> Floats:
        """(n,) human importance of regions, in [0, 1]: E_in / (E_in + E_out) with the means inside and outside (HINT).

        ½ means "no more than elsewhere". A region that is the whole image has no outside and gets ½.
        """
        boxes = owned(boxes_xyxy, "regions", (None, 4))
        clipped = np.clip(boxes, 0, 1)
        areas = np.prod(clipped[:, 2:] - clipped[:, :2], axis=1)
        if (areas <= 0).any():
            raise InvalidValue(f"region {int(np.argmax(areas <= 0))}", "has no area on the image")
        along_y, along_x = Frame.of_grid(*self.values.shape).coverages(clipped)
        inside = np.einsum("nh,hw,nw->n", along_y, self.values, along_x, optimize=True) / self.values.size
        outside = np.maximum(self.values.mean() - inside, 0)
        mean_in = inside / areas
        mean_out = np.divide(outside, 1 - areas, out=mean_in.copy(), where=1 - areas > 1e-12)
        importance: Floats = mean_in / (mean_in + mean_out)
        return importance

    def on_patches(self, frame: Frame) -> Floats:
        """(rows, cols) how much attention falls on each patch, summing to 1 over what the frame sees."""
        sums = area_sums(self.values, frame)
        if not sums.any():
            raise InvalidValue("attention map", "lies wholly outside the visible part of the photo")
        share: Floats = sums / sums.sum()
        return share


def _blurred(grid: Floats, sigma: float) -> Floats:
    """Gaussian blur that loses nothing over the edge: each cell's amount is spread over the cells there are."""
    if sigma < 0 or not np.isfinite(sigma):
        raise InvalidValue("sigma", f"is {sigma}, not a number of at least 0")
    if sigma == 0:
        return grid
    rows, cols = (_kernel(n, sigma * n) for n in grid.shape)
    blurred: Floats = rows @ grid @ cols.T
    return blurred


def _kernel(n: int, width: float) -> Floats:
    """(n, n) columns are normalised Gaussians around each cell."""
    offsets = np.arange(n)[:, None] - np.arange(n)[None, :]
    kernel = np.exp(-0.5 * (offsets / width) ** 2)
    normalised: Floats = kernel / kernel.sum(axis=0, keepdims=True)
    return normalised
