"""The server: routes joined, errors in one form, the page, and the model loaded in the background."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path

from fastapi import APIRouter, Depends, FastAPI
from fastapi.responses import FileResponse
from PIL import Image
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import Lifespan

import saywhere
from saywhere import loading
from saywhere.core import WholeImage
from saywhere.core.errors import InvalidValue
from saywhere.language.sound import LONGEST_S
from saywhere.language.transcript import Recogniser
from saywhere.models.face import Model
from saywhere.studio import (
    chat,
    errors,
    routes_chat,
    routes_collect,
    routes_describing,
    routes_edit,
    routes_exchange,
    routes_footage,
    routes_library,
    routes_narratives,
    routes_people,
    routes_photos,
    routes_queue,
    routes_seeing,
    routes_study,
    routes_transcription,
    routes_videos,
    routes_why,
)
from saywhere.studio.collect_desk import CollectDesk
from saywhere.studio.footage import FootageStore
from saywhere.studio.jobs import Jobs
from saywhere.studio.library import PhotoLibrary
from saywhere.studio.looks import LookService, Worker
from saywhere.studio.messages import ModelFacts, StatusReply, TranscriptionFacts
from saywhere.studio.narratives import NarrativeStore
from saywhere.studio.people_desk import PeopleDesk
from saywhere.studio.photos import PhotoStore
from saywhere.studio.safety import HEADERS, Doorkeeper
from saywhere.studio.services import StrictRoute, Studio, TheStudio
from saywhere.studio.settings import StudioSettings
from saywhere.studio.skills import skill_values
from saywhere.studio.skips import SkipStore
from saywhere.studio.study_desk import StudyDesk
from saywhere.studio.transcription import Transcriber
from saywhere.studio.videos import VideoStore

PAGE = Path(__file__).with_name("page")
_ABOUT = """Photos, looks, captions of regions, where texts are, narratives with true order and time of pointing.

Positions are fractions of the photo's width and height, x right, y down; times are seconds; boxes are x1, y1, x2, y2.
Every error is `{"error": {"code", "message", "hint"}}`."""
router = APIRouter(route_class=StrictRoute)


def create_app(settings: StudioSettings, seer: Model | None = None, recogniser: Recogniser | None = None) -> FastAPI:
    """The Studio's server. seer, recogniser: models that are loaded already.

    Any other model is loaded in the background when the server starts, any other recogniser when it is first used.
    """
    studio = _studio(settings, seer, recogniser)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        studio.looks.open()
        studio.library.open()
        yield
        await _close(studio)

    seeing = (routes_photos, routes_seeing, routes_describing, routes_why, routes_chat, chat)
    routes = (
        *seeing,
        routes_narratives,
        routes_edit,
        routes_exchange,
        routes_library,
        routes_transcription,
        routes_queue,
        routes_videos,
        routes_footage,
        routes_study,
        routes_collect,
    )
    app = _server(settings, [router, *(part.router for part in routes), routes_edit.filmed], running)
    app.state.studio = studio
    return app


def create_study_app(settings: StudioSettings) -> FastAPI:
    """A server for participants of a study: its page, and nothing else of the Studio. It needs no model."""
    if settings.study is None:
        raise InvalidValue("study", "is not set")
    return _server(settings, [_entrance(routes_study.study_page), routes_study.router])


def create_collect_app(settings: StudioSettings) -> FastAPI:
    """A server for the annotators of a collection: its page, and nothing else of the Studio. It needs no model."""
    if settings.collection is None:
        raise InvalidValue("collection", "is not set")
    return _server(settings, [_entrance(routes_collect.collect_page), routes_collect.router])


def create_people_app(settings: StudioSettings, recogniser: Recogniser | None = None) -> FastAPI:
    """A server for annotators and reviewers with codes: their pages and, behind `gate`, what these need of the Studio.
    It needs no model."""
    studio = _studio(settings, None, recogniser)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        yield
        await _close(studio)

    gated = APIRouter(dependencies=[Depends(routes_people.gate)])
    for part in (routes_photos, routes_narratives, routes_transcription, routes_seeing):
        gated.include_router(part.router)
    status_only = APIRouter(route_class=StrictRoute)
    status_only.get("/api/status", tags=["status"])(status)
    entrance = _entrance(routes_people.annotate_page)
    app = _server(settings, [entrance, status_only, routes_people.router, gated], running)
    app.state.studio = studio
    return app


async def _close(studio: Studio) -> None:
    await studio.jobs.close()
    for closing in (studio.library, studio.looks, studio.decoder, studio.aligner, studio.listener, studio.people.log):
        closing.close()


def _entrance(page: Callable[[], FileResponse]) -> APIRouter:
    entrance = APIRouter()
    entrance.get("/", include_in_schema=False)(page)
    return entrance


def _server(
    settings: StudioSettings, routers: Sequence[APIRouter], lifespan: Lifespan[FastAPI] | None = None
) -> FastAPI:
    app = FastAPI(
        title="saywhere Studio",
        summary="Record, describe, ground and replay.",
        description=_ABOUT,
        version=saywhere.__version__,
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        # Their pages fetch scripts from elsewhere, which the policy forbids.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.study = None if settings.study is None else StudyDesk(settings.study)
    collection = settings.collection
    app.state.collection = None if collection is None else CollectDesk(collection, settings.hold_s)
    for one in routers:
        app.include_router(one)
    app.mount("/page", GZipMiddleware(StaticFiles(directory=PAGE), minimum_size=1_000, compresslevel=6))
    errors.install(app, HEADERS)
    app.add_middleware(Doorkeeper, settings=settings)
    return app


def _studio(settings: StudioSettings, seer: Model | None, recogniser: Recogniser | None) -> Studio:
    limits = settings.limits
    photos = PhotoStore(settings.folder / "photos", limits)
    narratives = NarrativeStore(settings.folder / "narratives")
    videos = VideoStore(settings.videos)
    load: Callable[[], Model] = partial(_warm, settings.model) if seer is None else lambda: seer
    looks = LookService(settings.model if seer is None else seer.name, load, limits)
    return Studio(
        settings,
        photos,
        narratives,
        SkipStore(settings.folder / "skipped.json"),
        videos,
        FootageStore(settings.folder / "footage", settings.videos, videos.videos, limits),
        NarrativeStore(settings.folder / "video_narratives"),
        looks,
        Jobs(limits.jobs, limits.listeners),
        Worker("decoder", limits.photo_queue),
        Worker("aligner", limits.photo_queue),
        Worker("listener", limits.photo_queue),
        Transcriber(recogniser),
        PeopleDesk(settings.folder, narratives, photos),
        PhotoLibrary(settings.library, settings.folder / "library", looks, photos, narratives),
    )


def _warm(name: str) -> Model:
    """A model that has looked and written once: the first time takes longer than any other."""
    model = loading.load(name)
    look = model.look(Image.new("RGB", (224, 224)))
    if "caption" in model.skills:
        look.captions([WholeImage()], level=model.levels[0])
    return model


@router.get("/", include_in_schema=False)
async def page() -> FileResponse:
    """The page."""
    return FileResponse(PAGE / "index.html")


@router.get("/api/status", tags=["status"])
def status(studio: TheStudio) -> StatusReply:
    """Which model there is, what it can do, and the limits."""
    looks = studio.looks
    model = looks.model
    facts = ModelFacts(
        name=looks.name,
        ready=model is not None,
        error=looks.failure,
        skills=skill_values(looks.name, None if model is None else model.skills, looks.failure),
        levels=[] if model is None else list(model.levels),
    )
    limits = asdict(studio.settings.limits) | {"audio_s": LONGEST_S}
    hearing = TranscriptionFacts.model_validate(studio.transcriber.facts())
    return StatusReply(
        version=saywhere.__version__, model=facts, videos=len(studio.videos), transcription=hearing, limits=limits
    )
