"""A chat route in OpenAI's form: an image as a data: URL, and regions of it, get their description.

It is for programs that speak this form already. The models at hand describe; they do not converse: what is asked in
words is not read, and the reply says so.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import secrets
import time
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.studio.errors import Refused
from saywhere.studio.messages import AnyRegion, WholeRegion
from saywhere.studio.photos import clean_photo
from saywhere.studio.routes_seeing import caption_values, read_regions
from saywhere.studio.services import StrictRoute, TheStudio, errors

router = APIRouter(prefix="/v1", tags=["chat"], route_class=StrictRoute)
NOTE = "This model describes what a region shows. It does not answer: the text of the messages was not read."
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
    """Where to look; several are answered line by line."""

    type: Literal["region"]
    region: AnyRegion


Part = Annotated[TextPart | ImagePart | RegionPart, Field(discriminator="type")]


class ChatMessage(Lenient):
    """region: one more way to say where to look, for clients that send no parts of their own kind."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[str, Field(max_length=100_000)] | Annotated[list[Part], Field(max_length=_MOST_PARTS)] | None = (
        None
    )
    region: AnyRegion | None = None

    def parts(self) -> list[TextPart | ImagePart | RegionPart]:
        return self.content if isinstance(self.content, list) else []


class ChatAsked(Lenient):
    model: Annotated[str, Field(max_length=200)] = ""
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=_MOST_PARTS)]
    stream: bool = False
    n: Annotated[int, Field(ge=1, le=1)] = 1


class ChatAnswer(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str


class ChatChoice(BaseModel):
    index: int = 0
    message: ChatAnswer
    finish_reason: Literal["stop"] = "stop"


class ChatFacts(BaseModel):
    """What OpenAI's form has no place for. skill: what was done. captions: one for each region."""

    skill: Literal["caption"] = "caption"
    note: str = NOTE
    captions: list[dict[str, Any]]


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


@router.post("/chat/completions", responses={**errors(404, 409, 415, 503), **_STREAM}, response_model=ChatReply)
async def complete(asked: ChatAsked, studio: TheStudio) -> Response:
    """What the image shows, or each region of it: those of the last message with an image, and of later ones."""
    limits = studio.settings.limits
    if asked.model not in ("", studio.looks.name, studio.settings.model):
        raise UnknownName("model", asked.model, [studio.looks.name])
    url, wanted = _asked_about(asked.messages)
    regions = read_regions(wanted or [WholeRegion(kind="whole")], limits)
    data = _image_bytes(url)
    key = f"chat-{hashlib.sha256(data).hexdigest()}"
    said = await studio.looks.ask(
        "caption", key, lambda: clean_photo(data, limits).image, lambda seen: caption_values(seen, regions)
    )
    reply = ChatReply(
        id=f"chatcmpl-{secrets.token_hex(12)}",
        created=int(time.time()),
        model=studio.looks.name,
        choices=[ChatChoice(message=ChatAnswer(content="\n".join(one["text"] for one in said)))],
        saywhere=ChatFacts(captions=said),
    )
    if asked.stream:
        return StreamingResponse(_chunks(reply), media_type="text/event-stream")
    return JSONResponse(reply.model_dump(mode="json"))


def _asked_about(messages: list[ChatMessage]) -> tuple[str, list[AnyRegion]]:
    """The last image, and the regions of its message and of later ones."""
    url = ""
    regions: list[AnyRegion] = []
    for message in messages:
        images = [part.image_url.url for part in message.parts() if isinstance(part, ImagePart)]
        if images:
            url, regions = images[-1], []
        regions += [part.region for part in message.parts() if isinstance(part, RegionPart)]
        regions += [message.region] if message.region is not None else []
    if not url:
        raise InvalidValue("messages", "hold no image", "add a part {type: image_url, image_url: {url: data:…}}")
    return url, regions


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


def _chunks(reply: ChatReply) -> Iterator[str]:
    """The same as server-sent events; all of the text comes at once."""
    choice = reply.choices[0]
    for delta, reason in ((choice.message.model_dump(), None), ({}, choice.finish_reason)):
        chunk = {
            "id": reply.id,
            "object": "chat.completion.chunk",
            "created": reply.created,
            "model": reply.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"
