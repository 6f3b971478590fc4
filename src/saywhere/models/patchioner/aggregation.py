"""From patches to regions: v = Σ wᵢ vᵢ, with weights that the region gives, or with a learnt refinement of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional

from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.core.frame import Frame
from saywhere.core.regions import Box, BoxSet, Region, WholeImage
from saywhere.core.trace import Trace
from saywhere.models.folder import built, load_part, save_part

_KIND = "patchioner-aggregation"
_FIRST_ALPHA = 0.1
_CHOICES = {
    "image": ("uniform", "gaussian", "attention", "centre"),
    "box": ("touch", "coverage", "gaussian", "attention"),
    "boxes": ("patch", "box", "gaussian", "attention"),
    "trace": ("mean", "dwell", "gaussian", "attention"),
}


@dataclass(frozen=True, slots=True)
class Aggregation:
    """How the patches of each kind of region are weighed. The defaults are the paper's equations.

    image: "uniform", "gaussian" (exp(−a²−b²), a and b from −1 to 1 across it), "attention" (the encoder's), "centre".
    box: "touch" (every patch it meets), "coverage" (by overlap), "gaussian" or "attention" over the patches it meets.
    boxes: of a box set: "patch" (Eq. 1, each patch once for each box), "box" (each box the same), "gaussian" (as
        "patch", but the patches of each box count as those of a box do), "attention".
    trace: "mean" over its points (Eq. 2), "dwell" by the time spent, "gaussian" (more, the nearer to the middle of the
        rectangle that it spans; the paper leaves it out, as few traces fill one), "attention".
    Other regions (patches, points, masks, polygons) have one way only.

    >>> Aggregation.named("gaussian").trace
    'gaussian'
    """

    image: Literal["uniform", "gaussian", "attention", "centre"] = "uniform"
    box: Literal["touch", "coverage", "gaussian", "attention"] = "touch"
    boxes: Literal["patch", "box", "gaussian", "attention"] = "patch"
    trace: Literal["mean", "dwell", "gaussian", "attention"] = "mean"

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise InvalidValue(f"aggregation {name}", f"is {getattr(self, name)!r}, not one of {', '.join(known)}")

    @classmethod
    def named(cls, name: str) -> Aggregation:
        """All kinds of regions alike: "gaussian" or "attention"; or one kind otherwise than in the paper's equations:
        "coverage" of boxes, "box" for sets of them, "dwell" of traces; "uniform": as the paper's equations have it."""
        if name not in WEIGHTINGS:
            raise UnknownName("weighting", name, WEIGHTINGS)
        return cls(**WEIGHTINGS[name])


WEIGHTINGS: dict[str, dict[str, Any]] = {
    "uniform": {},
    **{name: dict.fromkeys(_CHOICES, name) for name in ("gaussian", "attention")},
    "coverage": {"box": "coverage"},
    "box": {"boxes": "box"},
    "dwell": {"trace": "dwell"},
}
PAPER = Aggregation()


def aggregate(
    patches: ArrayLike,
    regions: Sequence[Region],
    frame: Frame,
    by: Aggregation = PAPER,
    attention: ArrayLike | None = None,
) -> NDArray[np.float32]:
    """(m, d) one vector for each region from (rows, cols, d) patches. attention: (rows, cols), a View's.

    A region that the frame does not see, or an empty trace, is an InvalidValue that names the region.
    """
    seen = np.asarray(patches, dtype=np.float32)
    if seen.ndim != 3 or seen.shape[:2] != frame.grid:
        raise InvalidValue("patches", f"have shape {seen.shape}, not {(*frame.grid, 'd')}")
    weights = region_weights(regions, frame, by, attention).reshape(len(regions), frame.rows * frame.cols)
    return np.asarray(weights.astype(np.float32) @ seen.reshape(-1, seen.shape[2]))


def region_weights(
    regions: Sequence[Region], frame: Frame, by: Aggregation = PAPER, attention: ArrayLike | None = None
) -> NDArray[np.float64]:
    """(m, rows, cols) the weights of the patches for each region, each summing to 1."""
    looked = None if attention is None else np.asarray(attention, dtype=np.float64)
    if looked is not None and looked.shape != frame.grid:
        raise InvalidValue("attention", f"has shape {looked.shape}, not {frame.grid}")
    grids = np.zeros((len(regions), *frame.grid))
    for i, region in enumerate(regions):
        try:
            grids[i] = _weights(region, frame, by, looked)
        except InvalidValue as error:
            where = f"region {i + 1} of {len(regions)}: {error.what}" if len(regions) > 1 else error.what
            raise InvalidValue(where, error.reason, error.hint) from error
    return grids


def _weights(
    region: Region, frame: Frame, by: Aggregation, attention: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    if isinstance(region, WholeImage):
        if by.image == "attention":
            return _attended(region.weights(frame), attention, "whole image")
        return region.weights(frame, by.image)
    if isinstance(region, Box):
        if by.box == "attention":
            return _attended(region.weights(frame), attention, f"box {region.xyxy}")
        if by.box == "gaussian":
            return _bell(region.weights(frame))
        return region.weights(frame, by.box)
    if isinstance(region, BoxSet):
        return _set_weights(region, frame, by, attention)
    if isinstance(region, Trace):
        return _trace_weights(region, frame, by, attention)
    return region.weights(frame)


def _set_weights(
    region: BoxSet, frame: Frame, by: Aggregation, attention: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    if by.boxes == "attention":
        return _attended(region.weights(frame), attention, "box set")
    if by.boxes != "gaussian":
        return region.weights(frame, by.boxes)
    each = [box.weights(frame) for box in region.boxes]
    grids = [np.count_nonzero(touched) * _bell(touched) for touched in each if touched.any()]
    return np.asarray(np.sum(grids, axis=0) / np.sum(grids)) if grids else region.weights(frame)


def _trace_weights(
    region: Trace, frame: Frame, by: Aggregation, attention: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    if by.trace == "dwell":
        return region.weights(frame, "dwell")
    points = region.weights(frame, "points")
    if by.trace == "attention":
        return _attended(points, attention, "trace")
    if by.trace == "mean":
        return points
    central = points * _bell(points)
    return np.asarray(central / central.sum())


def _attended(weights: NDArray[np.float64], attention: NDArray[np.float64] | None, what: str) -> NDArray[np.float64]:
    if attention is None:
        raise InvalidValue(what, "is to be weighed by attention, but the encoder gave none", "weigh it uniformly")
    both = weights * attention
    total = both.sum()
    if not total > 0:
        raise InvalidValue(what, "got none of the encoder's attention", "weigh it uniformly")
    return np.asarray(both / total)


def _bell(touched: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp(−a²−b²) over the rectangle of patches that a box meets, a and b from −1 to 1 across it."""
    places = [np.flatnonzero(touched.any(axis=axis)) for axis in (1, 0)]
    a, b = (np.linspace(-1, 1, len(place)) if len(place) > 1 else np.zeros(1) for place in places)
    grid = np.zeros_like(touched)
    grid[np.ix_(*places)] = np.exp(-(a[:, None] ** 2) - b[None, :] ** 2)
    return np.asarray(grid / grid.sum())


class LearnedAggregation(nn.Module):
    """v = v_mean + α · v_att: the mean, refined by a token that attends over the region's patches. α starts at 0.1.

    A patch's weight counts as so many copies of it, so a trace that crosses a patch twice shows it twice.
    """

    def __init__(self, size: int, heads: int = 4) -> None:
        super().__init__()
        if size < 1 or heads < 1 or size % heads:
            raise InvalidValue("learned aggregation", f"{size} numbers do not divide into {heads} heads")
        self.heads = heads
        self.token = nn.Parameter(torch.randn(size) * 0.02)
        self.norm = nn.LayerNorm(size)
        self.query = nn.Linear(size, size)
        self.key_value = nn.Linear(size, 2 * size)
        self.out = nn.Linear(size, size)
        self.alpha = nn.Parameter(torch.tensor(_FIRST_ALPHA))

    @property
    def size(self) -> int:
        return len(self.token)

    def forward(self, patches: Tensor, weights: Tensor) -> Tensor:
        """(m, d) from (n, d) patches of one photo and (m, n) weights, each row summing to 1."""
        refined: Tensor = weights @ patches + self.alpha * self.attended(patches, weights)
        return refined

    def attended(self, patches: Tensor, weights: Tensor) -> Tensor:
        """(m, d) what the token gathers from each region. Keys and values are made once for all regions."""
        n, size = patches.shape
        query = self.query(self.norm(self.token)).view(self.heads, 1, -1)
        keys, values = self.key_value(self.norm(patches)).view(n, 2, self.heads, -1).permute(1, 2, 0, 3)
        # exp(score + log w) = w · exp(score); a patch outside the region has weight 0 and so −∞.
        shape = (len(weights), self.heads, n)
        spread = functional.scaled_dot_product_attention(
            query.expand(len(weights), -1, -1, -1),
            keys.expand(*shape, -1),
            values.expand(*shape, -1),
            attn_mask=weights.log()[:, None, None],
        )
        gathered: Tensor = self.out(spread.reshape(len(weights), size))
        return gathered

    def aggregate(
        self,
        patches: ArrayLike,
        regions: Sequence[Region],
        frame: Frame,
        by: Aggregation = PAPER,
        attention: ArrayLike | None = None,
    ) -> NDArray[np.float32]:
        """As the function `aggregate`, refined."""
        seen = np.array(patches, dtype=np.float32)
        if seen.shape != (*frame.grid, self.size):
            raise InvalidValue("patches", f"have shape {seen.shape}, not {(*frame.grid, self.size)}")
        weights = (
            region_weights(regions, frame, by, attention)
            .reshape(len(regions), frame.rows * frame.cols)
            .astype(np.float32)
        )
        device = self.alpha.device
        with torch.no_grad():
            found = self(torch.from_numpy(seen.reshape(-1, self.size)).to(device), torch.from_numpy(weights).to(device))
        return np.asarray(found.cpu().numpy())

    def save_pretrained(self, folder: str | Path, *, half: bool = False) -> None:
        """Weights and shape into a folder. half: store float16, which loads as float32."""
        save_part(folder, _KIND, {"size": self.size, "heads": self.heads}, self.state_dict(), half=half)

    @classmethod
    def from_pretrained(cls, source: str | Path, revision: str | None = None) -> LearnedAggregation:
        """From a folder, or from the hub ("owner/name"), at rest."""
        part = load_part(source, _KIND, revision)
        try:
            return built(lambda: cls(**part.config), part).eval()
        except (InvalidValue, TypeError) as error:
            raise InvalidFile(part.folder, f"does not describe an aggregation: {error}") from error
