"""Names that others give to what is in a region, and what they add to its vector.

A detector names the things it found, an encoder's own classifier names the region as a whole. Both know words that the
alignment has hardly seen, so their names, as text vectors, are added to what the alignment says.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike

from saywhere.core import InvalidFile, InvalidValue
from saywhere.core.types import Floats32
from saywhere.models.common.overlaps import Overlaps
from saywhere.models.folder import load_part, save_part

_KIND = "patchioner-tags"
# How much a thing that fills little of a region counts there: share of the region it covers, to this power.
_REACH = 0.3
_COUNTED = 0.2
"""Things found with less certainty than this are not counted one by one."""
_FIT = 0.7
_TOUCH = 0.1
"""A line drawn over a thing means all of it, so how little of the thing it covers matters hardly."""


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


def claims(lying: Overlaps, names: int) -> Floats32:
    """(m, names) how much each kind claims a region: the largest square of score × fit over the things found; fit is
    high where thing and region cover each other."""
    thing_power = np.where(lying.areal, _FIT, _TOUCH)[:, None]
    fit = lying.of_region**_FIT * lying.of_thing**thing_power
    claimed = np.zeros((len(fit), names), dtype=np.float32)
    for number, kind in enumerate(lying.kinds):
        claimed[:, kind] = np.maximum(claimed[:, kind], (lying.scores[number] * fit[:, number]) ** 2)
    return claimed


def shared(claimed: Floats32, doubt: Floats32 | float) -> Floats32:
    """(m, names) how much of a region's name each kind has: at least 0, together less than 1.

    doubt: how much is left for no name, of all or (m, 1), on the scale of claims: a claim of this size gets half.
    """
    shares: Floats32 = claimed / (claimed.sum(axis=1, keepdims=True) + doubt)
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

    def named(self, claimed: Floats32, doubt: Floats32 | float) -> Floats32:
        """(m, d) each region's name, as long as it is certain, from (m, names) claims."""
        added: Floats32 = shared(claimed, doubt) @ self.vectors
        return added

    def save_pretrained(self, folder: str | Path) -> None:
        tensors = {name: torch.from_numpy(getattr(self, name)) for name in ("offset", "weight", "vectors")}
        save_part(folder, _KIND, {"names": list(self.names)}, tensors, half=True)

    @classmethod
    def from_pretrained(cls, source: str | Path) -> Tags:
        part = load_part(source, _KIND)
        try:
            tensors = {name: part.tensors[name].numpy() for name in ("offset", "weight", "vectors")}
            names = part.config["names"]
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise InvalidValue("names", "are not a list of texts")
            return cls(names=tuple(names), **tensors)
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
