"""CLIP-S and PAC-S: how near a caption is to its photo in the space that a CLIP has for both, and to references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Floats

PREFIX = "A photo depicts "
"""What both put before every text."""
CLIP_WEIGHT, PAC_WEIGHT = 2.5, 2.0
"""What cosines are multiplied by: CLIP-S (Hessel et al., 2021) and PAC-S (Sarto et al., 2023), whose CLIP is tuned."""


@dataclass(frozen=True, slots=True)
class PhotoCaptionScores:
    """by_photo: (n,) CLIP-S or PAC-S. with_references: (n,) RefCLIP-S or RefPAC-S; None without references."""

    by_photo: Floats
    with_references: Floats | None = None


def photo_caption_scores(
    photos: ArrayLike,
    said: ArrayLike,
    references: Sequence[ArrayLike] | None = None,
    weight: float = CLIP_WEIGHT,
) -> PhotoCaptionScores:
    """photos, said: (n, d) vectors of photos and of the captions said of them. references: of each photo, (m, d) those
    of its references. Vectors may have any length but 0.

    By the photo: weight · max(cosine, 0). With references: the harmonic mean of that and of the largest cosine to a
    reference.

    >>> found = photo_caption_scores([[1, 0]], [[2, 0]], [[[1, 0], [0, 1]]])
    >>> found.by_photo.tolist(), [round(score, 3) for score in found.with_references.tolist()]
    ([2.5], [1.429])
    """
    seen, told = _unit(photos, "photos"), _unit(said, "captions")
    if seen.shape != told.shape:
        raise InvalidValue("captions", f"have shape {told.shape}, but photos {seen.shape}")
    by_photo: Floats = weight * np.maximum((seen * told).sum(axis=1), 0)
    if references is None:
        return PhotoCaptionScores(by_photo)
    if len(references) != len(told):
        raise InvalidValue("references", f"are of {len(references)} photos, not of {len(told)}")
    nearest = np.array(
        [float((_unit(some, "references") @ one).max()) for some, one in zip(references, told, strict=True)]
    ).reshape(len(told))
    nearest = np.maximum(nearest, 0)
    total = by_photo + nearest
    both = np.divide(2 * by_photo * nearest, total, out=np.zeros_like(total), where=total > 0)
    return PhotoCaptionScores(by_photo, both)


def _unit(vectors: ArrayLike, what: str) -> Floats:
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2 or not len(rows):
        raise InvalidValue(what, f"have shape {rows.shape}, not one or more vectors")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise InvalidValue(what, "hold a vector of length 0, NaN or infinity")
    return np.asarray(rows / lengths)
