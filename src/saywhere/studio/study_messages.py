"""The messages of a trust study. A participant gets a left and a right map, and no word on whose they are."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StrictInt

from saywhere.studio.messages import Message, Reply
from saywhere.studio.participants import MOST_SECONDS
from saywhere.studio.study_ratings import STRONGEST

Code = Annotated[str, Field(max_length=200, description="The participant's code, as it was typed.")]
TookSeconds = Annotated[float, Field(ge=0, le=MOST_SECONDS, description="Seconds from showing to answering.")]
ItemId = Annotated[str, Field(max_length=200)]
HeatMap = list[list[int]]


class RatingSent(Message):
    """rating: −2 the left is clearly more reasonable, −1 slightly, 0 equal, 1 the right slightly, 2 clearly.

    study: as the place said it. seconds: from showing the pair to answering.
    """

    participant: Code
    study: Annotated[str, Field(max_length=200)]
    item: ItemId
    rating: Annotated[StrictInt, Field(ge=-STRONGEST, le=STRONGEST)]
    seconds: TookSeconds | None = None


class UndoSent(Message):
    """item: the one that was rated last."""

    participant: Code
    item: ItemId


class StudyReply(Reply):
    """items: how many pairs there are."""

    title: str
    question: str
    items: int


class PairReply(Reply):
    """One photo and two explanations. photo: its address. width, height: in pixels.

    word: of the caption; answer: to the question; one of them is null. left, right: (rows, columns) 0 … 255.
    """

    item: str
    photo: str
    width: int
    height: int
    prompt: str
    word: str | None
    answer: str | None
    left: HeatMap
    right: HeatMap


class ProgressReply(Reply):
    """How far a participant is. study: has to come back with each rating. last: the item whose rating can be undone."""

    participant: str
    study: str
    total: int
    done: int
    last: str | None
    next: PairReply | None
