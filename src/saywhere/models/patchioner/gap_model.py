"""The gap itself, learnt: which vector a photo would have whose caption has this one.

A photo's vector is a blurred caption's: some directions come through, others hardly, and all with noise. The model is
v = (t − text mean) @ map + image mean + noise, fitted to photos and captions that belong together. With it a decoder
learns from text alone, on vectors that look like those of photos. Beside isotropic noise this keeps what photos keep.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import normalize

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.models.folder import load_part, save_part

_KIND = "patchioner-gap-model"
# Against directions in which captions hardly differ: this share of the mean variance is added to each.
_SHRINKAGE = 0.02
_ROUNDNESS = 0.05
"""So much of the noise is the same in all directions; the rest is as it was seen."""


@dataclass(frozen=True, slots=True, eq=False)
class GapModel:
    """text_mean, image_mean: (d,). map: (d, d). noise: (d, d), lower triangular; noise @ noise.T is its covariance."""

    text_mean: Tensor
    image_mean: Tensor
    map: Tensor
    noise: Tensor

    @classmethod
    def fit(cls, texts: ArrayLike, images: ArrayLike) -> GapModel:
        """texts, images: (n, d) rows of length 1; row i of both belong together.

        images must come from an alignment that has not seen them (see `ridge.out_of_fold`): the gap would be too
        small otherwise.
        """
        said, seen = np.asarray(texts, dtype=np.float64), np.asarray(images, dtype=np.float64)
        if said.ndim != 2 or said.shape != seen.shape or len(said) < 2:
            raise InvalidValue("texts, images", f"have shapes {said.shape} and {seen.shape}, not twice (n ≥ 2, d)")
        size = said.shape[1]
        text_mean, image_mean = said.mean(axis=0), seen.mean(axis=0)
        away, shown = said - text_mean, seen - image_mean
        spread = away.T @ away / len(said)
        if not spread.any():
            raise InvalidValue("texts", f"all {len(said)} are the same, so how photos differ from them cannot be told")
        spread += _SHRINKAGE * np.trace(spread) / size * np.eye(size)
        to_image = np.linalg.solve(spread, away.T @ shown / len(said))
        left = shown - away @ to_image
        covariance = left.T @ left / len(said)
        round_part = np.trace(covariance) / size * np.eye(size)
        covariance = (1 - _ROUNDNESS) * covariance + _ROUNDNESS * round_part + 1e-12 * np.eye(size)
        parts = (text_mean, image_mean, to_image, np.linalg.cholesky(covariance))
        return cls(*(torch.from_numpy(part.astype(np.float32)) for part in parts))

    def imagine(self, texts: Tensor, strength: tuple[float, float], generator: torch.Generator) -> Tensor:
        """(n, d) vectors of length 1 that photos of these texts might have.

        texts: (n, d). strength: from where to where the noise's size is drawn, for each row anew; 1 is as seen.
        """
        if texts.shape[-1] != len(self.text_mean):
            raise InvalidValue("texts", f"have {texts.shape[-1]} numbers each, and the gap {len(self.text_mean)}")
        low, high = strength
        where = texts.device
        size = low + (high - low) * torch.rand(len(texts), 1, generator=generator, device=where)
        drawn = torch.randn(texts.shape, generator=generator, device=where) @ self.noise.T.to(where)
        moved = (normalize(texts, dim=-1) - self.text_mean.to(where)) @ self.map.to(where) + self.image_mean.to(where)
        return normalize(moved + size * drawn, dim=-1)

    def save(self, folder: str | Path) -> None:
        """Write it into a folder: model.safetensors and config.json."""
        tensors = {field.name: getattr(self, field.name) for field in fields(self)}
        save_part(folder, _KIND, {"size": len(self.text_mean)}, tensors)

    @classmethod
    def load(cls, folder: str | Path) -> GapModel:
        part = load_part(folder, _KIND)
        size = part.config.get("size")
        wanted = {"text_mean": (size,), "image_mean": (size,), "map": (size, size), "noise": (size, size)}
        shapes = {name: tuple(tensor.shape) for name, tensor in part.tensors.items()}
        if shapes != wanted:
            raise InvalidFile(part.folder, f"does not hold the gap that its config describes: {shapes}")
        return cls(**part.tensors)
