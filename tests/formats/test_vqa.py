from __future__ import annotations

import json
from pathlib import Path

import pytest

from saywhere.core.errors import InvalidFile
from saywhere.formats import vqa
from saywhere.formats.record import InvalidRecord
from saywhere.formats.vqa import Question

QUESTION = {"question_id": 5000, "image_id": 50, "question": "How many cats?"}
TEN = ["2"] * 8 + ["3", "two"]
ANSWERS = {
    "question_id": 5000,
    "image_id": 50,
    "question_type": "how many",
    "answer_type": "number",
    "multiple_choice_answer": "2",
    "answers": [{"answer": a, "answer_confidence": "yes", "answer_id": i + 1} for i, a in enumerate(TEN)],
}
JOINED = Question(5000, 50, "How many cats?", "how many", "number", tuple(TEN), "2")


def write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_questions_and_answers_are_joined_by_question(tmp_path: Path) -> None:
    questions = write(tmp_path / "q.json", {"info": {}, "questions": [QUESTION], "license": {}})
    assert list(vqa.read(questions)) == [Question(5000, 50, "How many cats?")]
    answers = write(tmp_path / "a.json", {"info": {}, "annotations": [ANSWERS], "data_type": "mscoco"})
    assert list(vqa.read(questions, answers)) == [JOINED]


def test_the_bare_lists_of_vqa_cp_are_read_with_the_split_of_each_image(tmp_path: Path) -> None:
    questions = write(tmp_path / "vqacp_v2_train_questions.json", [QUESTION | {"coco_split": "val2014"}])
    answers = write(tmp_path / "vqacp_v2_train_annotations.json", [ANSWERS | {"coco_split": "val2014"}])
    (value,) = vqa.read(questions, answers)
    assert isinstance(value, Question)
    assert (value.coco_split, value.answers) == ("val2014", JOINED.answers)


@pytest.mark.parametrize("bare", [True, False])
def test_answers_alone_are_recognised_and_refused_with_a_hint(bare: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", [ANSWERS] if bare else {"annotations": [ANSWERS]})
    assert vqa.sniff(path, path.read_bytes())
    with pytest.raises(InvalidFile, match="holds answers, not questions"):
        list(vqa.read(path))


@pytest.mark.parametrize(
    ("question", "answers", "words"),
    [
        (QUESTION | {"question": " "}, ANSWERS, ["has no text"]),
        (QUESTION, ANSWERS | {"image_id": 51}, ["its answers 51"]),
        (QUESTION, ANSWERS | {"answers": []}, ["has no answers"]),
        (QUESTION, ANSWERS | {"answers": [{"answer": 2}]}, ["answers[0].answer", "has no answers"]),
        (QUESTION | {"question_id": 1}, ANSWERS, ["question 1 has no answers", "answers question 5000"]),
    ],
)
def test_what_does_not_fit_together_is_a_bad_record(
    question: dict[str, object], answers: dict[str, object], words: list[str], tmp_path: Path
) -> None:
    other = ({**QUESTION, "question_id": 7}, {**ANSWERS, "question_id": 7})
    questions = write(tmp_path / "q.json", [question, other[0]])
    values = list(vqa.read(questions, write(tmp_path / "a.json", [answers, other[1]])))
    assert [value.question_id for value in values if isinstance(value, Question)] == [7]
    bad = [str(value) for value in values if isinstance(value, InvalidRecord)]
    assert len(bad) == len(words)
    assert all(word in reason for word, reason in zip(words, bad, strict=True))


def test_a_question_answered_twice_keeps_its_first_answers(tmp_path: Path) -> None:
    again = ANSWERS | {"multiple_choice_answer": "3"}
    questions = write(tmp_path / "q.json", [QUESTION])
    bad, value = vqa.read(questions, write(tmp_path / "a.json", [ANSWERS, again]))
    assert isinstance(bad, InvalidRecord)
    assert (bad.where, bad.path) == ("[1]", str(tmp_path / "a.json"))
    assert value == JOINED
