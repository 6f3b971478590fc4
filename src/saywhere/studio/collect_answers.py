"""What annotators wrote: one line for each answer and each correction (see line_log).

An annotator answers each question about each photo once; a correction puts another answer in the place of the one
before. Further answers to a photo that has enough are kept, too: `AnswerState.of` has the first ones first.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from saywhere.core.errors import InvalidValue
from saywhere.studio.line_log import BadLine, LineLog
from saywhere.studio.participants import check_participant

MOST_TEXT = 300
LEAST_SURE, MOST_SURE = 1, 5
Task = tuple[str, str]
"""A photo's id and a level."""


class AnnotatorAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One answer. photo: its id; file_name: as it was called, for people who read the file.

    confidence: how sure the annotator is, 1 … 5. at: when, ISO 8601. seconds: from showing to answering.
    corrects: this line takes the place of the annotator's answer to the same question before.
    """

    annotator: str
    photo: str
    file_name: str
    level: str
    text: str
    confidence: int
    at: str
    seconds: float | None = None
    corrects: bool = False

    @property
    def task(self) -> Task:
        return (self.photo, self.level)


@dataclass(slots=True)
class AnswerState:
    """What holds. tasks: by photo and level, then by annotator, in the order of first answers.

    people: the same by annotator, then by photo and level.
    """

    tasks: dict[Task, dict[str, AnnotatorAnswer]] = field(default_factory=dict)
    people: dict[str, dict[Task, AnnotatorAnswer]] = field(default_factory=dict)
    bad_lines: list[BadLine] = field(default_factory=list)

    def __iter__(self) -> Iterator[AnnotatorAnswer]:
        return (answer for answers in self.tasks.values() for answer in answers.values())

    def of(self, task: Task) -> list[AnnotatorAnswer]:
        """The answers to one question about one photo, first ones first."""
        return list(self.tasks.get(task, {}).values())

    def by(self, annotator: str) -> dict[Task, AnnotatorAnswer]:
        return self.people.get(annotator, {})

    def check(self, answer: AnnotatorAnswer) -> None:
        """InvalidValue unless the line is right and goes with what holds."""
        check_answer(answer)
        held = answer.task in self.by(answer.annotator)
        if answer.corrects and not held:
            raise InvalidValue("correction", f"{answer.annotator} has not answered this")
        if held and not answer.corrects:
            raise InvalidValue("answer", f"{answer.annotator} has answered this already")

    def take(self, answer: AnnotatorAnswer) -> None:
        """Let a line count that was checked. A correction keeps the place of what it corrects."""
        self.tasks.setdefault(answer.task, {})[answer.annotator] = answer
        self.people.setdefault(answer.annotator, {})[answer.task] = answer


class AnswerLog(LineLog[AnnotatorAnswer, AnswerState]):
    """The answers of one collection. Threads may share it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "answers", AnnotatorAnswer, AnswerState, "an answer")


def read_answers(folder: Path) -> AnswerState:
    """What holds of the answers in a collection's folder; nothing if nobody has answered."""
    with closing(AnswerLog(folder)) as log:
        return log.given


def check_answer(answer: AnnotatorAnswer) -> None:
    """InvalidValue unless the text is one, the confidence is on the scale, and it is by somebody who can be."""
    if not LEAST_SURE <= answer.confidence <= MOST_SURE:
        raise InvalidValue("confidence", f"is {answer.confidence}, not one of 1, 2, 3, 4, 5")
    if plain_text(answer.text) != answer.text:
        raise InvalidValue("text", "has line breaks, or spaces too many")
    check_participant(answer.annotator, answer.seconds)


def plain_text(typed: str) -> str:
    """An answer in the one form it is kept in: one line, single spaces, composed characters (NFC)."""
    text = unicodedata.normalize("NFC", " ".join(typed.split()))
    if not text:
        raise InvalidValue("text", "is empty", "write a few words")
    if len(text) > MOST_TEXT:
        raise InvalidValue("text", f"has {len(text):,} characters, more than {MOST_TEXT}", "a short sentence is enough")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise InvalidValue("text", "holds characters that are no text")
    if not any(character.isalpha() for character in text):
        raise InvalidValue("text", "has no letter in it", "write a few words")
    return text
