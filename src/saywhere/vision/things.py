"""Things that an eye found: boxes out of what each cell says, fewer where they say the same, and a name for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saywhere.core import Frame, InvalidValue
from saywhere.core.types import Floats32
from saywhere.vision.view import Found

_LARGEST_REACH = 4.0
"""The logarithm of cells; more than a photo has."""
_AROUND_LEAST, _AROUND_MARGIN = 0.15, 0.05
"""Surroundings are meant from this cosine on, if no thing is meant more by this much."""


@dataclass(frozen=True, slots=True, eq=False)
class NamedThings:
    """Things found in a photo, surest first. vectors: (m, d) of length 1, what their names mean as texts. boxes_xyxy:
    (m, 4) fractions. scores: (m,)."""

    vectors: Floats32
    boxes_xyxy: Floats32
    scores: Floats32

    def __len__(self) -> int:
        return len(self.scores)

    @classmethod
    def none(cls, size: int) -> NamedThings:
        return cls(np.zeros((0, size), np.float32), np.zeros((0, 4), np.float32), np.zeros(0, np.float32))

    def surest(self, most: int, least: float) -> NamedThings:
        """At most so many of them, each at least as sure as that."""
        kept = slice(min(most, int((self.scores >= least).sum())))
        return NamedThings(self.vectors[kept], self.boxes_xyxy[kept], self.scores[kept])


@dataclass(frozen=True, slots=True, eq=False)
class Namer:
    """Calls what boxes hold by name.

    names: what things may be called; vectors: (k, d) of length 1, what these mean as texts. sharpness: of the choice
    among names, as learnt. least: score from which on a thing is found. overlap: of two boxes that overlap by more
    (IoU) the better one stays. most: things. around: (w, d) of length 1, what words for surroundings mean, such as sky.
    """

    names: tuple[str, ...]
    vectors: Floats32
    sharpness: float = 20.0
    least: float = 0.2
    overlap: float = 0.55
    most: int = 40
    around: Floats32 | None = None

    def __post_init__(self) -> None:
        if len(self.names) != len(self.vectors):
            raise InvalidValue("names", f"are {len(self.names)}, but there are {len(self.vectors)} vectors of them")

    def found(self, cells: Floats32, boxes: Floats32) -> tuple[Found, ...]:
        """Things, surest first. cells: (rows, cols, d) vectors. boxes: (rows, cols, 5), as `Eye` gives them."""
        corners, there = decoded(boxes)
        likely = np.argsort(-there, kind="stable")[: 8 * self.most]
        likely = likely[there[likely] >= self.least**2]
        kept = likely[suppressed(corners[likely], there[likely], self.overlap)][: self.most]
        if not len(kept):
            return ()
        chances = self.chances(box_means(cells, corners[kept]))
        scores = np.sqrt(there[kept] * chances.max(axis=1))
        order = [number for number in np.argsort(-scores, kind="stable").tolist() if scores[number] >= self.least]
        chosen = chances.argmax(axis=1)
        return tuple(
            Found(tuple(corners[kept[number]].tolist()), self.names[chosen[number]], min(float(scores[number]), 1.0))
            for number in order
        )

    def things(self, found: Sequence[Found]) -> NamedThings:
        """What a detector found, by what its names mean here; things with other names are left out."""
        number = {name: place for place, name in enumerate(self.names)}
        known = sorted((one for one in found if one.name in number), key=lambda one: -one.score)
        return NamedThings(
            self.vectors[[number[one.name] for one in known]],
            np.array([one.box_xyxy for one in known], np.float32).reshape(-1, 4),
            np.array([one.score for one in known], np.float32),
        )

    def chances(self, vectors: Floats32) -> Floats32:
        """(m, k) how likely each of (m, d) vectors of length 1 means each name."""
        scores = self.sharpness * vectors @ self.vectors.T
        likely = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances: Floats32 = likely / likely.sum(axis=1, keepdims=True)
        return chances

    def shows_surroundings(self, vectors: Floats32) -> NDArray[np.bool_]:
        """(m,) whether (m, d) vectors of length 1 mean surroundings rather than a thing."""
        if self.around is None or not len(self.around):
            return np.zeros(len(vectors), bool)
        nearest, thing = ((vectors @ some.T).max(axis=1) for some in (self.around, self.vectors))
        shows: NDArray[np.bool_] = (nearest >= _AROUND_LEAST) & (nearest >= thing - _AROUND_MARGIN)
        return shows


def decoded(boxes: Floats32) -> tuple[Floats32, Floats32]:
    """(rows, cols, 5) reaches and logits → (n, 4) boxes in fractions of the photo, and (n,) chances of a thing."""
    rows, cols = boxes.shape[:2]
    y, x = np.meshgrid((np.arange(rows) + 0.5) / rows, (np.arange(cols) + 0.5) / cols, indexing="ij")
    reach = np.exp(np.minimum(boxes[..., :4], _LARGEST_REACH)) / np.array([cols, rows, cols, rows], np.float32)
    corners = np.stack([x - reach[..., 0], y - reach[..., 1], x + reach[..., 2], y + reach[..., 3]], axis=-1)
    corners = np.clip(corners, 0, 1).reshape(-1, 4).astype(np.float32)
    return corners, (1 / (1 + np.exp(-boxes[..., 4]))).ravel().astype(np.float32)


def suppressed(boxes_xyxy: Floats32, scores: Floats32, overlap: float) -> NDArray[np.intp]:
    """Which boxes stay, best first, if of two that overlap by more than `overlap` (IoU) only the better one does."""
    order = np.argsort(-scores, kind="stable")
    left, top, right, bottom = boxes_xyxy[order].T
    areas = (right - left) * (bottom - top)
    wide = np.minimum(right[:, None], right) - np.maximum(left[:, None], left)
    high = np.minimum(bottom[:, None], bottom) - np.maximum(top[:, None], top)
    common = np.clip(wide, 0, None) * np.clip(high, 0, None)
    clash = common > overlap * np.maximum(areas[:, None] + areas - common, 1e-9)
    stays = np.ones(len(order), bool)
    for number in range(len(order)):
        if stays[number]:
            stays[number + 1 :] &= ~clash[number, number + 1 :]
    return order[stays]


def box_means(cells: Floats32, boxes_xyxy: Floats32 | Sequence[Sequence[float]]) -> Floats32:
    """(m, d) of length 1: the mean of (rows, cols, d) cells by how much of each a box covers."""
    means = covered_means(cells, boxes_xyxy)
    unit: Floats32 = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    return unit


def covered_means(cells: Floats32, boxes_xyxy: Floats32 | Sequence[Sequence[float]]) -> Floats32:
    """(m, d) the mean of (rows, cols, d) cells by how much of each a box covers."""
    rows, cols, size = cells.shape
    along_y, along_x = Frame.of_grid(rows, cols).coverages(np.asarray(boxes_xyxy, np.float64))
    shares = np.einsum("mr,mc->mrc", along_y, along_x).reshape(-1, rows * cols).astype(np.float32)
    means: Floats32 = shares @ cells.reshape(-1, size) / np.maximum(shares.sum(axis=1, keepdims=True), 1e-9)
    return means
