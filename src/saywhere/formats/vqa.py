"""VQA v2 (Goyal et al., 2017) and VQA-CP v2 (Agrawal et al., 2018): questions, and their answers in a second file.

    questions    {"questions": [{"question_id", "image_id", "question"}], …}
    answers      {"annotations": [{"question_id", "image_id", "question_type", "answer_type", "multiple_choice_answer",
                 "answers": [{"answer", "answer_confidence", "answer_id"}]}], …}, ten answers by ten people

VQA-CP has the bare lists instead, with a "coco_split" beside each image_id, because its images come from two of COCO's
splits. `read(questions)` gives the questions alone, `read(questions, answers)` joins both by question_id.

One value for each question, in the file's order. With answers, bad records are also: a question without answers, one
answered twice, one whose image differs in the two files, and answers to no question of the file (these come last). Any
number of answers from one on is taken, since later data sets have fewer than ten; their confidences are not kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.formats._documents import (
    Decoded,
    Id,
    Node,
    decoded,
    document,
    item_keys,
    listed,
    member_item_keys,
    members,
)
from saywhere.formats.record import InvalidRecord

_DOCUMENT_KEYS = frozenset({"info", "task_type", "data_type", "license", "data_subtype", "questions", "annotations"})


@dataclass(frozen=True, slots=True)
class Question:
    """One question about one image.

    coco_split: "train2014" or "val2014" where the file says so, as VQA-CP does. question_type: how it begins, such as
    "how many". answer_type: "yes/no", "number" or "other". answers: one by each person asked, ten in VQA v2, none if
    unknown. multiple_choice_answer: the most frequent one.
    """

    question_id: int | str
    image_id: int | str
    text: str
    question_type: str = ""
    answer_type: str = ""
    answers: tuple[str, ...] = ()
    multiple_choice_answer: str = ""
    coco_split: str = ""

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise InvalidValue(f"question {self.question_id}", "has no text")


class _Question(msgspec.Struct, frozen=True, gc=False):
    question_id: Id
    image_id: Id
    question: str
    coco_split: str = ""


class _HumanAnswer(msgspec.Struct, frozen=True, gc=False):
    answer: str


class _Answers(msgspec.Struct, frozen=True, gc=False):
    question_id: Id
    image_id: Id
    answers: list[_HumanAnswer]
    question_type: str = ""
    answer_type: str = ""
    multiple_choice_answer: str = ""


_QUESTION = msgspec.json.Decoder(_Question)
_ANSWERS = msgspec.json.Decoder(_Answers)


def sniff(path: Path, head: bytes) -> bool:
    """Whether the file holds such questions, or answers to them."""
    keys = item_keys(head)
    if keys & {"choices", "direct_answers"}:
        return False  # A-OKVQA's
    if keys >= {"question_id", "question", "image_id"} or _holds_answers(keys):
        return True
    questions = member_item_keys(path, head, "questions", _DOCUMENT_KEYS)
    return questions >= {"question_id", "question"} or _holds_answers(
        member_item_keys(path, head, "annotations", _DOCUMENT_KEYS)
    )


def read(path: str | Path, annotations: str | Path | None = None) -> Iterator[Question | InvalidRecord]:
    """One value for each question. annotations: the file with their answers."""
    nodes, problems = _entries(path, "questions")
    answers: dict[int | str, Decoded[_Answers]] = {}
    if annotations is not None:
        answer_nodes, answer_problems = _entries(annotations, "annotations")
        for item in decoded(answer_nodes, _ANSWERS):
            if isinstance(item, InvalidRecord):
                yield item
            elif answers.setdefault(item.value.question_id, item) is not item:
                yield item.node.invalid(f"question {item.value.question_id} was answered before")
        yield from answer_problems
    asked: set[int | str] = set()
    for question in decoded(nodes, _QUESTION):
        if isinstance(question, InvalidRecord):
            yield question
            continue
        asked.add(question.value.question_id)
        try:
            yield _joined(question.value, answers if annotations is not None else None)
        except InvalidValue as error:
            yield question.node.invalid(f"{error.what} {error.reason}")
    yield from problems
    for question_id, item in answers.items():
        if question_id not in asked:
            yield item.node.invalid(f"answers question {question_id}, which is not in {path}")


def _entries(path: str | Path, name: str) -> tuple[Iterator[Node | InvalidRecord], list[InvalidRecord]]:
    """The list of questions or annotations, bare or a member of the document."""
    root = document(path)
    bare = root.kind == "list"
    found, problems = ({}, []) if bare else members(root, "questions", "annotations")
    answers = _holds_answers(item_keys(root.text[: 2**16])) if bare else name not in found and "annotations" in found
    if name == "questions" and answers:
        hint = "read it together with its questions: read(questions, annotations=…)"
        raise InvalidFile(path, "holds answers, not questions", hint)
    return (root.items() if bare else listed(found, name, root.path)), problems


def _joined(question: _Question, answers: dict[int | str, Decoded[_Answers]] | None) -> Question:
    plain = Question(question.question_id, question.image_id, question.question, coco_split=question.coco_split)
    if answers is None:
        return plain
    item = answers.get(question.question_id)
    if item is None or not item.value.answers:
        raise InvalidValue(f"question {question.question_id}", "has no answers")
    given = item.value
    if given.image_id != question.image_id:
        raise InvalidValue(
            f"question {question.question_id}", f"is about image {question.image_id}, its answers {given.image_id}"
        )
    return Question(
        question.question_id,
        question.image_id,
        question.question,
        given.question_type,
        given.answer_type,
        tuple(answer.answer for answer in given.answers),
        given.multiple_choice_answer,
        question.coco_split,
    )


def _holds_answers(keys: frozenset[str]) -> bool:
    return keys >= {"question_id", "answers"}
