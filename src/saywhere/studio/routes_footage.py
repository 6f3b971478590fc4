"""Footage, and what is told about it: frames brought, narratives kept, their voices, words in time, and the export."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, unquote

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi import Path as PathParameter
from starlette.concurrency import run_in_threadpool

from saywhere.core.errors import InvalidValue
from saywhere.formats.video_narratives import encoded
from saywhere.studio import footage_narratives
from saywhere.studio.errors import Refused
from saywhere.studio.files import PICTURE, StoredFile
from saywhere.studio.footage import VIDEOS, Footage
from saywhere.studio.footage_messages import (
    FootageBrought,
    FootageListReply,
    FootageReply,
    VideoNarrativeReply,
    VideoNarrativeSent,
    VideoNarrativesReply,
)
from saywhere.studio.messages import PhotoId
from saywhere.studio.photos import ID_PATTERN, KINDS, sniffed
from saywhere.studio.routes_narratives import HEARD, SOUND, NarrativePath, Nothing, aligned, kept_audio, voice
from saywhere.studio.routes_photos import UPLOAD, check_picture
from saywhere.studio.routes_videos import FrameReply
from saywhere.studio.services import StrictRoute, TheStudio, errors

router = APIRouter(prefix="/api", tags=["footage"], route_class=StrictRoute)
FootagePath = Annotated[str, PathParameter(pattern=ID_PATTERN, description="The footage's id.")]
FramePath = Annotated[str, PathParameter(min_length=1, max_length=200, description="The frame's name.")]
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_PLAYED: dict[str, Any] = {"description": "The video.", "content": dict.fromkeys(sorted(set(VIDEOS.values())), _BINARY)}
_LINES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": {"application/jsonl": {"schema": {"type": "string"}}}}
}


@router.get("/footage", responses=errors())
def list_footage(studio: TheStudio) -> FootageListReply:
    """All videos that can be told about."""
    counts = Counter(record["photo"] for record in studio.filmed.list())
    return FootageListReply(footage=[_reply(one, counts[one.id]) for one in studio.footage.list()])


@router.post("/footage", status_code=201, responses=errors(409))
def bring_footage(sent: FootageBrought, studio: TheStudio) -> FootageReply:
    """Make room for the frames of a video; the one of that name, if it is here."""
    footage = studio.footage.add(sent.name)
    return _reply(footage, len(studio.filmed.list(footage.id)))


@router.get("/footage/{footage_id}", responses=errors(404))
def get_footage(footage_id: FootagePath, studio: TheStudio) -> FootageReply:
    """One video that can be told about."""
    return _reply(studio.footage.get(footage_id), len(studio.filmed.list(footage_id)))


@router.post("/footage/{footage_id}/frames", status_code=201, responses=errors(404, 409, 415), openapi_extra=UPLOAD)
async def add_frame(
    footage_id: FootagePath, request: Request, studio: TheStudio, x_file_name: Annotated[str, Header(max_length=2_000)]
) -> FrameReply:
    """Bring a frame: the body is the file, PNG, JPEG or WebP. X-File-Name: its name, percent-encoded."""
    check_picture(request)
    await run_in_threadpool(studio.footage.get, footage_id)
    data, name = await request.body(), unquote(x_file_name, errors="replace")
    called = await studio.decoder.do(lambda: studio.footage.add_frame(footage_id, data, name))
    return _frame(footage_id, called)


@router.get(
    "/footage/{footage_id}/frames/{frame_name}", responses={**errors(404, 416), **PICTURE}, response_class=StoredFile
)
def get_footage_frame(footage_id: FootagePath, frame_name: FramePath, studio: TheStudio) -> StoredFile:
    """A frame."""
    path = studio.footage.frame(footage_id, frame_name)
    return StoredFile(path, media_type=media_type(path))


@router.get(
    "/footage/{footage_id}/file", responses={**errors(404, 416), 200: _PLAYED, 206: _PLAYED}, response_class=StoredFile
)
def get_footage_file(footage_id: FootagePath, studio: TheStudio) -> StoredFile:
    """The video itself, whole or in parts (Range)."""
    path = studio.footage.get(footage_id).file
    if path is None:
        raise Refused(404, "no_video", "only frames of this video are here")
    return StoredFile(path, media_type=VIDEOS[path.suffix.lower()])


@router.get("/footage/{footage_id}/export", responses={**errors(404, 409), **_LINES}, response_class=Response)
def export_footage(footage_id: FootagePath, studio: TheStudio) -> Response:
    """What was told about a video as Video Localized Narratives: a line for each annotator."""
    footage = studio.footage.get(footage_id)
    records = studio.filmed.list(footage_id)
    if not records:
        raise Refused(409, "not_exported", "nobody has told about this video yet")
    lines = b"".join(encoded(video) + b"\n" for video in footage_narratives.videos_of(footage, records))
    headers = {"Content-Disposition": f'attachment; filename="video-narratives-{footage_id}.jsonl"'}
    return Response(lines, media_type="application/jsonl", headers=headers)


@router.post("/video-narratives", status_code=201, responses=errors(404, 409))
def add_video_narrative(sent: VideoNarrativeSent, studio: TheStudio) -> VideoNarrativeReply:
    """Keep what was told of an actor."""
    studio.footage.keep(sent.footage, sent.frames)
    return told(studio.filmed.create(sent.record()))


@router.get("/video-narratives", responses=errors())
def list_video_narratives(
    studio: TheStudio, footage: Annotated[PhotoId | None, Query()] = None
) -> VideoNarrativesReply:
    """All that was told about footage, or about one video."""
    return VideoNarrativesReply(narratives=[told(record) for record in studio.filmed.list(footage)])


@router.get("/video-narratives/{narrative_id}", responses=errors(404))
def get_video_narrative(narrative_id: NarrativePath, studio: TheStudio) -> VideoNarrativeReply:
    """What was told of one actor."""
    return told(studio.filmed.get(narrative_id))


@router.put("/video-narratives/{narrative_id}", responses=errors(404, 409))
def replace_video_narrative(
    narrative_id: NarrativePath, sent: VideoNarrativeSent, studio: TheStudio
) -> VideoNarrativeReply:
    """Put another in the place of what was told; its audio stays."""
    if sent.id not in (None, narrative_id):
        raise InvalidValue("id", f"is {sent.id}, but the address says {narrative_id}")
    studio.filmed.get(narrative_id)
    studio.footage.keep(sent.footage, sent.frames)
    return told(studio.filmed.replace(narrative_id, sent.record()))


@router.delete("/video-narratives/{narrative_id}", status_code=204, responses=errors(404))
def delete_video_narrative(narrative_id: NarrativePath, studio: TheStudio) -> None:
    """Delete what was told of an actor, and its audio."""
    studio.filmed.delete(narrative_id)


@router.put("/video-narratives/{narrative_id}/audio", responses=errors(404, 415), openapi_extra=SOUND)
async def put_video_audio(narrative_id: NarrativePath, request: Request, studio: TheStudio) -> VideoNarrativeReply:
    """Keep what was said: the body is a WAV file, 16-bit PCM, mono."""
    return told(await kept_audio(studio.filmed, narrative_id, request))


@router.get("/video-narratives/{narrative_id}/audio", responses={**errors(404, 416), **HEARD}, response_class=Response)
def get_video_audio(narrative_id: NarrativePath, studio: TheStudio) -> Response:
    """What was said, whole or in parts (Range)."""
    return voice(studio.filmed, narrative_id)


@router.post("/video-narratives/{narrative_id}/align", responses=errors(404, 409, 503))
async def align_video(narrative_id: NarrativePath, studio: TheStudio, _: Nothing | None = None) -> VideoNarrativeReply:
    """Give the words their times, as those of a photo's narrative get them."""
    return told(await aligned(studio, studio.filmed, narrative_id))


def media_type(path: Path) -> str:
    """Of a frame, by what is in it."""
    with path.open("rb") as file:
        kind = sniffed(file.read(16))
    if kind is None:
        raise Refused(404, "unknown_frame", f"{path.name} is no PNG, JPEG or WebP any more")
    return KINDS[kind][1]


def _reply(footage: Footage, count: int) -> FootageReply:
    width, height = footage.size()
    return FootageReply(
        id=footage.id,
        name=footage.name,
        width=width,
        height=height,
        frames=[_frame(footage.id, name) for name in footage.frames],
        file=f"/api/footage/{footage.id}/file" if footage.file else None,
        told=count,
    )


def _frame(footage_id: str, name: str) -> FrameReply:
    return FrameReply(name=name, url=f"/api/footage/{footage_id}/frames/{quote(name, safe='')}", missing="")


def told(record: dict[str, Any]) -> VideoNarrativeReply:
    """A kept record as the API has it, with the frame of each word and where on it."""
    actor = footage_narratives.actor_of(record, record["photo"], record["frames"])
    word_frames, found = actor.word_places()
    boxes = [None if frame is None else box for frame, box in zip(word_frames, found.boxes_xyxy.tolist(), strict=True)]
    values = record | {"footage": record["photo"], "word_frames": list(word_frames), "boxes": boxes}
    return VideoNarrativeReply.model_validate(values)
