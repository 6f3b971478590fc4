"""Questions as files: VQA v2's questions and annotations, and the boxes to look at in a third file.

    NAME.json              {"questions": [{"image_id", "question", "question_id"}], …}
    NAME.annotations.json  {"annotations": [{"question_id", "image_id", "question_type", "answer_type",
                           "multiple_choice_answer", "answers": [{"answer", "answer_confidence", "answer_id"}]}], …}
    NAME.attention.json    {"attention": [{"question_id", "image_id", "boxes_xyxy", "classes"}], …}

Boxes are fractions of the photo. Questions are numbered from 1. Photos that COCO names by twelve digits have their
number as image_id, as in VQA v2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from saywhere.atomic import write_atomic
from saywhere.build.box_questions import BoxQuestion
from saywhere.core.errors import InvalidFile
from saywhere.core.types import Floats, owned
from saywhere.formats.files import read_bytes
from saywhere.formats.vqa import Question


def beside(path: Path, kind: str) -> Path:
    """The file of "annotations" or "attention" that belongs to a file of questions."""
    return path.with_name(f"{path.stem}.{kind}.json")


def write_box_questions(path: Path, questions: Sequence[BoxQuestion], info: Mapping[str, Any]) -> tuple[Path, ...]:
    """Write the three files, each atomically; their names."""
    if path.suffix != ".json":
        raise InvalidFile(path, "is no name for questions", "it should end in .json")
    asked = [
        Question(number, _image_id(one.image), one.text, one.question_type, one.answer_type, one.answers, one.answer)
        for number, one in enumerate(questions, 1)
    ]
    attention = [
        {
            "question_id": number,
            "image_id": _image_id(one.image),
            "boxes_xyxy": one.boxes_xyxy.round(6).tolist(),
            "classes": one.classes,
        }
        for number, one in enumerate(questions, 1)
    ]
    files = path, beside(path, "annotations"), beside(path, "attention")
    write_vqa(files[0], files[1], asked, info)
    _write(files[2], {"info": info, "attention": attention})
    return files


def write_vqa(questions: Path, annotations: Path, values: Sequence[Question], info: Mapping[str, Any]) -> None:
    """Write VQA v2's two files. Answers that the values do not have are not written."""
    asked = [_with_split(one, {"image_id": one.image_id, "question": one.text}) for one in values]
    answered = [
        _with_split(
            one,
            {
                "image_id": one.image_id,
                "question_type": one.question_type,
                "answer_type": one.answer_type,
                "multiple_choice_answer": one.multiple_choice_answer,
                "answers": [
                    {"answer": answer, "answer_confidence": "yes", "answer_id": person}
                    for person, answer in enumerate(one.answers, 1)
                ],
            },
        )
        for one in values
    ]
    _write(questions, {"info": info, "task_type": "Open-Ended", "questions": asked})
    _write(annotations, {"info": info, "annotations": answered})


def read_attention(path: str | Path) -> dict[int | str, Floats]:
    """Question id → (n, 4) boxes to look at, fractions of the photo; n is 0 where what is asked for is not there."""
    try:
        rows = msgspec.json.decode(read_bytes(path), type=_Attention).attention
    except msgspec.DecodeError as error:
        raise InvalidFile(path, f"is not boxes to look at: {error}") from error
    return {row.question_id: owned(row.boxes_xyxy, f"question {row.question_id}", (None, 4)) for row in rows}


class _Looked(msgspec.Struct, frozen=True):
    question_id: int | str
    boxes_xyxy: list[tuple[float, float, float, float]]


class _Attention(msgspec.Struct, frozen=True):
    attention: list[_Looked]


def _with_split(question: Question, entry: dict[str, Any]) -> dict[str, Any]:
    split = {"coco_split": question.coco_split} if question.coco_split else {}
    return {"question_id": question.question_id, **split, **entry}


def _image_id(image: str) -> int | str:
    return int(image) if len(image) == 12 and image.isascii() and image.isdigit() else image


def _write(path: Path, content: Mapping[str, Any]) -> None:
    with write_atomic(path) as file:
        file.write(msgspec.json.encode(content))
