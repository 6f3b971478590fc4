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

from saywhere.core import Frame, InvalidFile, InvalidValue
from saywhere.models.patchioner.folder import load_part, save_part
from saywhere.vision import Found

Floats = NDArray[np.float32]
_KIND = "patchioner-tags"
# How much a thing that fills little of a region counts there: share of the region it covers, to this power.
_REACH = 0.3
_FAINTEST = 0.02
"""Things found with less certainty than this are not counted."""


def tag_scores(found: Sequence[Found], names: Sequence[str], weights: Floats, frame: Frame) -> Floats:
    """(m, names) how much of each kind of thing is in each region, from 0 to 1.

    weights: (m, rows, cols) of the regions. For each kind the largest, over the things found, of: score × the share
    of the thing that lies in the region × (the share of the region that the thing covers) to the power of 0.3.
    """
    scores = np.zeros((len(weights), len(names)), dtype=np.float32)
    place = {name: number for number, name in enumerate(names)}
    counted = [one for one in found if one.score >= _FAINTEST and one.name in place]
    if not counted or not len(weights):
        return scores
    covered = np.stack([frame.coverage(one.box_xyxy).ravel() for one in counted])
    regions = weights.reshape(len(weights), -1)
    inside = regions / regions.max(axis=1, keepdims=True)
    region_share = regions / regions.sum(axis=1, keepdims=True) @ covered.T
    for number, (one, cells) in enumerate(zip(counted, covered, strict=True)):
        # A thing that lies wholly in padding covers no cell.
        thing_share = np.minimum(cells, inside).sum(axis=1) / max(cells.sum(), 1e-9)
        strength = one.score * thing_share * region_share[:, number] ** _REACH
        column = scores[:, place[one.name]]
        np.maximum(column, strength, out=column, casting="same_kind")
    return scores


@dataclass(frozen=True, slots=True, eq=False)
class Tags:
    """How the detector's names enter a region's vector.

    names: the n kinds. offset: (d,) and weight: (n, d), learnt along with the alignment, which it is added to.
    vectors: (n, d) of the names, of length 1.
    """

    names: tuple[str, ...]
    offset: Floats
    weight: Floats
    vectors: Floats

    def __post_init__(self) -> None:
        shape = (len(self.names), self.vectors.shape[-1])
        if self.weight.shape != shape or self.vectors.shape != shape or self.offset.shape != shape[1:]:
            raise InvalidValue("tags", f"{len(self.names)} names do not fit the vectors {self.vectors.shape}")

    def learnt(self, scores: Floats) -> Floats:
        """(m, d) what (m, n) scores add to the aligned features."""
        added: Floats = scores @ self.weight + self.offset
        return added

    def named(self, scores: Floats) -> Floats:
        """(m, d) the names themselves, as strong as their scores."""
        added: Floats = scores @ self.vectors
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

    weight: Floats
    bias: Floats
    vectors: Floats

    def __post_init__(self) -> None:
        if not len(self.weight) == len(self.bias) == len(self.vectors):
            sizes = f"{len(self.weight)}, {len(self.bias)} and {len(self.vectors)}"
            raise InvalidValue("class names", f"weights, biases and names differ in number: {sizes}")

    def probabilities(self, features: ArrayLike) -> Floats:
        """(m, classes) from (m, features) pooled features."""
        scores = np.asarray(features, dtype=np.float32) @ self.weight.T + self.bias
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: Floats = scores / scores.sum(axis=1, keepdims=True)
        return shares

    def named(self, features: ArrayLike) -> Floats:
        """(m, d) the mean name, by probability."""
        mean: Floats = self.probabilities(features) @ self.vectors
        return mean
