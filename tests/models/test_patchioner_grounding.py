"""Where phrases are: which phrases a text has, which boxes a photo offers, and which one wins."""

from __future__ import annotations

import numpy as np
import pytest

from saywhere.models.patchioner.eyes import AlignedView
from saywhere.models.patchioner.grounding import Grounder, NounPhrase, PhraseBox, noun_phrases, spread
from saywhere.vision import Found, View
from tests.models.patchioner_seeing import BOTTOM_RIGHT, FOUND, LEFT, TOP_RIGHT, ColourEncoder, alignment, photo, tags

CAT, DOG, CUP = np.eye(3, dtype=np.float32)


def _grounder(found: tuple[Found, ...] = FOUND, *, named: bool = False) -> Grounder:
    """named: what a detector finds has names that the model knows; they are silent in its vectors."""
    view = ColourEncoder().look(photo())
    seen = View(view.frame, view.patches, view.whole, None, found)
    return Grounder(AlignedView(seen, alignment(), tags() if named else None))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a black cat on the table.", [(0, 3, "black cat", ""), (4, 6, "table", "")]),
        ("In this image there is a dog", [(5, 7, "dog", "")]),
        ("the dog on the left", [(0, 2, "dog", "left")]),
        ("the left dog", [(0, 3, "left dog", "left")]),
        ("at the front there is a dog", [(5, 7, "dog", "")]),
        ("a cup in the front and a dog in the corner", [(0, 2, "cup", ""), (6, 8, "dog", "")]),
        ("on the left we can see a dog", [(6, 8, "dog", "")]),
        ("the back of a bus", [(3, 5, "bus", "")]),
        ("she runs", []),
        ("running", []),
    ],
)
def test_phrases_that_name_things_are_found_in_their_order(
    text: str, expected: list[tuple[int, int, str, str]]
) -> None:
    assert [(one.first, one.stop, one.text, one.place) for one in noun_phrases(text.split())] == expected


@pytest.mark.parametrize(("vector", "box"), [(CAT, LEFT), (DOG, TOP_RIGHT), (CUP, BOTTOM_RIGHT)])
@pytest.mark.parametrize("found", [FOUND, ()])
def test_a_thing_is_where_it_is_with_and_without_a_detector(
    vector: np.ndarray, box: tuple[float, ...], found: tuple[Found, ...]
) -> None:
    best = _grounder(found).candidates(vector)[0]
    assert best.box_xyxy == pytest.approx(box)
    assert best.cosine == pytest.approx(1)


def test_the_whole_photo_is_on_offer_and_worse_than_the_thing() -> None:
    places = _grounder().candidates(CAT)
    whole = next(place for place in places if place.box_xyxy == (0, 0, 1, 1))
    assert whole.cosine == pytest.approx(0.5 / np.sqrt(0.375), abs=1e-6)
    assert [place.cosine for place in places] == sorted((place.cosine for place in places), reverse=True)


@pytest.mark.parametrize(
    ("place", "box"),
    [
        ("left", (0.0, 0.0, 0.2, 1.0)),
        ("right", (0.3, 0.0, 0.5, 1.0)),
        ("bottom", (0.0, 0.8, 0.5, 1.0)),
        ("top", (0.0, 0.0, 0.5, 0.2)),
    ],
)
def test_of_like_boxes_the_one_that_lies_where_the_phrase_says_wins(place: str, box: tuple[float, ...]) -> None:
    parts = [(0.0, 0.0, 0.2, 1.0), (0.3, 0.0, 0.5, 1.0), (0.0, 0.8, 0.5, 1.0), (0.0, 0.0, 0.5, 0.2)]
    grounder = _grounder(tuple(Found(part, "cat", 0.5) for part in parts))
    assert grounder.candidates(CAT, place)[0].box_xyxy == box


def test_the_middle_is_won_by_the_box_nearest_to_it() -> None:
    parts = [(0.0, 0.0, 0.1, 0.1), (0.4, 0.4, 0.5, 0.5)]
    grounder = _grounder(tuple(Found(part, "cat", 0.5) for part in parts))
    assert grounder.candidates(CAT, "middle")[0].box_xyxy == parts[1]


def test_a_kind_that_was_surely_found_is_there_although_another_box_is_more_alike() -> None:
    found = (Found(TOP_RIGHT, "cat", 0.4), Found(LEFT, "dog", 0.9))
    grounder = _grounder(found, named=True)
    assert grounder.candidates(CAT)[0].box_xyxy == LEFT
    assert grounder.find("a black cat", CAT) == PhraseBox(TOP_RIGHT, pytest.approx(0, abs=1e-6), "cat")
    assert grounder.find("kitten", CAT).thing == "cat"


@pytest.mark.parametrize(("text", "missed"), [("a cat", True), ("a catkin", False), ("a horse", False)])
def test_a_kind_that_was_not_surely_found_is_where_it_looks_most_alike_and_was_missed_if_it_is_known(
    text: str, missed: bool
) -> None:
    best = _grounder((Found(TOP_RIGHT, "cat", 0.07), Found(LEFT, "horse", 0.05)), named=True).find(text, CAT)
    assert best == PhraseBox(LEFT, pytest.approx(1), "", missed)
    assert not _grounder(()).find(text, CAT).missed


SMALL, LARGE = (0.8, 0.0, 1.0, 0.2), LEFT


@pytest.mark.parametrize(
    ("small", "large", "place", "box"),
    [
        (0.5, 0.5, "", LARGE),
        (0.58, 0.5, "", LARGE),
        (0.9, 0.5, "", SMALL),
        (0.58, 0.5, "right", SMALL),
        (0.58, 0.5, "left", LARGE),
    ],
)
def test_of_several_things_of_a_kind_a_large_sure_one_is_meant_that_lies_where_the_phrase_says(
    small: float, large: float, place: str, box: tuple[float, ...]
) -> None:
    # Size gives 0.04 to the small one and 0.14 to the large one; "right" gives 0.09 to the one and 0.025 to the other.
    found = (Found(SMALL, "cat", small), Found(LARGE, "cat", large), Found(BOTTOM_RIGHT, "dog", 1.0))
    assert _grounder(found).find("cat", CAT, place).box_xyxy == box


@pytest.mark.parametrize(
    ("text", "count"),
    [("two black cats", 2), ("cats on a table", None), ("a cat", 1), ("several people", None), ("twelve dogs", None)],
)
def test_a_phrase_says_how_many_it_means(text: str, count: int | None) -> None:
    assert noun_phrases(text.split())[0].count == count


TWO_CATS = (Found((0.1, 0.2, 0.3, 0.5), "cat", 0.9), Found((0.6, 0.4, 0.8, 0.9), "cat", 0.6))
FAINT_CAT = Found((0.0, 0.0, 1.0, 1.0), "cat", 0.2)


@pytest.mark.parametrize("count", [2, None])
def test_several_things_are_where_all_sure_ones_are(count: int | None) -> None:
    place = _grounder((*TWO_CATS, FAINT_CAT), named=True).find_several("cats", CAT, count)
    assert place is not None
    assert place.box_xyxy == pytest.approx((0.1, 0.2, 0.8, 0.9))
    assert place.thing == "cat"


def test_of_three_things_the_two_surest_are_two() -> None:
    third = Found((0.9, 0.9, 1.0, 1.0), "cat", 0.5)
    place = _grounder((*TWO_CATS, third), named=True).find_several("cats", CAT, 2)
    assert place is not None
    assert place.box_xyxy == pytest.approx((0.1, 0.2, 0.8, 0.9))


def test_one_sure_thing_is_not_several() -> None:
    assert _grounder((TWO_CATS[0], FAINT_CAT), named=True).find_several("cats", CAT, 2) is None


def test_every_word_stays_with_the_phrase_before_and_first_words_with_the_first() -> None:
    words = ("there", "is", "a", "cat", "near", "a", "dog", ".")
    placed = [(NounPhrase(2, 4, "cat"), PhraseBox(LEFT, 0.9)), (NounPhrase(5, 7, "dog"), PhraseBox(TOP_RIGHT, 0.8))]
    boxes = spread(words, placed).boxes.boxes_xyxy
    np.testing.assert_allclose(boxes, [LEFT] * 5 + [TOP_RIGHT] * 3)


def test_words_between_phrases_stay_with_the_last_thing_that_was_found() -> None:
    words = ["here", "a", "wall", "and", "a", "cat", "near", "the", "sky", "and", "a", "dog", "under", "a", "tree", "."]
    wall, sky, tree = (0.0, 0.0, 1.0, 0.2), (0.0, 0.0, 1.0, 0.1), (0.9, 0.0, 1.0, 1.0)
    placed = [
        (NounPhrase(1, 3, "wall"), PhraseBox(wall, 0.5)),
        (NounPhrase(4, 6, "cat"), PhraseBox(LEFT, 0.9, "cat")),
        (NounPhrase(7, 9, "sky"), PhraseBox(sky, 0.5)),
        (NounPhrase(10, 12, "dog"), PhraseBox(TOP_RIGHT, 0.8, "dog")),
        (NounPhrase(13, 15, "tree"), PhraseBox(tree, 0.6)),
    ]
    expected = [LEFT, wall, wall, LEFT, LEFT, LEFT, LEFT, sky, sky, LEFT, TOP_RIGHT, TOP_RIGHT, TOP_RIGHT]
    expected += [tree, tree, TOP_RIGHT]
    np.testing.assert_allclose(spread(words, placed).boxes.boxes_xyxy, expected)


def test_without_a_place_no_word_has_one() -> None:
    assert not spread(("a", "unicorn"), []).boxes.located.any()
