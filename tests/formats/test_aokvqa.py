from __future__ import annotations

import json
from pathlib import Path

import pytest

from saywhere.core.errors import InvalidFile
from saywhere.formats import aokvqa, registry
from saywhere.formats.aokvqa import KnowledgeQuestion
from saywhere.formats.record import InvalidRecord

GOOD = {
    "split": "train",
    "image_id": 299207,
    "question_id": "22MexNkBPpdZGX6sxbxVBH",
    "question": "What is the man by the bags awaiting?",
    "choices": ["skateboarder", "train", "delivery", "cab"],
    "correct_choice_idx": 3,
    "direct_answers": ["ride", "ride", "bus"],
    "difficult_direct_answer": False,
    "rationales": ["A train would not be on the street."],
}


def written(tmp_path: Path, *questions: dict[str, object]) -> Path:
    (tmp_path / "a.json").write_text(json.dumps(questions))
    return tmp_path / "a.json"


def test_a_question_has_its_choices_answers_and_reasons(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    (one,) = aokvqa.read(path)
    assert isinstance(one, KnowledgeQuestion)
    assert (one.correct, one.answer, one.answer_type, one.question_type) == ("cab", "ride", "other", "what is")
    assert one.rationales == ("A train would not be on the street.",)
    assert registry.detect(path).name == "aokvqa"


@pytest.mark.parametrize(("answers", "kind"), [(["no", "yes", "no"], "yes/no"), (["3"], "number"), ([], "other")])
def test_the_type_of_an_answer_follows_from_what_most_people_wrote(
    answers: list[str], kind: str, tmp_path: Path
) -> None:
    (one,) = aokvqa.read(written(tmp_path, GOOD | {"direct_answers": answers}))
    assert isinstance(one, KnowledgeQuestion)
    assert one.answer_type == kind


@pytest.mark.parametrize(
    ("change", "words"),
    [({"correct_choice_idx": 4}, "calls 4 correct"), ({"question": " "}, "has no text"), ({"choices": 3}, "choices")],
)
def test_a_bad_question_is_a_bad_record_with_its_place(change: dict[str, object], words: str, tmp_path: Path) -> None:
    first, bad, last = aokvqa.read(written(tmp_path, GOOD, GOOD | change, GOOD))
    assert first == last
    assert isinstance(bad, InvalidRecord)
    assert bad.where.startswith("[1]")
    assert words in f"{bad.where} {bad.reason}"


def test_an_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"questions": [GOOD]}))
    with pytest.raises(InvalidFile, match="list"):
        list(aokvqa.read(tmp_path / "a.json"))
