"""The answering network: what it learns in a planted world, how it is kept, and what it refuses."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.models.answerer.answering import QuestionAnswerer
from saywhere.models.answerer.batch import collate
from saywhere.models.answerer.judgement import CANNOT_KNOW, CalibrationCurve, Judgement, KindRecord, fit_judgement
from saywhere.models.answerer.kinds import KINDS, OTHER, answer_group, question_kind
from saywhere.models.answerer.network import AnswerNet
from saywhere.models.common.answers import AnswerVocabulary
from saywhere.models.region_features import RegionFeatures
from saywhere.models.registry import open_answerer
from tests.models.answerer_world import (
    ANSWERS,
    CONFIG,
    REGION_SIZE,
    WordVectors,
    answers_to,
    drawn_items,
    photo_of,
    taught,
)

WORDS = (
    "what",
    "color",
    "is",
    "the",
    "cup",
    "dog",
    "car",
    "how",
    "many",
    "cups",
    "dogs",
    "cars",
    "are",
    "there",
    "why",
)
LEARNT, NOT_LEARNT = KindRecord(100, 50, 0.6, 0.3), KindRecord(100, 50, 0.31, 0.3)
JUDGEMENT = Judgement(
    {OTHER: CalibrationCurve((0.0, 1.0), (0.0, 0.9))},
    {"colour": LEARNT, "number": LEARNT, "why": NOT_LEARNT},
    WORDS,
    least=0.2,
)


@cache
def network() -> AnswerNet:
    return taught().attach(ANSWERS, JUDGEMENT)


def answerer() -> QuestionAnswerer:
    return QuestionAnswerer(network(), WordVectors)


def image(*things: tuple[str, str]) -> RegionFeatures:
    return RegionFeatures(*photo_of(things, np.random.default_rng(0)))


def test_of_few_questions_more_is_asked_before_a_kind_counts_as_learnt() -> None:
    assert not KindRecord(300, 21, 0.15, 0.11).learnt, "of 21 it may be chance"
    assert KindRecord(300, 2000, 0.15, 0.11).learnt
    assert not KindRecord(300, 2000, 0.15, 0.13).learnt
    assert not KindRecord(300, 7, 0.9, 0.1).learnt


def test_colours_and_numbers_of_a_planted_world_are_learnt_in_seconds() -> None:
    logits, targets = answers_to(network(), drawn_items(300, 0))
    right = targets.gather(1, logits.argmax(dim=1, keepdim=True))[:, 0]
    colours = targets[:, :3].sum(dim=1) > 0
    assert right[colours].mean() > 0.9
    assert right[~colours].mean() > 0.8


def test_the_same_question_has_another_answer_on_another_photo() -> None:
    [red, blue] = answerer().answer([image(("cup", "red")), image(("cup", "blue"))], ["What color is the cup?"] * 2)
    assert (red.text, blue.text) == ("red", "blue")


def test_a_question_alone_and_among_others_has_the_same_answer() -> None:
    photos = [image(("cup", "red"), ("dog", "blue")), image(("car", "green"))]
    together = answerer().answer(photos, ["What color is the dog?", "How many cars are there?"])
    alone = answerer().answer(photos[:1], ["What color is the dog?"])[0]
    assert alone.text == together[0].text
    assert alone.probability == pytest.approx(together[0].probability, abs=1e-5)
    assert alone.attention.shape == (3,)
    assert alone.attention.sum() == pytest.approx(1, abs=1e-4)


def test_pointing_chooses_among_things_of_one_kind() -> None:
    photo = image(("cup", "red"), ("cup", "green"))
    asked = ["What color is the cup?"] * 2
    [first, second] = answerer().answer([photo, photo], asked, [[0, 1, 0], [0, 0, 1]])
    assert (first.text, second.text) == ("red", "green")


def test_a_kind_of_question_that_was_not_learnt_is_refused_with_its_reason() -> None:
    [given] = answerer().answer([image(("cup", "red"))], ["Why is the cup there?"])
    assert given.text == CANNOT_KNOW
    assert "the reason of something" in given.reason
    assert given.ranked[0][0] in ANSWERS


def test_a_word_that_no_question_had_is_refused_by_name() -> None:
    [given] = answerer().answer([image(("cup", "red"))], ["What color is the zebra?"])
    assert given.text == CANNOT_KNOW
    assert given.unknown == ("zebra",)
    assert "'zebra'" in given.reason


def test_an_answer_that_would_seldom_be_right_is_not_given() -> None:
    unsure = Judgement({OTHER: CalibrationCurve((0.0, 1.0), (0.0, 0.1))}, JUDGEMENT.kinds, WORDS, least=0.2)
    verdict = unsure.verdict("What color is the cup?", 0.9)
    assert verdict.probability == pytest.approx(0.09)
    assert "right 9% of the time" in verdict.reason


def test_probabilities_are_those_of_the_curve() -> None:
    [given] = answerer().answer([image(("cup", "red"))], ["What color is the cup?"])
    logits, _ = answers_to(network(), [answerer().item(image(("cup", "red")), "What color is the cup?", None)])
    assert given.probability == pytest.approx(0.9 * float(logits.detach().softmax(dim=1).max()), abs=1e-4)
    assert not given.reason
    assert [chance for _, chance in given.ranked] == sorted((chance for _, chance in given.ranked), reverse=True)


def test_why_an_answer_was_given_points_at_the_thing_that_was_asked_for() -> None:
    photo = image(("cup", "red"), ("dog", "blue"))
    score = answerer().score(photo, "What color is the dog?")
    assert score.word == "blue"
    everything = torch.ones(3, 3, dtype=torch.bool)
    without = everything & ~torch.eye(3, dtype=torch.bool)
    falls = score(score.features.expand(3, -1, -1), everything, torch.zeros(3)) - score(
        score.features.expand(3, -1, -1), without, torch.zeros(3)
    )
    assert int(falls.argmax()) == 2


def test_saved_and_loaded_it_answers_the_same(tmp_path: Path) -> None:
    network().save_pretrained(tmp_path)
    opened = open_answerer(tmp_path)
    assert opened.judgement == JUDGEMENT
    assert opened.region_size == REGION_SIZE
    logits, _ = answers_to(network(), drawn_items(20, 5))
    again, _ = answers_to(opened.network, drawn_items(20, 5))
    torch.testing.assert_close(again, logits, atol=0.1, rtol=0.02)
    assert (again.argmax(dim=1) == logits.argmax(dim=1)).float().mean() > 0.9


def test_a_torn_folder_is_refused(tmp_path: Path) -> None:
    network().save_pretrained(tmp_path)
    (tmp_path / "judgement.json").write_text(json.dumps({"curves": {}}))
    with pytest.raises(InvalidFile, match=r"judgement\.json"):
        AnswerNet.from_pretrained(tmp_path)


def test_a_blind_network_answers_without_the_photo() -> None:
    blind = AnswerNet.fresh(type(CONFIG)(**{**CONFIG.to_dict(), "blind": True}), 0).eval()
    first, _ = answers_to(blind, drawn_items(8, 1))
    changed = [type(one)(one.regions + 1, one.boxes, one.asked) for one in drawn_items(8, 1)]
    second, _ = answers_to(blind, changed)
    torch.testing.assert_close(first, second)


def test_padding_changes_no_answer() -> None:
    items = drawn_items(6, 3)
    together, _ = answers_to(network(), items)
    alone = torch.cat([answers_to(network(), [one])[0] for one in items])
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("question", "pointed", "wrong"),
    [
        ("   ?", None, "has no word"),
        (7, None, "not text"),
        ("What color is the cup?", [1.0], "has shape"),
        ("What color is the cup?", [0.0, 0.0], "points at no region"),
        ("What color is the cup?", [1.0, float("nan")], "negative, NaN or infinite"),
    ],
)
def test_bad_questions_and_pointings_are_named(question: object, pointed: list[float] | None, wrong: str) -> None:
    with pytest.raises(InvalidValue, match=wrong):
        answerer().answer([image(("cup", "red"))], [question], [pointed])  # type: ignore[list-item]


def test_photos_of_other_features_and_other_encoders_are_refused() -> None:
    with pytest.raises(InvalidValue, match="features of size 3"):
        answerer().answer([RegionFeatures(np.ones((1, 3)), [(0, 0, 1, 1)])], ["What color is the cup?"])

    class Other(WordVectors):
        size = 5

    with pytest.raises(InvalidValue, match="5 numbers a token"):
        QuestionAnswerer(network(), Other).answer([image(("cup", "red"))], ["What color is the cup?"])


def test_answers_of_another_number_and_an_empty_batch_are_refused() -> None:
    with pytest.raises(InvalidValue, match="answer vocabulary"):
        AnswerNet(CONFIG).attach(AnswerVocabulary(("yes",)))
    with pytest.raises(InvalidValue, match="does not know"):
        QuestionAnswerer(AnswerNet(CONFIG))
    with pytest.raises(InvalidValue, match="holds no item"):
        collate([], 3)


@pytest.mark.parametrize(
    ("text", "kind", "group"),
    [
        ("Why is he sad?", "why", "other"),
        ("What time is it?", "time", "other"),
        ("What time of day is it?", "time of day", "other"),
        ("What does the sign say?", "reading", "other"),
        ("What brand is the laptop?", "brand", "other"),
        ("Who is this?", "who", "other"),
        ("How long is the train?", "how old or long", "other"),
        ("What color is the cat?", "colour", "other"),
        ("How many dogs are there?", "number", "number"),
        ("Is the dog to the left of the cat?", "side", "yes/no"),
        ("Are they happy?", "yes or no", "yes/no"),
        ("Is there a dog?", "presence of a known kind", "yes/no"),
        ("Are there shadows?", "presence", "yes/no"),
        ("Is this a cup?", "naming", "yes/no"),
        ("What is this?", "naming", "other"),
        ("Is it day or night?", "yes or no", "other"),
        ("Tell me", "another", "other"),
    ],
)
def test_what_a_question_asks_for_follows_from_its_words(text: str, kind: str, group: str) -> None:
    assert (question_kind(text), answer_group(text)) == (kind, group)
    assert kind in KINDS


def test_calibration_tells_how_often_answers_are_right() -> None:
    rng = np.random.default_rng(0)
    said = rng.random(4000)
    right = (rng.random(4000) < said**2).astype(np.float64)
    curve = CalibrationCurve.fit(said, right)
    assert curve.at(0.5) == pytest.approx(0.25, abs=0.06)
    assert curve.at(0.9) == pytest.approx(0.81, abs=0.06)
    assert list(curve.right) == sorted(curve.right)


def test_kinds_where_the_photo_does_not_help_are_those_that_are_refused() -> None:
    questions = ["What color is it?"] * 200 + ["Why is it so?"] * 50 + ["Who is he?"] * 3
    right = np.array([1.0] * 120 + [0.0] * 80 + [1.0] * 15 + [0.0] * 35 + [1.0] * 3)
    blind = np.array([1.0] * 60 + [0.0] * 140 + [1.0] * 15 + [0.0] * 35 + [0.0] * 3)
    made = fit_judgement(questions, np.full(253, 0.5), right, blind, {"colour": 900}, ("it", "is"))
    assert made.kinds["colour"] == KindRecord(900, 200, 0.6, 0.3)
    assert not made.refuses_kind("What color is this?")
    assert made.refuses_kind("Why is he here?")
    assert made.refuses_kind("Who is he?"), "three questions are too few to know"


@pytest.mark.parametrize("text", ["", "[]", '{"curves": {}, "kinds": {}, "words": []}', '{"nothing": 1}'])
def test_what_is_no_judgement_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="judgement"):
        Judgement.from_json(text)


@pytest.mark.parametrize("said", [((0.5, 0.2), (0.1, 0.2)), ((0.1,), (0.1, 0.2)), ((), ()), ((0.1,), (1.5,))])
def test_a_curve_that_falls_or_leaves_0_to_1_is_refused(said: tuple[tuple[float, ...], tuple[float, ...]]) -> None:
    with pytest.raises(InvalidValue, match="curve"):
        CalibrationCurve(*said)


def test_what_is_pointed_at_may_be_named_although_people_s_questions_were_not_answered_better() -> None:
    curve = CalibrationCurve((0.0, 1.0), (0.0, 1.0))
    judgement = Judgement({"other": curve}, {"naming": KindRecord(100, 50, 0.6, 0.6)}, ("cup", "is", "this", "a"))
    assert judgement.verdict("Is this a cup?", 0.9).reason
    assert not judgement.verdict("Is this a cup?", 0.9, is_pointed=True).reason
    assert judgement.verdict("Is this a zebra?", 0.9, is_pointed=True).reason, "a word that was never asked"
