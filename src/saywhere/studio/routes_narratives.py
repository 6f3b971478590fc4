"""Narratives: keep, list, change, delete; their audio; their words' times; files for other programs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from saywhere.core.errors import InvalidValue
from saywhere.studio import exports, timing
from saywhere.studio.errors import Refused
from saywhere.studio.files import StoredFile
from saywhere.studio.messages import NARRATIVE_PATTERN, Message, NarrativeReply, NarrativeSent, NarrativesReply, PhotoId
from saywhere.studio.narratives import NarrativeStore
from saywhere.studio.services import StrictRoute, Studio, TheStudio, errors

router = APIRouter(prefix="/api/narratives", tags=["narratives"], route_class=StrictRoute)
NarrativePath = Annotated[str, Path(pattern=NARRATIVE_PATTERN, description="The narrative's id.")]
Format = Literal["localized_narratives", "web_annotation", "coco", "text"]
_WAV = {"audio/wav": {"schema": {"type": "string", "format": "binary"}}}
SOUND: dict[str, Any] = {"requestBody": {"required": True, "description": "16-bit PCM, mono.", "content": _WAV}}
HEARD: dict[int | str, dict[str, Any]] = {
    200: {"description": "The recording.", "content": _WAV},
    206: {"description": "A part of it.", "content": _WAV},
}
_DOWNLOAD: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {
            "application/jsonl": {"schema": {"type": "string"}},
            "application/ld+json": {"schema": {"type": "object"}},
            "application/json": {"schema": {"type": "object"}},
            "text/plain": {"schema": {"type": "string"}},
        },
    }
}


class Nothing(Message):
    """An empty message."""


def check_wav(request: Request) -> None:
    """Refuse a body that does not say that it is a WAV file."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind not in ("audio/wav", "audio/wave", "audio/x-wav", "audio/vnd.wave"):
        raise Refused(415, "not_audio", f"the Content-Type is {kind or 'missing'}, not audio/wav")


async def kept_audio(store: NarrativeStore, narrative_id: str, request: Request) -> dict[str, Any]:
    """The narrative with the voice of a request."""
    check_wav(request)
    await run_in_threadpool(store.get, narrative_id)
    data = await request.body()
    await run_in_threadpool(store.put_audio, narrative_id, data)
    return await run_in_threadpool(store.get, narrative_id)


def voice(store: NarrativeStore, narrative_id: str) -> StoredFile:
    """What was said of a narrative."""
    store.get(narrative_id)
    path = store.audio_path(narrative_id)
    if path is None:
        raise Refused(404, "no_audio", "this narrative has no audio")
    return StoredFile(path, media_type="audio/wav")


async def aligned(studio: Studio, store: NarrativeStore, narrative_id: str) -> dict[str, Any]:
    """The narrative with a time for each word."""
    record = await run_in_threadpool(store.get, narrative_id)

    def timed() -> dict[str, Any]:
        found = timing.align(record, store.audio_path(narrative_id))
        if store.get(narrative_id) != record:
            raise Refused(409, "changed_meanwhile", "the narrative was changed while its words were timed", "try again")
        return store.replace(narrative_id, found)

    try:
        return await studio.aligner.do(timed)
    except InvalidValue as error:
        raise Refused(409, "not_aligned", f"{error.what}: {error.reason}", error.hint) from error


@router.post("", status_code=201, responses=errors(404, 409))
def add_narrative(sent: NarrativeSent, studio: TheStudio) -> NarrativeReply:
    """Keep a narrative."""
    studio.photos.get(sent.photo)
    kept = studio.narratives.create(sent.record())
    studio.library.changed()
    return NarrativeReply.model_validate(kept)


@router.get("", responses=errors())
def list_narratives(studio: TheStudio, photo: Annotated[PhotoId | None, Query()] = None) -> NarrativesReply:
    """All narratives, or those of one photo."""
    return NarrativesReply.model_validate({"narratives": studio.narratives.list(photo)})


@router.get("/{narrative_id}", responses=errors(404))
def get_narrative(narrative_id: NarrativePath, studio: TheStudio) -> NarrativeReply:
    """One narrative."""
    return NarrativeReply.model_validate(studio.narratives.get(narrative_id))


@router.put("/{narrative_id}", responses=errors(404, 409))
def replace_narrative(narrative_id: NarrativePath, sent: NarrativeSent, studio: TheStudio) -> NarrativeReply:
    """Put another in the place of a narrative; its audio stays."""
    if sent.id not in (None, narrative_id):
        raise InvalidValue("id", f"is {sent.id}, but the address says {narrative_id}")
    studio.narratives.get(narrative_id)
    studio.photos.get(sent.photo)
    kept = studio.narratives.replace(narrative_id, sent.record())
    studio.library.changed()
    return NarrativeReply.model_validate(kept)


@router.delete("/{narrative_id}", status_code=204, responses=errors(404))
def delete_narrative(narrative_id: NarrativePath, studio: TheStudio) -> None:
    """Delete a narrative and its audio."""
    studio.narratives.delete(narrative_id)
    studio.library.changed()


@router.put("/{narrative_id}/audio", responses=errors(404, 415), openapi_extra=SOUND)
async def put_audio(narrative_id: NarrativePath, request: Request, studio: TheStudio) -> NarrativeReply:
    """Keep what was said: the body is a WAV file, 16-bit PCM, mono."""
    return NarrativeReply.model_validate(await kept_audio(studio.narratives, narrative_id, request))


@router.get("/{narrative_id}/audio", responses={**errors(404, 416), **HEARD}, response_class=Response)
def get_audio(narrative_id: NarrativePath, studio: TheStudio) -> Response:
    """What was said, whole or in parts (Range)."""
    return voice(studio.narratives, narrative_id)


@router.post("/{narrative_id}/align", responses=errors(404, 409, 503))
async def align(narrative_id: NarrativePath, studio: TheStudio, _: Nothing | None = None) -> NarrativeReply:
    """Give the words their times: from the audio, with a confidence each, or from when keys were pressed. 409 if there
    is neither, or the audio does not fit the text."""
    timed = NarrativeReply.model_validate(await aligned(studio, studio.narratives, narrative_id))
    studio.library.changed()
    return timed


@router.get("/{narrative_id}/export", responses={**errors(404, 409), **_DOWNLOAD}, response_class=Response)
def export_narrative(narrative_id: NarrativePath, studio: TheStudio, format: Annotated[Format, Query()]) -> Response:  # noqa: A002
    """A file for other programs."""
    record = studio.narratives.get(narrative_id)
    photo = studio.photos.get(record["photo"]).values()
    try:
        file = exports.export(record, photo, format)
    except InvalidValue as error:
        raise Refused(409, "not_exported", f"{error.what}: {error.reason}", error.hint) from error
    disposition = f'attachment; filename="{file.file_name}"'
    return Response(file.data, media_type=file.media_type, headers={"Content-Disposition": disposition})
