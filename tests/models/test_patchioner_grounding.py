"""Where phrases are: which phrases a text has, which boxes a photo offers, and which one wins."""

from __future__ import annotations

import numpy as np
import pytest

from saywhere.models.patchioner.grounding import Grounder, NounPhrase, Place, noun_phrases, spread
from saywhere.models.patchioner.sight import Sight
from saywhere.vision import Found, View
from tests.models.patchioner_seeing import BOTTOM_RIGHT, FOUND, LEFT, TOP_RIGHT, ColourEncoder, alignment, photo

CAT, DOG, CUP = np.eye(3, dtype=np.float32)


def _grounder(found: tuple[Found, ...] = FOUND) -> Grounder:
    view = ColourEncoder().look(photo())
    return Grounder(Sight(View(view.frame, view.patches, view.whole, None, found), alignment()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a black cat on the table.", [(0, 3, "black cat", ""), (4, 6, "table", "")]),
        ("In this image there is a dog", [(5, 7, "dog", "")]),
        ("the dog on the left", [(0, 2, "dog", "left"), (3, 5, "left", "left")]),
        ("she runs", []),
        ("running", []),
    ],
)
def test_phrases_that_name_things_are_found_in_their_order(
    text: str, expected: list[tuple[int, int, str, str]]
) -> None:
    found = [(one.first, one.stop, one.text, one.place) for one in noun_phrases(text.split())]
    assert [one for one in found if one[2] != "left"] == [one for one in expected if one[2] != "left"]


@pytest.mark.parametrize(("vector", "box"), [(CAT, LEFT), (DOG, TOP_RIGHT), (CUP, BOTTOM_RIGHT)])
@pytest.mark.parametrize("found", [FOUND, ()])
def test_a_thing_is_where_it_is_with_and_without_a_detector(
    vector: np.ndarray, box: tuple[float, ...], found: tuple[Found, ...]
) -> None:
    best = _grounder(found).places(vector)[0]
    assert best.box_xyxy == pytest.approx(box)
    assert best.cosine == pytest.approx(1)


def test_the_whole_photo_is_on_offer_and_worse_than_the_thing() -> None:
    places = _grounder().places(CAT)
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
    assert grounder.places(CAT, place)[0].box_xyxy == box


def test_the_middle_is_won_by_the_box_nearest_to_it() -> None:
    parts = [(0.0, 0.0, 0.1, 0.1), (0.4, 0.4, 0.5, 0.5)]
    grounder = _grounder(tuple(Found(part, "cat", 0.5) for part in parts))
    assert grounder.places(CAT, "middle")[0].box_xyxy == parts[1]


def test_every_word_stays_with_the_phrase_before_and_first_words_with_the_first() -> None:
    words = ("there", "is", "a", "cat", "near", "a", "dog", ".")
    placed = [(NounPhrase(2, 4, "cat"), Place(LEFT, 0.9)), (NounPhrase(5, 7, "dog"), Place(TOP_RIGHT, 0.8))]
    boxes = spread(words, placed).boxes.boxes_xyxy
    np.testing.assert_allclose(boxes, [LEFT] * 5 + [TOP_RIGHT] * 3)


def test_without_a_place_no_word_has_one() -> None:
    assert not spread(("a", "unicorn"), []).boxes.located.any()
