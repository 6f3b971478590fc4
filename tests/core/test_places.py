"""Where something is, in words, and what lies beside it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core.places import DIRECTIONS, edges_of, lies_in, neighbours, overlap, place_of, place_of_box

BOX = (0.0, 0.0, 0.5, 0.5)
LOW, SIZE = st.floats(0, 0.9), st.floats(0.01, 0.1)
BOXES = st.builds(lambda x, y, w, h: (x, y, x + w, y + h), LOW, LOW, SIZE, SIZE)


@pytest.mark.parametrize(
    ("xy", "place"),
    [
        ([[0.1, 0.5]], "on the left"),
        ([[0.9, 0.5]], "on the right"),
        ([[0.5, 0.5]], "in the middle"),
        ([[0.5, 0.1]], "at the top"),
        ([[0.5, 1.2]], "at the bottom"),
        ([[-0.2, -0.1]], "at the top left"),
        ([[1.0, 1.0]], "at the bottom right"),
        ([[0.1, 0.1], [0.9, 0.9]], "across the photo"),
        ([[0.1, 0.5], [0.9, 0.5]], "in the middle"),
    ],
)
def test_places_in_words(xy: list[list[float]], place: str) -> None:
    assert place_of(np.array(xy)) == place


@pytest.mark.parametrize(
    ("centre", "words"),
    [
        ((0.5, 0.5), "in the middle"),
        ((0.1, 0.5), "on the left"),
        ((0.9, 0.5), "on the right"),
        ((0.5, 0.1), "at the top"),
        ((0.5, 0.9), "at the bottom"),
        ((0.1, 0.1), "at the top left"),
        ((0.9, 0.9), "at the bottom right"),
    ],
)
def test_the_place_of_a_box(centre: tuple[float, float], words: str) -> None:
    x, y = centre
    assert place_of_box((x - 0.1, y - 0.1, x + 0.1, y + 0.1)) == words


@given(BOXES)
def test_every_box_has_a_place_in_words(box: tuple[float, float, float, float]) -> None:
    assert place_of_box(box).startswith(("in the ", "on the ", "at the "))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (BOX, BOX, 1.0),
        (BOX, (0.5, 0.0, 1.0, 0.5), 0.0),
        (BOX, (0.25, 0.0, 0.75, 0.5), 1 / 3),
        (BOX, (0, 0, 1, 1), 0.25),
    ],
)
def test_overlap_is_intersection_over_union(a: tuple[float, ...], b: tuple[float, ...], expected: float) -> None:
    assert overlap(a, b) == pytest.approx(expected)  # type: ignore[arg-type]
    assert overlap(b, a) == pytest.approx(expected)  # type: ignore[arg-type]


def test_a_box_lies_in_a_larger_one_and_never_in_itself() -> None:
    assert lies_in((0.1, 0.1, 0.2, 0.2), BOX)
    assert not lies_in(BOX, (0.1, 0.1, 0.2, 0.2))
    assert not lies_in(BOX, BOX)
    assert not lies_in((0.4, 0.4, 0.6, 0.6), BOX)


def test_neighbours_are_the_nearest_in_each_direction() -> None:
    middle, left, far_left, above = (0.4, 0.4, 0.6, 0.6), (0.2, 0.4, 0.3, 0.6), (0.0, 0.4, 0.1, 0.6), (0.4, 0, 0.6, 0.1)
    found = neighbours([middle, left, far_left, above])
    assert found[0] == {"left": 1, "above": 3}
    assert found[1]["right"] == 0
    assert found[1]["left"] == 2
    assert found[3]["below"] == 0


def test_what_lies_in_a_thing_is_not_beside_it() -> None:
    assert neighbours([(0.1, 0.1, 0.9, 0.9), (0.6, 0.2, 0.7, 0.3)]) == [{}, {}]


def test_a_thing_that_stands_askew_lies_in_the_direction_in_which_it_is_farther() -> None:
    assert neighbours([(0.0, 0.0, 0.1, 0.1), (0.5, 0.2, 0.6, 0.3)])[0] == {"right": 1}
    assert neighbours([(0.0, 0.0, 0.1, 0.1), (0.2, 0.5, 0.3, 0.6)])[0] == {"below": 1}


@given(st.lists(BOXES, max_size=6))
def test_who_has_a_neighbour_is_never_its_own(boxes: list[tuple[float, float, float, float]]) -> None:
    for number, found in enumerate(neighbours(boxes)):
        assert set(found) <= set(DIRECTIONS)
        assert number not in found.values()


def test_edges_that_a_box_touches() -> None:
    assert edges_of((0, 0, 1, 1)) == ["left", "top", "right", "bottom"]
    assert edges_of((0.1, 0.1, 0.9, 0.9)) == []
