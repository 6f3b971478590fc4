"""Approximate search in a large memory bank, against reading all of it.

SAYWHERE_BANK_ROWS sentences, a million by default; at 10⁷ bank and index take 16 GB of disk. The vectors are made: each
is a real one of saywhere-base's 22,579 plus the difference of two others that are alike, which keeps how sentences lie
around each other. So are the vectors asked about, which are none of the bank's. Each part runs in a process of its own,
so that what it holds in memory can be told. Seconds are those of the processor.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.bench_memory import most_resident
from saywhere.models.patchioner.bank_file import Sentences, open_bank, write_bank

ROWS, ASKED, TOP, TEMPERATURE = int(os.environ.get("SAYWHERE_BANK_ROWS", "1000000")), 50, 10, 0.01
ASKED_RECALL, ASKED_BYTES = 0.95, 1e9
BANK = "bank.safetensors"
_AT_ONCE, _KINDS = 20_000, 200
Row = tuple[str, str, str, bool]


def run() -> list[Row]:
    """Rows (name, measured, asked, ok)."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("SAYWHERE_BANK_FOLDER")) as folder:
        found = {part.__name__: _in_its_own_process(part.__name__, Path(folder)) for part in PARTS}
    exact, near = found["exact"], found["approximate"]
    recall = np.mean([len({*a} & {*b}) / TOP for a, b in zip(exact["nearest"], near["nearest"], strict=True)])
    alike = (np.array(exact["vectors"]) * np.array(near["vectors"])).sum(axis=1)
    most = max(found[name]["resident"] for name in ("build", "exact", "approximate"))
    name = f"memory bank, {ROWS:,} sentences"
    told = f"{near['seconds']:.3f} s a vector, {exact['seconds']:.3f} s exact"
    resident = ", ".join(f"{found[one]['resident'] / 1e9:.2f}" for one in ("build", "exact", "approximate"))
    return [
        (f"{name}: recall@{TOP} of exact", f"{recall:.3f}", f"≥ {ASKED_RECALL}", recall >= ASKED_RECALL),
        (f"{name}: cosine of what is put together", f"{alike.mean():.4f}, least {alike.min():.4f}", "–", True),
        (f"{name}: approximate, {ASKED} vectors", told, "–", True),
        (f"{name}: making the index", f"{found['build']['seconds']:.0f} s of a core", "–", True),
        (f"{name}: resident, making, exact, approximate", f"{resident} GB", "≤ 1 GB", most <= ASKED_BYTES),
    ]


def _in_its_own_process(part: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.bench_bank", part, str(folder)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parents[1])
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def _drawn(count: int, seed: int) -> NDArray[np.float32]:
    """(count, d) vectors of length 1, as they are spread in the real bank."""
    from saywhere.models.patchioner.memory import MemoryBank

    real = MemoryBank.load(Path(__file__).parents[1] / "src/saywhere/models/base/memory.safetensors").vectors
    flat = real.astype(np.float32)
    kinds = (flat @ flat[np.random.default_rng(0).choice(len(flat), _KINDS, replace=False)].T).argmax(axis=1)
    order, rng = np.argsort(kinds, kind="stable"), np.random.default_rng(seed)
    sizes, starts = np.bincount(kinds, minlength=_KINDS), np.searchsorted(kinds[order], np.arange(_KINDS))
    base = rng.integers(len(flat), size=count)
    one, other = (order[starts[kinds[base]] + (rng.random(count) * sizes[kinds[base]]).astype(int)] for _ in range(2))
    vectors = flat[base] + 0.7 * (flat[one] - flat[other])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def make(folder: Path) -> dict[str, Any]:
    """The bank, and beside it vectors to ask about."""
    with (folder / "rows").open("wb") as file:
        for first in range(0, ROWS, _AT_ONCE):
            file.write(_drawn(min(_AT_ONCE, ROWS - first), first + 1).astype(np.float16).tobytes())
    asked = _drawn(ASKED, 0)
    rows = np.memmap(folder / "rows", dtype=np.float16, mode="r", shape=(ROWS, asked.shape[1]))
    write_bank(folder / BANK, rows, Sentences.packed([f"sentence {i}" for i in range(ROWS)]), {}, {})
    (folder / "rows").unlink()
    np.save(folder / "asked.npy", asked)
    return {}


def build(folder: Path) -> dict[str, Any]:
    """What making the index takes."""
    from saywhere.models.patchioner.bank_index import build_index

    file = open_bank(folder / BANK, verify=False)
    began = time.process_time()
    build_index(folder / BANK, file.vectors, file.sha256)
    return {"seconds": time.process_time() - began, "resident": most_resident()}


def exact(folder: Path) -> dict[str, Any]:
    """What reading all of the bank gives and takes."""
    return _projected(folder, approximate=False)


def approximate(folder: Path) -> dict[str, Any]:
    """What the index gives and takes."""
    return _projected(folder, approximate=True)


def _projected(folder: Path, *, approximate: bool) -> dict[str, Any]:
    import torch

    from saywhere.models.patchioner.memory import MemoryBank

    torch.set_num_threads(1)
    bank = MemoryBank.load(folder / BANK, verify=False, approximate=approximate)
    began = time.process_time()
    found = bank.project(np.load(folder / "asked.npy"), TEMPERATURE, nearest=TOP)
    return {
        "seconds": (time.process_time() - began) / ASKED,
        "nearest": [[one.sentence for one in row] for row in found.nearest],
        "vectors": found.vectors.tolist(),
        "resident": most_resident(),
    }


PARTS = (make, build, exact, approximate)

if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](Path(sys.argv[2]))))
