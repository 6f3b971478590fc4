"""Network importance of regions by gradients of a score: HINT's Eq. 2, gradient × input, Grad-CAM.

Shapes: b items, r regions or patches, f numbers in a feature.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from saywhere.core.errors import InvalidValue
from saywhere.explain.scores import Score


def gradient_importance(
    score: Score, features: Tensor, present: Tensor, *, create_graph: bool = False, chunk: int | None = None
) -> Tensor:
    """(b, r) α of the HINT paper: the sum over the feature of ∂ score / ∂ feature; 0 where no region is present.

    features: (b, r, f). present: (b, r) booleans. create_graph: the result can itself be learnt from. chunk: at most
    so many items are scored at once; None: all. Works where gradients are switched off, too.
    """
    gradients = feature_gradients(score, features, present, create_graph=create_graph, chunk=chunk)
    return gradients.sum(dim=2)


def shift_importance(scores: Tensor, shift: Tensor, present: Tensor, *, create_graph: bool = False) -> Tensor:
    """(b, r) what `gradient_importance` gives, at less cost, for a model that lets its features be shifted.

    scores: (b,), of a pass in which shift (b, r), zeros that require gradients, was added to every number of each
    region's feature: the derivative by it is the sum over the feature. The pass must lie inside `twice_differentiable`,
    and can be used again.
    """
    with torch.enable_grad():
        return _gradient(scores, shift, create_graph, keep=True).masked_fill(~present, 0.0)


def gradient_times_input(
    score: Score, features: Tensor, present: Tensor, *, create_graph: bool = False, chunk: int | None = None
) -> Tensor:
    """(b, r) the sum over the feature of ∂ score / ∂ feature × feature: to first order, what a blank region takes away.

    Arguments as for `gradient_importance`.
    """
    gradients = feature_gradients(score, features, present, create_graph=create_graph, chunk=chunk)
    return (gradients * features).sum(dim=2)


def grad_cam(score: Score, features: Tensor, present: Tensor, *, chunk: int | None = None) -> Tensor:
    """(b, r) Grad-CAM: each number of the feature weighs as its gradient's mean over the regions; positive parts."""
    gradients = feature_gradients(score, features, present, chunk=chunk)
    weights = gradients.sum(dim=1) / present.sum(dim=1, keepdim=True).clamp_min(1)
    cams = torch.einsum("bf,brf->br", weights, features.detach()).relu()
    return cams.masked_fill(~present, 0.0)


def feature_gradients(
    score: Score, features: Tensor, present: Tensor, *, create_graph: bool = False, chunk: int | None = None
) -> Tensor:
    """(b, r, f) ∂ score / ∂ features, 0 where no region is present; arguments as for `gradient_importance`."""
    check_regions(features, present)
    items = torch.arange(len(features), device=features.device)
    size = chunk_size(chunk, len(items))
    # Features that something made are learnt through; others are where the graph begins.
    seen = features if create_graph and features.requires_grad else features.detach()
    parts = []
    with torch.enable_grad(), twice_differentiable():
        for rows, here, of in zip(*(torch.split(all_of, size) for all_of in (seen, present, items)), strict=True):
            rows = rows if rows.requires_grad else rows.requires_grad_()
            parts.append(_gradient(score(rows, here, of), rows, create_graph))
    gradients = torch.cat(parts)
    return gradients.masked_fill(~present[:, :, None], 0.0)


@contextmanager
def twice_differentiable() -> Iterator[None]:
    """A forward pass in here can be differentiated twice, and in eval mode, too.

    Fused attention kernels have no second derivative, and cuDNN's recurrent networks have none and no first one in eval
    mode. Only the forward pass must lie inside: it fixes how gradients are taken.
    """
    with ExitStack() as stack:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        stack.enter_context(torch.backends.cudnn.flags(enabled=False))
        yield


def check_regions(features: Tensor, present: Tensor) -> None:
    """Raise if these are not (b, r, f) numbers and (b, r) booleans."""
    if features.ndim != 3 or not features.is_floating_point():
        raise InvalidValue("features", f"are {features.dtype} of shape {tuple(features.shape)}, not real (b, r, f)")
    if present.shape != features.shape[:2] or present.dtype != torch.bool:
        reason = f"is {present.dtype} of shape {tuple(present.shape)}, not boolean {tuple(features.shape[:2])}"
        raise InvalidValue("present", reason)


def chunk_size(chunk: int | None, rows: int) -> int:
    """How many rows at once: as many as told, or all."""
    if chunk is not None and chunk < 1:
        raise InvalidValue("chunk", f"is {chunk}, not at least 1")
    return max(1, rows) if chunk is None else chunk


def check_scores(scores: Tensor, rows: int) -> Tensor:
    """The scores, which must be (rows,)."""
    if scores.shape != (rows,):
        raise InvalidValue("score", f"gave shape {tuple(scores.shape)} for {rows} rows, not ({rows},)")
    return scores


def _gradient(scores: Tensor, rows: Tensor, create_graph: bool, *, keep: bool = False) -> Tensor:
    """(n, …) the gradient of each score with respect to its row; the sum will do, because rows do not mix."""
    total = check_scores(scores, len(rows)).sum()
    if not total.requires_grad:
        raise InvalidValue("score", "does not depend on the features in a way that gradients can follow")
    (gradient,) = torch.autograd.grad(
        total, rows, create_graph=create_graph, retain_graph=keep or create_graph, allow_unused=True
    )
    if gradient is None:
        raise InvalidValue("score", "does not depend on the features")
    return gradient
