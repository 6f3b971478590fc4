"""A recording written down: as a job, which can be followed and stopped."""

from __future__ import annotations

import asyncio
import threading
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool

from saywhere.language.sound import read_wav
from saywhere.language.transcript import is_aligned
from saywhere.studio.jobs import Job
from saywhere.studio.messages import JobStarted
from saywhere.studio.routes_narratives import SOUND, check_wav
from saywhere.studio.services import StrictRoute, TheStudio, errors

router = APIRouter(prefix="/api/transcriptions", tags=["transcription"], route_class=StrictRoute)
Language = Annotated[str | None, Query(pattern="^[a-z]{2,3}$", description="Its code; left out: it is found out.")]


class _Stopped(Exception):
    """Nobody waits for the transcript any more."""


@router.post("", status_code=202, responses=errors(415, 503), openapi_extra=SOUND)
async def transcribe(request: Request, studio: TheStudio, language: Language = None) -> JobStarted:
    """Write down what is said in a WAV file, 16-bit PCM, mono. The job's result: text, language, and whether the words
    of this language can be aligned. Its progress counts seconds of speech."""
    check_wav(request)
    await run_in_threadpool(studio.transcriber.check, language)
    sound = await run_in_threadpool(read_wav, await request.body())

    async def work(job: Job) -> dict[str, Any]:
        loop, stopped = asyncio.get_running_loop(), threading.Event()

        def tell(_: str, done: int, total: int) -> None:
            if stopped.is_set():
                raise _Stopped
            loop.call_soon_threadsafe(job.advance, done, total)

        try:
            said = await studio.listener.do(lambda: studio.transcriber.transcribe(sound, language, tell))
        finally:
            stopped.set()
        return {"text": said.text, "language": said.language, "aligned": is_aligned(said.language)}

    return JobStarted(job=studio.jobs.start("transcription", 0, work).id)
