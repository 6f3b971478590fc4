"""A photo for people who do not see it: everything that a finger on it may ask for, sent once; and as a file."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from starlette.concurrency import run_in_threadpool

from saywhere.core.description import Description, labelled
from saywhere.studio.messages import PlaceXyxy, Reply
from saywhere.studio.routes_photos import PhotoPath
from saywhere.studio.routes_seeing import photo_reader
from saywhere.studio.services import StrictRoute, Studio, TheStudio, errors

router = APIRouter(prefix="/api", tags=["describing"], route_class=StrictRoute)
Format = Annotated[Literal["text", "page"], Query(description="Alt text and description, or a page with the photo.")]
_TEXT = {"schema": {"type": "string"}}
_FILES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": {"text/plain": _TEXT, "text/html": _TEXT}}
}


class ThingReply(Reply):
    """One thing that the model is sure of. name: "a dog". box: x1, y1, x2, y2. about: what more there is to say, one
    sentence after another. neighbours: "left", "right", "above", "below" → the number of the thing there."""

    name: str
    box: PlaceXyxy
    about: list[str]
    neighbours: dict[str, int]


class DescriptionReply(Reply):
    """alt_text: one sentence. text: all that is sure, in the order in which people look. things: in the same order."""

    photo: str
    alt_text: str
    text: str
    things: list[ThingReply]
    origin: str


@router.post("/photos/{photo_id}/describe", responses=errors(404, 409, 503))
async def describe(photo_id: PhotoPath, studio: TheStudio) -> DescriptionReply:
    """All that the model is sure of in a photo, with what is beside what: nothing more needs to be asked while somebody
    explores it."""
    described = await _described(photo_id, studio)
    things = [
        ThingReply(name=one.name, box=list(one.box_xyxy), about=list(one.about), neighbours=dict(one.neighbours))
        for one in described.things
    ]
    return DescriptionReply(
        photo=photo_id,
        alt_text=described.alt_text,
        text=described.text,
        things=things,
        origin=described.origin,
    )


@router.get("/photos/{photo_id}/description", responses={**errors(404, 409, 503), **_FILES}, response_class=Response)
async def description_file(photo_id: PhotoPath, studio: TheStudio, format: Format = "text") -> Response:  # noqa: A002 - the API's word
    """The same as a file: texts to be pasted, or a page that needs nothing else."""
    described = await _described(photo_id, studio)
    name = studio.photos.get(photo_id).name or photo_id
    if format == "page":
        html = await run_in_threadpool(_page, studio.photos.path(photo_id), described, name)
        return _file(html.encode(), "text/html; charset=utf-8", photo_id, ".html")
    by = f"machine-written, by {described.origin}"
    text = labelled(name, by, described.alt_text, described.text)
    return _file(text.encode(), "text/plain; charset=utf-8", photo_id, ".txt")


async def _described(photo_id: str, studio: Studio) -> Description:
    read = photo_reader(studio, photo_id)
    return await studio.looks.ask("caption", photo_id, read, lambda seen: seen.describe())


def _page(photo: FilePath, described: Description, name: str) -> str:
    from saywhere.plots.description import description_html

    return description_html(photo, described, name)


def _file(content: bytes, media_type: str, photo_id: str, ending: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="description-{photo_id[:12]}{ending}"'}
    return Response(content, media_type=media_type, headers=headers)
