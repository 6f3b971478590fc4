"""What a photo offers to a referring expression: boxes, what each of them shows, and how it stands among the others.

"The second horse from the right" cannot be told from the vector of a box: whether a box is the second one follows from
the boxes beside it. What can be counted about this is counted here; the rest is left to the network that reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from saywhere.core import Box, Frame, InvalidValue, Region, WholeImage
from saywhere.core.types import Floats32
from saywhere.models.patchioner.eyes import AlignedView
from saywhere.vision.things import suppressed
from saywhere.vision.view import Found

MOST: Final = 32
"""Candidates of a photo; the whole of it is one more, and the last."""
WHOLE: Final = ""
"""What the whole photo is called."""
_LEAST_SCORE = 0.05
_SAME = 0.75
"""Of two boxes that overlap by more (IoU) only the surer one is a candidate."""
_SURE, _APART = 0.3, 0.5
"""Things are counted from this score on, and only one of those that overlap by more (IoU)."""
_PLACES = 3
"""First, second, third: from the left, right, top and bottom, and by size, down and up."""
_ORDERS = 6
_COUNTS = 4
_NEAREST = 2
COLOUR_GRID: Final = (4, 3)
"""Rows and columns of the cells whose mean colours are kept of each box."""
COLOURS: Final = 3 * COLOUR_GRID[0] * COLOUR_GRID[1]
_THUMB_PX = 64
STANDING: Final = 11 + 2 * _ORDERS + _ORDERS * _PLACES + _COUNTS + 4 * _NEAREST
"""Numbers of `standing`."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The n boxes of a photo that something may be referred to by, the whole photo last.

    boxes_xyxy: (n, 4) fractions. names: what finds things calls them. scores: (n,) how sure that is; 0 of the whole.
    vectors: (n, d) of length 1, in the space of texts. states: (n, s) mean hidden states, where the eyes give them.
    colours: (n, 36) mean red, green and blue, 0 … 1, of 4 × 3 cells of each box, where the photo is at hand.
    """

    boxes_xyxy: Floats32
    names: tuple[str, ...]
    scores: Floats32
    vectors: Floats32
    states: Floats32 | None = None
    colours: Floats32 | None = None

    def __post_init__(self) -> None:
        count = len(self.names)
        for name in ("boxes_xyxy", "scores", "vectors", "states", "colours"):
            array = getattr(self, name)
            if array is not None and len(array) != count:
                raise InvalidValue(f"Candidates.{name}", f"are {len(array)}, but there are {count} names")
        if not count or self.boxes_xyxy.shape != (count, 4):
            raise InvalidValue("Candidates", f"are boxes of shape {self.boxes_xyxy.shape} for {count} names")

    def __len__(self) -> int:
        return len(self.names)


def candidates_of(seen: AlignedView, photo: Image.Image | None = None, most: int = MOST) -> Candidates:
    """What a view offers: at most `most` things found, the surest first, and the whole. photo: for its colours."""
    found = _distinct(seen.view.found, most)
    boxes = [*(one.box_xyxy for one in found), (0.0, 0.0, 1.0, 1.0)]
    regions: list[Region] = [*(Box(*one.box_xyxy) for one in found), WholeImage()]
    states = None
    if seen.view.states is not None:
        weights = seen.state_weights(seen.weights(regions))
        states = (weights / weights.sum(axis=1, keepdims=True)) @ seen.view.states[1:]
    corners = np.array(boxes, np.float32)
    return Candidates(
        corners,
        (*(one.name for one in found), WHOLE),
        np.array([*(one.score for one in found), 0.0], np.float32),
        seen.vectors(regions),
        states,
        None if photo is None else box_colours(photo, corners),
    )


def _distinct(found: Sequence[Found], most: int) -> list[Found]:
    likely = [one for one in found if one.score >= _LEAST_SCORE]
    if not likely:
        return []
    boxes = np.array([one.box_xyxy for one in likely], np.float32)
    scores = np.array([one.score for one in likely], np.float32)
    return [likely[number] for number in suppressed(boxes, scores, _SAME)[:most]]


def box_colours(photo: Image.Image, boxes_xyxy: Floats32) -> Floats32:
    """(n, 36) mean colours of the cells of boxes, row by row, red, green and blue of each, 0 … 1."""
    thumb = photo.convert("RGB").resize((_THUMB_PX, _THUMB_PX), Image.Resampling.BOX)
    pixels = np.asarray(thumb, np.float32) / 255
    rows, cols = COLOUR_GRID
    left, top, right, bottom = boxes_xyxy.T[:, :, None, None]
    y, x = np.arange(rows)[:, None], np.arange(cols)[None]
    wide, high = (right - left) / cols, (bottom - top) / rows
    edges = (left + wide * x, top + high * y, left + wide * (x + 1), top + high * (y + 1))
    cells = np.stack([np.broadcast_to(edge, (len(boxes_xyxy), rows, cols)) for edge in edges], axis=-1)
    along_y, along_x = Frame.of_grid(_THUMB_PX, _THUMB_PX).coverages(cells.reshape(-1, 4).astype(np.float64))
    summed = np.einsum("mr,rcd,mc->md", along_y, pixels, along_x, optimize=True)
    means = summed / np.maximum(along_y.sum(axis=1) * along_x.sum(axis=1), 1e-9)[:, None]
    colours: Floats32 = means.reshape(len(boxes_xyxy), -1).astype(np.float32)
    return colours


def mirrored_colours(colours: Floats32) -> Floats32:
    """(n, 36) of the same boxes in the photo seen in a mirror."""
    grid = colours.reshape(len(colours), *COLOUR_GRID, 3)
    return grid[:, :, ::-1].reshape(colours.shape).copy()


def ious(a_xyxy: Floats32, b_xyxy: Floats32) -> Floats32:
    """(n, m) of boxes (n, 4) with boxes (m, 4)."""
    sides = np.minimum(a_xyxy[:, None, 2:], b_xyxy[:, 2:]) - np.maximum(a_xyxy[:, None, :2], b_xyxy[:, :2])
    common = sides.clip(min=0).prod(axis=-1)
    areas = [(boxes[:, 2:] - boxes[:, :2]).prod(axis=-1) for boxes in (a_xyxy, b_xyxy)]
    shares: Floats32 = common / np.maximum(areas[0][:, None] + areas[1] - common, 1e-9)
    return shares


def standing(boxes_xyxy: Floats32, names: Sequence[str], scores: Floats32) -> Floats32:
    """(n, STANDING) where each box is and how it stands to the others.

    Its corners, middle, sides, area and score; how many things of its name, and how many things at all, lie to the
    left, right, above and below, are larger and smaller, each counting by its score; whether it is the first, second or
    third of its name in these orders; how many of its name there are; where the nearest of them are, and how large.
    """
    sure = _sure(boxes_xyxy, names, scores)
    kinds = np.array([sorted(set(names)).index(name) for name in names])
    alike = kinds[:, None] == kinds[sure]
    # A box that is another one of the same thing is not beside it.
    other = ious(boxes_xyxy, boxes_xyxy[sure]) <= _APART
    before = _orders(boxes_xyxy)[:, :, sure] & other
    weights = scores[sure]
    peers, all_ = (before & alike) @ weights, before @ weights
    places = ((before & alike).sum(axis=2)[..., None] == np.arange(_PLACES)).transpose(1, 0, 2)
    many = np.minimum((alike & other).sum(axis=1), _COUNTS - 1)[:, None] == np.arange(_COUNTS)
    parts = (
        _geometry(boxes_xyxy, scores),
        np.log1p(peers.T),
        np.log1p(all_.T),
        places.reshape(len(boxes_xyxy), -1),
        many,
        _nearest(boxes_xyxy, boxes_xyxy[sure], alike & other),
    )
    return np.concatenate([np.asarray(part, np.float32) for part in parts], axis=1)


def _sure(boxes_xyxy: Floats32, names: Sequence[str], scores: Floats32) -> NDArray[np.intp]:
    """The things that are surely there, each once."""
    kept: list[int] = []
    for name in dict.fromkeys(names):
        own = np.array([number for number, one in enumerate(names) if one == name and scores[number] >= _SURE], np.intp)
        if name != WHOLE and len(own):
            kept += own[suppressed(boxes_xyxy[own], scores[own], _APART)].tolist()
    return np.array(sorted(kept), np.intp)


def _orders(boxes_xyxy: Floats32) -> NDArray[np.bool_]:
    """(6, n, n) whether the second box comes before the first: from left, right, top, bottom, as larger, as smaller."""
    left, top, right, bottom = boxes_xyxy.T
    keys = ((left + right) / 2, (top + bottom) / 2, (right - left) * (bottom - top))
    (x, y, size) = (key[None, :] < key[:, None] for key in keys)
    (x_after, y_after, size_after) = (key[None, :] > key[:, None] for key in keys)
    return np.stack([x, x_after, y, y_after, size_after, size])


def _geometry(boxes_xyxy: Floats32, scores: Floats32) -> Floats32:
    left, top, right, bottom = boxes_xyxy.T
    wide, high = right - left, bottom - top
    area = np.sqrt(wide * high)
    numbers = (left, top, right, bottom, (left + right) / 2, (top + bottom) / 2, wide, high, area, area**2, scores)
    return np.stack(numbers, axis=1).astype(np.float32)


def _nearest(boxes_xyxy: Floats32, others_xyxy: Floats32, alike: NDArray[np.bool_]) -> Floats32:
    """(n, 4 * nearest) how far right and below the nearest ones alike lie, how much wider and higher they are."""
    offsets = np.zeros((len(boxes_xyxy), _NEAREST, 4), np.float32)
    centred, other = _centred(boxes_xyxy), _centred(others_xyxy)
    for number, row in enumerate(alike):
        beside = other[row] - centred[number]
        near = np.argsort((beside[:, :2] ** 2).sum(axis=1), kind="stable")[:_NEAREST]
        offsets[number, : len(near)] = beside[near]
    return offsets.reshape(len(boxes_xyxy), -1)


def _centred(boxes_xyxy: Floats32) -> Floats32:
    first, last = boxes_xyxy[:, :2], boxes_xyxy[:, 2:]
    return np.concatenate([(first + last) / 2, last - first], axis=1)
