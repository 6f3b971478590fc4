"""Questions out of captions, all together: balance, chance, limits, and that wrong things are named by no caption."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("spacy", reason="needs the extra 'language'")

from saywhere.build.caption_questions import MOST, MOST_IN_ALL, TYPES, CaptionQuestion, ask_captions
from saywhere.build.caption_reading import facts_of
from saywhere.core import InvalidValue, UnknownName
from saywhere.language.coco_aliases import classes_named
from tests.build.caption_photos import NO, OTHERS, PHOTOS, YES


def test_of_yes_and_no_there_are_as_many_of_every_type() -> None:
    made = [
        one for _, one in ask_captions(PHOTOS, np.random.default_rng(0), most_in_all=999, most=dict.fromkeys(TYPES, 2))
    ]
    counts = Counter((one.question_type, one.answers) for one in made if one.answer_type == "yes/no")
    assert {name for name, _ in counts} >= {"is there a", "is the (color)", "is the (doing)", "is this a", "is it"}
    for name, _ in counts:
        assert counts[name, YES] == counts[name, NO], name


def test_of_pairs_of_which_one_half_is_wanted_a_coin_decides() -> None:
    counts = Counter(
        one.answers
        for seed in range(12)
        for _, one in ask_captions(PHOTOS, np.random.default_rng(seed), {"is there a": 1, "is this a": 1})
    )
    share = counts[YES] / counts.total()
    assert counts.total() > 120
    assert 0.4 < share < 0.6


def test_the_same_seed_gives_the_same_questions_and_another_seed_others() -> None:
    first, again, other = (list(ask_captions(PHOTOS, np.random.default_rng(seed))) for seed in (7, 7, 8))
    assert first == again
    assert first != other
    assert list(dict.fromkeys(photo for photo, _ in first)) == [photo for photo, _ in PHOTOS if photo in dict(first)]


@pytest.mark.parametrize("most_in_all", [0, 3, MOST_IN_ALL])
def test_photos_give_at_most_so_many_questions_of_each_type_and_in_all(most_in_all: int) -> None:
    made = list(ask_captions(PHOTOS, np.random.default_rng(1), most_in_all=most_in_all))
    by_photo = Counter(photo for photo, _ in made)
    assert max(by_photo.values(), default=0) == most_in_all
    by_type = Counter((photo, question.question_type) for photo, question in made)
    assert all(count <= MOST[name] for (_, name), count in by_type.items())
    assert len({(photo, question.text) for photo, question in made}) == len(made)
    wanted = ask_captions(PHOTOS, np.random.default_rng(1), {"is there a": 0, "where is the": 1})
    assert {question.question_type for _, question in wanted} == {"where is the"}


def test_what_two_captions_say_is_asked_once() -> None:
    said = [("x", ["A man wearing a hat.", "A man is wearing a hat."])]
    made = [one.text for _, one in ask_captions(said, np.random.default_rng(0), {"is (wearing)": 4})]
    assert sorted(made) == ["Is the man wearing a hat?", "Is the man wearing a helmet?"]


def test_wrong_things_that_are_asked_for_are_named_by_no_caption() -> None:
    wrong = 0
    for seed in range(6):
        for photo, question in ask_captions(PHOTOS, np.random.default_rng(seed), most_in_all=999):
            text = " ".join(dict(PHOTOS)[photo]).lower()
            if question.answers != NO:
                continue
            if question.question_type == "is the (color)":
                wrong += 1
                assert question.text.rstrip("?").split()[-1] not in text
            elif question.question_type in ("is there a", "is this a"):
                wrong += 1
                assert not classes_named(question.text.lower()) & classes_named(text) - {"person"}
            elif question.question_type in ("is the (doing)", "is the (where)", "is (sport)"):
                wrong += 1
                assert question.text.rstrip("?").split()[-1] not in text.split()
    assert wrong > 60


def test_answers_are_short_and_of_the_type_s_kind() -> None:
    made = [question for _, question in ask_captions(PHOTOS, np.random.default_rng(2))]
    assert {question.answer_type for question in made} == {"yes/no", "number", "other"}
    for question in made:
        assert question.answer_type == TYPES[question.question_type]
        assert question.text.endswith("?")
        assert len(set(question.answers)) == len(question.answers)
        assert all(1 <= len(answer.split()) <= 3 for answer in question.answers)
        assert (question.answer_type == "yes/no") == (question.answers in (YES, NO))
        assert (question.answer_type == "number") == all(answer.isdigit() for answer in question.answers)


def test_photos_without_captions_and_blank_captions_give_nothing_and_take_nothing_away() -> None:
    photos = [("a", []), ("b", ["", " . ", "A red bus.", "  "]), ("c", ["A bus."])]
    made = list(ask_captions(photos, np.random.default_rng(0), {"what color is the": 1}))
    assert [(photo, question.text) for photo, question in made] == [("b", "What color is the bus?")]
    assert [photo for photo, _ in facts_of(photos)] == ["a", "b", "c"]
    assert list(ask_captions([], np.random.default_rng(0))) == []


def test_reading_is_told_photo_by_photo() -> None:
    told: list[tuple[str, int, int]] = []
    list(ask_captions(OTHERS, np.random.default_rng(0), progress=lambda *said: told.append(said)))
    assert told == [("reading captions", number + 1, 0) for number in range(len(OTHERS))]


@pytest.mark.parametrize(
    ("most", "most_in_all", "error", "words"),
    [
        ({"what colour": 1}, 3, UnknownName, "what color is the"),
        ({"how many": -1}, 3, InvalidValue, "not at least 0"),
        (None, -1, InvalidValue, "not at least 0"),
    ],
)
def test_limits_that_cannot_be_are_refused_at_once(
    most: dict[str, int] | None, most_in_all: int, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ask_captions(PHOTOS, np.random.default_rng(0), most, most_in_all)


@pytest.mark.parametrize(
    ("question_type", "answer_type", "answers", "error"),
    [
        ("why", "other", ("because",), UnknownName),
        ("how many", "other", ("2",), InvalidValue),
        ("how many", "number", (), InvalidValue),
    ],
)
def test_a_question_that_cannot_be_is_refused(
    question_type: str, answer_type: str, answers: tuple[str, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        CaptionQuestion("How?", question_type, answer_type, answers)
