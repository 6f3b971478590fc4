"""Splits whose answer priors change: what must hold for any question set, and hand-made cases."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.build.box_questions import BoxQuestion
from saywhere.build.changing_priors import CHANGED, SIDES, Asked, PriorSettings, asked_of, priors, split_by_priors
from saywhere.core import InvalidValue
from saywhere.formats.vqa import Question
from saywhere.world.questions import SceneQuestion

ASKED = st.builds(
    Asked,
    st.integers(0, 30).map(str),
    st.sampled_from(["is there a", "how many"]),
    st.sampled_from(["yes", "no", "1", "2", "red"]),
)


def many(shares: dict[str, int], question_type: str = "is the", photos: int = 300) -> list[Asked]:
    """Questions with these counts, spread over photos."""
    answers = [answer for answer, count in shares.items() for _ in range(count)]
    order = np.random.default_rng(1).permutation(len(answers))
    return [Asked(f"{i % photos}", question_type, answers[place]) for i, place in enumerate(order)]


@given(st.lists(ASKED, max_size=200), st.floats(0, 1), st.floats(1, 20), st.integers(1, 30), st.integers(0, 5))
def test_no_photo_is_on_two_sides_and_every_question_is_kept_once_or_dropped(
    questions: list[Asked], strength: float, odds: float, least: int, seed: int
) -> None:
    settings = PriorSettings(strength=strength, odds=odds, least=least)
    split = split_by_priors(questions, np.random.default_rng(seed), settings)
    everything = [index for side in SIDES for index in split.sides[side]] + list(split.dropped)
    assert sorted(everything) == list(range(len(questions)))
    photos = [{questions[i].image for i in split.sides[side]} for side in SIDES]
    assert sum(map(len, photos)) == len(set().union(*photos))
    assert sum(split.photos.values()) == len({question.image for question in questions})
    assert sum(sum(report.dropped.values()) for report in split.types) == len(split.dropped)
    again = split_by_priors(questions, np.random.default_rng(seed), settings)
    assert again == split


@given(st.lists(ASKED, min_size=1, max_size=300), st.floats(0.01, 1), st.integers(1, 20), st.integers(0, 5))
def test_groups_of_answers_have_the_shares_wanted_up_to_rounding(
    questions: list[Asked], strength: float, least: int, seed: int
) -> None:
    settings = PriorSettings(strength=strength, least=least)
    split = split_by_priors(questions, np.random.default_rng(seed), settings)
    for report in split.types:
        if not report.changed:
            assert sum(report.dropped.values()) == 0
            continue
        for side in SIDES:
            wanted = report.wanted[CHANGED if side == CHANGED else "train"]
            rows = [i for i in split.sides[side] if questions[i].question_type == report.question_type]
            answers = Counter(questions[i].answer for i in rows)
            kept = [sum(answers[answer] for answer in group) for group in report.groups]
            # Some total of questions explains every group's number as a rounded share of it.
            low = max((count - 0.5) / share for count, share in zip(kept, wanted, strict=True))
            high = min((count + 0.5) / share for count, share in zip(kept, wanted, strict=True))
            assert low <= high + 1e-6


@given(st.lists(st.integers(1, 500), min_size=2, max_size=8), st.floats(0, 1), st.floats(1, 30))
def test_training_s_prior_falls_and_the_test_s_goes_from_the_same_to_its_reverse(
    counts: list[int], strength: float, odds: float
) -> None:
    ranked = sorted(counts, reverse=True)
    train, changed = priors(ranked, strength, odds)
    assert train.sum() == pytest.approx(1)
    assert changed.sum() == pytest.approx(1)
    assert (np.diff(train) <= 1e-12).all()
    same, _ = priors(ranked, 0, odds)
    np.testing.assert_allclose(same, np.array(ranked) / sum(ranked))
    full, reverse = priors(ranked, 1, odds)
    np.testing.assert_allclose(full[::-1], reverse)
    assert full[0] / full[-1] == pytest.approx(odds)


def test_at_full_strength_the_rare_answer_of_training_is_the_frequent_one_of_the_test() -> None:
    split = split_by_priors(many({"yes": 1500, "no": 1500}), np.random.default_rng(0), PriorSettings(odds=4))
    (report,) = split.types
    frequent = "no" if report.priors["train"]["no"] > 0.5 else "yes"
    for side in ("train", "validation", "test_same"):
        assert report.priors[side][frequent] == pytest.approx(0.8, abs=0.02)
    assert report.priors[CHANGED][frequent] == pytest.approx(0.2, abs=0.02)
    assert report.distance() == pytest.approx(0.6, abs=0.02)
    assert report.distance("train", "test_same") < 0.02


def test_as_many_questions_are_kept_as_the_shares_allow() -> None:
    questions = many({"yes": 800, "no": 400})
    split = split_by_priors(questions, np.random.default_rng(0), PriorSettings(odds=4))
    rows = split.sides[CHANGED]
    dropped = [questions[i].answer for i in split.dropped]
    photos = {questions[i].image for i in rows}
    # Of the answer that is wanted most, no question about the test's photos was dropped.
    lost = [questions[i] for i in split.dropped if questions[i].image in photos]
    assert all(question.answer == "yes" for question in lost)
    assert "yes" in dropped


def test_at_strength_zero_nothing_is_dropped() -> None:
    questions = many({"1": 500, "2": 100, "3": 50}, "how many")
    split = split_by_priors(questions, np.random.default_rng(0), PriorSettings(strength=0))
    assert split.dropped == ()
    assert split.types[0].distance() < 0.1


def test_a_type_with_one_answer_or_too_few_questions_is_left_as_it_is_and_named() -> None:
    questions = [*many({"person": 60}, "who is"), *many({"a": 5, "b": 4}, "which"), *many({"yes": 90, "no": 90})]
    split = split_by_priors(questions, np.random.default_rng(0))
    assert split.left_as_they_are == ("which", "who is")
    kept = Counter(questions[i].question_type for side in SIDES for i in split.sides[side])
    assert (kept["who is"], kept["which"]) == (60, 9)
    assert kept["is the"] < 180


def test_rare_answers_share_a_group_so_that_a_long_tail_does_not_cost_all_questions() -> None:
    tail = {f"thing {i}": 10 for i in range(40)}
    split = split_by_priors(many({"person": 300, **tail}, "what is"), np.random.default_rng(0))
    (report,) = split.types
    assert report.groups[0] == ("person",)
    assert 4 <= len(report.groups) <= 6
    assert {answer for group in report.groups for answer in group} == {"person", *tail}
    assert report.kept[CHANGED] > 0.2 * (report.kept[CHANGED] + report.dropped[CHANGED])


def test_the_distance_of_a_side_without_questions_is_unknown() -> None:
    split = split_by_priors([Asked("1", "is the", "yes")], np.random.default_rng(0))
    assert math.isnan(split.types[0].distance())


def test_questions_of_every_kind_can_be_split() -> None:
    box = BoxQuestion("7", "Is there a dog?", "is there a", "yes/no", "yes", ("yes",), np.empty((0, 4)), ("dog",))
    world = SceneQuestion("Is there a dog?", "is there a", "yes", (), "dog", 7, ("yes",))
    assert asked_of(box) == asked_of(world) == Asked("7", "is there a", "yes")
    official = Question(1, 7, "Is there a dog?", "is there a", "yes/no", ("no", "yes", "yes"), "yes", "val2014")
    assert asked_of(official) == Asked("val20147", "is there a", "yes")
    assert asked_of(Question(1, 7, "Is it?", "is", "yes/no", ("no", "yes", "yes"))).answer == "yes"
    with pytest.raises(InvalidValue, match="question 1: has no answer"):
        asked_of(Question(1, 7, "Is it?"))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"strength": 1.1}, "strength"),
        ({"odds": 0.5}, "odds"),
        ({"rare": 1.0}, "rare"),
        ({"least": 0}, "least"),
        ({"sides": {"train": 1.0}}, "shares of train"),
        ({"sides": {"train": 0.5, "validation": 0.1, "test_same": 0.1, "test_changed": 0.1}}, "not to 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(values: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        PriorSettings(**values)  # type: ignore[arg-type]
