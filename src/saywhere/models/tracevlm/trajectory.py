"""Trajectories as the model takes them: points with times and frames, simplified, embedded, and as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor, nn

from saywhere.core import Frame, InvalidValue, Phrase, Point, Region, Trace, WholeImage, simplify_phrases
from saywhere.core.trajectory import BINS
from saywhere.core.types import Floats, Floats32
from saywhere.models.tracevlm.config import MOST_POINTS

COLUMNS = 5
"""Of a point as the embedding reads it: x, y, seconds, its number, its frame."""
BASE_PX = 5.0
_NEARLY = 0.95
"""Of as many points as there may be: near enough."""
_HALVINGS = 16
"""Of the range of tolerances."""
_TENTHS = 10.0
"""Of a second: the step of the code of time."""
_STEP_S = 0.1
"""Between the points of an outline, which nobody drew in time."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Where somebody pointed. frames: which of the images each point is on; by default all are on the first.

    >>> Trajectory(Trace([(0.1, 0.2, 0.0), (0.3, 0.2, 0.5)]), frames=(0, 1)).runs()
    [(0, <Trace of 1 points, 0.00 s>), (1, <Trace of 1 points, 0.00 s>)]
    """

    trace: Trace
    frames: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.trace):
            raise InvalidValue("trajectory", "has no point")
        frames = tuple(int(frame) for frame in self.frames) or (0,) * len(self.trace)
        if len(frames) != len(self.trace):
            raise InvalidValue("trajectory", f"has {len(self.trace)} points, but frames of {len(frames)}")
        if min(frames) < 0:
            raise InvalidValue("trajectory", f"has a point on frame {min(frames)}")
        object.__setattr__(self, "frames", frames)
        outside = ((self.trace.xy < 0) | (self.trace.xy > 1)).any(axis=1)
        if outside.all():
            reason = f"has none of its {len(self.trace)} points on the photo"
            raise InvalidValue("trajectory", reason, "positions are fractions of its width and height")

    def runs(self) -> list[tuple[int, Trace]]:
        """The points in their order, those that follow each other on one frame together."""
        numbered = groupby(range(len(self.frames)), key=lambda i: self.frames[i])
        return [(frame, Trace(self.trace.points[list(run)])) for frame, run in numbered]


def key_points(
    trace: Trace, size_px: tuple[int, int], phrases: Sequence[Phrase] = (), most: int = MOST_POINTS
) -> Trace:
    """What of a trace the model reads: simplified phrase by phrase, and more where it is still longer than `most`.

    phrases: of what was said meanwhile; without any, the whole trace is one of the greatest importance.
    """
    whole = [Phrase(trace.start_s, np.inf, 5)] if len(trace) and not phrases else phrases
    fine = simplify_phrases(trace, whole, size_px, BASE_PX)
    low_px, high_px = BASE_PX, 4.0 * max(size_px)
    for _ in range(_HALVINGS if len(fine) > most else 0):
        tolerance_px = math.sqrt(low_px * high_px)
        kept = simplify_phrases(trace, whole, size_px, tolerance_px)
        if _NEARLY * most <= len(kept) <= most:
            return kept
        low_px, high_px = (tolerance_px, high_px) if len(kept) > most else (low_px, tolerance_px)
        fine = kept if len(kept) > most else fine
    return _thinned(fine, most)


def _thinned(trace: Trace, most: int) -> Trace:
    """Evenly chosen points, for no tolerance fits: strokes keep their ends, and bends alike go all at once."""
    if len(trace) <= most:
        return trace
    chosen = np.linspace(0, len(trace) - 1, most).round().astype(int)
    starts = np.unique(np.searchsorted(chosen, trace.starts))
    return Trace(trace.points[chosen], starts[starts < most].tolist())


def of_region(region: Region, frame: Frame) -> Trajectory | None:
    """A region as if somebody had pointed it out; None for the whole photo."""
    if isinstance(region, WholeImage):
        return None
    if isinstance(region, Trace):
        return Trajectory(key_points(region, frame.photo_size))
    region.weights(frame)  # which refuses what lies outside
    if isinstance(region, Point):
        return Trajectory(Trace([(region.x, region.y, 0.0)]))
    outlines = [np.concatenate([outline, outline[:1]]) for outline in region.outlines()]
    points = np.concatenate(outlines or [_centre(region, frame)])
    drawn = Trace(np.column_stack([points, _STEP_S * np.arange(len(points))]))
    return Trajectory(key_points(drawn, frame.photo_size))


def _centre(region: Region, frame: Frame) -> Floats:
    """(1, 2) the middle of what a region weighs."""
    weights = region.weights(frame)
    rows, cols = (np.arange(n) + 0.5 for n in frame.grid)
    return frame.from_grid([(weights.sum(axis=0) @ cols, weights.sum(axis=1) @ rows)])


def point_rows(trajectories: Sequence[Trajectory]) -> Floats32:
    """(n, 5) all points of some trajectories, one after another; see COLUMNS. Each starts at its own second 0.

    Points off the photo move to its edge, as they do in text.
    """
    rows = []
    for trajectory in trajectories:
        points = trajectory.trace.points
        seconds = points[:, 2:] - points[0, 2]
        frames = np.array(trajectory.frames, dtype=np.float64)[:, None]
        rows.append(np.concatenate([np.clip(points[:, :2], 0, 1), seconds, np.zeros_like(seconds), frames], axis=1))
    joined = np.concatenate(rows) if rows else np.empty((0, COLUMNS))
    joined[:, 3] = np.arange(len(joined))
    return joined.astype(np.float32)


class TrajectoryEmbedding(nn.Module):
    """Points as f_traj: sinusoidal codes of place, time, order and frame, through a small network."""

    def __init__(self, width: int, code: int) -> None:
        super().__init__()
        self.code = code
        self.inner = nn.Linear(COLUMNS * code, width)
        self.outer = nn.Linear(width, width)

    def forward(self, points: Tensor) -> Tensor:
        """(…, width) of (…, 5) points."""
        scale = points.new_tensor([BINS, BINS, _TENTHS, 1.0, 1.0])
        codes = sinusoids(points * scale, self.code).flatten(-2)
        return self.outer(nn.functional.gelu(self.inner(codes.to(self.inner.weight.dtype))))  # type: ignore[no-any-return]


def sinusoids(values: Tensor, size: int) -> Tensor:
    """(…, size) sines, then cosines, of numbers at wave lengths from 2π to 2π · 10,000."""
    half = size // 2
    slowness = torch.arange(half, device=values.device, dtype=torch.float32) / half
    angles = values.float()[..., None] * 10_000.0**-slowness
    return torch.cat([angles.sin(), angles.cos()], dim=-1)
