"""Trajectories: what is kept of them, what is refused, and how points become numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import (
    Box,
    BoxSet,
    Frame,
    InvalidValue,
    Mask,
    Patch,
    Phrase,
    Point,
    Polygon,
    Region,
    Trace,
    WholeImage,
)
from saywhere.models.tracevlm.config import MOST_POINTS, TraceVlmConfig
from saywhere.models.tracevlm.coordinates import Coordinates
from saywhere.models.tracevlm.trajectory import (
    Trajectory,
    TrajectoryEmbedding,
    key_points,
    of_region,
    point_rows,
    sinusoids,
)

FRAME = Frame.squash((640, 480), (644, 476), 28)


def scribble(count: int) -> Trace:
    rng = np.random.default_rng(0)
    return Trace(np.column_stack([rng.random((count, 2)), np.linspace(0, 60, count)]))


def test_ten_thousand_points_become_few_with_both_ends_kept() -> None:
    trace = scribble(10_000)
    kept = key_points(trace, (640, 480))
    assert 0.95 * MOST_POINTS <= len(kept) <= MOST_POINTS
    assert kept.points[[0, -1]].tolist() == trace.points[[0, -1]].tolist()


@given(
    st.integers(20, 400),
    st.integers(4, 40),
    st.sampled_from(["noise", "zigzag", "walk"]),
    st.integers(0, 5),
    st.lists(st.integers(1, 5), max_size=3),
)
def test_as_many_points_are_kept_as_there_may_be(
    count: int, most: int, kind: str, seed: int, important: list[int]
) -> None:
    rng, times = np.random.default_rng(seed), np.linspace(0, 3, count)
    walk = np.clip(0.5 + np.cumsum(rng.normal(0, 0.02, (count, 2)), axis=0), 0, 1)
    zigzag = np.column_stack([times / 3, 0.4 + 0.2 * (np.arange(count) % 2)])
    xy = {"noise": rng.random((count, 2)), "zigzag": zigzag, "walk": walk}[kind]
    trace = Trace(np.column_stack([xy, times]))
    phrases = [Phrase(i, i + 1.0, importance) for i, importance in enumerate(important)]
    kept = key_points(trace, (640, 480), phrases, most)
    unlimited = key_points(trace, (640, 480), phrases, count)
    assert 0.95 * min(len(unlimited), most) <= len(kept) <= most
    assert kept.points[[0, -1]].tolist() == trace.points[[0, -1]].tolist()
    assert set(map(tuple, kept.points.tolist())) <= set(map(tuple, trace.points.tolist()))


def test_many_strokes_become_few_points_too() -> None:
    strokes = [[(x, 0.5, 2 * i), (x, 0.6, 2 * i + 1)] for i, x in enumerate(np.linspace(0, 1, 400))]
    kept = key_points(Trace.from_segments(strokes), (640, 480))
    assert len(kept) == MOST_POINTS
    assert len(kept.starts) > MOST_POINTS / 2, "they stay strokes"


def test_important_phrases_keep_more_points() -> None:
    bent = Trace([(0, 0, 0), (0.5, 0.02, 1), (1, 0, 2)])
    kept = [len(key_points(bent, (640, 480), [Phrase(0, 3, importance)])) for importance in (1, 5)]
    assert kept == [2, 3]


def test_times_of_kept_points_are_those_they_had() -> None:
    trace = scribble(500)
    kept = key_points(trace, (640, 480))
    assert set(map(tuple, kept.points.tolist())) <= set(map(tuple, trace.points.tolist()))


@pytest.mark.parametrize(
    ("points", "frames", "reason"),
    [
        (np.empty((0, 3)), (), "has no point"),
        ([(1.5, 0.5, 0.0), (0.5, -0.2, 1.0)], (), "none of its 2 points on the photo"),
        ([(0.5, 0.5, 0.0)], (0, 1), "has 1 points, but frames of 2"),
        ([(0.5, 0.5, 0.0)], (-1,), "frame -1"),
    ],
)
def test_what_is_no_trajectory_is_refused(points: object, frames: tuple[int, ...], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        Trajectory(Trace(points), frames)  # type: ignore[arg-type]


def test_going_back_in_time_is_refused() -> None:
    with pytest.raises(InvalidValue, match="go back in time"):
        Trajectory(Trace([(0.1, 0.1, 1.0), (0.2, 0.1, 0.5)]))


def test_points_that_overshoot_the_edge_move_to_it() -> None:
    rows = point_rows([Trajectory(Trace([(0.5, 0.5, 3.0), (1.2, -0.1, 4.0)]))])
    np.testing.assert_allclose(rows, [[0.5, 0.5, 0, 0, 0], [1, 0, 1, 1, 0]])


def test_several_trajectories_are_numbered_on_and_start_at_second_0() -> None:
    one = Trajectory(Trace([(0.5, 0.5, 7.0)]), (1,))
    np.testing.assert_allclose(point_rows([one, one])[:, 2:], [[0, 0, 1], [0, 1, 1]])


@pytest.mark.parametrize(
    ("region", "points"),
    [
        (Point(0.25, 0.5), 1),
        (Box(0.1, 0.2, 0.5, 0.6), 5),
        (BoxSet([Box(0, 0, 0.4, 0.4), Box(0.5, 0.5, 1, 1)]), 10),
        (Polygon([(0, 0), (1, 0), (0, 1)]), 4),
        (Mask([[0, 1], [0, 1]]), 5),
        (Patch(0, 0), 1),
        (Trace([(0.1, 0.1, 0.0), (0.9, 0.9, 1.0)]), 2),
    ],
)
def test_every_region_can_be_pointed_out(region: Region, points: int) -> None:
    drawn = of_region(region, FRAME)
    assert drawn is not None
    assert len(drawn.trace) == points
    assert region.weights(FRAME)[tuple(FRAME.cells(np.clip(drawn.trace.xy, 0, 1 - 1e-6)).T)].sum() > 0


def test_the_whole_photo_is_not_pointed_at() -> None:
    assert of_region(WholeImage(), FRAME) is None


def test_a_region_off_the_photo_is_refused() -> None:
    with pytest.raises(InvalidValue, match="covers nothing"):
        of_region(Box(1.1, 0, 1.5, 1), FRAME)


def test_codes_are_sines_and_cosines_of_slower_and_slower_waves() -> None:
    found = sinusoids(torch.tensor([3.0]), 4)[0].tolist()
    assert found == pytest.approx([math.sin(3), math.sin(0.03), math.cos(3), math.cos(0.03)], abs=1e-6)


@pytest.mark.parametrize("column", range(5))
def test_place_time_order_and_frame_all_count(column: int) -> None:
    torch.manual_seed(0)
    embed = TrajectoryEmbedding(8, 4)
    point = torch.tensor([0.5, 0.5, 1.0, 2.0, 1.0])
    moved = point.clone()
    moved[column] += 0.25
    assert embed(point).shape == (8,)
    assert not torch.allclose(embed(point), embed(moved))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20))
def test_bins_and_pixels_give_places_back(points: list[tuple[float, float]]) -> None:
    places = Coordinates(FRAME)
    xy = np.array(points)
    assert np.abs(places.from_bins(places.to_bins(xy)) - xy).max() <= 0.5 / 1000 + 1e-9
    assert np.abs(places.from_pixels(places.to_pixels(xy)) - xy).max() <= 0.5 / 476 + 1e-9
    assert np.abs(places.bins_of_pixels(places.to_pixels(xy)) - places.to_bins(xy)).max() <= 2
    assert np.abs(places.pixels_of_bins(places.to_bins(xy)) - places.to_pixels(xy)).max() <= 1


@pytest.mark.parametrize(("key", "value"), [("code", 7), ("mask_width", 40), ("blocks", -1), ("heads", "8")])
def test_shapes_that_cannot_be_are_refused(key: str, value: object) -> None:
    with pytest.raises(InvalidValue, match=f"config {key}"):
        TraceVlmConfig(**{key: value})  # type: ignore[arg-type]
