"""Photos: bring, list, fetch, delete."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Header, Path, Query, Request, Response

from saywhere.studio.errors import Refused
from saywhere.studio.files import PICTURE, StoredFile
from saywhere.studio.messages import PhotoReply, PhotosReply
from saywhere.studio.photos import ID_PATTERN
from saywhere.studio.services import StrictRoute, TheStudio, errors

router = APIRouter(prefix="/api/photos", tags=["photos"], route_class=StrictRoute)
PhotoPath = Annotated[str, Path(pattern=ID_PATTERN, description="The photo's id.")]
_FOR_GOOD = {"Cache-Control": "private, max-age=31536000, immutable"}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
UPLOAD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The file itself.",
        "content": dict.fromkeys(("image/png", "image/jpeg", "image/webp", "application/octet-stream"), _BINARY),
    }
}


def check_picture(request: Request) -> None:
    """Refuse a body that does not say that it is a picture."""
    kind = request.headers.get("content-type", "")
    if not kind.startswith(("image/", "application/octet-stream")):
        raise Refused(415, "not_a_photo", f"the Content-Type is {kind or 'missing'}, not image/…")


@router.post("", status_code=201, responses=errors(409, 415), openapi_extra=UPLOAD)
async def add_photo(
    request: Request, studio: TheStudio, x_file_name: Annotated[str, Header(max_length=2_000)] = ""
) -> PhotoReply:
    """Bring a photo: the body is the file, PNG, JPEG or WebP. X-File-Name: its name, percent-encoded."""
    check_picture(request)
    data = await request.body()
    info = await studio.decoder.do(lambda: studio.photos.add(data, unquote(x_file_name, errors="replace")))
    studio.library.changed()
    return PhotoReply.model_validate(info.values())


@router.get("", responses=errors())
async def list_photos(studio: TheStudio) -> PhotosReply:
    """All photos, in the order they came."""
    return PhotosReply.model_validate({"photos": [info.values() for info in studio.photos.list()]})


@router.get("/{photo_id}", responses=errors(404))
async def get_photo(photo_id: PhotoPath, studio: TheStudio) -> PhotoReply:
    """What is known of a photo."""
    return PhotoReply.model_validate(studio.photos.get(photo_id).values())


@router.get("/{photo_id}/file", responses={**errors(404, 416), **PICTURE}, response_class=Response)
async def get_photo_file(photo_id: PhotoPath, studio: TheStudio) -> Response:
    """The photo: upright, without metadata. It never changes, so it may be kept."""
    info = studio.photos.get(photo_id)
    return StoredFile(studio.photos.path(photo_id), media_type=info.media_type, headers=_FOR_GOOD)


@router.get("/{photo_id}/thumbnail", responses={**errors(404, 416), **PICTURE}, response_class=Response)
async def get_thumbnail(photo_id: PhotoPath, studio: TheStudio) -> Response:
    """A small picture of the photo, as JPEG, made when it is first asked for."""
    studio.photos.get(photo_id)
    path = await studio.decoder.do(lambda: studio.photos.thumbnail(photo_id))
    return StoredFile(path, media_type="image/jpeg", headers=_FOR_GOOD)


@router.delete("/{photo_id}", status_code=204, responses=errors(404, 409))
def delete_photo(
    photo_id: PhotoPath,
    studio: TheStudio,
    with_narratives: Annotated[bool, Query(description="Delete its narratives, too.")] = False,
) -> None:
    """Delete a photo. One that has narratives is kept unless they go with it."""
    studio.photos.get(photo_id)
    told = studio.narratives.list(photo_id)
    if told and not with_narratives:
        hint = "delete them first, or ask with with_narratives=true"
        raise Refused(409, "has_narratives", f"narratives of this photo: {len(told)}", hint)
    for narrative in told:
        studio.narratives.delete(narrative["id"])
    studio.photos.delete(photo_id)
    studio.skips.forget(photo_id)
    studio.looks.forget(photo_id)
    studio.library.changed()
