"""Importance by occlusion: how far the score falls when one region is taken away. Slow, and true by definition.

Shapes: b items, r regions or patches, f numbers in a feature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.explain.gradients import check_regions, check_scores, chunk_size
from saywhere.explain.scores import Score

How = Literal["blank", "remove"]
_HOW = ("blank", "remove")

Rows = tuple[Tensor, Tensor, Tensor]
"""Features (n, r, f), present (n, r) and items (n,), as a `Score` takes them."""


def occlusion(score: Score, features: Tensor, present: Tensor, *, how: How = "blank", chunk: int = 512) -> Tensor:
    """(b, r) the score with all regions minus the score without this one; 0 where no region is present.

    how: "blank", the feature becomes zeros but the region still counts as present (as in the HINT paper); "remove", it
    does not count either: then an item's only region gets NaN, because nothing is left to score.
    chunk: at most so many versions of images are scored, and held, at once.
    """
    check_regions(features, present)
    if how not in _HOW:
        raise UnknownName("way to occlude", how, _HOW)
    whole = score_rows(score, len(features), chunk, lambda rows: (features[rows], present[rows], rows))
    items, regions = present.nonzero(as_tuple=True)
    if how == "remove":
        several = present.sum(dim=1)[items] > 1
        items, regions = items[several], regions[several]

    def occluded(rows: Tensor) -> Rows:
        of, region, place = items[rows], regions[rows], torch.arange(len(rows), device=rows.device)
        seen, here = features[of], present[of]
        seen[place, region] = 0.0
        if how == "remove":
            here[place, region] = False
        return seen, here, of

    left = score_rows(score, len(items), chunk, occluded)
    falls = whole.new_full(present.shape, torch.nan).masked_fill(~present, 0.0)
    falls[items, regions] = whole[items] - left
    return falls


@torch.no_grad()
def score_rows(score: Score, count: int, chunk: int, made: Callable[[Tensor], Rows]) -> Tensor:
    """(count,) scores of versions of images that are made when they are needed: `made` gives those of (n,) numbers."""
    parts = []
    for rows in torch.split(torch.arange(count), chunk_size(chunk, count)):
        features, present, items = made(rows)
        parts.append(check_scores(score(features, present, items), len(rows)))
    return torch.cat(parts)


def without_top(features: Tensor, importance: Tensor, present: Tensor, counts: Tensor) -> Tensor:
    """(b, r, f) features with the `counts` (b,) most important regions of each item blank; ties go by place."""
    return features.masked_fill((places(importance, present) < counts[:, None])[:, :, None], 0.0)


def places(importance: Tensor, present: Tensor) -> Tensor:
    """(b, r) the place of each region by falling importance, from 0; regions that are not present come last."""
    if importance.shape != present.shape:
        reason = f"has shape {tuple(importance.shape)} for regions of shape {tuple(present.shape)}"
        raise InvalidValue("importance", reason)
    if bool((importance.isnan() & present).any()):
        raise InvalidValue("importance", "holds NaN for a region that is present: it has no place")
    order = importance.masked_fill(~present, -torch.inf).argsort(dim=1, descending=True, stable=True)
    return order.argsort(dim=1)
