"""LBM on 10,000 pairs, against the linear programme that defines it, solved by scipy in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from saywhere.metrics.lbm import lbm, lbm_many

PAIRS = 10_000
SAMPLE = 30
ASKED_RATIO = 200.0
Row = tuple[str, str, str, bool]


def run() -> list[Row]:
    """Rows (name, measured, asked, ok)."""
    rng = np.random.default_rng(0)
    pairs_a, pairs_b = walks(rng, PAIRS), walks(rng, PAIRS)
    rows: list[Row] = []
    for k in (0, 1):
        full_s, full_scores = timed_sample(full_programme, pairs_a, pairs_b, k)
        lean_s, lean_scores = timed_sample(lean_programme, pairs_a, pairs_b, k)
        lone_s, _ = timed_sample(lbm, pairs_a, pairs_b, k)
        for order, first, second in (("a, b", pairs_a, pairs_b), ("b, a", pairs_b, pairs_a)):
            batch_s, scores = timed_batch(first, second, k)
            error = max(np.abs(scores[:SAMPLE] - other).max() for other in (full_scores, lean_scores))
            ratio = full_s / batch_s
            name = f"LBM k={k}, lbm_many({order}), {PAIRS:,} pairs of about 50 boxes"
            measured = f"{batch_s * 1e6:.1f} µs a pair, {ratio:,.0f} × linprog ({full_s * 1e3:.1f} ms a pair)"
            rows.append((name, measured, f"≥ {ASKED_RATIO:.0f} × linprog", ratio >= ASKED_RATIO))
            rows.append((f"LBM k={k}, ({order}), farthest from linprog", f"{error:.1e}", "≤ 1e-9", bool(error <= 1e-9)))
        lean = f"{lean_s / batch_s:,.0f} × ({lean_s * 1e3:.1f} ms a pair)"
        rows.append((f"LBM k={k}, against a sparse programme of allowed matches", lean, "for information", True))
        rows.append((f"LBM k={k}, lbm on a lone pair", f"{lone_s * 1e6:.0f} µs", "for information", True))
    return rows


def walks(rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Traces of 45 to 55 boxes that wander as a narrator's pointer does."""
    lengths = rng.integers(45, 56, count)
    return [0.5 + np.cumsum(rng.normal(0.0, 0.03, (n, 4)), axis=0) for n in lengths.tolist()]


def timed_batch(pairs_a: list[np.ndarray], pairs_b: list[np.ndarray], k: int) -> tuple[float, np.ndarray]:
    """Seconds per pair (the best of three runs) and the scores."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        scores = lbm_many(pairs_a, pairs_b, k)
        seconds.append(time.perf_counter() - start)
    return min(seconds) / len(scores), scores


def timed_sample(
    score: Callable[[np.ndarray, np.ndarray, int], float], pairs_a: list[np.ndarray], pairs_b: list[np.ndarray], k: int
) -> tuple[float, np.ndarray]:
    """Median seconds per pair and the scores, over the first pairs and after one call to warm up."""
    score(pairs_a[0], pairs_b[0], k)
    seconds, scores = [], []
    for a, b in zip(pairs_a[:SAMPLE], pairs_b[:SAMPLE], strict=True):
        start = time.perf_counter()
        scores.append(score(a, b, k))
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds)), np.array(scores)


def costs_and_allowed(a: np.ndarray, b: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """(q, m) costs and which matches are allowed, with the shorter trace as rows."""
    if len(a) > len(b):
        a, b = b, a
    i, j = np.arange(len(a))[:, np.newaxis], np.arange(len(b))
    allowed = ((i - k) * len(b) // len(a) <= j) & (j * len(a) < (i + 1 + k) * len(b))
    return np.abs(a[:, np.newaxis] - b).mean(axis=2), allowed


def full_programme(a: np.ndarray, b: np.ndarray, k: int) -> float:
    """The programme as the paper writes it: one variable per cell, forbidden cells held at zero by constraints."""
    costs, allowed = costs_and_allowed(a, b, k)
    q, m = costs.shape
    one_per_row = np.kron(np.eye(q), np.ones(m))
    solution = linprog(
        costs.ravel(),
        A_ub=np.tile(np.eye(m), q),
        b_ub=np.ones(m),
        A_eq=np.vstack([one_per_row, one_per_row * ~allowed.ravel()]),
        b_eq=np.concatenate([np.ones(q), np.zeros(q)]),
        bounds=(0, 1),
        method="highs",
    )
    return float(solution.fun) / q


def lean_programme(a: np.ndarray, b: np.ndarray, k: int) -> float:
    """The same optimum from a sparse programme with variables for the allowed matches only."""
    costs, allowed = costs_and_allowed(a, b, k)
    q, m = costs.shape
    i, j = np.nonzero(allowed)
    cells = np.arange(len(i))
    solution = linprog(
        costs[i, j],
        A_ub=csr_array((np.ones(len(i)), (j, cells)), shape=(m, len(i))),
        b_ub=np.ones(m),
        A_eq=csr_array((np.ones(len(i)), (i, cells)), shape=(q, len(i))),
        b_eq=np.ones(q),
        bounds=(0, 1),
        method="highs",
    )
    return float(solution.fun) / q


def main() -> None:
    for name, measured, asked, ok in run():
        print(f"{'ok  ' if ok else 'FAIL'} {name}: {measured} (asked: {asked})")


if __name__ == "__main__":
    main()
