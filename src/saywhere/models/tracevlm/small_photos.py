"""Photos as the small body reads them: the hidden states of the eye of saywhere-base, pooled in windows, and things."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Floats, Floats32
from saywhere.language.coco_aliases import coco_aliases
from saywhere.vision.view import Found

PHOTOS: Final = "photos"
PHOTOS_KIND: Final = "photos for the small body"
PHOTOS_FIELDS: Final = {"windows": "float16", "boxes": "float32", "classes": "int16", "scores": "float32"}
CLASSES: Final = tuple(coco_aliases())
"""COCO's 80, in their usual order."""
WINDOWS: Final = 10
"""Rows and columns of windows that hidden states are pooled in."""
MOST_THINGS: Final = 16
LEAST_SCORE: Final = 0.35
_SAME = 0.6
"""Boxes of one kind that overlap so much are one thing."""
_LEAST_SIDE = 0.005


@dataclass(frozen=True, slots=True, eq=False)
class PhotoFeatures:
    """One photo. windows: (1 + 100, size) the state of the whole, then of windows, row by row. boxes: (t, 4) xyxy of
    things, surest first; classes: (t,) COCO's 80, from 0; scores: (t,) how sure the detector is of each, 1 for things
    that people marked."""

    windows: Floats32
    boxes: Floats32
    classes: NDArray[np.int64]
    scores: Floats32

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> PhotoFeatures:
        """A photo out of a store."""
        boxes, scores = np.array(row["boxes"], np.float32).reshape(-1, 4), np.array(row["scores"], np.float32)
        return cls(np.array(row["windows"], np.float32), boxes, np.array(row["classes"], np.int64), scores)

    @classmethod
    def marked(cls, windows: Floats32, boxes_xyxy: ArrayLike, classes: ArrayLike) -> PhotoFeatures:
        """A photo whose things people marked."""
        boxes = np.array(boxes_xyxy, np.float32).reshape(-1, 4)
        return cls(windows, boxes, np.array(classes, np.int64), np.ones(len(boxes), np.float32))

    def row(self) -> dict[str, Any]:
        """For a store."""
        numbers = {"windows": self.windows.astype(np.float16), "classes": self.classes.astype(np.int16)}
        return {**numbers, "boxes": self.boxes, "scores": self.scores}

    @property
    def is_marked(self) -> bool:
        """Whether its things are true ones, rather than what a detector found."""
        return len(self.scores) > 0 and bool((self.scores >= 1).all())


def window_states(states: Floats32) -> Floats32:
    """(1 + 100, size) of (1 + n, size) hidden states: the whole's, and the mean of those in each window."""
    grid = math.isqrt(len(states) - 1)
    if grid**2 != len(states) - 1 or grid % WINDOWS:
        raise InvalidValue("states", f"are {len(states)}, not one more than a square of {WINDOWS} × {WINDOWS} windows")
    cut = states[1:].reshape(WINDOWS, grid // WINDOWS, WINDOWS, grid // WINDOWS, -1).mean(axis=(1, 3))
    pooled: Floats32 = np.concatenate([states[:1], cut.reshape(WINDOWS**2, -1)])
    return pooled


def of_things(windows: Floats32, found: Sequence[Found]) -> PhotoFeatures:
    """A photo with what a detector found in it: the surest things, each once."""
    kept: list[Found] = []
    for one in sorted(found, key=lambda thing: -thing.score):
        if one.score < LEAST_SCORE or len(kept) == MOST_THINGS:
            break
        if all(one.name != other.name or overlap(one.box_xyxy, other.box_xyxy) < _SAME for other in kept):
            kept.append(one)
    boxes = np.array([one.box_xyxy for one in kept], np.float32).reshape(-1, 4)
    classes = np.array([CLASSES.index(one.name) for one in kept], np.int64)
    return PhotoFeatures(windows, boxes, classes, np.array([one.score for one in kept], np.float32))


def overlap(one_xyxy: Sequence[float], other_xyxy: Sequence[float]) -> float:
    """IoU of two boxes."""
    left, top = (max(one_xyxy[i], other_xyxy[i]) for i in (0, 1))
    right, bottom = (min(one_xyxy[i], other_xyxy[i]) for i in (2, 3))
    shared = max(0.0, right - left) * max(0.0, bottom - top)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one_xyxy, other_xyxy)]
    return float(shared / max(sum(areas) - shared, 1e-12))


_AREAS = (0.0005, 0.0035, 0.0075, 0.02, 0.065, 0.2)
_RECALL = (0.07, 0.26, 0.39, 0.5, 0.78, 0.96)
"""How many of the things of these shares of a photo the detector finds, measured on 140 validation photos."""
_EDGE, _RIGHT = 0.07, 0.86
"""How far its edges are off, in sides of a thing, and how often it names a thing right."""
_FALSE = 6.0
"""Things that are none, by photo."""


def as_found(photo: PhotoFeatures, rng: np.random.Generator) -> PhotoFeatures:
    """A photo with true things as the detector would have found them: some are missed, edges are off, names are wrong,
    and there are things that are none. The numbers were measured on validation photos."""
    boxes = photo.boxes.astype(np.float64)
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) if len(boxes) else np.zeros(0)
    seen = rng.random(len(boxes)) < np.interp(np.log(np.maximum(areas, 1e-9)), np.log(_AREAS), _RECALL)
    named = np.where(rng.random(seen.sum()) < _RIGHT, photo.classes[seen], rng.integers(len(CLASSES), size=seen.sum()))
    off = _shaken(boxes[seen], rng.laplace(0, _EDGE, (int(seen.sum()), 4)))
    wrong = int(rng.poisson(_FALSE))
    if len(boxes):
        near = rng.integers(len(boxes), size=wrong)
        false = _shaken(boxes[near], rng.laplace(0, 0.35, (wrong, 4)))
        called = np.where(rng.random(wrong) < 0.6, photo.classes[near], rng.integers(len(CLASSES), size=wrong))
    else:
        corners = np.sort(rng.random((wrong, 2, 2)), axis=1)
        false, called = corners.reshape(wrong, 4), rng.integers(len(CLASSES), size=wrong)
    scores = np.concatenate([rng.normal(0.58, 0.14, len(off)), rng.normal(0.46, 0.09, wrong)]).clip(LEAST_SCORE, 0.95)
    order = np.argsort(-scores)[:MOST_THINGS]
    found = np.concatenate([off, false])[order].astype(np.float32)
    kinds = np.concatenate([named, called])[order].astype(np.int64)
    return PhotoFeatures(photo.windows, found, kinds, scores[order].astype(np.float32))


def _shaken(boxes_xyxy: Floats, off: Floats) -> Floats:
    """Boxes whose edges are moved by shares of their sides; each keeps some area on the photo."""
    sides = np.tile(boxes_xyxy[:, 2:] - boxes_xyxy[:, :2], 2)
    moved = np.clip(boxes_xyxy + off * sides, 0, 1)
    low = np.minimum(np.minimum(moved[:, :2], moved[:, 2:]), 1 - _LEAST_SIDE)
    high = np.maximum(np.maximum(moved[:, :2], moved[:, 2:]), low + _LEAST_SIDE)
    return np.concatenate([low, high], axis=1)
