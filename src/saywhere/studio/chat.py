"""A chat route in OpenAI's form: an image as a data: URL, what is said about it, and where somebody points meanwhile.

It is for programs that speak this form already. What is done depends on what the model can do: it talks, or answers
each question by itself, or describes; the reply says which under `saywhere`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from saywhere.core.errors import InvalidValue, SaywhereError, UnknownName
from saywhere.models.face import Look
from saywhere.studio.conversations import Told
from saywhere.studio.errors import Refused
from saywhere.studio.messages import (
    AnyRegion,
    BoxRegion,
    BoxXyxy,
    Fraction,
    PointRegion,
    TracePoint,
    TraceRegion,
    WholeRegion,
)
from saywhere.studio.photos import clean_photo
from saywhere.studio.routes_chat import begun, error_facts, read_turns
from saywhere.studio.routes_seeing import caption_values, read_regions
from saywhere.studio.services import StrictRoute, Studio, TheStudio, errors
from saywhere.studio.shown_regions import ShownRegion, shown

router = APIRouter(prefix="/v1", tags=["chat"], route_class=StrictRoute)
Skill = Literal["chat", "answer", "caption"]
NOTES: dict[Skill, str] = {
    "chat": "This model talks. Earlier answers are its own: those that were sent are not read.",
    "answer": "This model answers each question by itself. Earlier turns were not read.",
    "caption": "What a region shows was described. Nothing was answered: the text of the messages was not read.",
}
_MOST_PARTS = 1_000
_STREAM: dict[int | str, dict[str, Any]] = {200: {"description": "As asked.", "content": {"text/event-stream": {}}}}


class Lenient(BaseModel):
    """OpenAI's messages carry much that does not matter here."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class TextPart(Lenient):
    type: Literal["text"]
    text: Annotated[str, Field(max_length=100_000)]


class ImageUrl(Lenient):
    url: Annotated[str, Field(min_length=1, max_length=50_000_000)]


class ImagePart(Lenient):
    """An image as data:image/png;base64,… The server fetches no other URL."""

    type: Literal["image_url"]
    image_url: ImageUrl


class RegionPart(Lenient):
    """Where to look: any of the API's regions."""

    type: Literal["region"]
    region: AnyRegion


class TrajectoryPart(Lenient):
    """Where a pointer went: [x, y, t], fractions of the image and seconds."""

    type: Literal["trajectory"]
    points: Annotated[list[TracePoint], Field(min_length=1)]
    starts: list[int] = [0]

    @property
    def region(self) -> AnyRegion:
        return TraceRegion(kind="trace", points=self.points, starts=self.starts)


class BoxPart(Lenient):
    """A rectangle."""

    type: Literal["box"]
    xyxy: BoxXyxy

    @property
    def region(self) -> AnyRegion:
        return BoxRegion(kind="box", xyxy=self.xyxy)


class PointPart(Lenient):
    """One place."""

    type: Literal["point"]
    x: Fraction
    y: Fraction

    @property
    def region(self) -> AnyRegion:
        return PointRegion(kind="point", x=self.x, y=self.y)


Part = Annotated[TextPart | ImagePart | RegionPart | TrajectoryPart | BoxPart | PointPart, Field(discriminator="type")]


class ChatMessage(Lenient):
    """region: one more way to say where to look, for clients that send no parts of their own kind."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[str, Field(max_length=100_000)] | Annotated[list[Part], Field(max_length=_MOST_PARTS)] | None = (
        None
    )
    region: AnyRegion | None = None

    @property
    def parts(self) -> list[Part]:
        return self.content if isinstance(self.content, list) else []

    @property
    def images(self) -> list[str]:
        return [part.image_url.url for part in self.parts if isinstance(part, ImagePart)]

    @property
    def text(self) -> str:
        said = [part.text for part in self.parts if isinstance(part, TextPart)]
        return self.content if isinstance(self.content, str) else "\n".join(said)

    @property
    def regions(self) -> list[AnyRegion]:
        own = [] if self.region is None else [self.region]
        return [part.region for part in self.parts if not isinstance(part, TextPart | ImagePart)] + own


class ChatAsked(Lenient):
    """skill: what is to be done; by default the first of chat, answer and caption that the model can. A message without
    words asks for a caption."""

    model: Annotated[str, Field(max_length=200)] = ""
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=_MOST_PARTS)]
    stream: bool = False
    n: Annotated[int, Field(ge=1, le=1)] = 1
    skill: Skill | None = None


class ChatAnswer(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str


class ChatChoice(BaseModel):
    index: int = 0
    message: ChatAnswer
    finish_reason: Literal["stop"] = "stop"


class ChatFacts(BaseModel):
    """What OpenAI's form has no place for. skill: what was done. regions: what the model points out. forgotten: how
    many of the earliest turns it had no room for. lost: what of its answer was malformed. probability: of an answer.
    captions: one for each region that was described."""

    skill: Skill
    note: str
    regions: list[ShownRegion] = []
    forgotten: int = 0
    lost: list[str] = []
    probability: float | None = None
    captions: list[dict[str, Any]] = []


class ChatReply(BaseModel):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    saywhere: ChatFacts


class ModelEntry(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "saywhere"


class ModelsReply(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelEntry]


@router.get("/models", responses=errors())
async def models(studio: TheStudio) -> ModelsReply:
    """The model that is loaded."""
    return ModelsReply(data=[ModelEntry(id=studio.looks.name)])


@dataclass(frozen=True, slots=True)
class _Asked:
    """A conversation about one image. turns: each with what was said and pointed at until the assistant spoke."""

    data: bytes
    turns: list[tuple[str, list[AnyRegion]]]

    @property
    def key(self) -> str:
        """The same for the same image."""
        return f"chat-{hashlib.sha256(self.data).hexdigest()}"

    def said(self) -> list[tuple[str, AnyRegion | None]]:
        """Every turn, each of which may point at one place."""
        for number, (_, regions) in enumerate(self.turns, 1):
            if len(regions) > 1:
                raise InvalidValue(f"turn {number}", f"points at {len(regions)} places", "point at one in each turn")
        return [(text, regions[0] if regions else None) for text, regions in self.turns]


@router.post("/chat/completions", responses={**errors(404, 409, 415, 503), **_STREAM}, response_model=ChatReply)
async def complete(asked: ChatAsked, studio: TheStudio) -> Response:
    """What the model says to the last message, about the last image."""
    if asked.model not in ("", studio.looks.name, studio.settings.model):
        raise UnknownName("model", asked.model, [studio.looks.name])
    about = _asked_about(asked.messages)
    skill = asked.skill or await _best_skill(studio, about)
    name = _Named(f"chatcmpl-{secrets.token_hex(12)}", int(time.time()), studio.looks.name)
    if skill == "chat" and asked.stream:
        turns = read_turns(about.said(), studio.settings.limits)
        pieces = await begun(studio.looks.stream(about.key, _reader(studio, about), turns))
        return StreamingResponse(_chunks(name, pieces), media_type="text/event-stream")
    text, facts = await _DOES[skill](studio, about)
    if asked.stream:
        return StreamingResponse(_at_once(name, text, facts), media_type="text/event-stream")
    reply = ChatReply(
        id=name.id,
        created=name.created,
        model=name.model,
        choices=[ChatChoice(message=ChatAnswer(content=text))],
        saywhere=facts,
    )
    return JSONResponse(reply.model_dump(mode="json"))


def _asked_about(messages: Sequence[ChatMessage]) -> _Asked:
    """The last image, and the user's turns from its message on."""
    first = max((i for i, message in enumerate(messages) if message.images), default=None)
    if first is None:
        raise InvalidValue("messages", "hold no image", "add a part {type: image_url, image_url: {url: data:…}}")
    if messages[-1].role != "user":
        raise InvalidValue("messages", f"end with one of the {messages[-1].role}", "the last one is the user's")
    turns: list[tuple[str, list[AnyRegion]]] = [("", [])]
    for message in messages[first:]:
        if message.role == "assistant":
            turns.append(("", []))
        elif message.role == "user":
            text, regions = turns[-1]
            turns[-1] = ("\n".join(part for part in (text, message.text) if part), [*regions, *message.regions])
    return _Asked(_image_bytes(messages[first].images[-1]), [turn for turn in turns if turn != ("", [])] or [("", [])])


async def _best_skill(studio: Studio, about: _Asked) -> Skill:
    if not about.turns[-1][0].strip():
        return "caption"
    has = await studio.looks.skills()
    return "chat" if "chat" in has else "answer" if "answer" in has else "caption"


def _reader(studio: Studio, about: _Asked) -> Any:
    return lambda: clean_photo(about.data, studio.settings.limits).image


async def _talk(studio: Studio, about: _Asked) -> tuple[str, ChatFacts]:
    turns = read_turns(about.said(), studio.settings.limits)
    told = await studio.looks.say(about.key, _reader(studio, about), turns)
    return told.spoken.text, _told_facts(told)


async def _answer(studio: Studio, about: _Asked) -> tuple[str, ChatFacts]:
    [turn] = read_turns(about.said()[-1:], studio.settings.limits)

    def answered(seen: Look) -> tuple[str, ChatFacts]:
        given = seen.answer(turn.text, turn.region)
        text = f"{given.text}: {given.reason}" if given.reason else given.text
        return text, ChatFacts(skill="answer", note=NOTES["answer"], probability=given.probability)

    return await studio.looks.ask("answer", about.key, _reader(studio, about), answered)


async def _caption(studio: Studio, about: _Asked) -> tuple[str, ChatFacts]:
    pointed = [region for _, regions in about.turns for region in regions]
    regions = read_regions(pointed or [WholeRegion(kind="whole")], studio.settings.limits)
    said = await studio.looks.ask(
        "caption", about.key, _reader(studio, about), lambda seen: caption_values(seen, regions)
    )
    facts = ChatFacts(skill="caption", note=NOTES["caption"], captions=said)
    return "\n".join(one["text"] for one in said), facts


_DOES = {"chat": _talk, "answer": _answer, "caption": _caption}


def _told_facts(told: Told) -> ChatFacts:
    spoken = told.spoken
    regions = [shown(region) for region in spoken.regions]
    return ChatFacts(
        skill="chat", note=NOTES["chat"], regions=regions, forgotten=spoken.forgotten, lost=list(spoken.lost)
    )


def _image_bytes(url: str) -> bytes:
    head, comma, body = url.partition(",")
    if not comma or not head.startswith("data:"):
        raise Refused(
            422, "not_a_data_url", "the image is not a data: URL", "the Studio fetches nothing: send the image"
        )
    if not head.endswith(";base64"):
        raise Refused(422, "not_a_data_url", "the image's data: URL is not base64")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refused(422, "not_a_data_url", f"the image's data: URL cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class _Named:
    """What every chunk of one reply carries."""

    id: str
    created: int
    model: str

    def chunk(self, delta: dict[str, str], ends: ChatFacts | None = None) -> str:
        """A server-sent event. ends: the facts of a whole answer, with the last one."""
        choice = {"index": 0, "delta": delta, "finish_reason": None if ends is None else "stop"}
        values: dict[str, Any] = {"id": self.id, "object": "chat.completion.chunk", "created": self.created}
        values |= {"model": self.model, "choices": [choice]}
        values |= {} if ends is None else {"saywhere": ends.model_dump(mode="json")}
        return f"data: {json.dumps(values)}\n\n"


async def _chunks(name: _Named, pieces: AsyncIterator[str | Told]) -> AsyncIterator[str]:
    """An answer while it is written."""
    yield name.chunk({"role": "assistant", "content": ""})
    try:
        async for piece in pieces:
            yield name.chunk({"content": piece}) if isinstance(piece, str) else name.chunk({}, _told_facts(piece))
    except SaywhereError as error:
        yield f"data: {json.dumps({'error': error_facts(error)})}\n\n"
    yield "data: [DONE]\n\n"


async def _at_once(name: _Named, text: str, facts: ChatFacts) -> AsyncIterator[str]:
    """The same form, for what comes at once."""
    yield name.chunk({"role": "assistant", "content": text})
    yield name.chunk({}, facts)
    yield "data: [DONE]\n\n"
