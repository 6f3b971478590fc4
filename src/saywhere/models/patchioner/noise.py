"""Noise on text vectors while a decoder learns, so that it later understands image vectors, which lie beside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import normalize

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.models.folder import load_part, save_part

Sigma = float | tuple[float, float]

_KIND = "gap-noise"


def add_noise(vectors: Tensor, sigma: Sigma, generator: torch.Generator) -> Tensor:
    """Rows brought to length 1, Gaussian noise added to each number, rows brought to length 1 again.

    vectors: (n, d). sigma: the noise's standard deviation (CapDec's variance 0.016 is sigma 0.126), or from where to
    where to draw it, evenly and for each row anew.
    """
    low, high = sigma if isinstance(sigma, tuple) else (sigma, sigma)
    if not 0 <= low <= high < float("inf"):
        raise InvalidValue("sigma", f"is {sigma}, not a standard deviation or two in their order")
    place = {"generator": generator, "device": vectors.device, "dtype": vectors.dtype}
    # Drawn even where low = high, so that what follows from the same generator does not depend on it.
    spread = low + (high - low) * torch.rand(len(vectors), 1, **place)  # type: ignore[call-overload]
    noise = torch.randn(vectors.shape, **place)  # type: ignore[call-overload]
    return normalize(normalize(vectors, dim=-1) + spread * noise, dim=-1)


@dataclass(frozen=True, slots=True, eq=False)
class GapNoise:
    """The way from texts to their images as a Gaussian: a mean, a few strong directions, and the rest on its own.

    mean: (d,). factors: (rank, d), each as long as its standard deviation. rest: (d,) standard deviations of what the
    factors leave. All float32. Every coordinate has the variance that it had in the residuals.
    """

    mean: Tensor
    factors: Tensor
    rest: Tensor

    @classmethod
    def fit(cls, residuals: ArrayLike, rank: int = 32) -> GapNoise:
        """residuals: (n, d) image minus text, both of length 1, of pairs that belong together."""
        rows = np.asarray(residuals, dtype=np.float64)
        if rows.ndim != 2 or len(rows) < 2 or not rows.shape[1]:
            raise InvalidValue("residuals", f"have shape {rows.shape}, not (n, d) with n at least 2")
        if not np.isfinite(rows).all():
            raise InvalidValue("residuals", "hold NaN or infinity")
        if rank < 0:
            raise InvalidValue("rank", f"is {rank}, not at least 0")
        mean = rows.mean(axis=0)
        covariance = np.cov(rows, rowvar=False).reshape(rows.shape[1], rows.shape[1])
        variances, directions = np.linalg.eigh(covariance)
        strongest = np.argsort(variances)[::-1][: min(rank, len(rows) - 1)]
        factors = (directions[:, strongest] * np.sqrt(variances[strongest].clip(min=0))).T
        rest = np.sqrt((np.diag(covariance) - (factors**2).sum(axis=0)).clip(min=0))
        return cls(*(torch.from_numpy(array.astype(np.float32)) for array in (mean, factors, rest)))

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """(n, d) residuals such as were seen."""
        strengths = torch.randn(n, len(self.factors), generator=generator)
        alone = torch.randn(n, len(self.rest), generator=generator)
        return self.mean + strengths @ self.factors + alone * self.rest

    def add(self, vectors: Tensor, generator: torch.Generator) -> Tensor:
        """(n, d) text vectors, brought to length 1, moved to where their images may lie, of length 1 again."""
        if vectors.shape[-1] != len(self.mean):
            raise InvalidValue("vectors", f"have {vectors.shape[-1]} numbers each, and the noise {len(self.mean)}")
        noise = self.sample(len(vectors), generator).to(vectors)
        return normalize(normalize(vectors, dim=-1) + noise, dim=-1)

    def save(self, folder: str | Path) -> None:
        """Write it into a folder: model.safetensors and config.json."""
        tensors = {"mean": self.mean, "factors": self.factors, "rest": self.rest}
        save_part(folder, _KIND, {"size": len(self.mean), "rank": len(self.factors)}, tensors)

    @classmethod
    def load(cls, folder: str | Path) -> GapNoise:
        part = load_part(folder, _KIND)
        shapes = {name: tuple(tensor.shape) for name, tensor in part.tensors.items()}
        size, rank = part.config.get("size"), part.config.get("rank")
        if shapes != {"mean": (size,), "factors": (rank, size), "rest": (size,)}:
            raise InvalidFile(part.folder, f"does not hold the noise that its config describes: {shapes}")
        return cls(**part.tensors)
