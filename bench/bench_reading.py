"""Localized Narratives: reading speed on one core, against json.loads in the same run, and memory on a large file.

`python -m bench.bench_reading --full` measures memory on 1 GB instead of 200 MB.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from saywhere.formats import localized_narratives

SPEED_BYTES = 20 * 10**6
MEMORY_BYTES = 200 * 10**6
FULL_BYTES = 10**9
ROUNDS = 7
ASKED_MB_S = 100.0
ASKED_RATIO = 3.0
# Room for the allocator's whims; what is kept of a file would show in tens of megabytes.
ALLOWED_GROWTH_MB = 8.0
WORDS = ["in", "the", "image", "we can see", "there", "is", "a", "person", "who is", "sitting", "food", "item."]
Row = tuple[str, str, str, bool]

# VmHWM (Linux) and not ru_maxrss: the latter counts the parent's memory too, because it outlives the exec.
CHILD = """
import re, sys
from pathlib import Path
from saywhere.formats.localized_narratives import read
count = sum(1 for _ in read(sys.argv[1]))
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(count, int(peak[1]) / 1e3)
"""


def record(rng: np.random.Generator) -> bytes:
    """A made-up record much like a real one: its size, and numbers as float arithmetic leaves them."""
    n = int(rng.integers(200, 461))
    steps = rng.integers(-120, 121, (n, 2)).cumsum(axis=0) + 5000
    times = rng.integers(15, 20, n).cumsum() + 600
    points = [
        {"x": x * 0.0001, "y": y * 0.0001, "t": t * 0.001}
        for (x, y), t in zip(steps.tolist(), times.tolist(), strict=True)
    ]
    said = rng.choice(WORDS, int(rng.integers(12, 30))).tolist()
    cuts = np.sort(rng.integers(0, times[-1] // 100, len(said) + 1)).tolist()
    content = {
        "dataset_id": "mscoco_val2017",
        "image_id": str(rng.integers(10**6)),
        "annotator_id": int(rng.integers(150)),
        "caption": " ".join(said),
        "timed_caption": [
            {"utterance": word, "start_time": cuts[i] * 0.1, "end_time": cuts[i + 1] * 0.1}
            for i, word in enumerate(said)
        ],
        "traces": [points],
        "voice_recording": "coco_val/coco_val_212166_49.ogg",
    }
    return json.dumps(content).encode() + b"\n"


def make_file(path: Path, size: int) -> int:
    """Fill a file with records up to about `size` bytes; how many there are."""
    rng = np.random.default_rng(0)
    written = count = 0
    with path.open("wb") as file:
        for line in cycle([record(rng) for _ in range(300)]):
            file.write(line)
            written, count = written + len(line), count + 1
            if written >= size:
                return count
    return count


def plain(path: Path) -> Iterator[tuple[Any, list[np.ndarray], list[tuple[str, float, float]]]]:
    """What people write by hand: json.loads, an array for each stroke, a tuple for each utterance."""
    with path.open("rb") as file:
        for line in file:
            content = json.loads(line)
            traces = [np.array([[p["x"], p["y"], p["t"]] for p in stroke]) for stroke in content["traces"]]
            yield content, traces, [(u["utterance"], u["start_time"], u["end_time"]) for u in content["timed_caption"]]


def best_cpu_s(path: Path, readers: Mapping[str, Callable[[Path], Iterator[Any]]]) -> dict[str, float]:
    """Least CPU seconds over several rounds, the readers taking turns so that a noisy moment hits them all."""
    best = dict.fromkeys(readers, float("inf"))
    for _ in range(ROUNDS):
        for name, reader in readers.items():
            began = time.process_time()
            for _value in reader(path):
                pass
            best[name] = min(best[name], time.process_time() - began)
    return best


def peak_mb(path: Path, count: int) -> float:
    """The most memory that a process had while it read the file."""
    run = subprocess.run([sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=True)
    read, peak = run.stdout.split()
    assert int(read) == count
    return float(peak)


def run(memory_bytes: int = MEMORY_BYTES) -> list[Row]:
    """Rows (what, measured, asked, held)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "narratives.jsonl"
        make_file(path, SPEED_BYTES)
        readers = {"plain": plain, "raw": localized_narratives.read_raw, "read": localized_narratives.read}
        best = best_cpu_s(path, readers)
        speed = {name: path.stat().st_size / 1e6 / seconds for name, seconds in best.items()}
        peaks = [peak_mb(path, make_file(path, size)) for size in (memory_bytes // 4, memory_bytes)]
    ratio, growth = speed["read"] / speed["plain"], peaks[1] - peaks[0]
    sizes = f"{memory_bytes / 1e6:,.0f} MB, and a quarter of it"
    return [
        (
            "Localized Narratives to typed values without arrays, one core",
            f"{speed['raw']:.0f} MB/s ({speed['raw'] / speed['plain']:.1f} × json.loads with arrays)",
            f"≥ {ASKED_MB_S:.0f} MB/s",
            speed["raw"] >= ASKED_MB_S,
        ),
        (
            "Localized Narratives to narratives with arrays, one core",
            f"{speed['read']:.0f} MB/s, {ratio:.2f} × json.loads with arrays ({speed['plain']:.0f} MB/s)",
            f"≥ {ASKED_RATIO:.0f} ×",
            ratio >= ASKED_RATIO,
        ),
        (
            f"Localized Narratives, peak memory on {sizes}",
            f"{peaks[1]:.0f} MB and {peaks[0]:.0f} MB",
            f"flat: ≤ {ALLOWED_GROWTH_MB:.0f} MB more",
            growth <= ALLOWED_GROWTH_MB,
        ),
    ]


if __name__ == "__main__":
    for row in run(FULL_BYTES if "--full" in sys.argv[1:] else MEMORY_BYTES):
        print(*row, sep=" | ")
