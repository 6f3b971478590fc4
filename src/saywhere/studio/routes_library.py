"""Search: photos, and the place in each, by a text, by an example, or by what people said."""

from __future__ import annotations

from typing import Annotated, Any, Self
from urllib.parse import quote

from fastapi import APIRouter, Query, Response
from pydantic import Field, model_validator
from starlette.concurrency import run_in_threadpool

from saywhere.core import WholeImage
from saywhere.core.errors import InvalidFile
from saywhere.core.types import Floats32
from saywhere.models.face import Look
from saywhere.studio.errors import Refused
from saywhere.studio.files import PICTURE
from saywhere.studio.library import thumbnail
from saywhere.studio.messages import AnyRegion, Message, PhotoId, PhotoReply, PlaceXyxy, Reply
from saywhere.studio.photos import import_file
from saywhere.studio.routes_seeing import photo_reader, read_regions
from saywhere.studio.services import StrictRoute, Studio, TheStudio, errors

router = APIRouter(prefix="/api/library", tags=["library"], route_class=StrictRoute)
LONGEST = 500
Name = Annotated[str, Field(min_length=1, max_length=1_000)]


class SearchAsked(Message):
    """text: what to find. photo, region: find what is like this region of a photo, instead. said: find the text in what
    people said, not in the photos. most: photos at most."""

    text: Annotated[str, Field(max_length=LONGEST)] = ""
    photo: PhotoId | None = None
    region: AnyRegion | None = None
    said: bool = False
    most: Annotated[int, Field(ge=1, le=100)] = 24

    @model_validator(mode="after")
    def one_of_both(self) -> Self:
        if bool(self.text.strip()) == (self.photo is not None):
            raise ValueError("needs a text or a photo, one of them")
        if self.photo is None and self.region is not None:
            raise ValueError("has a region of no photo")
        if self.photo is not None and self.said:
            raise ValueError("asks for what is like a photo in what was said")
        return self


class FoundPhoto(Reply):
    """photo: its id on the shelf; null if it is not there yet. name: in the library. box: the place; null if nobody
    pointed. what: the thing there, if it has a name. said, who, start_s: if somebody said it."""

    photo: str | None
    name: str
    url: str
    box: PlaceXyxy | None
    score: float
    what: str
    said: str
    who: str
    start_s: float


class SearchReply(Reply):
    hits: list[FoundPhoto]


class LibraryReply(Reply):
    """has: whether photos can be searched; if not, why and how to get it. folder: what is searched, empty for the
    shelf. doing: what is done now, `done` of `total`; empty while nothing is. error: why the last time ended early."""

    has: bool
    why: str
    how: str
    folder: str
    doing: str
    done: int
    total: int
    error: str
    photos: int
    failed: int
    regions: int
    said: int


class TakeAsked(Message):
    """name: of a photo in the library."""

    name: Name


@router.get("", responses=errors())
async def library_facts(studio: TheStudio) -> LibraryReply:
    """Whether photos can be searched, what is there, and how far it is looked at."""
    return LibraryReply.model_validate(studio.library.facts())


@router.post("/refresh", status_code=202, responses=errors(409))
async def refresh(studio: TheStudio) -> LibraryReply:
    """Look at what is new, in the background."""
    studio.library.check()
    studio.library.refresh()
    return LibraryReply.model_validate(studio.library.facts())


@router.post("/search", responses=errors(404, 409, 503))
async def search_photos(asked: SearchAsked, studio: TheStudio) -> SearchReply:
    """The photos that fit best, best first, each with the place in it."""
    studio.library.check()
    query = await _query(asked, studio)
    hits = await run_in_threadpool(studio.library.find, query, asked.most)
    return SearchReply.model_validate({"hits": [_found(hit, studio) for hit in hits]})


@router.get("/file", responses={**errors(404, 415), 200: PICTURE[200]}, response_class=Response)
async def library_file(studio: TheStudio, name: Annotated[Name, Query()]) -> Response:
    """A photo of the library's folder, small."""
    path = await run_in_threadpool(studio.library.path, name)
    data = await studio.decoder.do(lambda: thumbnail(path, studio.settings.limits))
    return Response(data, media_type="image/jpeg")


@router.post("/take", status_code=201, responses=errors(404, 409, 415))
async def take(asked: TakeAsked, studio: TheStudio) -> PhotoReply:
    """Put a photo of the library's folder on the shelf. The original is only read."""
    path = await run_in_threadpool(studio.library.path, asked.name)
    taken = await studio.decoder.do(lambda: import_file(studio.photos, path))
    if isinstance(taken, InvalidFile):
        raise Refused(409, "not_taken", f"{asked.name}: {taken.reason}", taken.hint)
    return PhotoReply.model_validate(taken.values())


async def _query(asked: SearchAsked, studio: Studio) -> Any:
    from saywhere.index import Query as LibraryQuery
    from saywhere.language.coco_aliases import classes_named

    if asked.photo is None:
        vector, query = await studio.looks.use(lambda model: _text_vectors(model, asked.text))
        names = frozenset() if asked.said else classes_named(asked.text)
        return LibraryQuery(vector, said=asked.said, names=names, query=query)
    regions = read_regions([] if asked.region is None else [asked.region], studio.settings.limits)
    region = regions[0] if regions else WholeImage()
    whole = isinstance(region, WholeImage)

    def example(look: Look) -> Floats32:
        aligned: Any = look.aligned  # type: ignore[attr-defined]  # `check` has seen that the model has them
        vector: Floats32 = aligned.contrast() if whole else aligned.vectors([region])[0]
        return vector

    vector = await studio.looks.ask("caption", asked.photo, photo_reader(studio, asked.photo), example)
    return LibraryQuery(vector, regions=not whole)


def _text_vectors(model: Any, text: str) -> tuple[Floats32, Floats32]:
    """In the space of regions, and by which it finds photos."""
    return model.texts([text])[0], model.queries([text])[0]


def _found(hit: Any, studio: Studio) -> dict[str, Any]:
    on_shelf = studio.library.on_shelf(hit)
    here = None if on_shelf is None else studio.photos.get(on_shelf).values()
    return {
        "photo": on_shelf,
        "name": hit.photo if here is None else here["name"],
        "url": f"/api/library/file?name={quote(hit.photo, safe='')}" if here is None else here["url"],
        "box": hit.box_xyxy,
        "score": hit.score,
        "what": hit.name,
        "said": hit.said,
        "who": hit.who,
        "start_s": hit.start_s,
    }
