"""What the model does with photos: look, say what regions show, find texts, tell; many looks as a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from fastapi.responses import StreamingResponse

from saywhere.core import InvalidValue, Narrative, Region
from saywhere.models.face import Look
from saywhere.studio.errors import too_large
from saywhere.studio.jobs import Job
from saywhere.studio.messages import (
    AnyRegion,
    CaptionsAsked,
    CaptionsReply,
    JobReply,
    JobStarted,
    LookReply,
    LooksAsked,
    NarrativeReply,
    TellingAsked,
    TextAsked,
)
from saywhere.studio.routes_photos import PhotoPath
from saywhere.studio.services import StrictRoute, Studio, TheStudio, errors
from saywhere.studio.settings import Limits

router = APIRouter(prefix="/api", tags=["seeing"], route_class=StrictRoute)
JobPath = Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="The job's id.")]
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Events `progress` and one `end`.", "content": {"text/event-stream": {}}}
}


@router.post("/photos/{photo_id}/look", responses=errors(404, 503))
async def look(photo_id: PhotoPath, studio: TheStudio) -> LookReply:
    """Look at a photo now, so that what is asked next is answered at once."""
    report = await studio.looks.look(photo_id, photo_reader(studio, photo_id))
    return LookReply(id=photo_id, grid=list(report.grid), seconds=report.seconds, cached=report.cached)


@router.post("/photos/{photo_id}/captions", responses=errors(404, 409, 503))
async def captions(photo_id: PhotoPath, asked: CaptionsAsked, studio: TheStudio) -> CaptionsReply:
    """What each region shows, at the level asked for; all in one batch on one look."""
    regions = read_regions(asked.regions, studio.settings.limits)
    read = photo_reader(studio, photo_id)
    said = await studio.looks.ask(
        level_skill(asked.level),
        photo_id,
        read,
        lambda seen: caption_values(seen, regions, asked.provenance, asked.level),
    )
    return CaptionsReply.model_validate({"captions": said, "level": asked.level})


@router.post("/photos/{photo_id}/ground", responses=errors(404, 409, 503))
async def ground(photo_id: PhotoPath, asked: TextAsked, studio: TheStudio) -> NarrativeReply:
    """Where each word of a text is."""
    words, most = len(asked.text.split()), studio.settings.limits.text_words
    if words > most:
        raise too_large("the text", words, most, " words")
    read, looks = photo_reader(studio, photo_id), studio.looks
    return await looks.ask("ground", photo_id, read, lambda seen: _grounded(seen, asked.text, photo_id, looks.name))


@router.post("/photos/{photo_id}/narrate", responses=errors(404, 409, 503))
async def narrate(photo_id: PhotoPath, studio: TheStudio, asked: TellingAsked | None = None) -> NarrativeReply:
    """The photo told by the model, pointing along."""
    most = (asked or TellingAsked()).most
    read = photo_reader(studio, photo_id)
    return await studio.looks.ask("narrate", photo_id, read, lambda seen: _narrated(seen, most, photo_id))


@router.post("/looks", status_code=202, responses=errors(404, 503))
async def look_at_many(asked: LooksAsked, studio: TheStudio) -> JobStarted:
    """Look at many photos in the background."""
    if len(asked.photos) > studio.settings.limits.job_photos:
        raise too_large("photos of one job", len(asked.photos), studio.settings.limits.job_photos)
    readers = {photo_id: photo_reader(studio, photo_id) for photo_id in asked.photos}

    async def work(job: Job) -> dict[str, Any]:
        looked, failed = [], []
        for photo_id, read in readers.items():
            try:
                await studio.looks.look_in_turn(photo_id, read)
                looked.append(photo_id)
            except (InvalidValue, LookupError) as error:
                failed.append({"photo": photo_id, "reason": str(error)})
            job.step()
        return {"looked": looked, "failed": failed}

    return JobStarted(job=studio.jobs.start("looks", len(readers), work).id)


@router.get("/jobs/{job_id}", responses=errors(404))
async def get_job(job_id: JobPath, studio: TheStudio) -> JobReply:
    """How far a job is."""
    return studio.jobs.get(job_id).message()


@router.get("/jobs/{job_id}/events", responses={**errors(404), **_EVENTS}, response_class=StreamingResponse)
async def follow_job(job_id: JobPath, studio: TheStudio) -> Response:
    """Server-sent events: `progress` now and at every change, then `end`; data is the job."""
    return StreamingResponse(studio.jobs.follow(studio.jobs.get(job_id)), media_type="text/event-stream")


@router.delete("/jobs/{job_id}", status_code=204, responses=errors(404))
async def cancel_job(job_id: JobPath, studio: TheStudio) -> None:
    """Stop a job."""
    studio.jobs.cancel(job_id)


def photo_reader(studio: Studio, photo_id: str) -> Callable[[], FilePath]:
    """Gives the photo's file when its turn comes. A photo that is not there is said now."""
    studio.photos.get(photo_id)
    return lambda: studio.photos.path(photo_id)


def level_skill(level: str) -> str:
    """What a model must be able to do to be asked at a level. Which others it has, the model itself knows."""
    return "scene" if level == "scene" else "caption"


def read_regions(asked: Sequence[AnyRegion], limits: Limits) -> list[Region]:
    """The regions of a request; which one is wrong is said."""
    if len(asked) > limits.regions:
        raise too_large("regions", len(asked), limits.regions)
    points = sum(len(one) for one in asked)
    if points > limits.points:
        raise too_large("points of all regions", points, limits.points)
    regions = []
    for i, one in enumerate(asked):
        try:
            regions.append(one.region())
        except InvalidValue as error:
            raise InvalidValue(f"region {i}, {error.what}", error.reason, error.hint) from error
    return regions


def caption_values(
    seen: Look, regions: Sequence[Region], provenance: bool = False, level: str = "object"
) -> list[dict[str, Any]]:
    """What each region shows. A region that the look does not see is said with its number."""
    try:
        captions = seen.captions(regions, level=level)
    except InvalidValue:
        _name_the_wrong(seen, regions)
        raise
    weights = seen.weights(regions).tolist() if provenance else [None] * len(regions)
    return [
        {
            "text": one.text,
            "sure": one.sure,
            "similarity": one.similarity,
            "score": one.score,
            "nearest": [{"sentence": near.sentence, "cosine": near.cosine} for near in one.nearest],
            "weights": grid,
        }
        for one, grid in zip(captions, weights, strict=True)
    ]


def _name_the_wrong(seen: Look, regions: Sequence[Region]) -> None:
    for i, region in enumerate(regions):
        try:
            region.weights(seen.view.frame)
        except InvalidValue as error:
            raise InvalidValue(f"region {i}, {error.what}", error.reason, error.hint) from error


def _grounded(seen: Look, text: str, photo_id: str, model: str) -> NarrativeReply:
    grounded = seen.grounded(text)
    narrative = grounded.narrative(photo_id, origin=model)
    return _reply(narrative, photo_id, grounded.boxes.boxes_xyxy.tolist())


def _narrated(seen: Look, most: int, photo_id: str) -> NarrativeReply:
    narrative = seen.narrate(most)
    return _reply(narrative, photo_id, narrative.word_boxes().boxes_xyxy.tolist())


def _reply(narrative: Narrative, photo_id: str, boxes: Sequence[Sequence[float]]) -> NarrativeReply:
    words = [{"text": word.text, "start_s": word.start_s, "end_s": word.end_s} for word in narrative.words]
    return NarrativeReply.model_validate(
        {
            "id": None,
            "photo": photo_id,
            "annotator": "",
            "text": narrative.caption,
            "words": words,
            "trace": {"points": narrative.trace.points.tolist(), "starts": list(narrative.trace.starts)},
            "keys": [],
            "audio": False,
            "origin": narrative.origin,
            "created": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "timed_by": "even",
            # A box that is not a number is no place.
            "boxes": [box if box[0] == box[0] else None for box in boxes],
        }
    )
