"""Kill a batch run at random points, and compare its files with those of a run that was never killed.

    python -m tests.build.batch.kill_batch FOLDER COUNT SEED

Every child is killed before, within or after a random one of the files that it writes, and the next goes on.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from PIL import Image

from saywhere import atomic
from saywhere.build.batch import run as batch
from saywhere.build.batch.run import BatchStage, run_batch
from saywhere.engine import Engine, mapping
from saywhere.vision import photo_reader
from tests.models.patchioner_seeing import seer

_WITHIN_S = 0.002


@dataclass
class TinyStage(BatchStage):
    """The stage with a model that needs no files, in whichever process."""

    def setup(self) -> None:
        self.opened = seer()
        super().setup()


def run_tiny(
    photos: Path,
    out: Path,
    engine: Engine | None = None,
    reader: str = photo_reader.__name__,
    timeout_s: float = 60.0,
    stage: type[BatchStage] = TinyStage,
) -> None:
    """Look at all photos with the small model, in parts of two."""
    before, batch.BatchStage = batch.BatchStage, stage  # type: ignore[misc]
    try:
        odd = {"reader": reader, "timeout_s": timeout_s}
        run_batch("look", [photos], out, "tiny", engine=engine, size=2, weights="tiny", **odd)  # type: ignore[arg-type]
    finally:
        batch.BatchStage = before  # type: ignore[misc]


def paint(folder: Path, count: int) -> None:
    """So many small photos."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        pixels = np.random.default_rng(number).integers(0, 256, (4, 4, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((16, 16), Image.Resampling.NEAREST).save(folder / f"{number:03}.png")


def contents(out: Path) -> dict[str, bytes]:
    """All files of results by name."""
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.suffix in _OURS}


_OURS = (".parquet", ".json")


def main(folder: Path, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    photos, whole, out = folder / "photos", folder / "whole", folder / "killed"
    paint(photos, 14)
    run_tiny(photos, whole)
    killed = runs = 0
    while killed < count:
        write, within_s = int(rng.integers(0, 17)), float(rng.choice([-1.0, 0.0, rng.uniform(0, _WITHIN_S)]))
        child = os.fork()
        if not child:
            _die_at(write, within_s)
            run_tiny(photos, out)
            os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if ended not in (0, -signal.SIGKILL):
            sys.exit(f"after {killed} kills a run failed: {ended}")
        killed += ended != 0
        if ended == 0:  # it came to its end: compare, and begin anew
            runs += 1
            _compare(whole, out, killed)
            shutil.rmtree(out)
    run_tiny(photos, out)
    _compare(whole, out, killed)
    print(f"{killed} kills over {runs + 1} whole runs: equal")  # noqa: T201


def _compare(whole: Path, out: Path, killed: int) -> None:
    if contents(whole) != contents(out):
        sys.exit(f"after {killed} kills the files differ from those of a run that was never killed")


def _die_at(write: int, within_s: float) -> None:
    """Make this process end at one of its writes: before it (0), after it (< 0), or so long after its beginning."""
    real, writes = atomic.write_atomic, 0

    @contextmanager
    def dying(path: str | Path) -> Iterator[IO[bytes]]:
        nonlocal writes
        mine, writes = writes == write, writes + 1
        if mine and within_s == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if mine and within_s > 0:
            threading.Thread(target=_kill_after, args=(within_s,), daemon=True).start()
        with real(path) as file:
            yield file
        if mine and within_s < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    for module in (batch, mapping):
        held: Any = module
        held.write_atomic = dying


def _kill_after(seconds: float) -> None:
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
