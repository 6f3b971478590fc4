"""Names that others give to what is in a region, and what they add to its vector.

A detector names the things it found, an encoder's own classifier names the region as a whole. Both know words that the
alignment has hardly seen, so their names, as text vectors, are added to what the alignment says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from saywhere.core import Box, Frame, InvalidFile, InvalidValue, Point, Region, Trace
from saywhere.core.types import Floats32
from saywhere.models.folder import load_part, save_part
from saywhere.vision import Found

_KIND = "patchioner-tags"
# How much a thing that fills little of a region counts there: share of the region it covers, to this power.
_REACH = 0.3
_FAINTEST = 0.02
"""Things found with less certainty than this are not counted."""
_COUNTED = 0.2
"""Things found with less certainty than this are not counted one by one."""
_FIT = 0.7
_TOUCH = 0.1
"""A line drawn over a thing means all of it, so how little of the thing it covers matters hardly."""


@dataclass(frozen=True, slots=True, eq=False)
class Overlaps:
    """How regions and things found lie on each other.

    scores: (t,) of the things. kinds: (t,) the number of each one's name. of_thing: (m, t) the share of each thing that
    lies in each region. of_region: (m, t) the share of each region that the thing covers. areal: (m,) whether the
    region is an area, which is meant to fit what it shows, rather than a line or a point on it.
    """

    scores: Floats32
    kinds: NDArray[np.intp]
    of_thing: Floats32
    of_region: Floats32
    areal: NDArray[np.bool_]


def overlaps(
    found: Sequence[Found],
    names: Sequence[str],
    weights: Floats32,
    frame: Frame,
    regions: Sequence[Region] | None = None,
) -> Overlaps:
    """weights: (m, rows, cols) of the regions. regions: themselves, if known: boxes are then compared exactly, where
    the grid is too coarse for small ones."""
    place = {name: number for number, name in enumerate(names)}
    counted = [one for one in found if one.score >= _FAINTEST and one.name in place]
    scores = np.array([one.score for one in counted], dtype=np.float32)
    kinds = np.array([place[one.name] for one in counted], dtype=np.intp)
    areal = np.array([not isinstance(one, Point | Trace) for one in regions or ()] or [True] * len(weights), dtype=bool)
    shape = len(weights), len(counted)
    of_thing, of_region = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    if counted and len(weights):
        covered = np.stack([frame.coverage(one.box_xyxy).ravel() for one in counted])
        flat = weights.reshape(len(weights), -1)
        of_region = (flat / flat.sum(axis=1, keepdims=True) @ covered.T).astype(np.float32)
        inside = flat / flat.max(axis=1, keepdims=True)
        for number, cells in enumerate(covered):
            # A thing that lies wholly in padding covers no cell.
            of_thing[:, number] = np.minimum(cells, inside).sum(axis=1) / max(cells.sum(), 1e-9)
        boxes = np.array([one.box_xyxy for one in counted])
        for row, region in enumerate(regions or ()):
            if isinstance(region, Box):
                of_thing[row], of_region[row] = _box_shares(region, boxes)
    return Overlaps(scores, kinds, of_thing, of_region, areal)


def _box_shares(region: Box, boxes_xyxy: NDArray[np.float64]) -> tuple[Floats32, Floats32]:
    """Shares of (t, 4) boxes in a region, and of the part of the region that lies in the photo in each of them."""
    left, top, right, bottom = np.clip(region.xyxy, 0, 1)
    x1, y1, x2, y2 = boxes_xyxy.T
    width = np.clip(np.minimum(x2, right) - np.maximum(x1, left), 0, None)
    height = np.clip(np.minimum(y2, bottom) - np.maximum(y1, top), 0, None)
    area = max((right - left) * (bottom - top), 1e-12)
    common = width * height
    return (common / ((x2 - x1) * (y2 - y1))).astype(np.float32), (common / area).astype(np.float32)


def tag_features(lying: Overlaps, names: int) -> Floats32:
    """(m, 3 × names) what the detector says of each region, kind by kind, for the alignment to learn from.

    First the strongest: the largest, over the things found, of score × the share of the thing that lies in the region
    × (the share of the region that the thing covers) to the power of 0.3. Then the surest, without the last factor.
    Then how many: log(1 + the sum of score × share) of those with a score of at least 0.2.
    """
    strongest, surest, many = (np.zeros((len(lying.of_thing), names), dtype=np.float32) for _ in range(3))
    for number, (score, kind) in enumerate(zip(lying.scores, lying.kinds, strict=True)):
        sure = score * lying.of_thing[:, number]
        strong = sure * lying.of_region[:, number] ** _REACH
        strongest[:, kind] = np.maximum(strongest[:, kind], strong)
        surest[:, kind] = np.maximum(surest[:, kind], sure)
        if score >= _COUNTED:
            many[:, kind] += sure
    return np.concatenate([strongest, surest, np.log1p(many)], axis=1)


def naming(lying: Overlaps, names: int, doubt: float) -> Floats32:
    """(m, names) how much of a region's name each kind has: at least 0, together less than 1.

    A thing's claim is the square of score × fit; fit is high where thing and region cover each other. doubt: how much
    is left for no name, on the scale of claims: a claim of this size gets half.
    """
    thing_power = np.where(lying.areal, _FIT, _TOUCH)[:, None]
    fit = lying.of_region**_FIT * lying.of_thing**thing_power
    claims = np.zeros((len(fit), names), dtype=np.float32)
    for number, kind in enumerate(lying.kinds):
        claims[:, kind] = np.maximum(claims[:, kind], (lying.scores[number] * fit[:, number]) ** 2)
    shares: Floats32 = claims / (claims.sum(axis=1, keepdims=True) + doubt)
    return shares


@dataclass(frozen=True, slots=True, eq=False)
class Tags:
    """How the detector's names enter a region's vector.

    names: the n kinds. offset: (d,) and weight: (3 n, d) for `tag_features`, learnt along with the alignment, which it
    is added to. vectors: (n, d) of the names, of length 1.
    """

    names: tuple[str, ...]
    offset: Floats32
    weight: Floats32
    vectors: Floats32

    def __post_init__(self) -> None:
        count, size = len(self.names), self.vectors.shape[-1]
        shapes = self.weight.shape, self.vectors.shape, self.offset.shape
        if shapes != ((3 * count, size), (count, size), (size,)):
            raise InvalidValue("tags", f"{len(self.names)} names do not fit the vectors {self.vectors.shape}")

    def learnt(self, lying: Overlaps) -> Floats32:
        """(m, d) what the things add to the aligned features of each region."""
        added: Floats32 = tag_features(lying, len(self.names)) @ self.weight + self.offset
        return added

    def named(self, lying: Overlaps, doubt: float) -> Floats32:
        """(m, d) each region's name, as long as it is certain."""
        added: Floats32 = naming(lying, len(self.names), doubt) @ self.vectors
        return added

    def save_pretrained(self, folder: str | Path) -> None:
        tensors = {name: torch.from_numpy(getattr(self, name)) for name in ("offset", "weight", "vectors")}
        save_part(folder, _KIND, {"names": list(self.names)}, tensors, half=True)

    @classmethod
    def from_pretrained(cls, source: str | Path) -> Tags:
        part = load_part(source, _KIND)
        try:
            tensors = {name: part.tensors[name].numpy() for name in ("offset", "weight", "vectors")}
            return cls(names=tuple(part.config["names"]), **tensors)
        except (KeyError, InvalidValue) as error:
            raise InvalidFile(part.folder, f"does not hold tags: {error}") from error


@dataclass(frozen=True, slots=True, eq=False)
class ClassNames:
    """What the encoder's own classifier calls a region.

    weight: (classes, features) and bias: (classes,) of the classifier. vectors: (classes, d) of the names.
    """

    weight: Floats32
    bias: Floats32
    vectors: Floats32

    def __post_init__(self) -> None:
        if not len(self.weight) == len(self.bias) == len(self.vectors):
            sizes = f"{len(self.weight)}, {len(self.bias)} and {len(self.vectors)}"
            raise InvalidValue("class names", f"weights, biases and names differ in number: {sizes}")

    def probabilities(self, features: ArrayLike) -> Floats32:
        """(m, classes) from (m, features) pooled features."""
        scores = np.asarray(features, dtype=np.float32) @ self.weight.T + self.bias
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: Floats32 = scores / scores.sum(axis=1, keepdims=True)
        return shares

    def named(self, features: ArrayLike) -> Floats32:
        """(m, d) the mean name, by probability."""
        mean: Floats32 = self.probabilities(features) @ self.vectors
        return mean
