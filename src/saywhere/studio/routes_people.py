"""Annotators and reviewers: who is there, what they are to tell, reviews, agreement; and who may ask what.

A cookie holds the code that somebody typed. A code says who somebody is; who may come in at all is the token's matter.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path as FilePath
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import FileResponse

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.studio.errors import Refused
from saywhere.studio.people_agreement import agreement_of
from saywhere.studio.people_desk import DONE, AnnotatorTask
from saywhere.studio.people_log import PersonLine, Role
from saywhere.studio.people_messages import (
    AgreementReply,
    CodeSent,
    PeopleReply,
    PersonReply,
    PersonStatusReply,
    ReviewReply,
    ReviewSent,
    SubmissionReply,
    SubmissionsReply,
    TaskPhoto,
    TaskSkipped,
    TasksReply,
)
from saywhere.studio.routes_photos import PhotoPath
from saywhere.studio.services import StrictRoute, Studio, TheStudio, errors

PAGE = FilePath(__file__).with_name("page")
router = APIRouter(tags=["people"], route_class=StrictRoute)
_MONTH_S = 2_592_000


def _cookie(studio: Studio) -> str:
    """Browsers share cookies among the ports of one host: each Studio has its own."""
    return f"saywhere-code-{studio.settings.port}"


def _somebody(request: Request, studio: Studio, role: Role | None = None) -> PersonLine:
    try:
        return studio.people.person(request.cookies.get(_cookie(studio), ""), role)
    except (InvalidValue, UnknownName) as error:
        who = role or "annotator or reviewer"
        raise Refused(403, "no_code", f"this is for an {who}".replace("an r", "a r"), "type the code first") from error


def _anybody(request: Request, studio: TheStudio) -> PersonLine:
    return _somebody(request, studio)


def _annotator(request: Request, studio: TheStudio) -> PersonLine:
    return _somebody(request, studio, "annotator")


def _reviewer(request: Request, studio: TheStudio) -> PersonLine:
    return _somebody(request, studio, "reviewer")


Anybody = Annotated[PersonLine, Depends(_anybody)]
Annotator = Annotated[PersonLine, Depends(_annotator)]
Reviewer = Annotated[PersonLine, Depends(_reviewer)]

_OWN = frozenset(
    {
        ("GET", "/api/narratives/{narrative_id}"),
        ("PUT", "/api/narratives/{narrative_id}"),
        ("PUT", "/api/narratives/{narrative_id}/audio"),
        ("GET", "/api/narratives/{narrative_id}/audio"),
        ("POST", "/api/narratives/{narrative_id}/align"),
    }
)
_REVIEWED = frozenset({("GET", path) for method, path in _OWN if method == "GET"})
_SENT = frozenset({("POST", "/api/narratives"), ("PUT", "/api/narratives/{narrative_id}")})
_PICTURES = frozenset({("GET", "/api/photos/{photo_id}/file"), ("GET", "/api/photos/{photo_id}/thumbnail")})
_HEARING = frozenset(
    {
        ("POST", "/api/transcriptions"),
        ("GET", "/api/jobs/{job_id}"),
        ("GET", "/api/jobs/{job_id}/events"),
        ("DELETE", "/api/jobs/{job_id}"),
    }
)


async def gate(request: Request, studio: TheStudio, person: Anybody) -> None:
    """What of the Studio's own routes is open on a server for people; all else is not.

    An annotator gets at the photos that he or she is to tell, and at own narratives; a reviewer reads all.
    """
    asked = (request.method, request.scope["route"].path)
    if person.role == "reviewer":
        if asked in _REVIEWED or asked in _PICTURES:
            return
    elif asked in _PICTURES:
        studio.people.check_may_tell(person.code, request.path_params["photo_id"])
        return
    elif asked in _HEARING:
        return
    elif asked in _OWN or asked in _SENT:
        if asked in _OWN:
            _check_own(studio, person, studio.narratives.get(request.path_params["narrative_id"]))
        if asked in _SENT:
            _check_own(studio, person, await request.json())
        return
    raise Refused(403, "not_for_you", "this is not for people with a code", "the lab has the whole Studio")


def _check_own(studio: Studio, person: PersonLine, record: object) -> None:
    values = record if isinstance(record, dict) else {}
    if values.get("annotator") != person.code:
        raise Refused(403, "not_yours", "this narrative is not yours", "load the page again")
    studio.people.check_may_tell(person.code, str(values.get("photo")))


@router.get("/annotate", include_in_schema=False)
def annotate_page() -> FileResponse:
    """The page for annotators."""
    return FileResponse(PAGE / "annotate.html")


@router.get("/review", include_in_schema=False)
def review_page() -> FileResponse:
    """The page for reviewers."""
    return FileResponse(PAGE / "review.html")


@router.post("/api/people/enter", responses=errors(404))
def enter(sent: CodeSent, response: Response, studio: TheStudio) -> PersonReply:
    """Come in with a code."""
    person = studio.people.person(sent.code)
    response.set_cookie(_cookie(studio), person.code, _MONTH_S, httponly=True, samesite="strict")
    return PersonReply(code=person.code, role=person.role)


@router.post("/api/people/leave", status_code=204, responses=errors())
def leave(response: Response, studio: TheStudio) -> None:
    """Let somebody else come in."""
    response.delete_cookie(_cookie(studio), httponly=True, samesite="strict")


@router.get("/api/people/me", responses=errors())
def who_am_i(person: Anybody) -> PersonReply:
    """Who came in; 403 if nobody did."""
    return PersonReply(code=person.code, role=person.role)


@router.get("/api/people/tasks", responses=errors())
def get_tasks(person: Annotator, studio: TheStudio) -> TasksReply:
    """What the annotator is to tell, and how far he or she is."""
    tasks = studio.people.tasks(person.code)
    done = sum(task.state in DONE for task in tasks)
    photos = [_task_photo(task, number, studio) for number, task in enumerate(tasks, 1)]
    return TasksReply(annotator=person.code, done=done, total=len(tasks), photos=photos)


@router.put("/api/people/tasks/{photo_id}/skip", status_code=204, responses=errors(404))
def skip_task(photo_id: PhotoPath, sent: TaskSkipped, person: Annotator, studio: TheStudio) -> None:
    """Pass over a photo."""
    if not sent.reason.strip():
        raise InvalidValue("reason", "is empty", "say why it is skipped")
    studio.people.skip(person.code, photo_id, sent.reason)


@router.delete("/api/people/tasks/{photo_id}/skip", status_code=204, responses=errors(404))
def unskip_task(photo_id: PhotoPath, person: Annotator, studio: TheStudio) -> None:
    """Do not pass over a photo any more."""
    studio.people.skip(person.code, photo_id, "")


@router.get("/api/people/reviews", responses=errors())
def get_reviews(_: Reviewer, studio: TheStudio) -> SubmissionsReply:
    """All that was told: what waits for a review first."""
    there = {info.id for info in studio.photos.list()}
    shown = [_submission(task, studio) for task in studio.people.submissions() if task.photo in there]
    return SubmissionsReply(submissions=shown)


@router.post("/api/people/reviews", responses=errors(404, 409))
def add_review(sent: ReviewSent, person: Reviewer, studio: TheStudio) -> SubmissionReply:
    """Accept, return with a note, or reject. 409 if the narrative was changed meanwhile."""
    task = studio.people.review(person.code, sent.narrative, sent.digest, sent.verdict, sent.note)
    return _submission(task, studio)


@router.get("/api/people/status", responses=errors())
def get_status(_: Reviewer, studio: TheStudio) -> PeopleReply:
    """How far everybody is."""
    found = [
        PersonStatusReply(
            code=one.code,
            role=one.role,
            left=one.left,
            assigned=one.assigned,
            done=one.done,
            counts={str(state): count for state, count in one.counts.items()},
            reviews=one.reviews,
        )
        for one in studio.people.status()
    ]
    return PeopleReply(people=found)


@router.get("/api/people/agreement", responses=errors())
def get_agreement(_: Reviewer, studio: TheStudio) -> AgreementReply:
    """How far annotators agree, and what chance would give."""
    return AgreementReply.model_validate(asdict(agreement_of(studio.people)))


def _task_photo(task: AnnotatorTask, number: int, studio: Studio) -> TaskPhoto:
    shown = studio.photos.get(task.photo).values() | {"name": f"Photo {number}"}
    told = None if task.telling is None else task.telling.id
    return TaskPhoto(**shown, state=task.state, note=task.note, narrative=told)


def _submission(task: AnnotatorTask, studio: Studio) -> SubmissionReply:
    told, info = task.telling, studio.photos.get(task.photo)
    if told is None:
        raise UnknownName("narrative", task.photo, ())
    return SubmissionReply(
        narrative=told.id,
        digest=told.digest,
        photo=task.photo,
        width=info.width,
        height=info.height,
        url=str(info.values()["url"]),
        name=info.name,
        annotator=task.annotator,
        created=told.created,
        text=told.text,
        language=told.language,
        state=task.state,
        reviews=[
            ReviewReply(reviewer=one.reviewer, verdict=one.verdict, note=one.note, at=one.at) for one in task.reviews
        ],
    )
