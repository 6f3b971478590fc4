"""Alignment: bringing what an encoder saw and what a text encoder read into one space.

LinearAlignment      features, standardised, through one linear layer into the frozen text space.
SharedSpace          both as they are.
Talk2DinoAlignment   texts, through Linear, tanh, Linear, into the space of the features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Floats32
from saywhere.models.folder import built, load_part, save_part
from saywhere.models.patchioner.layers import as_vectors, unit

_LINEAR, _TALK2DINO = "patchioner-linear-alignment", "patchioner-talk2dino-alignment"
_FIRST_TEMPERATURE, _LOWEST_TEMPERATURE = 0.07, 0.01


class Alignment(Protocol):
    """Two ways into one space of `size` numbers. A mean of features goes where the mean of where they go is."""

    @property
    def size(self) -> int: ...

    def patches(self, features: ArrayLike) -> Floats32:
        """(…, d_image) features, of patches or photos, as (…, size). Not of length 1: means come first."""
        ...

    def texts(self, vectors: ArrayLike) -> Floats32:
        """(n, d_text) vectors of a text encoder as (n, size), of length 1."""
        ...


class _Temperature(nn.Module):
    """1 / temperature of the contrast, learnt as its logarithm and kept from growing beyond 1 / 0.01."""

    def __init__(self) -> None:
        super().__init__()
        self.log = nn.Parameter(torch.tensor(-math.log(_FIRST_TEMPERATURE)))

    def forward(self) -> Tensor:
        return self.log.clamp(max=-math.log(_LOWEST_TEMPERATURE)).exp()


class LinearAlignment(nn.Module):
    """v = W · (x − mean) / scale + b.

    mean, scale: (d_image,) of every dimension over the training photos. size: d of the text space.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, mean: ArrayLike, scale: ArrayLike, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        middle, spread = (np.array(values, dtype=np.float32) for values in (mean, scale))
        if middle.ndim != 1 or middle.shape != spread.shape or not (spread > 0).all():
            raise InvalidValue("mean, scale", f"have shapes {middle.shape}, {spread.shape}, or a scale that is not > 0")
        self.register_buffer("mean", torch.from_numpy(middle))
        self.register_buffer("scale", torch.from_numpy(spread))
        self.drop = nn.Dropout(dropout)
        self.linear = nn.Linear(len(middle), size)
        self.sharpness = _Temperature()

    @property
    def size(self) -> int:
        return self.linear.out_features

    def forward(self, features: Tensor) -> Tensor:
        """(…, d_image) to (…, size)."""
        aligned: Tensor = self.linear(self.drop((features - self.mean) / self.scale))
        return aligned

    def similarities(self, features: Tensor, vectors: Tensor) -> Tensor:
        """(photos, texts) cosines. features: (photos, d) or (photos, k, d), of which the mean is taken."""
        pooled = features if features.ndim == 2 else features.mean(dim=1)
        return unit(self(pooled)) @ unit(vectors).T

    def patches(self, features: ArrayLike) -> Floats32:
        seen = np.asarray(features, dtype=np.float32)
        rows = as_vectors(seen.reshape(-1, seen.shape[-1] if seen.ndim else 0), "features", len(self.mean))
        with torch.no_grad():
            # Without dropout, whatever the module is doing.
            aligned = self.linear((rows.to(self.mean.device) - self.mean) / self.scale)
        return np.asarray(aligned.cpu().numpy().reshape(*seen.shape[:-1], self.size))

    def texts(self, vectors: ArrayLike) -> Floats32:
        return np.asarray(unit(as_vectors(vectors, "text vectors", self.size)).numpy())

    def save_pretrained(self, folder: str | Path, *, half: bool = False) -> None:
        """Weights and shape into a folder. half: store float16, which loads as float32."""
        config = {"image_size": len(self.mean), "size": self.size}
        save_part(folder, _LINEAR, config, self.state_dict(), half=half)

    @classmethod
    def from_pretrained(cls, source: str | Path, revision: str | None = None) -> LinearAlignment:
        """From a folder, or from the hub ("owner/name"), at rest."""
        part = load_part(source, _LINEAR, revision)
        image_size, size = _sizes(part.folder, part.config, ("image_size", "size"))
        return built(lambda: cls(np.zeros(image_size), np.ones(image_size), size), part).eval()


@dataclass(frozen=True, slots=True)
class SharedSpace:
    """No alignment is needed: patches and texts are vectors of one space already, as DINOv2's and Talk2DINO's are."""

    size: int

    def patches(self, features: ArrayLike) -> Floats32:
        seen = np.array(features, dtype=np.float32)
        if not seen.ndim or seen.shape[-1] != self.size:
            raise InvalidValue("features", f"have shape {seen.shape}, not (…, {self.size})")
        return seen

    def texts(self, vectors: ArrayLike) -> Floats32:
        return np.asarray(unit(as_vectors(vectors, "text vectors", self.size)).numpy())


class Talk2DinoAlignment(nn.Module):
    """t' = B · tanh(A · t + a) + b, so that features need no change.

    pool: the photo's vector for a text is the mean of its features, or the one most similar to the text ("max").
    """

    def __init__(self, text_size: int, size: int, pool: str = "max") -> None:
        super().__init__()
        if pool not in ("max", "mean"):
            raise InvalidValue("pool", f"is {pool!r}, not 'max' or 'mean'")
        self.pool = pool
        self.first = nn.Linear(text_size, size)
        self.second = nn.Linear(size, size)
        self.sharpness = _Temperature()

    @property
    def size(self) -> int:
        return self.second.out_features

    def forward(self, vectors: Tensor) -> Tensor:
        """(…, d_text) to (…, size)."""
        aligned: Tensor = self.second(self.first(vectors).tanh())
        return aligned

    def similarities(self, features: Tensor, vectors: Tensor) -> Tensor:
        """(photos, texts) cosines. features: (photos, d) or (photos, k, d)."""
        said = unit(self(vectors))
        if features.ndim == 2 or self.pool == "mean":
            return unit(features if features.ndim == 2 else features.mean(dim=1)) @ said.T
        return (unit(features) @ said.T).amax(dim=1)

    def patches(self, features: ArrayLike) -> Floats32:
        seen = np.array(features, dtype=np.float32)
        if not seen.ndim or seen.shape[-1] != self.size:
            raise InvalidValue("features", f"have shape {seen.shape}, not (…, {self.size})")
        return seen

    def texts(self, vectors: ArrayLike) -> Floats32:
        rows = as_vectors(vectors, "text vectors", self.first.in_features)
        with torch.no_grad():
            return np.asarray(unit(self(rows.to(self.first.weight.device))).cpu().numpy())

    def save_pretrained(self, folder: str | Path, *, half: bool = False) -> None:
        """Weights and shape into a folder. half: store float16, which loads as float32."""
        config = {"text_size": self.first.in_features, "size": self.size, "pool": self.pool}
        save_part(folder, _TALK2DINO, config, self.state_dict(), half=half)

    @classmethod
    def from_pretrained(cls, source: str | Path, revision: str | None = None) -> Talk2DinoAlignment:
        """From a folder, or from the hub ("owner/name"), at rest."""
        part = load_part(source, _TALK2DINO, revision)
        text_size, size = _sizes(part.folder, part.config, ("text_size", "size"))
        try:
            return built(lambda: cls(text_size, size, part.config.get("pool", "")), part).eval()
        except InvalidValue as error:
            raise InvalidFile(part.folder, str(error)) from error


def contrast(cosines: Tensor, owners: Tensor, sharpness: Tensor) -> Tensor:
    """The symmetric InfoNCE loss of (photos, texts) cosines. owners: (texts,) the photo of each text.

    text → photo: each text picks its photo among all. photo → text: each text must win against the texts of other
    photos; a photo's own other texts are no rivals. Both are means over texts.
    """
    scores = cosines * sharpness
    own = owners[None, :] == torch.arange(len(cosines), device=cosines.device)[:, None]
    right = scores[owners, torch.arange(len(owners), device=cosines.device)]
    to_photo = scores.logsumexp(dim=0) - right
    rivals = scores.masked_fill(own, -torch.inf).logsumexp(dim=1)[owners]
    to_text = torch.logaddexp(rivals, right) - right
    return (to_photo.mean() + to_text.mean()) / 2


def _sizes(folder: Path, config: dict[str, object], names: tuple[str, str]) -> tuple[int, int]:
    values = [config.get(name) for name in names]
    if not all(isinstance(value, int) and not isinstance(value, bool) and value > 0 for value in values):
        raise InvalidFile(folder, f"does not give {' and '.join(names)} as positive whole numbers")
    first, second = values
    return int(first), int(second)  # type: ignore[call-overload]  # checked above
