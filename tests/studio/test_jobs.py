"""Work in the background: whose turn it is."""

from __future__ import annotations

import asyncio
from typing import Any

from saywhere.studio.jobs import Job, Jobs


def test_a_job_waits_for_those_of_its_kind_and_for_no_others():
    async def states() -> list[str]:
        jobs, held = Jobs(10, 10), asyncio.Event()

        async def slow(_: Job) -> dict[str, Any]:
            await held.wait()
            return {}

        async def quick(_: Job) -> dict[str, Any]:
            return {}

        first, second = jobs.start("import", 0, slow), jobs.start("import", 0, quick)
        other = jobs.start("transcription", 0, quick)
        for _ in range(10):
            await asyncio.sleep(0)
        before = [job.state for job in (first, second, other)]
        held.set()
        for job in (first, second):
            assert job.task is not None
            await job.task
        return [*before, first.state, second.state]

    assert asyncio.run(states()) == ["running", "waiting", "done", "done", "done"]
