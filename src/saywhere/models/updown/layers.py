"""What both networks are built of: gated tanh layers, attention over regions that are there, boxes beside features.

Everything is smooth and written out, because HINT differentiates twice: a ReLU has no second derivative, and fused
attention kernels have no double backward. No layer normalises a region's feature: a network that does not change when
the same number is added to a whole feature has gradients that sum to 0 over it, and so no importance (HINT's Eq. 2).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from saywhere.core.errors import InvalidValue

BOX_SIZE = 5
"""x1, y1, x2, y2 and area, in fractions of the image."""


class GatedTanh(nn.Module):
    """tanh(W x + b) · σ(W' x + b'), the non-linear layer of Teney et al., 2017."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.value = nn.Linear(size, width)
        self.gate = nn.Linear(size, width)
        # Products of several small layers hardly move at first: with torch's own start, learning takes three times as
        # many steps.
        for layer in (self.value, self.gate):
            nn.init.xavier_uniform_(layer.weight, nn.init.calculate_gain("tanh"))
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor, shift: Tensor | None = None, size: int = 0) -> Tensor:
        """x: (…, n) to (…, width). shift: (…) is added to the first `size` entries of each x; see `shifted`."""
        return shifted(self.value, x, shift, size).tanh() * shifted(self.gate, x, shift, size).sigmoid()


def shifted(layer: nn.Linear, x: Tensor, shift: Tensor | None, size: int) -> Tensor:
    """The layer of x (…, n) with shift (…) added to its first `size` entries.

    The same as adding first, but the derivative by the shift, which is HINT's importance of a region, needs no matrix
    product back to the features: a HINT step costs 1.2 to 1.4 plain ones instead of 2 to 3.
    """
    out: Tensor = layer(x)
    return out if shift is None else out + shift[..., None] * layer.weight[:, :size].sum(dim=1)


def lifted(x: Tensor, shift: Tensor | None, size: int) -> Tensor:
    """x (b, n) with shift (b,) added to its first `size` entries."""
    if shift is None:
        return x
    return x + shift[:, None] * (torch.arange(x.shape[1], device=x.device) < size)


class SmoothLinear(nn.Module):
    """GELU(W x + b): the smooth form of the ReLU layers that the other published UpDn has; half of the work."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.value = nn.Linear(size, width)

    def forward(self, x: Tensor, shift: Tensor | None = None, size: int = 0) -> Tensor:
        """As of `GatedTanh`."""
        return functional.gelu(shifted(self.value, x, shift, size))


LAYERS: dict[str, type[GatedTanh | SmoothLinear]] = {"gated tanh": GatedTanh, "gelu": SmoothLinear}
"""The non-linear layers to choose from, by the name that a config has for them."""


def shares(scores: Tensor, present: Tensor, pointed: Tensor | None = None) -> Tensor:
    """(…, r) attention from scores (…, r): 0 for regions that are not there, the others sum to 1.

    pointed: (…, r) ≥ 0, multiplies before normalising. A row that has no region, or is pointed at none, is all 0.
    """
    if pointed is not None:
        present = present & (pointed > 0)
        # Added as a logarithm: what softmax would round to 0 can still be pointed at.
        scores = scores + pointed.clamp_min(torch.finfo(pointed.dtype).tiny).log()
    # Not −∞: a row without regions would be NaN, and so would its gradient.
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~present, lowest).softmax(dim=-1).masked_fill(~present, 0)


def beside_boxes(regions: Tensor, boxes: Tensor | None, use_boxes: bool) -> Tensor:
    """(b, r, f) or, with boxes (b, r, 4) that the network reads, (b, r, f + 5)."""
    if not use_boxes:
        return regions
    if boxes is None:
        raise InvalidValue("boxes", "are missing: this network was made to read them", "boxes=(b, r, 4) xyxy")
    area = (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    return torch.cat([regions, boxes, area[..., None]], dim=-1)


def check_regions(regions: Tensor, present: Tensor, region_size: int) -> None:
    """Refuse regions that are not (b, r, region_size) with flags (b, r)."""
    if regions.dim() != 3 or regions.shape[2] != region_size:
        raise InvalidValue("regions", f"have shape {tuple(regions.shape)}, but the network reads (b, r, {region_size})")
    if present.shape != regions.shape[:2] or present.dtype != torch.bool:
        found = f"have shape {tuple(present.shape)} and type {present.dtype}"
        raise InvalidValue("flags of present regions", f"{found}, not {tuple(regions.shape[:2])} booleans")
