"""A-OKVQA (Schwenk et al., ECCV 2022): questions about COCO photos that need some knowledge of the world, one list.

    [{"split", "image_id", "question_id", "question", "choices": [four], "correct_choice_idx",
      "direct_answers": [ten], "difficult_direct_answer", "rationales": [three]}]

One value for each question, in the file's order. The test file gives no answers. A right choice that is none of the
choices is a bad record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.formats._documents import Id, built, decoded, document, item_keys
from saywhere.formats.record import InvalidRecord

_YES_NO = frozenset({"yes", "no"})
_FIRST_WORDS = 2


@dataclass(frozen=True, slots=True)
class KnowledgeQuestion:
    """One question about one image.

    choices: four answers to choose from; correct: the right one, "" if unknown. answers: what people wrote without
    choices. difficult: whether these agree too little to be scored. rationales: why people think so.
    """

    question_id: int | str
    image_id: int | str
    text: str
    choices: tuple[str, ...] = ()
    correct: str = ""
    answers: tuple[str, ...] = ()
    difficult: bool = False
    rationales: tuple[str, ...] = ()
    split: str = ""

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise InvalidValue(f"question {self.question_id}", "has no text")

    @property
    def question_type(self) -> str:
        """How it begins, in small letters: "what is"."""
        return " ".join(self.text.lower().split()[:_FIRST_WORDS])

    @property
    def answer(self) -> str:
        """What most people wrote, of equally many the first; "" where there are no answers."""
        return Counter(self.answers).most_common(1)[0][0] if self.answers else ""

    @property
    def answer_type(self) -> str:
        """ "yes/no", "number" or "other", as VQA calls them."""
        if self.answer in _YES_NO:
            return "yes/no"
        return "number" if self.answer.isdigit() else "other"


class _Question(msgspec.Struct, frozen=True, gc=False):
    question_id: Id
    image_id: Id
    question: str
    choices: list[str] = []
    correct_choice_idx: int | None = None
    direct_answers: list[str] = []
    difficult_direct_answer: bool = False
    rationales: list[str] = []
    split: str = ""


_QUESTION = msgspec.json.Decoder(_Question)


def sniff(path: Path, head: bytes) -> bool:  # noqa: ARG001 - the content tells
    """Whether the file is a list of such questions."""
    keys = item_keys(head)
    return keys >= {"question_id", "question", "image_id"} and bool(keys & {"choices", "direct_answers"})


def read(path: str | Path) -> Iterator[KnowledgeQuestion | InvalidRecord]:
    """One value for each question."""
    root = document(path)
    if root.kind != "list":
        raise InvalidFile(path, "should be a list of questions, not an object")
    return built(decoded(root.items(), _QUESTION), _made)


def _made(one: _Question) -> KnowledgeQuestion:
    right = one.correct_choice_idx
    if right is not None and not 0 <= right < len(one.choices):
        raise InvalidValue(f"question {one.question_id}", f"has {len(one.choices)} choices, and calls {right} correct")
    return KnowledgeQuestion(
        one.question_id,
        one.image_id,
        one.question,
        tuple(one.choices),
        "" if right is None else one.choices[right],
        tuple(one.direct_answers),
        one.difficult_direct_answer,
        tuple(one.rationales),
        one.split,
    )
