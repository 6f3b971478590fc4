"""Ray Data against one process: the same photos through the same stage, by turns, within one run.

Workers are set up and have looked at some photos before the clock starts, as in any run that is worth a cluster. Two
workers need two idle cores. The plain loop computes with one thread, as a worker does.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

import torch

from saywhere.build.batch import run_batch
from saywhere.engine import Engine, OneProcess
from saywhere.engine.ray_data import RayData, joined

SAMPLES = Path(__file__).resolve().parents[1] / "examples" / "photos"
MANY, SIZE = int(os.environ.get("SAYWHERE_BATCH_PHOTOS", "256")), 8
FEW = MANY // 8
ASKED_TWO, ASKED_OVERHEAD = 1.6, 0.15
Row = tuple[str, str, str, bool]


def copies(folder: Path, count: int) -> Path:
    """So many photos: the sample photos again and again."""
    folder.mkdir()
    samples = sorted(SAMPLES.glob("*.jpg"))
    for number in range(count):
        shutil.copy(samples[number % len(samples)], folder / f"{number:05}.jpg")
    return folder


def photo_s(engine: Engine, few: Path, many: Path, out: Path) -> float:
    """Seconds a photo, beyond what starting takes: many photos less few, by how many there are more."""
    times = []
    for photos in (few, many):
        began = time.perf_counter()
        run_batch("look", [photos], out / photos.name, "saywhere-base", engine=engine, size=SIZE)
        times.append(time.perf_counter() - began)
    return (times[1] - times[0]) / (MANY - FEW)


def run() -> list[Row]:
    torch.set_num_threads(1)
    joined("")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        few, many = copies(root / "few", FEW), copies(root / "many", MANY)
        engines: dict[str, Engine] = {"plain": OneProcess(), "one": RayData(workers=1), "two": RayData(workers=2)}
        found = {kind: photo_s(engine, few, many, root / kind) for kind, engine in engines.items()}
        same = all(
            (root / kind / "many" / path.name).read_bytes() == path.read_bytes()
            for kind in ("one", "two")
            for path in (root / "plain" / "many").glob("*.parquet")
        )
    alike = ("the same bytes from all three", "yes" if same else "no", "yes", same)
    if min(found.values()) <= 0:  # other work took the time
        return [("Ray Data against one process", "not measured: the machine is busy", "an idle machine", False), alike]
    ratio, overhead = found["plain"] / found["two"], found["one"] / found["plain"] - 1
    return [
        ("one process, a look", f"{1e3 * found['plain']:.0f} ms", "for information", True),
        ("Ray Data, two workers against one process", f"{ratio:.2f} ×", f"≥ {ASKED_TWO} ×", ratio >= ASKED_TWO),
        (
            "Ray Data, one worker against the plain loop",
            f"{overhead:+.0%}",
            f"≤ {ASKED_OVERHEAD:.0%}",
            overhead <= ASKED_OVERHEAD,
        ),
        alike,
    ]
