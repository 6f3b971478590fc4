"""Videos that somebody told about: which there are, what was told of each actor, their frames and voices."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path

from saywhere.core.errors import UnknownName
from saywhere.formats.video_files import SOUNDS
from saywhere.formats.video_narratives import ActorNarrative
from saywhere.studio.files import PICTURE, StoredFile
from saywhere.studio.messages import PlaceXyxy, Reply, TraceReply, WordReply
from saywhere.studio.services import StrictRoute, TheStudio, errors

router = APIRouter(prefix="/api/videos", tags=["videos"], route_class=StrictRoute)
_MOST = 1_000_000
VideoPath = Annotated[int, Path(ge=0, le=_MOST, description="The video's place in the list, from 0.")]
FramePath = Annotated[int, Path(ge=0, le=_MOST, description="The key frame, from 0.")]
ActorPath = Annotated[int, Path(ge=0, le=_MOST, description="The actor, from 0.")]
_FRAME = {**errors(404, 416), **PICTURE}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_PLAYED: dict[str, Any] = {"description": "The voice.", "content": dict.fromkeys(SOUNDS.values(), _BINARY)}
_SOUND: dict[int | str, dict[str, Any]] = {**errors(404, 416), 200: _PLAYED, 206: _PLAYED}


class VideoListed(Reply):
    """id: its place in the list. actors: whom it tells of. frames: how many key frames there are."""

    id: int
    video: str
    annotator: str
    actors: list[str]
    frames: int


class VideosReply(Reply):
    """skipped: records of the file that are not valid."""

    videos: list[VideoListed]
    skipped: int


class FrameReply(Reply):
    """url: of the picture; null if it is missing, then missing says why."""

    name: str
    url: str | None
    missing: str


class ActorReply(Reply):
    """What was told of one actor. Times are seconds since its recording began, so those of a trace may be below 0.

    trace: the pen is lifted wherever it leaves a key frame. stroke_frames: the key frame of each stroke. word_frames,
    boxes: of each word the key frame that was pointed at meanwhile, and where; null if none was. audio: of the voice;
    null if it is not there. language: of the text; null if the file does not say it."""

    name: str
    text: str
    words: list[WordReply]
    trace: TraceReply
    stroke_frames: list[int]
    word_frames: list[int | None]
    boxes: list[PlaceXyxy | None]
    audio: str | None
    language: str | None


class VideoReply(Reply):
    """width, height: of its frames, in pixels."""

    id: int
    video: str
    annotator: str
    width: int
    height: int
    frames: list[FrameReply]
    actors: list[ActorReply]


@router.get("", responses=errors())
async def list_videos(studio: TheStudio) -> VideosReply:
    """All videos."""
    videos = [
        VideoListed(
            id=i,
            video=video.video_id,
            annotator=video.annotator_id,
            actors=[actor.name for actor in video.actors],
            frames=len(video.keyframe_names),
        )
        for i, video in enumerate(studio.videos.videos)
    ]
    return VideosReply(videos=videos, skipped=studio.videos.skipped)


@router.get("/{video_number}", responses=errors(404))
def get_video(video_number: VideoPath, studio: TheStudio) -> VideoReply:
    """One video with all that was told."""
    video, frames = studio.videos.get(video_number), studio.videos.frames(video_number)
    address = f"/api/videos/{video_number}"
    there = [frame for frame in frames if not frame.missing] or frames
    width, height = there[0].size if there else (16, 9)
    return VideoReply(
        id=video_number,
        video=video.video_id,
        annotator=video.annotator_id,
        width=width,
        height=height,
        frames=[
            FrameReply(name=one.name, url=None if one.missing else f"{address}/frames/{i}", missing=one.missing)
            for i, one in enumerate(frames)
        ],
        actors=[
            _actor(one, f"{address}/actors/{i}/audio" if studio.videos.recording(video_number, i) else None)
            for i, one in enumerate(video.actors)
        ],
    )


@router.get("/{video_number}/frames/{frame_number}", responses=_FRAME, response_class=StoredFile)
def get_frame(video_number: VideoPath, frame_number: FramePath, studio: TheStudio) -> StoredFile:
    """A key frame."""
    frame = studio.videos.frame(video_number, frame_number)
    return StoredFile(str(frame.path), media_type=frame.media_type)


@router.get("/{video_number}/actors/{actor_number}/audio", responses=_SOUND, response_class=StoredFile)
def get_recording(video_number: VideoPath, actor_number: ActorPath, studio: TheStudio) -> StoredFile:
    """The voice that tells of an actor."""
    path = studio.videos.recording(video_number, actor_number)
    if path is None:
        raise UnknownName("recording", f"of actor {actor_number}", ())
    return StoredFile(path, media_type=SOUNDS[path.suffix.lower()])


def _actor(actor: ActorNarrative, audio: str | None) -> ActorReply:
    trace, stroke_frames = actor.by_frame()
    word_frames, found = actor.word_places()
    boxes = found.boxes_xyxy.tolist()
    return ActorReply(
        name=actor.name,
        text=actor.narrative.caption,
        words=[WordReply(text=one.text, start_s=one.start_s, end_s=one.end_s) for one in actor.narrative.words],
        trace=TraceReply(points=trace.points.tolist(), starts=list(trace.starts)),
        stroke_frames=list(stroke_frames),
        word_frames=list(word_frames),
        boxes=[None if frame is None else box for frame, box in zip(word_frames, boxes, strict=True)],
        audio=audio,
        language=actor.narrative.language or None,
    )
