"""The Studio with the embedded default model: a look, a caption for a drawn trace, many regions, many clients.

It runs as users run it, in a process of its own, and is asked over HTTP. SAYWHERE_BENCH_SECONDS: how long many clients
ask; a minute by default.
"""

from __future__ import annotations

import http.client
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from PIL import Image, ImageDraw

from saywhere.studio.settings import Limits

PHOTO_PX, LOOK_MS, TRACE_MS, MANY, MANY_RATIO, CLIENTS, GROWTH = 224, 400.0, 200.0, 100, 20.0, 50, 1.25
SECONDS = float(os.environ.get("SAYWHERE_BENCH_SECONDS", "60"))
_START = "import typer; from saywhere.cli.studio import studio; typer.run(studio)"
Row = tuple[str, str, str, bool]


def run() -> list[Row]:
    """Rows (name, measured, asked, ok)."""
    with tempfile.TemporaryDirectory() as folder, studio(Path(folder)) as (process, address):
        client = Client(address)
        client.until_ready()
        return [look(client), traces(client), batch(client), *crowd(process.pid, address)]


@contextmanager
def studio(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A Studio in its own process, and its address."""
    command = [sys.executable, "-c", _START, "--port", "0", "--folder", str(folder), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().split()[-1]
        finally:
            process.terminate()


class Client:
    """One connection."""

    def __init__(self, address: str) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=120)

    def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, Any]:
        data = body if isinstance(body, bytes | None) else json.dumps(body)
        self.connection.request(method, path, data, {"Content-Type": kind} if body is not None else {})
        reply = self.connection.getresponse()
        said = json.loads(reply.read() or b"null")
        return reply.status, said

    def until_ready(self) -> None:
        while not (model := self.ask("GET", "/api/status")[1]["model"])["ready"]:
            assert not model["error"], model["error"]
            time.sleep(0.2)

    def photo(self, seed: int, side: int = PHOTO_PX) -> str:
        status, said = self.ask("POST", "/api/photos", picture(seed, side), "image/png")
        assert status == 201, said
        return str(said["id"])


def picture(seed: int, side: int) -> bytes:
    """Some shapes on a plain ground."""
    chance = np.random.default_rng(seed)
    image = Image.new("RGB", (side, side), tuple(chance.integers(0, 255, 3).tolist()))
    for _ in range(8):
        x1, y1, x2, y2 = np.sort(chance.integers(0, side, (2, 2)), axis=0).flatten().tolist()
        ImageDraw.Draw(image).ellipse((x1, y1, x2 + 1, y2 + 1), tuple(chance.integers(0, 255, 3).tolist()))
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def trace(seed: int) -> dict[str, Any]:
    """Two seconds of drawing at 60 points a second."""
    chance, times = np.random.default_rng(seed), np.arange(120) / 60
    x, y = (0.5 + 0.3 * np.sin(chance.uniform(1, 4) * times + chance.uniform(0, 6)) for _ in range(2))
    return {"kind": "trace", "points": np.stack([x, y, times], axis=1).tolist()}


def timed(client: Client, path: str, body: Any) -> float:
    began = time.perf_counter()
    status, said = client.ask("POST", path, body)
    assert status == 200, said
    return time.perf_counter() - began


def look(client: Client) -> Row:
    client.ask("POST", f"/api/photos/{client.photo(0)}/look")
    seconds = [timed(client, f"/api/photos/{client.photo(seed)}/look", {}) for seed in range(1, 21)]
    middle = 1_000 * float(np.median(seconds))
    return f"a look at {PHOTO_PX} px, median of 20", f"{middle:.0f} ms", f"< {LOOK_MS:.0f} ms", middle < LOOK_MS


def traces(client: Client) -> Row:
    path = f"/api/photos/{client.photo(0)}/captions"
    seconds = [timed(client, path, {"regions": [trace(seed)], "provenance": True}) for seed in range(60)]
    late = 1_000 * float(np.quantile(seconds, 0.95))
    return (
        "a caption for a drawn trace after the look, p95 of 60",
        f"{late:.0f} ms",
        f"< {TRACE_MS:.0f} ms",
        late < TRACE_MS,
    )


def batch(client: Client) -> Row:
    """One request with its look and a hundred regions, against as many requests that each look anew."""
    fresh = [client.photo(100 + i) for i in range(13)]
    alone = [timed(client, f"/api/photos/{one}/captions", {"regions": [trace(i)]}) for i, one in enumerate(fresh[:10])]
    regions = [trace(seed) for seed in range(MANY)]
    together = min(timed(client, f"/api/photos/{one}/captions", {"regions": regions}) for one in fresh[10:])
    ratio = MANY * float(np.median(alone)) / together
    measured = f"{together:.2f} s against {MANY * float(np.median(alone)):.1f} s: {ratio:.0f} ×"
    return f"{MANY} regions in one request against {MANY} looks", measured, f"≥ {MANY_RATIO:.0f} ×", ratio >= MANY_RATIO


def crowd(pid: int, address: str) -> list[Row]:
    """Clients that ask for captions, looks and lists without a pause, on more photos than are kept in memory."""
    photos = [Client(address).photo(1_000 + i) for i in range(Limits().looks + 16)]
    statuses: Counter[int] = Counter()
    lock, ends = threading.Lock(), time.monotonic() + SECONDS

    def ask(number: int) -> None:
        client, chance, own = Client(address), np.random.default_rng(number), Counter[int]()
        while time.monotonic() < ends:
            one, kind = photos[int(chance.integers(len(photos)))], chance.random()
            if kind < 0.2:
                status, _ = client.ask("GET", "/api/photos")
            elif kind < 0.4:
                status, _ = client.ask("POST", f"/api/photos/{one}/look")
            else:
                regions = [trace(int(chance.integers(1_000))) for _ in range(int(chance.integers(1, 4)))]
                status, _ = client.ask("POST", f"/api/photos/{one}/captions", {"regions": regions})
            own[status] += 1
            time.sleep(0.2 if status == 429 else 0)
        with lock:
            statuses.update(own)

    clients = [threading.Thread(target=ask, args=(number,)) for number in range(CLIENTS)]
    for one in clients:
        one.start()
    # By then every client has asked, and the looks that are kept are many.
    time.sleep(SECONDS / 2)
    half = memory_mb(pid)
    for one in clients:
        one.join()
    end = memory_mb(pid)
    bad = {status: count for status, count in statuses.items() if status not in (200, 429)}
    served = f"{statuses[200]:,} served, {statuses[429]:,} put off, {sum(bad.values())} other"
    grown = f"{half:.0f} MB half-way, {end:.0f} MB at the end"
    return [
        (f"{CLIENTS} clients for {SECONDS:.0f} s", served, "no error but 429", not bad and statuses[200] > 0),
        ("memory of the server meanwhile", grown, f"< {GROWTH} × half-way", end < GROWTH * half),
    ]


def memory_mb(pid: int) -> float:
    """What a process holds in memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1_000 for line in lines if line.startswith("VmRSS"))
