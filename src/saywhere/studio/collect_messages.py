"""The messages of a collection. An annotator gets a photo and a question, and no word on the photo's name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StrictInt

from saywhere.studio.collect_answers import LEAST_SURE, MOST_SURE, MOST_TEXT
from saywhere.studio.messages import Message, PhotoId, Reply
from saywhere.studio.study_messages import Code, TookSeconds

LevelName = Annotated[str, Field(max_length=200)]
# Spaces around and between words do not count, so more may be sent than is kept.
Typed = Annotated[str, Field(max_length=20 * MOST_TEXT, description="A few words, in one line when it is kept.")]


class TurnAsked(Message):
    annotator: Code


class TaskSent(Message):
    """One question about one photo."""

    annotator: Code
    photo: PhotoId
    level: LevelName


class AnswerSent(TaskSent):
    """confidence: how sure the annotator is, 1 a guess … 5 certain.

    correcting: this takes the place of the annotator's last answer.
    """

    text: Typed
    confidence: Annotated[StrictInt, Field(ge=LEAST_SURE, le=MOST_SURE)]
    seconds: TookSeconds | None = None
    correcting: bool = False


class CollectReply(Reply):
    """levels: those that are asked for. annotators: for each question about each photo."""

    title: str
    levels: list[str]
    photos: int
    annotators: int
    most_text: int


class TaskReply(Reply):
    """One question about one photo. url: of the picture. width, height: in pixels."""

    photo: str
    level: str
    question: str
    advice: str
    url: str
    width: int
    height: int


class AnsweredReply(TaskReply):
    """The same, and what was answered."""

    text: str
    confidence: int


class TurnReply(Reply):
    """How far an annotator is. done: answered. open: questions that he or she may still be asked; waiting: those of
    them whose last places others hold for now. last: the answer that can be corrected."""

    annotator: str
    done: int
    open: int
    waiting: int
    last: AnsweredReply | None
    next: TaskReply | None
