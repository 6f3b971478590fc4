"""What the routes share: one Studio's stores, its model and its jobs."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute

from saywhere.studio.footage import FootageStore
from saywhere.studio.jobs import Jobs
from saywhere.studio.library import PhotoLibrary
from saywhere.studio.looks import LookService, Worker
from saywhere.studio.messages import ErrorReply
from saywhere.studio.narratives import NarrativeStore
from saywhere.studio.people_desk import PeopleDesk
from saywhere.studio.photos import PhotoStore
from saywhere.studio.settings import StudioSettings
from saywhere.studio.skips import SkipStore
from saywhere.studio.transcription import Transcriber
from saywhere.studio.videos import VideoStore


@dataclass(frozen=True, slots=True)
class Studio:
    """One running Studio. filmed: what was told about footage. decoder: the thread that decodes uploads. aligner: the
    one that times words. listener: the one that transcribes."""

    settings: StudioSettings
    photos: PhotoStore
    narratives: NarrativeStore
    skips: SkipStore
    videos: VideoStore
    footage: FootageStore
    filmed: NarrativeStore
    looks: LookService
    jobs: Jobs
    decoder: Worker
    aligner: Worker
    listener: Worker
    transcriber: Transcriber
    people: PeopleDesk
    library: PhotoLibrary


def _studio_of(request: Request) -> Studio:
    studio: Studio = request.app.state.studio
    return studio


TheStudio = Annotated[Studio, Depends(_studio_of)]


class StrictRequest(Request):
    """A request whose JSON is JSON: no NaN and no Infinity, which Python's reader would take."""

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = json.loads(await self.body(), parse_constant=_no_constant)
        return self._json


def _no_constant(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is not JSON", name, 0)


class StrictRoute(APIRoute):
    """A route that reads its requests strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strictly


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For OpenAPI: these statuses, and those that any route may answer, carry an error."""
    anywhere = (400, 401, 403, 413, 422, 429)
    return {status: {"model": ErrorReply, "description": _WHEN[status]} for status in sorted({*anywhere, *statuses})}


_WHEN = {
    400: "The request cannot be read.",
    401: "The token is missing or wrong.",
    403: "The Host or Origin is not the Studio's own.",
    404: "There is no such thing.",
    409: "It does not go with how things stand; the message says why.",
    413: "Too much at once.",
    415: "Not a kind of file that is taken.",
    408: "The request came too slowly.",
    416: "The file is not that long.",
    422: "The request is not valid; the message says where.",
    429: "Too much at a time; try again after the seconds in Retry-After.",
    507: "The disk is full.",
    503: "The model is loading, or something it needs is missing; the message says what.",
}
