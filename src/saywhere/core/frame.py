"""How a photo became a model's input, and every conversion between the two."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Bools, Floats, Ints, owned

Size = tuple[int, int]
"""Width and height, in pixels."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The geometry of one look: photo, model input and patch grid.

    Every way a photo is brought to a model's size (squash, crop, pad) scales and shifts each axis on its own, so a
    frame holds just that: x_input = x_fraction * span_x + offset_x, and the same for y.

    photo_size: width and height of the photo, in pixels.
    input_size: width and height of what the model sees, in pixels.
    grid: rows and columns of the patch grid that covers the input evenly.
    span: width and height of the whole photo, in input pixels. Larger than the input when the photo is cropped.
    offset: where the photo's left and top edges lie, in input pixels. Negative when cropped, positive when padded.

    >>> frame = Frame.squash(photo_size=(640, 480), input_size=(224, 224), patch=16)
    >>> frame.grid
    (14, 14)
    >>> frame.cells([(0.99, 0.01)]).tolist()
    [[0, 13]]
    """

    photo_size: Size
    input_size: Size
    grid: tuple[int, int]
    span: tuple[int, int]
    offset: tuple[int, int]

    def __post_init__(self) -> None:
        for name in ("photo_size", "input_size", "grid", "span"):
            pair = getattr(self, name)
            if len(pair) != 2 or any(not isinstance(n, int | np.integer) or n < 1 for n in pair):
                raise InvalidValue(f"Frame.{name}", f"is {pair!r}, not two whole numbers of at least 1")

    @classmethod
    def of_grid(cls, rows: int, cols: int) -> Frame:
        """A grid laid straight over the photo, for maps and tables that know no pixels."""
        return cls((cols, rows), (cols, rows), (rows, cols), (cols, rows), (0, 0))

    @classmethod
    def squash(cls, photo_size: Size, input_size: Size, patch: int) -> Frame:
        """The photo is resized to the input, whatever that does to its shape."""
        return cls(photo_size, input_size, _grid_of(input_size, patch), input_size, (0, 0))

    @classmethod
    def centre_crop(cls, photo_size: Size, short_side: int, input_size: Size, patch: int) -> Frame:
        """The photo's shorter side is resized to `short_side`, the longer in proportion, and the centre is cut out.

        A photo smaller than the input after resizing is padded, as image processors do.
        """
        width, height = _checked_size(photo_size)
        shorter = min(width, height)
        span = (int(short_side * width / shorter), int(short_side * height / shorter))
        offset = (-((span[0] - input_size[0]) // 2), -((span[1] - input_size[1]) // 2))
        return cls(photo_size, input_size, _grid_of(input_size, patch), span, offset)

    @classmethod
    def letterbox(cls, photo_size: Size, input_size: Size, patch: int) -> Frame:
        """The whole photo, in proportion, centred in the input; the rest is padding."""
        width, height = _checked_size(photo_size)
        scale = min(input_size[0] / width, input_size[1] / height)
        span = (max(1, round(width * scale)), max(1, round(height * scale)))
        offset = ((input_size[0] - span[0]) // 2, (input_size[1] - span[1]) // 2)
        return cls(photo_size, input_size, _grid_of(input_size, patch), span, offset)

    @classmethod
    def smart_resize(
        cls, photo_size: Size, patch: int = 28, min_pixels: int = 56 * 56, max_pixels: int = 28 * 28 * 1280
    ) -> Frame:
        """Qwen-VL's rule: both sides become multiples of `patch`, the area stays within bounds, the shape nearly stays.

        `patch` is the side of one *merged* token (28 for Qwen2.5-VL, 32 for Qwen3-VL).
        """
        width, height = _checked_size(photo_size)
        if max(width, height) > 200 * min(width, height):
            raise InvalidValue("photo_size", f"{width}×{height} is more than 200 times longer than wide")
        new_w, new_h = (max(patch, round(n / patch) * patch) for n in (width, height))
        if new_w * new_h > max_pixels:
            shrink = math.sqrt(width * height / max_pixels)
            new_w, new_h = (max(patch, math.floor(n / shrink / patch) * patch) for n in (width, height))
        elif new_w * new_h < min_pixels:
            grow = math.sqrt(min_pixels / (width * height))
            new_w, new_h = (math.ceil(n * grow / patch) * patch for n in (width, height))
        return cls.squash(photo_size, (new_w, new_h), patch)

    @property
    def rows(self) -> int:
        return self.grid[0]

    @property
    def cols(self) -> int:
        return self.grid[1]

    @property
    def visible_xyxy(self) -> tuple[float, float, float, float]:
        """The part of the photo that the model sees, in fractions of the photo."""
        left, top = np.maximum(self.from_input([[0, 0]])[0], 0)
        right, bottom = np.minimum(self.from_input([self.input_size])[0], 1)
        return float(left), float(top), float(right), float(bottom)

    def to_input(self, points_xy: ArrayLike) -> Floats:
        """(n, 2) fractions of the photo → (n, 2) input pixels."""
        converted: Floats = _points(points_xy) * self.span + self.offset
        return converted

    def from_input(self, points_px: ArrayLike) -> Floats:
        """(n, 2) input pixels → (n, 2) fractions of the photo."""
        converted: Floats = (_points(points_px) - self.offset) / self.span
        return converted

    def to_photo(self, points_xy: ArrayLike) -> Floats:
        """(n, 2) fractions → (n, 2) pixels of the photo as it was taken."""
        converted: Floats = _points(points_xy) * self.photo_size
        return converted

    def from_photo(self, points_px: ArrayLike) -> Floats:
        """(n, 2) pixels of the photo as it was taken → (n, 2) fractions."""
        converted: Floats = _points(points_px) / self.photo_size
        return converted

    def to_grid(self, points_xy: ArrayLike) -> Floats:
        """(n, 2) fractions of the photo → (n, 2) grid coordinates, column first; a cell spans [c, c+1) × [r, r+1)."""
        return self.to_input(points_xy) * self._cells_per_px

    def from_grid(self, points_cr: ArrayLike) -> Floats:
        """(n, 2) grid coordinates, column first → (n, 2) fractions of the photo."""
        return self.from_input(_points(points_cr) / self._cells_per_px)

    def sees(self, points_xy: ArrayLike) -> Bools:
        """(n,) which points lie on the photo and inside what the model sees; the far edges count as inside."""
        points = _points(points_xy)
        on_input = self.to_input(points)
        inside = (points >= 0) & (points <= 1) & (on_input >= 0) & (on_input <= self.input_size)
        return np.asarray(inside.all(axis=1))

    def cells(self, points_xy: ArrayLike) -> Ints:
        """(n, 2) row and column of the cell under each point. Ask only for points that `sees`."""
        at = np.floor(self.to_grid(points_xy)).astype(np.int64)
        # The photo's far edges belong to the last cells that show it, not to the padding that begins there.
        last = np.ceil(self.to_grid([self.visible_xyxy[2:]]) - 1e-9).astype(np.int64) - 1
        return np.clip(at, 0, last)[:, ::-1]

    def cell_edges(self) -> tuple[Floats, Floats]:
        """The grid lines in fractions of the photo: (cols + 1,) along x and (rows + 1,) along y."""
        x = self.from_grid(np.stack([np.arange(self.cols + 1), np.zeros(self.cols + 1)], axis=1))[:, 0]
        y = self.from_grid(np.stack([np.zeros(self.rows + 1), np.arange(self.rows + 1)], axis=1))[:, 1]
        return x, y

    def coverage(self, box_xyxy: ArrayLike) -> Floats:
        """(rows, cols) share of each cell's area that the box, clipped to the photo, covers."""
        along_y, along_x = self.coverages(owned(box_xyxy, "box", (4,))[None])
        return np.outer(along_y, along_x)

    def coverages(self, boxes_xyxy: ArrayLike) -> tuple[Floats, Floats]:
        """(n, rows) and (n, cols) shares of each row's height and each column's width that (n, 4) boxes, clipped to
        the photo, cover; `coverage` of a box is their product."""
        x1, y1, x2, y2 = np.clip(owned(boxes_xyxy, "boxes", (None, 4)), 0, 1).T[:, :, None]
        x, y = self.cell_edges()
        return _overlap(y, y1, y2), _overlap(x, x1, x2)

    @property
    def _cells_per_px(self) -> Floats:
        return np.array([self.cols / self.input_size[0], self.rows / self.input_size[1]])


def _overlap(edges: Floats, low: Floats, high: Floats) -> Floats:
    """(n, k) share of each of k intervals between edges that [low, high], (n, 1), covers."""
    shared = np.minimum(edges[1:], high) - np.maximum(edges[:-1], low)
    share: Floats = np.clip(shared, 0, None) / np.diff(edges)
    return share


def _points(values: ArrayLike) -> Floats:
    points = np.asarray(values, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise InvalidValue("points", f"have shape {points.shape}, not (n, 2)")
    return points


def _checked_size(size: Size) -> Size:
    width, height = size
    if width < 1 or height < 1:
        raise InvalidValue("photo_size", f"is {width}×{height}: both sides must be at least one pixel")
    return int(width), int(height)


def _grid_of(input_size: Size, patch: int) -> tuple[int, int]:
    width, height = input_size
    if patch < 1 or width % patch or height % patch:
        raise InvalidValue("input_size", f"{width}×{height} is not a whole number of {patch}-pixel patches")
    return height // patch, width // patch
