"""What a Studio exchanges with other programs: files taken in as a job, and everything as one zip."""

from __future__ import annotations

import asyncio
import gzip
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Header, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile
from saywhere.formats.files import open_bytes
from saywhere.formats.record import InvalidRecord
from saywhere.studio.archive import Archive
from saywhere.studio.errors import Refused
from saywhere.studio.image_names import PhotoNames
from saywhere.studio.imports import Tally, import_narratives
from saywhere.studio.jobs import Job
from saywhere.studio.messages import JobStarted
from saywhere.studio.photos import plain_name
from saywhere.studio.services import StrictRoute, Studio, TheStudio, errors

router = APIRouter(prefix="/api", tags=["exchange"], route_class=StrictRoute)
_MOST_NAMED = 100
_PIECE = 1 << 20
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_FILE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The file itself, plain or gzipped.",
        "content": {"application/octet-stream": _BINARY},
    }
}
_ZIP: dict[int | str, dict[str, Any]] = {200: {"description": "The zip.", "content": {"application/zip": _BINARY}}}


@router.post("/imports", status_code=202, responses=errors(415), openapi_extra=_FILE)
async def import_file(
    request: Request, studio: TheStudio, x_file_name: Annotated[str, Header(max_length=2_000)] = ""
) -> JobStarted:
    """Take Localized Narratives, COCO captions or instances, or Web Annotation. X-File-Name: percent-encoded.

    The job's result: {new, known, silent, bad, named}: how many narratives are new, were here before, name a recording
    that was not sent, and cannot be taken; the first of these by name. Its progress counts records.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind not in ("application/octet-stream", "application/json", "application/jsonl", "application/ld+json"):
        raise Refused(415, "not_a_file", f"the Content-Type is {kind or 'missing'}, not application/octet-stream")
    data = await request.body()
    name = plain_name(unquote(x_file_name, errors="replace") or "file")

    async def work(job: Job) -> dict[str, Any]:
        loop, stopped = asyncio.get_running_loop(), threading.Event()

        def tell(done: int) -> bool:
            loop.call_soon_threadsafe(job.advance, done, 0)
            return not stopped.is_set()

        try:
            return await run_in_threadpool(_take, studio, data, name, tell)
        finally:
            stopped.set()

    return JobStarted(job=studio.jobs.start("import", 0, work).id)


def _take(studio: Studio, data: bytes, name: str, tell: Callable[[int], bool]) -> dict[str, Any]:
    """Take what was sent. tell: told how many records were seen; it says whether to go on."""
    tally = Tally()
    named: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = _unpacked(data, Path(folder), studio.settings.limits.import_bytes, name)
        found = import_narratives(path, PhotoNames(studio.photos), studio.narratives, name)
        try:
            for number, one in enumerate(found, 1):
                tally.count(one)
                if isinstance(one, InvalidRecord) and tally.bad <= _MOST_NAMED:
                    named.append(str(one))
                if not tell(number):
                    break
        except InvalidFile as error:
            # The path on the server says nothing to who sent the file.
            raise InvalidFile(name, error.reason, error.hint) from error
    return {**vars(tally), "named": named}


def _unpacked(data: bytes, folder: Path, most: int, name: str) -> Path:
    """What was sent as a plain file. What a gzipped one holds may be no larger than a plain one."""
    sent, path = folder / "sent", folder / "file"
    with write_atomic(sent) as file:
        file.write(data)
    size = 0
    try:
        with open_bytes(sent) as packed, write_atomic(path) as plain:
            while piece := packed.read(_PIECE):
                size += len(piece)
                if size > most:
                    raise InvalidFile(name, f"holds more than {most:,} bytes", "cut it, or use saywhere studio import")
                plain.write(piece)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidFile(name, f"the compressed file is cut off or damaged: {error}") from error
    return path


@router.get("/export", responses={**errors(), **_ZIP}, response_class=StreamingResponse)
def export_all(studio: TheStudio) -> StreamingResponse:
    """Everything as one zip: photos under their own names, recordings, Localized Narratives, COCO captions, Web
    Annotations, Video Localized Narratives with their frames, and every version as the API has it."""
    pieces: Iterator[bytes] = Archive(studio.photos, studio.narratives, studio.footage, studio.filmed).pieces()
    headers = {"Content-Disposition": 'attachment; filename="saywhere-studio.zip"'}
    return StreamingResponse(pieces, media_type="application/zip", headers=headers)
