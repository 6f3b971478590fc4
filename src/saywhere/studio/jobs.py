"""Work in the background: of each kind one job after another, with its progress, which clients can follow or stop."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from saywhere.core.errors import SaywhereError, UnknownName
from saywhere.studio.errors import Refused, busy, log
from saywhere.studio.messages import JobReply

_ALIVE_S = 15.0
_ENDED = ("done", "failed", "cancelled")


class Job:
    """One piece of work. done, total: steps. result: what came of it. All in the event loop's thread."""

    def __init__(self, kind: str, total: int) -> None:
        self.id, self.kind, self.total = secrets.token_hex(8), kind, total
        self.state, self.done = "waiting", 0
        self.result: dict[str, Any] | None = None
        self.error: str | None = None
        self.changed = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    @property
    def ended(self) -> bool:
        return self.state in _ENDED

    def step(self) -> None:
        """One step is done."""
        self.done += 1
        self._tell()

    def advance(self, done: int, total: int) -> None:
        """So much is done of so much; nothing changes once it has ended."""
        if not self.ended and (done, total) != (self.done, self.total):
            self.done, self.total = done, total
            self._tell()

    def enter(self, state: str, *, result: dict[str, Any] | None = None, error: str | None = None) -> None:
        self.state, self.result, self.error = state, result, error
        self._tell()

    def message(self) -> JobReply:
        return JobReply.model_validate(
            {name: getattr(self, name) for name in ("id", "kind", "state", "done", "total", "result", "error")}
        )

    def _tell(self) -> None:
        # Everyone who waits is woken; who comes now waits for the next change.
        self.changed.set()
        self.changed = asyncio.Event()


class Jobs:
    """The jobs of one Studio. most: how many are remembered. listeners: how many may follow at a time."""

    def __init__(self, most: int, listeners: int) -> None:
        self.most, self._free = most, listeners
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        # Kinds do not wait for each other: what they share, such as the model, has a queue of its own.
        self._turns: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(1))

    def start(self, kind: str, total: int, work: Callable[[Job], Awaitable[dict[str, Any]]]) -> Job:
        """Do some work when its turn comes among others of its kind. 429 if that many jobs wait already."""
        self._make_room()
        job = Job(kind, total)
        self._jobs[job.id] = job
        job.task = asyncio.create_task(self._run(job, work))
        job.task.add_done_callback(lambda task: _close(job, task))
        return job

    def get(self, job_id: str) -> Job:
        job = self._jobs.get(job_id)
        if job is None:
            raise UnknownName("job", job_id, ())
        return job

    def cancel(self, job_id: str) -> None:
        """Stop a job; one that has ended stays as it is."""
        job = self.get(job_id)
        if job.task is not None and not job.ended:
            job.task.cancel()
            job.enter("cancelled")

    async def close(self) -> None:
        """Stop all."""
        tasks = [job.task for job in self._jobs.values() if job.task is not None and not job.task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def follow(self, job: Job) -> AsyncIterator[str]:
        """Server-sent events: one `progress` now and at every change, and one `end`. 429 if too many follow."""
        if self._free <= 0:
            raise busy("too many follow jobs already")
        return self._events(job)

    async def _events(self, job: Job) -> AsyncIterator[str]:
        self._free -= 1
        try:
            while True:
                # Noted before it is told: a job may end while a slow listener reads.
                changed, ended = job.changed, job.ended
                yield f"event: {'end' if ended else 'progress'}\ndata: {job.message().model_dump_json()}\n\n"
                if ended:
                    return
                while not await _within(changed, _ALIVE_S):
                    yield ": still here\n\n"
        finally:
            self._free += 1

    async def _run(self, job: Job, work: Callable[[Job], Awaitable[dict[str, Any]]]) -> None:
        async with self._turns[job.kind]:
            job.enter("running")
            job.enter("done", result=await work(job))

    def _make_room(self) -> None:
        ended = [job.id for job in self._jobs.values() if job.ended]
        while len(self._jobs) >= self.most and ended:
            del self._jobs[ended.pop(0)]
        if len(self._jobs) >= self.most:
            raise busy(f"{len(self._jobs)} jobs wait already")


def _close(job: Job, task: asyncio.Task[None]) -> None:
    """Say how a job ended that did not come to its end."""
    if task.cancelled():
        if not job.ended:
            job.enter("cancelled")
        return
    error = task.exception()
    if isinstance(error, Refused):
        job.enter("failed", error=error.message)
    elif isinstance(error, SaywhereError):
        job.enter("failed", error=str(error))
    elif error is not None:
        log.error("job %s failed", job.id, exc_info=error)
        job.enter("failed", error=f"something went wrong in the Studio; its log has the reason under {job.id}")


async def _within(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
