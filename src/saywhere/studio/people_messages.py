"""The API's messages about people."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from saywhere.studio.messages import NARRATIVE_PATTERN, Message, Reply
from saywhere.studio.people_log import MOST_NOTE, MOST_REASON


class CodeSent(Message):
    code: Annotated[str, Field(max_length=200)]


class TaskSkipped(Message):
    reason: Annotated[str, Field(min_length=1, max_length=MOST_REASON)]


class ReviewSent(Message):
    """digest: of what the reviewer saw. note: needed to return or reject."""

    narrative: Annotated[str, Field(pattern=NARRATIVE_PATTERN)]
    digest: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    verdict: Literal["accept", "return", "reject"]
    note: Annotated[str, Field(max_length=MOST_NOTE)] = ""


class PersonReply(Reply):
    code: str
    role: str


class ReviewReply(Reply):
    reviewer: str
    verdict: str
    note: str
    at: str


class TaskPhoto(Reply):
    """state: open, returned, waiting (for a review), accepted, rejected or skipped. note: the reviewer's, or why it was
    skipped. narrative: what was told of it last, or null."""

    id: str
    width: int
    height: int
    name: str
    url: str
    thumbnail: str
    state: str
    note: str
    narrative: str | None


class TasksReply(Reply):
    """photos: in the annotator's own order. names of files are not told."""

    annotator: str
    done: int
    total: int
    photos: list[TaskPhoto]


class SubmissionReply(Reply):
    """What somebody told, in which language (null if nobody knows), and all that was said of it, oldest first."""

    narrative: str
    digest: str
    photo: str
    width: int
    height: int
    url: str
    name: str
    annotator: str
    created: str
    text: str
    language: str | None
    state: str
    reviews: list[ReviewReply]


class SubmissionsReply(Reply):
    submissions: list[SubmissionReply]


class PersonStatusReply(Reply):
    code: str
    role: str
    left: bool
    assigned: int
    done: int
    counts: dict[str, int]
    reviews: int


class PeopleReply(Reply):
    people: list[PersonStatusReply]


class EstimateReply(Reply):
    mean: float
    low: float | None
    high: float | None


class MeasureReply(Reply):
    name: str
    lower_is_better: bool
    photos: int
    people: EstimateReply | None
    chance: EstimateReply | None


class AnnotatorAgreementReply(Reply):
    code: str
    photos: int
    lbm: float | None
    rouge_l: float | None


class AgreementReply(Reply):
    photos: int
    narratives: int
    unplaced: int
    measures: list[MeasureReply]
    annotators: list[AnnotatorAgreementReply]
