"""Questions: answers that a recount confirms, and priors that hold exactly."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.world import CHANGED_PRIORS, KINDS, TYPES, Scene, SceneQuestion, ask, candidates, scenes

MANY = {kind.many: name for name, kind in KINDS.items()}


@pytest.fixture(scope="module")
def some() -> list[Scene]:
    return list(scenes(150, seed=21, size=64))


@pytest.fixture(scope="module")
def asked(some: list[Scene]) -> list[tuple[Scene, SceneQuestion]]:
    return [(scene, question) for scene in some for question in candidates(scene)]


def _of(asked: list[tuple[Scene, SceneQuestion]], question_type: str) -> list[tuple[Scene, SceneQuestion]]:
    found = [(s, q) for s, q in asked if q.question_type == question_type]
    assert len(found) > 50
    return found


def test_every_type_is_asked(asked: list[tuple[Scene, SceneQuestion]]) -> None:
    assert {q.question_type for _, q in asked} == set(TYPES)
    assert all(q.text.lower().startswith(q.question_type) for _, q in asked if q.question_type != "is there a")


def test_numbers_are_those_of_a_recount(asked: list[tuple[Scene, SceneQuestion]]) -> None:
    for scene, question in _of(asked, "how many"):
        name = re.fullmatch(r"How many (.+) are there\?", question.text)
        assert name is not None
        assert int(question.answer) == sum(t.kind == MANY[name[1]] for t in scene.things)


def test_what_is_said_to_be_there_is_there(asked: list[tuple[Scene, SceneQuestion]]) -> None:
    for scene, question in _of(asked, "is there a"):
        name = re.fullmatch(r"Is there an? (.+) in the picture\?", question.text)
        assert name is not None
        assert (question.answer == "yes") == any(t.kind == name[1] for t in scene.things)


def test_colours_are_those_of_the_only_thing_of_its_kind(asked: list[tuple[Scene, SceneQuestion]]) -> None:
    for scene, question in _of(asked, "what color is the"):
        (thing,) = [t for t in scene.things if t.kind == question.kind]
        assert question.answer == thing.colour
        assert scene.things[question.things[0]] is thing


def test_yes_and_no_about_colours_and_poses_are_right(asked: list[tuple[Scene, SceneQuestion]]) -> None:
    for scene, question in _of(asked, "is the"):
        (thing,) = [t for t in scene.things if t.kind == question.kind]
        last = question.text.rstrip("?").split()[-1]
        assert (question.answer == "yes") == (last in (thing.colour, thing.pose)), question.text


def test_what_is_on_the_table_is_on_the_table(asked: list[tuple[Scene, SceneQuestion]]) -> None:
    checked = 0
    for scene, question in _of(asked, "what is"):
        name = re.fullmatch(r"What is on the (.+)\?", question.text)
        if name:
            on = {t.kind for t in scene.things if t.on is not None and scene.things[t.on].kind == name[1]}
            assert on == {question.answer}
            checked += 1
        side = re.fullmatch(r"What is to the (left|right) of the (.+)\?", question.text)
        if side:
            (other,) = [t for t in scene.things if t.kind == side[2]]
            answers = [t for t in scene.things if t.kind == question.answer]
            assert any((t.centre[0] < other.centre[0]) == (side[1] == "left") for t in answers)
            checked += 1
    assert checked > 30


def test_places_are_those_of_the_scene(asked: list[tuple[Scene, SceneQuestion]]) -> None:
    for scene, question in _of(asked, "where was"):
        assert question.answer == scene.place
    for scene, question in _of(asked, "where is the"):
        (thing,) = [t for t in scene.things if t.kind == question.kind]
        assert thing.on is not None
        assert question.answer.split(" ", 1)[1] == scene.things[thing.on].kind


def test_nobody_is_asked_about_trees_beside_a_pine_tree(asked: list[tuple[Scene, SceneQuestion]]) -> None:
    beside = [q for s, q in asked if any(t.kind == "pine tree" for t in s.things)]
    assert beside
    assert not [q for q in beside if q.kind == "tree"]


def test_ten_people_answer_and_most_of_them_rightly(asked: list[tuple[Scene, SceneQuestion]]) -> None:
    for _, question in asked:
        assert len(question.answers) == 10
        assert Counter(question.answers).most_common(1)[0][0] == question.answer
    assert any(len(set(q.answers)) > 1 for _, q in asked)


def _shares(questions: tuple[SceneQuestion, ...], question_type: str) -> dict[str, float]:
    answers = Counter(q.answer for q in questions if q.question_type == question_type)
    return {answer: n / answers.total() for answer, n in answers.items()}


@pytest.mark.parametrize("split", ["train", "test"])
def test_answers_are_distributed_as_the_priors_say(some: list[Scene], split: str) -> None:
    questions = ask(some, priors=CHANGED_PRIORS[split], per_scene=4)
    for question_type, prior in CHANGED_PRIORS[split].items():
        shares = _shares(questions, question_type)
        assert set(shares) == {a for a, p in prior.items() if p > 0}
        for answer, share in prior.items():
            assert shares[answer] == pytest.approx(share, abs=0.03)


def test_priors_can_be_set_for_one_kind_alone(some: list[Scene]) -> None:
    priors = {"what color is the/man": {"blue": 0.5, "red": 0.5}}
    questions = ask(some, priors=priors, per_scene=30)
    men = Counter(q.answer for q in questions if q.question_type == "what color is the" and q.kind == "man")
    assert set(men) == {"blue", "red"}
    assert men["blue"] == men["red"]
    assert len(_shares(tuple(q for q in questions if q.kind != "man"), "what color is the")) > 5


def test_without_priors_types_come_in_equal_numbers(some: list[Scene]) -> None:
    numbers = Counter(q.question_type for q in ask(some, per_scene=4))
    assert max(numbers.values()) - min(numbers.values()) <= 1
    assert sum(numbers.values()) == pytest.approx(4 * len(some), abs=len(TYPES))


def test_a_prior_that_cannot_be_met_gives_fewer_questions_in_the_same_shares(some: list[Scene]) -> None:
    questions = ask(some, priors={"how many": {"1": 0.5, "3": 0.5}}, per_scene=50)
    shares = _shares(questions, "how many")
    assert shares["1"] == pytest.approx(0.5)
    assert sum(q.question_type == "how many" for q in questions) < 50 * len(some) / len(TYPES)


@pytest.mark.parametrize(
    ("priors", "error", "words"),
    [
        ({"how much": {"1": 1.0}}, UnknownName, "how many"),
        ({"how many": {"1": 0.5}}, InvalidValue, "distribution"),
        ({"how many": {"1": 1.5, "2": -0.5}}, InvalidValue, "distribution"),
        ({"how many": {"1": 0.5, "eleven": 0.5}}, InvalidValue, "eleven"),
    ],
)
def test_impossible_priors_are_refused(
    some: list[Scene], priors: dict[str, dict[str, float]], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ask(some[:20], priors=priors)


def test_a_negative_number_of_questions_is_refused(some: list[Scene]) -> None:
    with pytest.raises(InvalidValue, match="per_scene"):
        ask(some[:2], per_scene=-1)


def test_questions_are_the_same_by_seed(some: list[Scene]) -> None:
    assert ask(some[:30], seed=1) == ask(some[:30], seed=1)
    assert ask(some[:30], seed=1) != ask(some[:30], seed=2)
