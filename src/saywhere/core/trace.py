"""Trace: where one person pointed, and when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.errors import InvalidValue
from saywhere.core.frame import Frame
from saywhere.core.types import Floats, owned


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trace:
    """Where one person pointed while looking at one image.

    points: (n, 3) float64, columns x, y, t. x and y are fractions of the image's width and height and may leave
        [0, 1], because people overshoot the edge. t is seconds and never decreases.
    starts: index of the first point of each segment. Between segments the pen was up: that gap is not motion.

    >>> trace = Trace([(0.1, 0.5, 0.0), (0.2, 0.5, 0.5), (0.9, 0.5, 2.0)])
    >>> trace
    <Trace of 3 points, 2.00 s>
    >>> trace.between(0, 1).points.tolist()
    [[0.1, 0.5, 0.0], [0.2, 0.5, 0.5]]
    """

    points: Floats
    starts: tuple[int, ...] = (0,)

    def __init__(self, points: ArrayLike, starts: Sequence[int] = (0,)) -> None:
        array = owned(points, "trace points", (None, 3))
        backwards = np.flatnonzero(array[1:, 2] < array[:-1, 2])
        if backwards.size:
            i = int(backwards[0])
            raise InvalidValue(
                "trace points", f"go back in time from {array[i, 2]:g} s to {array[i + 1, 2]:g} s at point {i + 1}"
            )
        object.__setattr__(self, "points", array)
        object.__setattr__(self, "starts", _checked_starts(starts, len(array)))

    @classmethod
    def from_segments(cls, segments: Iterable[ArrayLike]) -> Trace:
        """Join pen-down strokes, each (n, 3), in the order of time. Empty strokes are left out."""
        arrays = [owned(segment, f"trace segment {i}", (None, 3)) for i, segment in enumerate(segments)]
        arrays = [array for array in arrays if len(array)]
        if not arrays:
            return cls(np.empty((0, 3)), ())
        ends = np.cumsum([len(array) for array in arrays])
        return cls(np.concatenate(arrays), (0, *ends[:-1].tolist()))

    @classmethod
    def _trusted(cls, points: Floats, starts: tuple[int, ...]) -> Trace:
        """A part of a trace that was checked already; `points` must be read-only or nobody else's."""
        trace = object.__new__(cls)
        points.flags.writeable = False
        object.__setattr__(trace, "points", points)
        object.__setattr__(trace, "starts", starts)
        return trace

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        segments = f" in {len(self.starts)} segments" if len(self.starts) > 1 else ""
        return f"<Trace of {len(self)} points{segments}, {self.duration_s:.2f} s>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        return self.starts == other.starts and np.array_equal(self.points, other.points)

    def __hash__(self) -> int:
        return hash((self.starts, self.points.tobytes()))

    @property
    def xy(self) -> Floats:
        """(n, 2) positions."""
        return self.points[:, :2]

    @property
    def times_s(self) -> Floats:
        """(n,) seconds."""
        return self.points[:, 2]

    @property
    def start_s(self) -> float:
        return float(self._nonempty().points[0, 2])

    @property
    def end_s(self) -> float:
        return float(self._nonempty().points[-1, 2])

    @property
    def duration_s(self) -> float:
        """Seconds from the first to the last point, gaps included."""
        return self.end_s - self.start_s if len(self) else 0.0

    @property
    def bounds_xyxy(self) -> tuple[float, float, float, float]:
        low, high = self._nonempty().xy.min(axis=0), self.xy.max(axis=0)
        return float(low[0]), float(low[1]), float(high[0]), float(high[1])

    @property
    def segments(self) -> tuple[Floats, ...]:
        """The pen-down strokes, each (n, 3)."""
        return tuple(self.points[a:b] for a, b in pairwise((*self.starts, len(self))))

    def between(self, start_s: float, end_s: float) -> Trace:
        """The points with start_s ≤ t < end_s, so that cutting at any moment loses no point and doubles none."""
        first, last = np.searchsorted(self.times_s, [start_s, end_s], side="left").tolist()
        if first >= last:
            return Trace._trusted(self.points[:0], ())
        return Trace._trusted(self.points[first:last], (0, *(s - first for s in self.starts if first < s < last)))

    def shifted(self, by_s: float) -> Trace:
        """The same trace, `by_s` seconds later."""
        return Trace(self.points + np.array([0.0, 0.0, by_s]), self.starts)

    def at(self, times_s: ArrayLike) -> Floats:
        """(k, 2) positions at these times, on straight lines between points; NaN before, after and in pen-up gaps."""
        times = np.asarray(times_s, dtype=np.float64)
        positions = np.full((*times.shape, 2), np.nan)
        for segment in self.segments:
            here = (times >= segment[0, 2]) & (times <= segment[-1, 2])
            for axis in (0, 1):
                positions[here, axis] = np.interp(times[here], segment[:, 2], segment[:, axis])
        return positions

    def resample(self, rate_hz: float) -> Trace:
        """Points at an even rate, as near to `rate_hz` as lets each segment keep its first and last point."""
        if not (np.isfinite(rate_hz) and rate_hz > 0):
            raise InvalidValue("rate_hz", f"is {rate_hz}, not a positive number")
        evened = []
        for segment in self.segments:
            steps = max(1, round((segment[-1, 2] - segment[0, 2]) * rate_hz)) if len(segment) > 1 else 0
            times = np.linspace(segment[0, 2], segment[-1, 2], steps + 1)
            x, y = (np.interp(times, segment[:, 2], segment[:, axis]) for axis in (0, 1))
            even = np.stack([x, y, times], axis=1)
            even[[0, -1]] = segment[[0, -1]]
            evened.append(even)
        return Trace.from_segments(evened)

    def speed(self, size: tuple[float, float] = (1.0, 1.0)) -> Floats:
        """(n - 1,) speed between neighbouring points, in fractions a second, or pixels a second if `size` is given.

        size: width and height of the image in pixels. NaN across a pen-up gap and where no time passed.
        """
        steps = np.diff(self.points, axis=0)
        distance = np.hypot(steps[:, 0] * size[0], steps[:, 1] * size[1])
        timed = steps[:, 2] > 0
        timed[[start - 1 for start in self.starts if start > 0]] = False
        speed: Floats = np.divide(distance, steps[:, 2], out=np.full(len(steps), np.nan), where=timed)
        return speed

    def dwell_s(self) -> Floats:
        """(n,) seconds spent at each point: half the way to either neighbour of its segment. Gaps count nowhere."""
        spent = np.zeros(len(self))
        steps = np.diff(self.times_s)
        steps[[start - 1 for start in self.starts if start > 0]] = 0
        spent[:-1] += steps / 2
        spent[1:] += steps / 2
        return spent

    def dwell_map(self, frame: Frame) -> Floats:
        """(rows, cols) seconds spent on each cell of the grid. Time outside what the frame sees is not counted."""
        return self._on_grid(frame, self.dwell_s())

    def unseen(self, frame: Frame) -> int:
        """How many points the frame does not see: outside the photo, or cropped away."""
        return int((~frame.sees(self.xy)).sum())

    @property
    def name(self) -> str:
        """In a few words, as any region has it."""
        return f"trace of {len(self)} points"

    def to_json(self) -> dict[str, Any]:
        """As any region."""
        return {"trace_xyt": self.points.tolist()}

    def outlines(self) -> list[Floats]:
        """None: a trace is drawn as a line."""
        return []

    def weights(self, frame: Frame, by: Literal["points", "dwell"] = "points") -> Floats:
        """(rows, cols) weights of the patches under the trace, summing to 1.

        by: "points" counts each seen point once (Patch-ioner, Eq. 2); "dwell" counts the seconds spent there, because
            points are not equally spaced in time.
        """
        if by not in ("points", "dwell"):
            raise InvalidValue("by", f"is {by!r}, not 'points' or 'dwell'")
        grid = self._on_grid(frame, np.ones(len(self)) if by == "points" else self.dwell_s())
        total = grid.sum()
        if total <= 0:
            if not len(self):
                raise InvalidValue("trace", "is empty, so it points nowhere")
            if self.unseen(frame) == len(self):
                raise InvalidValue("trace", f"has none of its {len(self)} points on the visible part of the photo")
            raise InvalidValue("trace", "spends no time on the photo", "weigh it by 'points' instead")
        weights: Floats = grid / total
        return weights

    def simplify(self, tolerance: float, size: tuple[float, float] = (1.0, 1.0)) -> Trace:
        """Fewer points, by Douglas–Peucker: no dropped point lies farther than `tolerance` from the kept line.

        tolerance: in fractions, or in pixels if `size`, the image's width and height, is given. The first and last
            point of every segment stay, and every point keeps its time.
        """
        from saywhere.core.simplify import simplify_many

        return simplify_many([self], tolerance, size)[0]

    def _on_grid(self, frame: Frame, amounts: Floats) -> Floats:
        seen = frame.sees(self.xy)
        rows, cols = frame.cells(self.xy[seen]).T
        grid = np.zeros(frame.grid)
        np.add.at(grid, (rows, cols), amounts[seen])
        return grid

    def _nonempty(self) -> Trace:
        if not len(self):
            raise InvalidValue("trace", "is empty")
        return self


def _checked_starts(starts: Sequence[int], n_points: int) -> tuple[int, ...]:
    checked = tuple(int(start) for start in starts) if n_points else ()
    if not n_points and tuple(starts) not in ((), (0,)):
        raise InvalidValue("trace starts", "name segments of a trace without points")
    if n_points and (
        not checked or checked[0] != 0 or checked[-1] >= n_points or any(b <= a for a, b in pairwise(checked))
    ):
        raise InvalidValue("trace starts", f"are {checked}: must begin with 0, increase, and stay below {n_points}")
    return checked
