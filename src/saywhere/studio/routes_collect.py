"""A collection of captions: the page, what an annotator is asked next, and answers."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.responses import FileResponse

from saywhere.studio.collect import advice
from saywhere.studio.collect_answers import MOST_TEXT, Task
from saywhere.studio.collect_desk import AnnotatorProgress, CollectDesk
from saywhere.studio.collect_messages import (
    AnsweredReply,
    AnswerSent,
    CollectReply,
    TaskReply,
    TaskSent,
    TurnAsked,
    TurnReply,
)
from saywhere.studio.errors import Refused
from saywhere.studio.files import PICTURE, StoredFile
from saywhere.studio.photos import ID_PATTERN
from saywhere.studio.services import StrictRoute, errors

PAGE = FilePath(__file__).with_name("page") / "collect.html"
router = APIRouter(tags=["collect"], route_class=StrictRoute)


def _desk_of(request: Request) -> CollectDesk:
    desk: CollectDesk | None = request.app.state.collection
    if desk is None:
        hint = "the lab opens one with: saywhere collect serve DIR"
        raise Refused(404, "no_collection", "no collection is open here", hint)
    return desk


TheDesk = Annotated[CollectDesk, Depends(_desk_of)]


@router.get("/collect", include_in_schema=False)
def collect_page() -> FileResponse:
    """The page for annotators."""
    return FileResponse(PAGE)


@router.get("/api/collect", responses=errors(404))
def get_collection(desk: TheDesk) -> CollectReply:
    """What the collection asks for."""
    asked = desk.collection
    return CollectReply(
        title=asked.title,
        levels=list(asked.levels),
        photos=len(asked.photos),
        annotators=asked.annotators,
        most_text=MOST_TEXT,
    )


@router.post("/api/collect/turn", responses=errors(404))
def take_turn(sent: TurnAsked, desk: TheDesk) -> TurnReply:
    """What an annotator is asked now; the place is held for a while."""
    return _reply(desk, desk.turn(sent.annotator))


@router.post("/api/collect/answers", responses=errors(404, 409))
def add_answer(sent: AnswerSent, desk: TheDesk) -> TurnReply:
    """Keep an answer; sending it again keeps it once. 409 if it was answered otherwise, and this is no correction."""
    task = (sent.photo, sent.level)
    return _reply(desk, desk.answer(sent.annotator, task, sent.text, sent.confidence, sent.seconds, sent.correcting))


@router.post("/api/collect/skip", responses=errors(404))
def skip_photo(sent: TaskSent, desk: TheDesk) -> TurnReply:
    """Go on without a photo that cannot be shown."""
    return _reply(desk, desk.skip(sent.annotator, (sent.photo, sent.level)))


@router.get("/api/collect/photos/{collect_photo}", responses={**errors(404, 416), **PICTURE}, response_class=Response)
def get_collect_photo(collect_photo: Annotated[str, Path(pattern=ID_PATTERN)], desk: TheDesk) -> Response:
    """A photo of the collection. It is named by its content, so it may be kept."""
    info = desk.picture(collect_photo)
    kept = {"Cache-Control": "private, max-age=31536000, immutable"}
    return StoredFile(desk.store.path(info.id), media_type=info.media_type, headers=kept)


def _reply(desk: CollectDesk, turn: AnnotatorProgress) -> TurnReply:
    last = turn.last
    return TurnReply(
        annotator=turn.annotator,
        done=turn.done,
        open=turn.open,
        waiting=turn.waiting,
        last=None
        if last is None
        else AnsweredReply(**_task(desk, last.task), text=last.text, confidence=last.confidence),
        next=None if turn.task is None else TaskReply(**_task(desk, turn.task)),
    )


def _task(desk: CollectDesk, task: Task) -> dict[str, Any]:
    info, level = desk.picture(task[0]), task[1]
    return {
        "photo": info.id,
        "level": level,
        "question": desk.collection.levels[level],
        "advice": advice(level),
        "url": f"/api/collect/photos/{info.id}",
        "width": info.width,
        "height": info.height,
    }
