"""Answers to questions about photos, and why a word was said or an answer given."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter
from pydantic import Field

from saywhere.core import Region
from saywhere.models.face import Look
from saywhere.studio.errors import too_large
from saywhere.studio.messages import AnyRegion, Level, Message, Reply
from saywhere.studio.routes_photos import PhotoPath
from saywhere.studio.routes_seeing import level_skill, photo_reader, read_regions
from saywhere.studio.services import StrictRoute, Studio, TheStudio, errors

if TYPE_CHECKING:
    from saywhere.explain.seen import Reason

router = APIRouter(prefix="/api", tags=["why"], route_class=StrictRoute)
Method = Literal["gradient", "attention", "occlusion"]


class WhyWordAsked(Message):
    """region: the one that the caption is of. text: the caption; null: what the model says of it now.

    word: which of its words, parted by spaces, from 0. method: how to find out. level: which the caption is of.
    """

    region: AnyRegion
    word: Annotated[int, Field(ge=0, le=100_000)]
    text: Annotated[str, Field(min_length=1, max_length=20_000)] | None = None
    method: Method = "gradient"
    level: Level = "object"


class QuestionAsked(Message):
    """region: what is pointed at while asking; null: nothing."""

    question: Annotated[str, Field(min_length=1, max_length=1_000)]
    region: AnyRegion | None = None


class WhyAnswerAsked(QuestionAsked):
    """answer: another of the model's answers, to ask why it was thought of; null: the one it gives."""

    answer: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    method: Method = "gradient"


class ReasonReply(Reply):
    """Where a word or an answer came from.

    said: the word or the answer. weights: (rows, columns) over the photo, below 0 where a part speaks against it.
    faithfulness: within −1 … 1, how well the order of the parts agrees with what happens without each of them; null for
    occlusion, which is just that, and where all parts count the same. fall: how far the score falls on average while
    parts go, most important first. from_names: the share, 0 … 1, of a word's probability that is lost if the detector
    names nothing; null for answers and without a detector. seconds: it took.
    """

    said: str
    method: Method
    weights: list[list[float]]
    faithfulness: float | None
    fall: float
    from_names: float | None
    seconds: float


class OtherAnswer(Reply):
    text: str
    probability: float


class AnswerReply(Reply):
    """answer; probability: the model's own, 0 … 1; others: the next best; unknown: words of the question that the model
    does not know; unread: its words beyond those that the model reads; kinds: kinds of questions that it learnt;
    reason: why no answer is given, then `answer` says so and `others` begins with the best guess; empty if one is."""

    answer: str
    probability: float
    others: list[OtherAnswer]
    unknown: list[str]
    unread: list[str]
    kinds: list[str]
    reason: str


@router.post("/photos/{photo_id}/why", responses=errors(404, 409, 503))
async def why(photo_id: PhotoPath, asked: WhyWordAsked, studio: TheStudio) -> ReasonReply:
    """Why a word of a region's caption was said."""
    [region] = read_regions([asked.region], studio.settings.limits)
    _check_words(asked.text or "", studio)

    def found(seen: Look) -> ReasonReply:
        from saywhere.explain.seen import why_word

        text = asked.text or seen.captions([region], level=asked.level)[0].text
        return _timed(lambda: why_word(seen, region, text, asked.word, asked.method, asked.level))

    return await studio.looks.ask(level_skill(asked.level), photo_id, photo_reader(studio, photo_id), found)


@router.post("/photos/{photo_id}/answer", responses=errors(404, 409, 503))
async def answer(photo_id: PhotoPath, asked: QuestionAsked, studio: TheStudio) -> AnswerReply:
    """The answer to a question, about what is pointed at if something is."""
    region = _pointed(asked, studio)

    def answered(seen: Look) -> AnswerReply:
        given = seen.answer(asked.question, region)
        return AnswerReply(
            answer=given.text,
            probability=given.probability,
            others=[
                OtherAnswer(text=text, probability=chance) for text, chance in given.ranked[0 if given.reason else 1 :]
            ],
            unknown=list(given.unknown),
            unread=list(given.unread),
            kinds=list(seen.question_kinds),
            reason=given.reason,
        )

    return await studio.looks.ask("answer", photo_id, photo_reader(studio, photo_id), answered)


@router.post("/photos/{photo_id}/why-answer", responses=errors(404, 409, 503))
async def why_this_answer(photo_id: PhotoPath, asked: WhyAnswerAsked, studio: TheStudio) -> ReasonReply:
    """Why a question was answered so."""
    region = _pointed(asked, studio)

    def found(seen: Look) -> ReasonReply:
        from saywhere.explain.seen import why_answer

        return _timed(lambda: why_answer(seen, asked.question, region, asked.method, asked.answer or ""))

    return await studio.looks.ask("answer", photo_id, photo_reader(studio, photo_id), found)


def _pointed(asked: QuestionAsked, studio: Studio) -> Region | None:
    _check_words(asked.question, studio)
    return None if asked.region is None else read_regions([asked.region], studio.settings.limits)[0]


def _check_words(text: str, studio: Studio) -> None:
    words, most = len(text.split()), studio.settings.limits.text_words
    if words > most:
        raise too_large("the text", words, most, " words")


def _timed(explain: Callable[[], Reason]) -> ReasonReply:
    began = time.perf_counter()
    reason = explain()
    return ReasonReply(
        said=reason.said,
        method=reason.method,
        weights=reason.weights.tolist(),
        faithfulness=reason.faithfulness,
        fall=reason.fall,
        from_names=reason.from_names,
        seconds=time.perf_counter() - began,
    )
