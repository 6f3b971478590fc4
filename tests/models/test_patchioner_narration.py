"""A narrative from the photo alone: what is told, in which order and words."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from saywhere.core import Box, Caption, Grounded, InvalidValue, Point, WordBoxes
from saywhere.models.patchioner.narration import compose, worth_telling
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


def test_sentences_are_joined_and_what_was_said_is_not_said_again() -> None:
    told = {"a small dog": BOX, "a cat": BOX, "two dogs": BOX, "three cups": (0.8, 0.8, 1, 1)}
    told["a man is walking"] = (0.4, 0.4, 0.6, 0.6)
    narrative = compose("a cat on a mat", [Caption(text, -0.1, Box(*box)) for text, box in told.items()])
    assert (
        narrative.text
        == "A cat on a mat. We can see a small dog at the top left. Three cups can be seen at the bottom right. "
        "In the middle, a man is walking."
    )
    assert narrative.boxes.located.tolist() == [False] * 5 + [True] * 26
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


def test_sentences_begin_in_different_ways_by_the_seed() -> None:
    kinds = ("dog", "cup", "fork", "knife", "spoon", "bowl")
    things = [Caption(f"a {kind}", -0.1, Box(*BOX)) for kind in kinds]
    told = [compose("a cat", things, seed=seed).text for seed in (0, 0, 1)]
    assert told[0] == told[1] != told[2]
    beginnings = [sentence.split()[0] for sentence in told[0].split(". ")]
    assert max(Counter(beginnings).values()) == 2  # Seven sentences, four ways to begin.
    assert all(one != other for one, other in pairwise(beginnings))
