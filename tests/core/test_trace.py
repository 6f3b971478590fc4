from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import Frame, InvalidValue, Trace, simplify_many
from tests.strategies import seconds, traces


@given(traces(), seconds)
def test_cutting_a_trace_at_any_moment_loses_no_point(trace: Trace, moment: float) -> None:
    before, after = trace.between(-np.inf, moment), trace.between(moment, np.inf)
    assert np.array_equal(np.concatenate([before.points, after.points]), trace.points)
    assert (before.times_s < moment).all()
    assert (after.times_s >= moment).all()


@given(traces(), seconds, seconds)
def test_a_cut_keeps_the_pen_up_gaps_between_kept_points(trace: Trace, a: float, b: float) -> None:
    cut = trace.between(a, b)
    first = int(np.searchsorted(trace.times_s, a))
    inside = [s - first for s in trace.starts if 0 < s - first < len(cut)]
    assert list(cut.starts) == ([0, *inside] if len(cut) else [])


@given(traces())
def test_segments_joined_again_are_the_trace(trace: Trace) -> None:
    assert Trace.from_segments(trace.segments) == trace
    assert hash(Trace.from_segments(trace.segments)) == hash(trace)


def test_a_trace_owns_its_points_and_nobody_can_change_them() -> None:
    mine = np.array([[0.1, 0.2, 0.0], [0.3, 0.4, 1.0]])
    trace = Trace(mine)
    mine[0, 0] = 99
    assert trace.points[0, 0] == 0.1
    with pytest.raises(ValueError, match="read-only"):
        trace.points[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        trace.between(0, 1).points[0, 0] = 1
    assert pickle.loads(pickle.dumps(trace)) == trace


@pytest.mark.parametrize(
    ("points", "starts", "reason"),
    [
        ([[0, 0, np.nan]], (0,), "NaN or infinity, first in row 0"),
        ([[0, 0, 0], [0, np.inf, 1]], (0,), "NaN or infinity, first in row 1"),
        ([[0, 0, 1], [0, 0, 0.5]], (0,), "back in time from 1 s to 0.5 s at point 1"),
        ([[0, 0]], (0,), r"shape \(1, 2\), not \(n, 3\)"),
        ([["a", 0, 0]], (0,), "not an array of numbers"),
        ([[0, 0, 0]], (1,), "begin with 0"),
        ([[0, 0, 0], [0, 0, 1]], (0, 2), "stay below 2"),
        ([[0, 0, 0], [0, 0, 1], [0, 0, 2]], (0, 1, 1), "increase"),
        ([], (0, 1), "without points"),
    ],
)
def test_points_that_cannot_be_a_trace_are_refused(points: object, starts: tuple[int, ...], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        Trace(points, starts)  # type: ignore[arg-type]


def test_a_pen_up_gap_is_not_motion() -> None:
    trace = Trace.from_segments([[(0, 0, 0), (0.3, 0.4, 1)], [], [(0.9, 0.9, 5), (0.9, 0.9, 5), (0.9, 0.8, 6)]])
    assert trace.starts == (0, 2)
    np.testing.assert_allclose(trace.speed(), [0.5, np.nan, np.nan, 0.1])
    np.testing.assert_allclose(trace.speed((200, 100)), [np.hypot(60, 40), np.nan, np.nan, 10])
    np.testing.assert_allclose(trace.dwell_s(), [0.5, 0.5, 0, 0.5, 0.5])
    np.testing.assert_allclose(trace.at([0.5, 3, 5.5, 7]), [[0.15, 0.2], [np.nan] * 2, [0.9, 0.85], [np.nan] * 2])
    assert trace.duration_s == 6
    assert trace.bounds_xyxy == (0, 0, 0.9, 0.9)


@given(traces(min_points=1), st.floats(1, 20))
def test_resampling_keeps_the_ends_of_every_segment_and_stays_on_the_line(trace: Trace, rate_hz: float) -> None:
    even = trace.resample(rate_hz)
    assert len(even.starts) == len(trace.starts)
    for old, new in zip(trace.segments, even.segments, strict=True):
        assert np.array_equal(new[[0, -1]], old[[0, -1]])
        steps = np.diff(new[:, 2])
        assert np.ptp(steps) < 1e-9 if len(steps) else True
        assert (new[:, :2] >= old[:, :2].min(axis=0) - 1e-9).all()


def test_dwell_counts_seconds_where_they_were_spent() -> None:
    frame = Frame.of_grid(1, 2)
    trace = Trace([(0.2, 0.5, 0), (0.2, 0.5, 3), (0.8, 0.5, 4), (1.8, 0.5, 5)])
    np.testing.assert_allclose(trace.dwell_map(frame), [[3.5, 1.0]])
    np.testing.assert_allclose(trace.weights(frame), [[2 / 3, 1 / 3]])
    np.testing.assert_allclose(trace.weights(frame, by="dwell"), [[3.5 / 4.5, 1 / 4.5]])
    assert trace.unseen(frame) == 1


@pytest.mark.parametrize(
    ("points", "by", "reason"),
    [
        ([], "points", "is empty"),
        ([(2, 2, 0), (3, 3, 1)], "points", "none of its 2 points"),
        ([(0.5, 0.5, 0)], "dwell", "spends no time"),
        ([(0.5, 0.5, 0)], "area", "not 'points' or 'dwell'"),
    ],
)
def test_a_trace_that_points_nowhere_says_why(points: list[object], by: str, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        Trace(points).weights(Frame.of_grid(4, 4), by=by)  # type: ignore[arg-type]


@pytest.mark.parametrize("ask", ["start_s", "end_s", "bounds_xyxy"])
def test_an_empty_trace_has_no_place_and_no_time(ask: str) -> None:
    empty = Trace([])
    assert (len(empty), empty.duration_s, empty.segments) == (0, 0.0, ())
    with pytest.raises(InvalidValue, match="is empty"):
        getattr(empty, ask)


def _distance_to_line(points: np.ndarray, line: np.ndarray) -> np.ndarray:
    """Smallest distance of each point to a polyline, by brute force."""
    best = np.full(len(points), np.inf)
    for a, b in pairwise(line):
        length = ((b - a) ** 2).sum()
        u = np.clip(((points - a) @ (b - a)) / length, 0, 1) if length else np.zeros(len(points))
        best = np.minimum(best, np.linalg.norm(points - (a + u[:, None] * (b - a)), axis=1))
    return best


@given(st.lists(traces(min_points=1), min_size=1, max_size=4), st.floats(0, 0.5))
def test_simplifying_stays_within_the_tolerance_and_keeps_ends_and_times(many: list[Trace], tolerance: float) -> None:
    simple = simplify_many(many, tolerance)
    for trace, less in zip(many, simple, strict=True):
        assert len(less.starts) == len(trace.starts)
        rows = {tuple(row) for row in trace.points.tolist()}
        assert all(tuple(row) in rows for row in less.points.tolist())
        for old, new in zip(trace.segments, less.segments, strict=True):
            assert np.array_equal(new[[0, -1]], old[[0, -1]])
            if len(new) > 1:
                assert _distance_to_line(old[:, :2], new[:, :2]).max() <= tolerance + 1e-9
        assert less == trace.simplify(tolerance)


def test_simplifying_removes_what_is_on_the_line_and_keeps_the_corner() -> None:
    corner = Trace([(0, 0, 0), (0.25, 0, 1), (0.5, 0, 2), (0.5, 0.3, 3), (0.5, 0.5, 4)])
    assert corner.simplify(0.01).times_s.tolist() == [0, 2, 4]
    assert corner.simplify(10, size=(100, 100)).times_s.tolist() == [0, 2, 4]
    assert corner.simplify(40, size=(100, 100)).times_s.tolist() == [0, 4]
    assert simplify_many([], 0.1) == []
    with pytest.raises(InvalidValue, match="tolerance"):
        corner.simplify(-1)


def test_a_trace_says_what_it_is() -> None:
    assert repr(Trace([(0, 0, 0), (0, 0, 1.5)], (0, 1))) == "<Trace of 2 points in 2 segments, 1.50 s>"
