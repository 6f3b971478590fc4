from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core.answers import normalise_answer, soft_scores
from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.metrics.vqa import (
    VQAAccuracy,
    YesNo,
    said_yes,
    vqa_accuracy,
    yes_no_scores,
)

answers = st.sampled_from(["yes", "no", "2", "two", "a dog", "dog", "t-shirt", "t shirt", "Dog."])
people = st.lists(answers, min_size=10, max_size=10)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("A Dog.", "dog"),
        ("the two dogs", "2 dogs"),
        ("None", "0"),
        ("eleven", "eleven"),
        ("dont know", "don't know"),
        ("couldnt've", "couldn't've"),
        ("its 3 oclock", "its 3 o'clock"),
        ("somebody'd", "somebodyd"),
        ("black/white", "black white"),
        ("black / white", "black white"),
        ("black, white", "black white"),
        ("t-shirt", "t shirt"),
        ("1,000 people", "1000 people"),
        ("1,000/year", "1000year"),
        ("2.5", "2.5"),
        ("U.S.", "us"),
        ("10:30", "10:30"),
        (" red\tand\nblue ", "red and blue"),
        ("the", ""),
        ("", ""),
    ],
)
def test_answers_are_normalised_as_in_the_official_evaluation(answer: str, expected: str) -> None:
    assert normalise_answer(answer) == expected


@pytest.mark.parametrize(("agree", "expected"), [(0, 0.0), (1, 0.3), (2, 0.6), (3, 0.9), (4, 1.0), (10, 1.0)])
def test_accuracy_averages_over_leaving_each_person_out(agree: int, expected: float) -> None:
    human = ["cat"] * agree + ["dog"] * (10 - agree)
    assert vqa_accuracy(["cat"], [human]).overall == pytest.approx(expected)


def leave_one_out(prediction: str, human: list[str]) -> float:
    """The definition, person by person."""
    rounds = []
    for left_out in range(len(human)):
        others = human[:left_out] + human[left_out + 1 :]
        rounds.append(min(others.count(prediction) / 3, 1))
    return sum(rounds) / len(rounds)


@given(answers, people)
def test_accuracy_equals_the_definition_and_lies_between_0_and_1(prediction: str, human: list[str]) -> None:
    accuracy = vqa_accuracy([prediction], [human], normalise="always").overall
    plain = [normalise_answer(answer) for answer in human]
    assert accuracy == pytest.approx(leave_one_out(normalise_answer(prediction), plain))
    assert 0 <= accuracy <= 1


@given(people)
def test_soft_scores_are_the_accuracy_each_answer_would_get(human: list[str]) -> None:
    scores = soft_scores(human)
    assert set(scores.values()) <= {0.3, 0.6, 0.9, 1.0}
    for answer, score in scores.items():
        assert score == pytest.approx(vqa_accuracy([answer], [human], normalise="always").overall)


def test_unanimous_humans_are_compared_to_the_letter_unless_asked_otherwise() -> None:
    human = ["yes"] * 10
    assert vqa_accuracy(["Yes"], [human]).overall == 0.0
    assert vqa_accuracy(["Yes"], [human], normalise="always").overall == 1.0
    assert vqa_accuracy(["Yes"], [["yes"] * 9 + ["no"]]).overall == 1.0


def test_accuracy_is_broken_down_by_both_types() -> None:
    human = [["yes"] * 10, ["2"] * 10, ["red"] * 3 + ["blue"] * 7, ["no"] * 10]
    scores = vqa_accuracy(
        ["yes", "3", "red", "yes"],
        human,
        ["yes/no", "number", "other", "yes/no"],
        ["is the", "how many", "what color", "is there"],
    )
    assert scores.per_item == pytest.approx((1.0, 0.0, 0.9, 0.0))
    assert scores.overall == pytest.approx(1.9 / 4)
    assert scores.by_answer_type == pytest.approx({"yes/no": 0.5, "number": 0.0, "other": 0.9})
    assert scores.by_question_type == pytest.approx(
        {"is the": 1.0, "how many": 0.0, "what color": 0.9, "is there": 0.0}
    )


@given(st.lists(st.tuples(answers, people, st.sampled_from(["yes/no", "number", "other"])), min_size=1, max_size=6))
def test_accuracy_is_the_same_one_by_one(items: list[tuple[str, list[str], str]]) -> None:
    metric = VQAAccuracy()
    metric.update(["x"], [["x", "x"]])
    metric.reset()
    for prediction, human, kind in items:
        metric.update([prediction], [human], [kind])
    predictions, humans, kinds = (list(column) for column in zip(*items, strict=True))
    assert metric.compute() == vqa_accuracy(predictions, humans, kinds)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Yes", True),
        ("no", False),
        ("No, there is none", False),
        ("There is not a dog. Yes.", False),
        ("Yes. There is no doubt", True),
        ("nothing", True),
        ("", True),
    ],
)
def test_free_answers_are_read_as_pope_reads_them(answer: str, expected: bool) -> None:
    assert said_yes(answer) is expected


def test_yes_no_scores_of_a_hand_counted_table() -> None:
    said = [True] * 5 + [False] * 5
    truth = ["yes"] * 3 + ["no"] * 2 + ["yes"] * 1 + ["No "] * 4
    scores = yes_no_scores(said, truth)
    assert (scores.accuracy, scores.precision, scores.recall) == pytest.approx((0.7, 3 / 5, 3 / 4))
    assert scores.f1 == pytest.approx(2 * 0.6 * 0.75 / (0.6 + 0.75))
    assert (scores.yes_rate, scores.items) == (0.5, 10)


def test_yes_no_ratios_of_nothing_are_nan() -> None:
    scores = yes_no_scores(["no", "no"], [False, False])
    assert scores.accuracy == 1.0
    assert all(math.isnan(value) for value in (scores.precision, scores.recall, scores.f1))
    assert yes_no_scores(["yes"], ["no"]).f1 == 0.0


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_yes_no_scores_are_the_same_one_by_one(pairs: list[tuple[bool, bool]]) -> None:
    metric = YesNo()
    metric.update([True], [True])
    metric.reset()
    for said, truth in pairs:
        metric.update(["yes" if said else "no"], [truth])
    whole = yes_no_scores([said for said, _ in pairs], [truth for _, truth in pairs])
    assert repr(metric.compute()) == repr(whole)


def test_always_yes_on_real_pope_labels_scores_the_share_of_yes(shared: Callable[[str], Path]) -> None:
    lines = shared("data/pope/coco_pope_random.json").read_text().splitlines()
    labels = [json.loads(line)["label"] for line in lines]
    scores = yes_no_scores(["Yes, there is."] * len(labels), labels)
    assert scores.precision == scores.accuracy == labels.count("yes") / len(labels)
    assert (scores.recall, scores.yes_rate) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: vqa_accuracy([], []), "no item"),
        (lambda: vqa_accuracy(["a"], []), "0 entries for 1"),
        (lambda: vqa_accuracy(["a"], [["a", "b"]], ["other", "other"]), "2 entries for 1"),
        (lambda: vqa_accuracy(["a"], ["yes"]), "not a list of strings"),
        (lambda: vqa_accuracy(["a"], [["yes"]]), "at least two"),
        (lambda: vqa_accuracy(["a"], [[1, 2]]), "not a list of strings"),  # type: ignore[list-item]
        (lambda: vqa_accuracy([None], [["a", "b"]]), "not text"),  # type: ignore[list-item]
        (lambda: yes_no_scores([], []), "no item"),
        (lambda: yes_no_scores(["yes"], ["maybe"]), "neither yes nor no"),
        (lambda: yes_no_scores([None], ["yes"]), "neither text"),  # type: ignore[list-item]
        (lambda: yes_no_scores(["yes"], []), "1 predictions for 0"),
    ],
)
def test_bad_input_is_named(call, reason: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidValue, match=reason):
        call()


def test_an_unknown_normalisation_is_named() -> None:
    with pytest.raises(UnknownName, match="official"):
        VQAAccuracy(normalise="offical")  # type: ignore[arg-type]
