"""Rules from spoken sentences to captions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.build.caption_rules import (
    ABOUT_THE_PHOTO,
    NOT_A_CAPTION,
    REFERS_BACK,
    SAYS_NOTHING,
    Dropped,
    rewrite_by_rule,
)


@pytest.mark.parametrize(
    ("said", "caption"),
    [
        ("In this image I can see a dog.", "A dog"),
        ("In the picture we can also see a brown bed and a lamp.", "A brown bed and a lamp"),
        ("There is a man riding a horse.", "A man riding a horse"),
        ("Here we can see a train on the railway track.", "A train on the railway track"),
        ("As we can see in the image there is a zebra.", "A zebra"),
        ("This picture shows a cat on a bed.", "A cat on a bed"),
        ("This image consists of a man wearing a red shirt.", "A man wearing a red shirt"),
        ("This is the picture of a room.", "A room"),
        ("These are trees.", "Trees"),
        ("It's a green color car parked here.", "A green color car parked"),
        ("He is wearing a hat.", "A man wearing a hat"),
        ("She wore spectacles.", "A woman wore spectacles"),
        ("A man is standing.", "A man is standing"),
    ],
)
def test_the_speaker_and_the_photo_are_taken_away(said: str, caption: str) -> None:
    assert rewrite_by_rule(said) == caption


@pytest.mark.parametrize(
    ("said", "caption"),
    [
        ("To the left we can see a white oven.", "A white oven"),
        ("On the left side of the image, there is a couch.", "A couch"),
        ("At the bottom right corner of the picture we can see the grass.", "The grass"),
        ("A few people are standing on the left side of the image.", "A few people are standing"),
        ("In the background of the image, we can see trees.", "Trees in the background"),
        ("In this image, in the background, there is a wall.", "A wall in the background"),
        ("On the left side of the road there is a car.", "A car on the left side of the road"),
        ("At the top of the building there is a clock.", "A clock at the top of the building"),
    ],
)
def test_where_on_the_photo_is_left_to_the_trace_but_not_where_among_things(said: str, caption: str) -> None:
    assert rewrite_by_rule(said) == caption


@pytest.mark.parametrize(
    ("said", "caption"),
    [
        ("On the table there is a cup.", "A cup on the table"),
        ("Beside the hay bale we can see a black hen.", "A black hen beside the hay bale"),
        ("Behind that there is a window and a wall.", "A window and a wall"),
        ("Beside him there is a dog.", "A dog"),
        ("There is a man on the road, and there is a car.", "A man on the road and a car"),
        ("There is a table and on the table we can see plates.", "A table and plates on the table"),
    ],
)
def test_the_thing_comes_before_its_place(said: str, caption: str) -> None:
    assert rewrite_by_rule(said) == caption


@pytest.mark.parametrize(
    ("said", "caption"),
    [
        ("There might be a bird on the tree.", "A bird on the tree"),
        ("I think this is a bus.", "A bus"),
        ("It looks like a mirror.", "A mirror"),
        ("There seems to be a person who is probably sitting.", "A person sitting"),
    ],
)
def test_hedges_are_taken_away(said: str, caption: str) -> None:
    assert rewrite_by_rule(said) == caption


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("The image is blurry.", ABOUT_THE_PHOTO),
        ("This is an edited picture.", ABOUT_THE_PHOTO),
        ("This is a black and white photograph.", ABOUT_THE_PHOTO),
        ("The photo was taken in a bedroom.", ABOUT_THE_PHOTO),
        ("The background of the image is blurred.", ABOUT_THE_PHOTO),
        ("In the bottom right corner there is a watermark.", ABOUT_THE_PHOTO),
        ("It is black in color.", REFERS_BACK),
        ("They are playing football.", REFERS_BACK),
        ("I can see.", SAYS_NOTHING),
        ("...", SAYS_NOTHING),
        ("", SAYS_NOTHING),
        ("We should look at my house.", NOT_A_CAPTION),
        ("in the background " * 3000, NOT_A_CAPTION),
    ],
)
def test_what_makes_no_caption_is_dropped_with_its_reason(said: str, reason: str) -> None:
    assert rewrite_by_rule(said) == Dropped(reason)


def test_a_photo_that_was_taken_somewhere_still_shows_what_comes_next() -> None:
    assert rewrite_by_rule("This image is clicked outside, there are trees and buildings.") == "Trees and buildings"


PIECES = (
    "in this image | we can see | there is | a dog | the | on the table | background | , | and | of | who is | I | it"
)


@given(st.lists(st.sampled_from([piece.strip() for piece in PIECES.split("|")]), max_size=14).map(" ".join))
def test_a_caption_never_speaks_of_the_speaker_or_presents_things(said: str) -> None:
    caption = rewrite_by_rule(said)
    if isinstance(caption, str):
        assert caption[0] == caption[0].upper()
        assert not {"i", "we"} & set(caption.lower().replace(",", " ").split())
        assert "there is" not in caption.lower()


@given(st.text(max_size=60))
def test_any_text_is_a_caption_or_dropped(said: str) -> None:
    result = rewrite_by_rule(said)
    assert isinstance(result, Dropped) or result.strip()
