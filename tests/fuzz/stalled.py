"""Many clients beside many stalled connections: python -m tests.fuzz.stalled --seconds 600.

A Studio in a process of its own, with a model that answers at once. Clients ask for its status, its page and bring
photos; others connect and stall, in the head or in the body, and come again when they are thrown out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from saywhere.studio.app import create_app
from saywhere.studio.connections import server_of
from saywhere.studio.settings import StudioSettings
from tests.studio.conftest import FakeSeer, png


async def _ask(port: int, method: str, path: str, body: bytes = b"", kind: str = "image/png") -> tuple[int, float]:
    begun = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Type: {kind}\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    status = int((await reader.read()).split(b" ", 2)[1])
    writer.close()
    return status, time.perf_counter() - begun


async def _client(port: int, until: float, seen: Counter[int], status_s: list[float], number: int) -> None:
    turn = number
    while time.monotonic() < until:
        turn += 1
        if turn % 10 == 0:
            status, _ = await _ask(port, "POST", "/api/photos", png(20 + number, 20))
        elif turn % 10 == 5:
            status, _ = await _ask(port, "GET", "/")
        else:
            status, took = await _ask(port, "GET", "/api/status")
            status_s.append(took)
        seen[status] += 1
        await asyncio.sleep(1.0)


async def _stall(port: int, until: float, ends: Counter[str], number: int) -> None:
    head = f"POST /api/photos HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: image/png\r\n"
    begun = head.encode() if number % 2 else f"{head}Content-Length: 20000000\r\n\r\n".encode() + bytes(1_100_000)
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(begun)
            said = await asyncio.wait_for(reader.read(), max(0.1, until - time.monotonic()))
            ends[said[9:12].decode() or "closed"] += 1
            writer.close()
        except TimeoutError:
            writer.close()
        except ConnectionError:
            ends["closed"] += 1


async def _all(port: int, seconds: float, clients: int, stalled: int) -> tuple[Counter[int], list[float], Counter[str]]:
    seen: Counter[int] = Counter()
    ends: Counter[str] = Counter()
    status_s: list[float] = []
    until = time.monotonic() + seconds
    await asyncio.gather(
        *(_stall(port, until, ends, number) for number in range(stalled)),
        *(_client(port, until, seen, status_s, number) for number in range(clients)),
    )
    return seen, status_s, ends


def _megabytes(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(name))) // 1000


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.fuzz.stalled", description=__doc__)
    options.add_argument("--seconds", type=float, default=600.0)
    options.add_argument("--clients", type=int, default=50)
    options.add_argument("--stalled", type=int, default=200)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0), backlog=512) as listening:
        settings = StudioSettings(Path(folder), port=listening.getsockname()[1])
        child = os.fork()
        if child == 0:
            server_of(create_app(settings, seer=FakeSeer()), settings.limits).run(sockets=[listening])
            os._exit(0)
        asyncio.run(_ask(settings.port, "GET", "/api/status"))
        before = _megabytes(child, "VmRSS")
        found = asyncio.run(_all(settings.port, chosen.seconds, chosen.clients, chosen.stalled))
        most = _megabytes(child, "VmHWM")
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    seen, status_s, ends = found
    low, high = np.quantile(status_s, [0.5, 0.95])
    sys.stdout.write(
        f"{chosen.clients} clients beside {chosen.stalled} stalled connections, {chosen.seconds:g} s\n"
        f"answers: {dict(sorted(seen.items()))}\nstalled ones ended with: {dict(sorted(ends.items()))}\n"
        f"status: median {1000 * low:.0f} ms, p95 {1000 * high:.0f} ms of {len(status_s):,}\n"
        f"memory of the server: {before} MB at rest, {most} MB at most\n"
    )
    return 0 if set(seen) <= {200, 201, 408, 429} else 1


if __name__ == "__main__":
    sys.exit(main())
