"""How far a prediction is off: words by cross-entropy, boxes by L1, traces by LBM."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional


def trace_loss(predicted: Tensor, boxes: Tensor, located: Tensor) -> Tensor:
    """Mean absolute difference of the four coordinates over located words; 0 if there is none.

    predicted, boxes: (B, T, 5); located: (B, T), False also after the end.
    """
    off = (predicted[..., :4] - boxes[..., :4]).abs().mean(dim=-1)
    return (off * located).sum() / located.sum().clamp_min(1)


def caption_loss(logits: Tensor, rows: Tensor, real: Tensor) -> Tensor:
    """Mean cross-entropy over the real places. logits: (B, T, V + 1); rows, real: (B, T)."""
    return functional.cross_entropy(logits[real], rows[real])


def lbm_loss(
    predicted: Tensor, boxes: Tensor, located: Tensor, k: int = 1, entropy: float = 0.02, iterations: int = 50
) -> Tensor:
    """The mean LBM distance of predicted traces, made smooth by `entropy`, over narratives with a located word.

    predicted, boxes: (B, T, 5); located: (B, T). Unlocated words are left out on both sides, so two traces have the
    same length n, and box i may be matched with boxes i − k … i + k. Among all ways to share each box out over those,
    the one that minimises cost − entropy · H(shares) is found by Sinkhorn iterations within the band, and its cost is
    returned: LBM itself as the entropy goes to 0. By the envelope theorem, the gradient of that minimum with respect
    to the costs is the shares themselves, so nothing is differentiated through the iterations.
    """
    order = located.sort(dim=1, descending=True, stable=True).indices
    count = located.sum(dim=1)
    costs, allowed = _band_costs(_ordered(predicted[..., :4], order), _ordered(boxes[..., :4], order), count, k)
    with torch.no_grad():
        shares = _band_shares(costs, allowed, entropy, iterations)
    each = (shares * costs).sum(dim=(1, 2)) / count.clamp_min(1)
    return each.sum() / (count > 0).sum().clamp_min(1)


def _ordered(boxes: Tensor, order: Tensor) -> Tensor:
    return boxes.gather(1, order[:, :, None].expand_as(boxes))


def _band_costs(rows: Tensor, columns: Tensor, count: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Costs of matching row i with column i + o, o = −k … k, and which matches there are; both (B, T, 2k + 1)."""
    place = torch.arange(rows.shape[1], device=rows.device)
    other = place[:, None] + torch.arange(-k, k + 1, device=rows.device)
    near = functional.pad(columns, (0, 0, k, k)).unfold(1, 2 * k + 1, 1).transpose(2, 3)
    inside = (place[:, None] < count[:, None, None]) & (other >= 0) & (other < count[:, None, None])
    return (rows[:, :, None] - near).abs().mean(dim=-1) * inside, inside


def _band_shares(costs: Tensor, allowed: Tensor, entropy: float, iterations: int) -> Tensor:
    """The matrix, in band form (B, T, 2k + 1), whose rows and columns sum to 1 and that trades cost for entropy."""
    by_row = (-costs / entropy).masked_fill(~allowed, -math.inf)
    by_column = _transposed(by_row)
    rows = columns = torch.zeros(costs.shape[:2], device=costs.device, dtype=costs.dtype)
    for _ in range(iterations):
        rows = _balanced(by_row, columns)
        columns = _balanced(by_column, rows)
    return (by_row + rows[:, :, None] + _neighbours(columns, costs.shape[2])).exp()


def _balanced(scores: Tensor, others: Tensor) -> Tensor:
    """What to add to each row's scores so that it sums to 1, given what is added to its neighbours' columns."""
    total = torch.logsumexp(scores + _neighbours(others, scores.shape[2]), dim=2)
    # Rows after the end have no match, and no say.
    return torch.where(total == -math.inf, 0.0, -total)


def _neighbours(values: Tensor, width: int) -> Tensor:
    """(B, T) to (B, T, width): entry [i, o] is the value at i + o − width // 2, zero outside."""
    return functional.pad(values, (width // 2, width // 2)).unfold(1, width, 1)


def _transposed(band: Tensor) -> Tensor:
    """Band form of the transposed matrix: entry [j, p] is the old [j + p, −p], counted from the middle."""
    width, length = band.shape[2], band.shape[1]
    wide = functional.pad(band, (0, 0, width // 2, width // 2), value=-math.inf)
    return torch.stack([wide[:, p : p + length, width - 1 - p] for p in range(width)], dim=2)
