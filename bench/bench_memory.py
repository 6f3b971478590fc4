"""Memory projection against 592,000 sentences of 768 numbers, and against normalising the bank at every call.

The bank is as spread as the sentence vectors of real captions are: some sixty strong directions, cosines 0.07 ± 0.12.
The vectors asked about are none of its own, so that several sentences make up each answer. Seconds are CPU seconds of
one thread, so that other work on the machine hardly counts. Each part runs in a process of its own, so that what
projecting holds in memory can be told, and so that none of them takes more than a gigabyte.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saywhere.models.patchioner.bank_file import Sentences, write_bank

ROWS, SIZE, STRONG, REGIONS = 592_000, 768, 60, 16
TEMPERATURE = 0.01
BANK, ASKED = "bank.safetensors", "asked.npy"
ASKED_RATIO, ASKED_ERROR, ASKED_BYTES = 20.0, 1e-5, 1e9
_AT_ONCE = 8_000
Row = tuple[str, str, str, bool]


def run() -> list[Row]:
    """Rows (name, measured, asked, ok)."""
    with tempfile.TemporaryDirectory() as folder:
        found = {part: in_its_own_process(part, Path(folder)) for part in PARTS}
    projected, slow_s = found["project"], found["normalise"]["seconds"]
    expected = np.array(found["define"]["vectors"])
    error, alone_error = (
        float(np.abs(np.array(projected[name]) - expected[:count]).max())
        for name, count in (("vectors", REGIONS), ("alone", 1))
    )
    ratio, resident = slow_s / projected["one_s"], projected["resident"]
    name = f"memory projection, {ROWS:,} × {SIZE}"
    one = f"{projected['one_s'] * 1e3:.0f} ms, {ratio:.1f} × faster ({slow_s:.2f} s)"
    batch = f"{projected['many_s'] / REGIONS * 1e3:.0f} ms a vector"
    return [
        (f"{name}, one vector, against normalising the bank", one, f"≥ {ASKED_RATIO:.0f} ×", ratio >= ASKED_RATIO),
        (f"{name}, {REGIONS} vectors in one call", batch, "for information", True),
        (f"{name}, farthest from float64, {REGIONS} vectors", f"{error:.1e}", "≤ 1e-5", error <= ASKED_ERROR),
        (f"{name}, farthest from float64, one vector", f"{alone_error:.1e}", "≤ 1e-5", alone_error <= ASKED_ERROR),
        (f"{name}, resident at most", f"{resident / 1e9:.2f} GB", "≤ 1 GB", resident <= ASKED_BYTES),
    ]


def in_its_own_process(part: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.bench_memory", part, str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def make(folder: Path) -> dict[str, Any]:
    """The bank, and beside it vectors to ask about."""
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((STRONG, SIZE), np.float32)
    mean = 2.3 * rng.standard_normal(SIZE, np.float32)

    def draw(count: int) -> NDArray[np.float32]:
        drawn = rng.standard_normal((count, STRONG), np.float32) @ directions + mean
        drawn += 2 * rng.standard_normal(drawn.shape, np.float32)
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

    with (folder / "rows").open("wb") as file:
        for _ in range(0, ROWS, _AT_ONCE):
            file.write(draw(_AT_ONCE).astype(np.float16).tobytes())
    rows = np.memmap(folder / "rows", dtype=np.float16, mode="r", shape=(ROWS, SIZE))
    write_bank(folder / BANK, rows, Sentences.packed([f"sentence {i}" for i in range(ROWS)]), {}, {})
    (folder / "rows").unlink()
    np.save(folder / ASKED, draw(REGIONS))
    return {}


def project(folder: Path) -> dict[str, Any]:
    """What projecting takes and gives."""
    import torch

    from saywhere.models.patchioner.memory import MemoryBank

    torch.set_num_threads(1)
    bank, asked = MemoryBank.load(folder / BANK), np.load(folder / ASKED)
    one_s, alone = best_of(5, lambda: bank.project(asked[:1], TEMPERATURE).vectors)
    many_s, together = best_of(1, lambda: bank.project(asked, TEMPERATURE).vectors)
    vectors, lone = together.tolist(), alone.tolist()
    return {"one_s": one_s, "many_s": many_s, "vectors": vectors, "alone": lone, "resident": most_resident()}


def most_resident() -> int:
    """Bytes. Not getrusage's, which for a child begins with what its parent had."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def best_of(times: int, work: Callable[[], NDArray[np.float32]]) -> tuple[float, NDArray[np.float32]]:
    """CPU seconds of the best run, and what it gave."""
    seconds = []
    for _ in range(times):
        began = time.process_time()
        found = work()
        seconds.append(time.process_time() - began)
    return min(seconds), found


def normalise(folder: Path) -> dict[str, Any]:
    """CPU seconds of one projection that brings all rows to length 1 first, the best of three.

    The rows are given in float32 and in memory, an eighth at a time; the eighths' seconds are added. At once they would
    take longer still, and 3.6 GB.
    """
    import torch

    torch.set_num_threads(1)
    halves, vector = bank_rows(folder), torch.from_numpy(np.load(folder / ASKED)[:1])
    totals = [0.0] * 3
    for start in range(0, ROWS, ROWS // 8):
        rows = torch.from_numpy(halves[start : start + ROWS // 8].astype(np.float32))
        for i in range(len(totals)):
            began = time.process_time()
            unit = rows / rows.norm(dim=-1, keepdim=True)
            weights = torch.softmax(vector @ unit.T / TEMPERATURE, dim=-1)
            torch.nn.functional.normalize(weights @ unit, dim=-1)
            totals[i] += time.process_time() - began
    return {"seconds": min(totals)}


def bank_rows(folder: Path) -> NDArray[np.float16]:
    header = int.from_bytes((folder / BANK).open("rb").read(8), "little")
    return np.memmap(folder / BANK, dtype=np.float16, mode="r", offset=8 + header, shape=(ROWS, SIZE))


def define(folder: Path) -> dict[str, Any]:
    """The definition in float64, in two passes over the bank."""
    halves, vectors = bank_rows(folder), np.load(folder / ASKED).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    parts = range(0, ROWS, _AT_ONCE)
    cosines = [vectors @ halves[start : start + _AT_ONCE].astype(np.float64).T for start in parts]
    highest = np.max([part.max(axis=1) for part in cosines], axis=0)[:, np.newaxis]
    mixed = np.zeros_like(vectors)
    for start, part in zip(parts, cosines, strict=True):
        weights = np.exp((part - highest) / TEMPERATURE)
        mixed += weights @ halves[start : start + _AT_ONCE].astype(np.float64)
    return {"vectors": (mixed / np.linalg.norm(mixed, axis=1, keepdims=True)).tolist()}


PARTS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "make": make,
    "project": project,
    "normalise": normalise,
    "define": define,
}

if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(PARTS[sys.argv[1]](Path(sys.argv[2]))))
    else:
        for row in run():
            print(*row, sep=" | ")
