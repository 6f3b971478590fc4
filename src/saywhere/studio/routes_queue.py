"""The queue of the recorder: which photos are told, which are skipped and why, and which are open."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import Field

from saywhere.studio.messages import Message, Reply
from saywhere.studio.routes_photos import PhotoPath
from saywhere.studio.services import StrictRoute, TheStudio, errors
from saywhere.studio.skips import LONGEST_REASON

router = APIRouter(prefix="/api/queue", tags=["queue"], route_class=StrictRoute)


class SkipSent(Message):
    reason: Annotated[str, Field(min_length=1, max_length=LONGEST_REASON)]


class QueuedPhoto(Reply):
    """state: done if a person told it, skipped if it is passed over; reason: why, else empty."""

    photo: str
    state: Literal["open", "done", "skipped"]
    reason: str


class QueueReply(Reply):
    photos: list[QueuedPhoto]


@router.get("", responses=errors())
def get_queue(studio: TheStudio) -> QueueReply:
    """All photos in their order, and how far each is."""
    told, skipped = studio.narratives.told_photos(), studio.skips.reasons()
    photos = [_queued(info.id, info.id in told, skipped.get(info.id, "")) for info in studio.photos.list()]
    return QueueReply(photos=photos)


@router.put("/{photo_id}/skip", status_code=204, responses=errors(404))
def skip_photo(photo_id: PhotoPath, sent: SkipSent, studio: TheStudio) -> None:
    """Pass over a photo. One that is told stays done."""
    studio.photos.get(photo_id)
    studio.skips.skip(photo_id, sent.reason)


@router.delete("/{photo_id}/skip", status_code=204, responses=errors(404))
def take_back(photo_id: PhotoPath, studio: TheStudio) -> None:
    """Do not pass over a photo any more."""
    studio.photos.get(photo_id)
    studio.skips.forget(photo_id)


def _queued(photo: str, told: bool, reason: str) -> QueuedPhoto:
    if told:
        return QueuedPhoto(photo=photo, state="done", reason="")
    return QueuedPhoto(photo=photo, state="skipped" if reason else "open", reason=reason)
