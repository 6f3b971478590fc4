"""Labels along an edge keep their order, stay on it and never overlap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.plots.labels import fitting_step, spread


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0.01, 0.5)), min_size=1, max_size=20))
def test_labels_that_fit_keep_their_order_and_do_not_overlap(labels: list[tuple[float, float]]) -> None:
    wanted = np.sort([place for place, _ in labels])
    sizes = np.array([size for _, size in labels])
    places = spread(wanted, sizes, 0, 10)
    starts, ends = places - sizes / 2, places + sizes / 2
    assert (starts[1:] >= ends[:-1] - 1e-9).all()
    assert starts[0] >= -1e-9
    assert ends[-1] <= 10 + 1e-9


def test_labels_with_room_stand_where_they_should() -> None:
    assert spread([1, 2, 3], [0.5, 0.5, 0.5], 0, 4).tolist() == [1, 2, 3]
    assert spread([], [], 0, 4).tolist() == []


def test_two_labels_for_one_place_give_way_alike() -> None:
    np.testing.assert_allclose(spread([2, 2], [1, 1], 0, 4), [1.5, 2.5])


def test_labels_that_do_not_fit_share_the_edge_evenly() -> None:
    np.testing.assert_allclose(spread([1, 1, 1, 1], [2, 2, 2, 2], 0, 4), [0.5, 1.5, 2.5, 3.5])


@pytest.mark.parametrize(
    ("counts", "room", "step"),
    [([4], 4, 1), ([4], 3.9, 2), ([4, 5], 5, 2), ([9], 0.5, 9), ([], 1, 1), ([1, 1, 1], 1, 1)],
)
def test_as_many_labels_are_written_as_have_room(counts: list[int], room: float, step: int) -> None:
    assert fitting_step(counts, 1.0, room) == step
