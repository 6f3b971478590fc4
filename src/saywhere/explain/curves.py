"""Deletion and insertion curves: how the score changes as regions go, or come, in the order of their importance.

A good explanation's deletion curve falls early and its insertion curve rises early.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from saywhere.core.errors import InvalidValue
from saywhere.explain.gradients import check_regions
from saywhere.explain.occlusion import Rows, places, score_rows
from saywhere.explain.scores import Score


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """shares: (k,) from 0 to 1, how many of an item's regions are gone, or there. scores: (b, k)."""

    shares: Tensor
    scores: Tensor

    @property
    def area(self) -> Tensor:
        """(b,) the area under each item's curve: its mean score along the way."""
        return torch.trapezoid(self.scores, self.shares, dim=1)


def deletion(
    score: Score, features: Tensor, present: Tensor, importance: Tensor, *, steps: int | None = None, chunk: int = 512
) -> Curve:
    """Blank the most important regions first: from the score of all regions to that of blank ones alone.

    features: (b, r, f). present: (b, r). importance: (b, r); ties go by place. steps: the curve has so many + 1 points,
    evenly spaced; None: as many as the most regions of an item. Of n regions, a share s is s · n rounded half up.
    chunk: at most so many versions of images are scored, and held, at once.
    """
    return _curve(score, features, present, importance, steps, chunk, inserts=False)


def insertion(
    score: Score, features: Tensor, present: Tensor, importance: Tensor, *, steps: int | None = None, chunk: int = 512
) -> Curve:
    """Begin with blank regions and show the most important first; arguments as for `deletion`."""
    return _curve(score, features, present, importance, steps, chunk, inserts=True)


def _curve(
    score: Score,
    features: Tensor,
    present: Tensor,
    importance: Tensor,
    steps: int | None,
    chunk: int,
    *,
    inserts: bool,
) -> Curve:
    check_regions(features, present)
    counts = present.sum(dim=1)
    steps = max(1, int(counts.max())) if steps is None else steps
    if steps < 1:
        raise InvalidValue("steps", f"is {steps}, not at least 1")
    place = places(importance, present)
    # Whole numbers until here, so that no share of no count is rounded the wrong way.
    taken = (2 * torch.arange(steps + 1, device=counts.device) * counts[:, None] + steps) // (2 * steps)

    def version(rows: Tensor) -> Rows:
        of, step = rows // (steps + 1), rows % (steps + 1)
        first = place[of] < taken[of, step][:, None]
        blank = ~first if inserts else first
        return features[of].masked_fill(blank[:, :, None], 0.0), present[of], of

    scores = score_rows(score, len(features) * (steps + 1), chunk, version).view(len(features), steps + 1)
    return Curve(torch.linspace(0, 1, steps + 1, dtype=scores.dtype, device=scores.device), scores)
