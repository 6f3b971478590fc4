"""Kill the writer of a library at random points, and compare what comes of it with one that was never killed.

    python -m tests.index.kill_library FOLDER COUNT SEED [URL]

Every child is killed before, within or after a random one of its writes to a table. Between kills photos are added,
changed and deleted. Children are forks, which begin fast; LanceDB begins its threads anew in each. URL: of a place on
object storage for the library, and not its folder.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lancedb.index  # noqa: F401 - once for all children
import numpy as np
from PIL import Image

from saywhere.index import Library, update
from saywhere.index.tables import LibraryTables
from tests.models.patchioner_seeing import seer

_WITHIN_S, _WITHIN_AT_STORE_S = 0.004, 0.2
"""A write takes a few milliseconds; requests to a store take longer."""


def main(folder: Path, count: int, seed: int, url: str | None = None) -> None:
    # LanceDB says that forking is an experiment; here nothing of it is at work at that moment.
    warnings.simplefilter("ignore", RuntimeWarning)
    rng = np.random.default_rng(seed)
    photos = folder / "photos"
    photos.mkdir(parents=True)
    killed, rounds, most_s = 0, 0, _WITHIN_AT_STORE_S if url else _WITHIN_S
    for number in range(12):
        _paint(photos / f"{number:03}.png", rng)
    while killed < count:
        write, within_s = int(rng.integers(0, 12)), float(rng.choice([-1.0, 0.0, rng.uniform(0, most_s)]))
        ended = _in_child(lambda at=write, wait=within_s: _update(photos, at, wait, url))
        if ended not in (0, -signal.SIGKILL):
            sys.exit(f"after {killed} kills an update failed")
        killed, rounds = killed + (ended != 0), rounds + 1
        _change(photos, rng)
    update_it, compare = (lambda: _update(photos, index=url)), (lambda: _same(photos, url, folder / "fresh"))
    if _in_child(update_it) or _in_child(compare):
        sys.exit(f"after {killed} kills the library differs from a fresh one")
    print(f"{killed} kills in {rounds} rounds: equal")  # noqa: T201


def _paint(path: Path, rng: np.random.Generator) -> None:
    pixels = rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)
    Image.fromarray(pixels).resize((16, 16), Image.Resampling.NEAREST).save(path)


def _change(photos: Path, rng: np.random.Generator) -> None:
    """One photo more, one changed, one gone, now and then."""
    own = sorted(photos.glob("*.png"))
    _paint(photos / f"{int(rng.integers(0, 999)):03}.png", rng)
    _paint(own[int(rng.integers(len(own)))], rng)
    if len(own) > 8:
        own[int(rng.integers(len(own)))].unlink()


def _in_child(work: Callable[[], None]) -> int:
    """How a child that does something ended: its exit code, or the negative number of the signal that killed it."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        work()
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - a child must never go on as its parent
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)  # noqa: T201
        os._exit(1)


def _update(photos: Path, kill_at: int = -1, within_s: float = 0.0, index: str | Path | None = None) -> None:
    """within_s: 0 kills before the write, less than 0 after it, more so long after its beginning."""
    sys.modules["saywhere.index.update"]._AT_ONCE = 3  # type: ignore[attr-defined]
    writes = 0

    def counted(write: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> None:
            nonlocal writes
            mine, writes = writes == kill_at, writes + 1
            if mine and within_s == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            if mine and within_s > 0:
                threading.Thread(target=_kill_after, args=(within_s,), daemon=True).start()
            write(*args)
            if mine:
                os.kill(os.getpid(), signal.SIGKILL)

        return call

    for name in ("add", "replace", "delete"):
        setattr(LibraryTables, name, counted(getattr(LibraryTables, name)))
    update(photos, seer(), folder=index)


def _kill_after(seconds: float) -> None:
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)


def _same(photos: Path, killed: str | None, fresh: Path) -> None:
    _update(photos, index=fresh)
    kept, new = contents(Library(photos, killed)), contents(Library(photos, fresh))
    if kept != new:
        raise AssertionError(f"{sum(map(len, kept.values()))} rows, not {sum(map(len, new.values()))}")


def contents(library: Any) -> dict[str, list[str]]:
    """All rows of all tables, as text."""
    tables = library.tables
    return {
        name: sorted(json.dumps(row, default=str) for row in tables.columns(name, schema.names).to_pylist())
        for name, schema in tables.schemas.items()
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
