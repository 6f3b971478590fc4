"""The trust study: the page, who is where, ratings, and, for the lab alone, results."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import FileResponse

from saywhere.studio.errors import Refused
from saywhere.studio.files import PICTURE, StoredFile
from saywhere.studio.photos import ID_PATTERN
from saywhere.studio.services import StrictRoute, errors
from saywhere.studio.settings import is_loopback
from saywhere.studio.study import Turn
from saywhere.studio.study_desk import ParticipantProgress, StudyDesk
from saywhere.studio.study_messages import Code, PairReply, ProgressReply, RatingSent, StudyReply, UndoSent
from saywhere.studio.study_summary import CSV, SUMMARY, results_csv, summarise, summary_json

PAGE = FilePath(__file__).with_name("page") / "study.html"
router = APIRouter(tags=["study"], route_class=StrictRoute)
_TABLE: dict[int | str, dict[str, Any]] = {
    200: {"description": "One row for each rating.", "content": {"text/csv": {"schema": {"type": "string"}}}}
}
_SUMMARY: dict[int | str, dict[str, Any]] = {
    200: {"description": "What they say.", "content": {"application/json": {"schema": {"type": "object"}}}}
}


def _desk_of(request: Request) -> StudyDesk:
    desk: StudyDesk | None = request.app.state.study
    if desk is None:
        hint = "the lab opens one with: saywhere study serve FOLDER"
        raise Refused(404, "no_study", "no study is open here", hint)
    return desk


def _for_the_lab(request: Request) -> None:
    """Results name the models: they stay on the computer that serves the study."""
    if request.client is None or not is_loopback(request.client.host):
        hint = "there, open this address, or run: saywhere study summary FOLDER"
        raise Refused(403, "lab_only", "results are given on the computer that serves the study", hint)


TheDesk = Annotated[StudyDesk, Depends(_desk_of)]
_LAB = [Depends(_for_the_lab)]


@router.get("/study", include_in_schema=False)
def study_page() -> FileResponse:
    """The page for participants."""
    return FileResponse(PAGE)


@router.get("/api/study", responses=errors(404))
def get_study(desk: TheDesk) -> StudyReply:
    """What the study is about."""
    return StudyReply(title=desk.study.title, question=desk.study.question, items=len(desk.study.items))


@router.get("/api/study/place", responses=errors(404))
def get_progress(desk: TheDesk, participant: Annotated[Code, Query()]) -> ProgressReply:
    """How far a participant is, and the next pair."""
    return _reply(desk, desk.progress(participant))


@router.post("/api/study/ratings", responses=errors(404, 409))
def add_rating(sent: RatingSent, desk: TheDesk) -> ProgressReply:
    """Keep an answer; sending it again keeps it once. 409 if the item was rated otherwise."""
    return _reply(desk, desk.rate(sent.participant, sent.item, sent.rating, sent.seconds, sent.study))


@router.post("/api/study/undo", responses=errors(404, 409))
def undo_rating(sent: UndoSent, desk: TheDesk) -> ProgressReply:
    """Take the last answer back. 409 if this was not the last."""
    return _reply(desk, desk.undo(sent.participant, sent.item))


@router.get("/api/study/photos/{study_photo}", responses={**errors(404, 416), **PICTURE}, response_class=Response)
def get_study_photo(study_photo: Annotated[str, Path(pattern=ID_PATTERN)], desk: TheDesk) -> Response:
    """A photo of the study. It is named by its content, so it may be kept."""
    photo = desk.photo(study_photo)
    kept = {"Cache-Control": "private, max-age=31536000, immutable"}
    return StoredFile(photo.path, media_type=photo.media_type, headers=kept)


@router.get("/api/study/results", responses={**errors(404), **_TABLE}, response_class=Response, dependencies=_LAB)
def get_results(desk: TheDesk) -> Response:
    """All ratings as CSV, with the models' names. On the serving computer alone."""
    with desk.log.lock:
        return _download(results_csv(desk.study, desk.log.given).encode(), "text/csv", CSV)


@router.get("/api/study/summary", responses={**errors(404), **_SUMMARY}, response_class=Response, dependencies=_LAB)
def get_summary(desk: TheDesk) -> Response:
    """Preferences, sign tests, agreement and the check on sides. On the serving computer alone."""
    with desk.log.lock:
        return _download(summary_json(summarise(desk.study, desk.log.given)), "application/json", SUMMARY)


def _download(data: bytes, media_type: str, name: str) -> Response:
    return Response(data, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'})


def _reply(desk: StudyDesk, progress: ParticipantProgress) -> ProgressReply:
    return ProgressReply(
        participant=progress.participant,
        study=desk.key,
        total=len(desk.study.items),
        done=progress.done,
        last=progress.last,
        next=None if progress.turn is None else _pair(desk, progress.turn),
    )


def _pair(desk: StudyDesk, turn: Turn) -> PairReply:
    item = desk.item(turn.item)
    return PairReply(
        item=item.id,
        photo=f"/api/study/photos/{item.photo.id}",
        width=item.photo.width,
        height=item.photo.height,
        prompt=item.prompt,
        word=item.word or None,
        answer=item.answer or None,
        left=item.levels[turn.left].tolist(),
        right=item.levels[turn.right].tolist(),
    )
