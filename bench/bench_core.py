"""Simplification of traces, and the time to import the package."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np

from saywhere.core import Trace, simplify_many


def pointer(rng: np.random.Generator, points: int) -> Trace:
    """A made-up pointer path at 60 Hz: slowly turning velocity, as of a hand."""
    velocity = np.cumsum(rng.normal(0, 0.0003, (points, 2)), axis=0)
    xy = 0.5 + np.cumsum(velocity - velocity.mean(axis=0), axis=0)
    return Trace(np.column_stack([xy, np.arange(points) / 60]))


def run() -> list[tuple[str, str, str, bool]]:
    rng = np.random.default_rng(0)
    traces = [pointer(rng, 400) for _ in range(1000)]
    simplify_many(traces[:2], 5, (640, 480))
    times = []
    for _ in range(5):
        began = time.perf_counter()
        kept = simplify_many(traces, 5, (640, 480))
        times.append(time.perf_counter() - began)
    mean_kept = np.mean([len(trace) for trace in kept])
    code = "import time; t = time.perf_counter(); import saywhere; print(time.perf_counter() - t)"
    imports = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    ]
    return [
        (
            f"simplify 1,000 traces × 400 points (to {mean_kept:.0f} on average), best of 5",
            f"{min(times) * 1e3:.0f} ms",
            "< 60 ms",
            min(times) < 0.06,
        ),
        ("import saywhere, best of 3", f"{min(imports):.2f} s", "< 0.5 s", min(imports) < 0.5),
    ]


if __name__ == "__main__":
    for row in run():
        print(*row, sep=" | ")
