"""Talking about a photo: what a model says to the last turn of a conversation, and what it cuts out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from pydantic import Field

from saywhere.core.errors import SaywhereError
from saywhere.studio.conversations import Told, UserTurn
from saywhere.studio.errors import reply_to, too_large
from saywhere.studio.messages import AnyRegion, Message, Reply
from saywhere.studio.routes_photos import PhotoPath
from saywhere.studio.routes_seeing import photo_reader, read_regions
from saywhere.studio.services import StrictRoute, TheStudio, errors
from saywhere.studio.settings import Limits
from saywhere.studio.shown_regions import ShownMask, ShownRegion, shown

router = APIRouter(prefix="/api", tags=["chat"], route_class=StrictRoute)
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "As asked; as a stream: events `words`, then one `end` or `error`.",
        "content": {"text/event-stream": {}},
    }
}


class TurnSaid(Message):
    """text: what is said. region: what is pointed at meanwhile."""

    text: Annotated[str, Field(min_length=1, max_length=4_000)]
    region: AnyRegion | None = None


class TurnsAsked(Message):
    """turns: all that the person said so far; the last one is answered. stream: tell it while it is written."""

    turns: Annotated[list[TurnSaid], Field(min_length=1)]
    stream: bool = False


class SpokenReply(Reply):
    """text: what the model says. regions: what it points out. forgotten: how many of the earliest turns it had no room
    for. lost: what of its answer was malformed. retold: how many earlier turns had to be answered again, because the
    conversation was not kept."""

    text: str
    regions: list[ShownRegion]
    forgotten: int
    lost: list[str]
    retold: int


class CutAsked(Message):
    """region: what is pointed at."""

    region: AnyRegion


class CutReply(Reply):
    mask: ShownMask


@router.post("/photos/{photo_id}/chat", responses={**errors(404, 409, 503), **_STREAM}, response_model=SpokenReply)
async def chat(photo_id: PhotoPath, asked: TurnsAsked, studio: TheStudio) -> Any:
    """What the model says to the last turn of a conversation."""
    turns = read_turns([(turn.text, turn.region) for turn in asked.turns], studio.settings.limits)
    read = photo_reader(studio, photo_id)
    if not asked.stream:
        return spoken_reply(await studio.looks.say(photo_id, read, turns))
    return StreamingResponse(
        _events(await begun(studio.looks.stream(photo_id, read, turns))), media_type="text/event-stream"
    )


@router.post("/photos/{photo_id}/segment", responses=errors(404, 409, 503))
async def segment(photo_id: PhotoPath, asked: CutAsked, studio: TheStudio) -> CutReply:
    """What is pointed at, cut out."""
    [region] = read_regions([asked.region], studio.settings.limits)
    mask = await studio.looks.ask(
        "segment", photo_id, photo_reader(studio, photo_id), lambda seen: shown(seen.segment(region))
    )
    return CutReply(mask=mask)


def read_turns(asked: Sequence[tuple[str, AnyRegion | None]], limits: Limits) -> list[UserTurn]:
    """The turns of a request: what is said in each, and pointed at. Which one is wrong is said."""
    if len(asked) > limits.turns:
        raise too_large("turns", len(asked), limits.turns)
    for number, (text, _) in enumerate(asked, 1):
        if (words := len(text.split())) > limits.text_words:
            raise too_large(f"turn {number}", words, limits.text_words, " words")
    pointed = iter(read_regions([region for _, region in asked if region is not None], limits))
    return [UserTurn(text, None if region is None else next(pointed)) for text, region in asked]


def spoken_reply(told: Told) -> SpokenReply:
    """As the API says it."""
    spoken = told.spoken
    return SpokenReply(
        text=spoken.text,
        regions=[shown(region) for region in spoken.regions],
        forgotten=spoken.forgotten,
        lost=list(spoken.lost),
        retold=told.retold,
    )


async def begun(pieces: AsyncIterator[str | Told]) -> AsyncIterator[str | Told]:
    """The same, once the first piece is there: what is refused is refused before the reply has begun."""
    first = await anext(pieces)

    async def all_pieces() -> AsyncIterator[str | Told]:
        yield first
        async for piece in pieces:
            yield piece

    return all_pieces()


def error_facts(error: Exception) -> Any:
    """What went wrong after the reply had begun, in the one form that every error has."""
    return json.loads(bytes(reply_to(error).body))["error"]


async def _events(pieces: AsyncIterator[str | Told]) -> AsyncIterator[str]:
    try:
        async for piece in pieces:
            if isinstance(piece, str):
                yield _event("words", {"text": piece})
            else:
                yield _event("end", spoken_reply(piece).model_dump(mode="json"))
    except SaywhereError as error:
        yield _event("error", error_facts(error))


def _event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
