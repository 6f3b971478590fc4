"""A narrative from the photo alone: what is told, in which order and words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import Box, Caption, Grounded, InvalidValue, Point, WordBoxes
from saywhere.models.patchioner.narration import compose, overlap, where, worth_telling
from saywhere.vision import Found

BOX = (0.0, 0.0, 0.5, 0.5)


def test_large_sure_and_central_things_come_first_and_a_kind_told_waits_for_the_others() -> None:
    large = Found((0.2, 0.2, 0.8, 0.8), "cat", 0.9)
    second_cat = Found((0.0, 0.0, 0.3, 0.3), "cat", 0.9)
    cup = Found((0.8, 0.8, 1.0, 1.0), "cup", 0.5)
    assert worth_telling([cup, second_cat, large], 3) == [large, cup, second_cat]


def test_no_thing_is_told_twice_nor_one_that_is_hardly_there() -> None:
    cat = Found((0.2, 0.2, 0.8, 0.8), "cat", 0.9)
    same = Found((0.2, 0.2, 0.8, 0.78), "dog", 0.6)
    faint = Found((0.0, 0.0, 0.1, 0.1), "cup", 0.34)
    assert worth_telling([cat, same, faint], 5) == [cat]
    assert worth_telling([], 5) == []
    assert worth_telling([cat], 0) == []


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
    assert overlap(a, b) == pytest.approx(expected)
    assert overlap(b, a) == pytest.approx(expected)


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
def test_a_place_in_words(centre: tuple[float, float], words: str) -> None:
    x, y = centre
    assert where((x - 0.1, y - 0.1, x + 0.1, y + 0.1)) == words


@given(st.tuples(st.floats(0, 0.9), st.floats(0, 0.9)))
def test_every_box_has_a_place_in_words(corner: tuple[float, float]) -> None:
    x, y = corner
    assert where((x, y, x + 0.1, y + 0.1)).startswith(("in the ", "on the ", "at the "))


def test_sentences_are_joined_and_what_was_said_is_not_said_again() -> None:
    told = {"a small dog": BOX, "a cat": BOX, "two dogs": BOX, "three cups": (0.8, 0.8, 1, 1)}
    told["a man is walking"] = (0.4, 0.4, 0.6, 0.6)
    narrative = compose("a cat on a mat", [Caption(text, -0.1, Box(*box)) for text, box in told.items()])
    assert (
        narrative.text
        == "A cat on a mat. At the top left there is a small dog. At the bottom right there are three cups. "
        "In the middle, a man is walking."
    )
    assert narrative.boxes.located.tolist() == [False] * 5 + [True] * 24
    np.testing.assert_allclose(narrative.boxes.boxes_xyxy[-1], (0.4, 0.4, 0.6, 0.6))


def test_only_captions_of_boxes_are_joined() -> None:
    with pytest.raises(InvalidValue, match="not of a box"):
        compose("a cat", [Caption("a dog", -0.1, Point(0.5, 0.5))])


def test_the_first_sentence_has_places_if_they_are_found() -> None:
    def ground(words: list[str]) -> Grounded:
        return Grounded(tuple(words), WordBoxes([BOX] * len(words)))

    narrative = compose("cat", [], ground)
    assert narrative.words == ("Cat.",)
    assert narrative.boxes.boxes_xyxy.tolist() == [list(BOX)]
