"""LBM against the reference vectors, against other ways to solve the same problem, and against what it promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, permutations
from math import ceil, floor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.metrics._lbm_assignment import MANY_COLUMNS, MANY_PROBLEMS, exact_windows, rounded_windows
from saywhere.metrics.lbm import LBM, lbm, lbm_many, located_boxes

PROTOCOLS = ("paper", "released")
# Coarse numbers make ties, fine ones make every match matter.
COORDINATES = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(-1.5, 2.5, width=32))


def traces(longest: int) -> st.SearchStrategy[np.ndarray]:
    """Traces of 1 ... longest boxes."""
    return st.integers(1, longest).flatmap(lambda n: hnp.arrays(np.float64, (n, 4), elements=COORDINATES))


def lbm_in_a_batch(a: np.ndarray, b: np.ndarray, k: int, protocol: str = "paper") -> float:
    """The same score by way of a batch, which takes another road than a lone pair."""
    scores = lbm_many([a] * MANY_PROBLEMS, [b] * MANY_PROBLEMS, k, protocol)
    assert np.unique(scores).size == 1
    return float(scores[0])


def may_match(i: int, j: int, q: int, m: int, k: int) -> bool:
    """The window of the paper, in fractions."""
    return floor(Fraction((i - k) * m, q)) <= j < Fraction((i + 1 + k) * m, q)


def cost_matrix(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.abs(a[:, np.newaxis] - b[np.newaxis]).mean(axis=2)


def by_trying_all(a: np.ndarray, b: np.ndarray, k: int) -> float:
    if len(a) > len(b):
        a, b = b, a
    costs, q, m = cost_matrix(a, b), len(a), len(b)
    return min(
        sum(costs[i, j] for i, j in enumerate(choice)) / q
        for choice in permutations(range(m), q)
        if all(may_match(i, j, q, m, k) for i, j in enumerate(choice))
    )


def by_linear_programme(a: np.ndarray, b: np.ndarray, k: int) -> float:
    q, m = len(a), len(b)
    allowed = np.array([[may_match(i, j, q, m, k) for j in range(m)] for i in range(q)])
    solution = linprog(
        cost_matrix(a, b).ravel(),
        A_ub=np.tile(np.eye(m), q),
        b_ub=np.ones(m),
        A_eq=np.kron(np.eye(q), np.ones(m)),
        b_eq=np.ones(q),
        bounds=[(0, float(cell)) for cell in allowed.ravel()],
    )
    return float(solution.fun) / q


def random_traces(rng: np.random.Generator, lengths: Sequence[int]) -> list[np.ndarray]:
    return [rng.random((n, 4)) for n in lengths]


@pytest.mark.parametrize(("protocol", "tolerance"), [("paper", 1e-9), ("released", 1e-6)])
def test_every_reference_vector_is_met_by_a_lone_pair_and_by_a_batch(
    shared: Callable[[str], Path], protocol: str, tolerance: float
) -> None:
    vectors = np.load(shared("vectors/lbm.npz"))
    pairs_a = np.split(vectors["a"], np.cumsum(vectors["a_len"])[:-1])
    pairs_b = np.split(vectors["b"], np.cumsum(vectors["b_len"])[:-1])
    finite = np.isfinite(vectors[protocol])
    assert finite.sum() == 207
    for i in np.flatnonzero(finite):
        score = lbm(pairs_a[i], pairs_b[i], int(vectors["k"][i]), protocol)
        assert score == pytest.approx(vectors[protocol][i], abs=tolerance, rel=0), vectors["name"][i]
    for k in np.unique(vectors["k"]):
        chosen = np.flatnonzero(finite & (vectors["k"] == k))
        # Repeated, so that the rare values of k make a batch too.
        scores = lbm_many([pairs_a[i] for i in chosen] * 8, [pairs_b[i] for i in chosen] * 8, int(k), protocol)
        np.testing.assert_allclose(scores, np.tile(vectors[protocol][chosen], 8), atol=tolerance, rtol=0)
    for i in np.flatnonzero(~finite):
        with pytest.raises(InvalidValue):
            lbm(pairs_a[i], pairs_b[i], int(vectors["k"][i]), protocol)


@given(traces(5), traces(6), st.integers(0, 5))
def test_lbm_is_the_best_of_all_allowed_assignments(a: np.ndarray, b: np.ndarray, k: int) -> None:
    expected = by_trying_all(a, b, k)
    assert lbm(a, b, k) == pytest.approx(expected, abs=1e-12)
    assert lbm_in_a_batch(a, b, k) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("q", "m"), [(9, 9), (11, 13), (7, 20), (1, 12)])
@pytest.mark.parametrize("k", [0, 1, 2, 4])
def test_lbm_is_the_optimum_of_the_linear_programme(q: int, m: int, k: int) -> None:
    a, b = random_traces(np.random.default_rng(q * m + k), [q, m])
    expected = by_linear_programme(a, b, k)
    assert lbm(a, b, k) == pytest.approx(expected, abs=1e-9)
    assert lbm_in_a_batch(a, b, k) == pytest.approx(expected, abs=1e-9)


def test_a_score_computed_by_hand() -> None:
    a = [[0, 0, 0, 0], [1, 1, 1, 1]]
    b = [[1, 1, 1, 1], [0.5, 0, 0, 0], [0, 0, 0, 0]]
    # k = 0: row 0 may take columns 0 and 1, row 1 columns 1 and 2. Costs 1, 1/8 and 7/8, 1: the best is 1/8 + 1.
    assert lbm(a, b, k=0) == pytest.approx((1 / 8 + 1) / 2)
    # k = 1: every match is allowed, and both boxes have a twin.
    assert lbm(a, b, k=1) == 0.0


@given(traces(25), st.integers(0, 5), st.sampled_from(PROTOCOLS))
def test_a_trace_is_at_no_distance_from_itself(a: np.ndarray, k: int, protocol: str) -> None:
    assert lbm(a, a, k, protocol) == 0.0
    assert lbm_in_a_batch(a, a, k, protocol) == 0.0


@given(traces(25), traces(25), st.integers(0, 5), st.sampled_from(PROTOCOLS))
def test_the_order_of_the_two_traces_does_not_matter(a: np.ndarray, b: np.ndarray, k: int, protocol: str) -> None:
    assert lbm(a, b, k, protocol) == pytest.approx(lbm(b, a, k, protocol), abs=1e-12)


@given(traces(25), traces(25), st.sampled_from(PROTOCOLS))
def test_a_wider_window_never_raises_the_score(a: np.ndarray, b: np.ndarray, protocol: str) -> None:
    scores = [lbm_in_a_batch(a, b, k, protocol) for k in range(6)]
    assert all(wide <= narrow + 1e-12 for narrow, wide in pairwise(scores))


def test_equal_lengths_without_a_window_are_compared_box_by_box() -> None:
    a, b = random_traces(np.random.default_rng(1), [MANY_COLUMNS + 1] * 2)
    assert lbm(a, b) == pytest.approx(float(np.abs(a - b).mean()), abs=1e-12)


def test_a_window_wider_than_the_trace_is_a_free_assignment() -> None:
    a, b = random_traces(np.random.default_rng(2), [6, 9])
    assert lbm(a, b, k=10**30) == lbm(a, b, k=5)
    assert lbm(a, b, k=5) == pytest.approx(by_linear_programme(a, b, k=6), abs=1e-9)


@pytest.mark.parametrize("k", [1, 3])
def test_a_long_pair_scores_the_same_alone_and_in_a_batch(k: int) -> None:
    a, b = random_traces(np.random.default_rng(3), [500, 620])
    assert lbm(a, b, k) == pytest.approx(lbm_in_a_batch(a, b, k), abs=1e-12)


@pytest.mark.parametrize("k", [0, 1, 2, 3])
def test_exact_windows_are_those_of_the_paper_at_every_edge(k: int) -> None:
    for m in range(1, 18):
        for q in range(1, m + 1):
            allowed, home, advances = window_table(exact_windows, q, m, k)
            expected = [[may_match(i, j, q, m, k) for j in range(m)] for i in range(q)]
            np.testing.assert_array_equal(allowed, expected, err_msg=f"q={q} m={m}")
            np.testing.assert_array_equal(np.diff(home), advances[:-1])
            assert (home[0], home[-1]) == (0, q - 1)


def test_exact_windows_hold_where_a_float_product_misses_the_edge() -> None:
    missed = [
        (q, m, i) for m in range(1, 101) for q in range(1, m + 1) for i in range(q) if floor(i * (m / q)) != i * m // q
    ]
    assert len(missed) > 50
    for q, m, i in missed:
        allowed, _, _ = window_table(exact_windows, q, m, 0)
        assert np.flatnonzero(allowed[i])[0] == i * m // q


@pytest.mark.parametrize("k", [0, 1, 2, 3])
def test_released_windows_compare_float_products(k: int) -> None:
    for m in range(1, 50):
        for q in range(1, min(m, 20) + 1):
            ratio = m / q
            allowed, home, advances = window_table(rounded_windows, q, m, k)
            expected = [[(i - k) * ratio <= j < (i + 1 + k) * ratio for j in range(m)] for i in range(q)]
            np.testing.assert_array_equal(allowed, expected, err_msg=f"q={q} m={m}")
            np.testing.assert_array_equal(np.diff(home), advances[:-1])
            assert (home[0], home[-1]) == (0, q - 1)


def window_table(
    windows: Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]], q: int, m: int, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(q, m) allowed matches, and home and advances for each column."""
    home, straddles, advances = windows(np.arange(m), np.full(m, q), np.full(m, m))
    row = np.arange(q)[:, np.newaxis]
    return (row >= home - k) & (row <= home + k + straddles), home, advances


@pytest.mark.parametrize("k", [0, 1, 2])
def test_the_released_protocol_averages_chunks_of_20_without_weights(k: int) -> None:
    a, b = random_traces(np.random.default_rng(4), [41, 41])
    chunks = [lbm(a[s : s + 20], b[s : s + 20], k) for s in (0, 20, 40)]
    assert lbm(a, b, k, "released") == pytest.approx(np.mean(chunks), abs=1e-12)
    assert lbm(a, b, k, "released") != pytest.approx(lbm(a, b, k), abs=1e-6)


def test_neighbouring_chunks_of_the_released_protocol_may_share_a_box() -> None:
    a, b = random_traces(np.random.default_rng(5), [30, 31])
    # 20 of 30 rows are 20.67 of 31 columns: the chunks are columns 0 ... 20 and 20 ... 30.
    chunks = [lbm(a[:20], b[:21], 0, "released"), lbm(a[20:], b[20:], 0, "released")]
    assert lbm(a, b, 0, "released") == pytest.approx(np.mean(chunks), abs=1e-12)


def test_without_rounding_down_and_k_0_every_row_takes_its_cheapest_column() -> None:
    a, b = random_traces(np.random.default_rng(6), [7, 17])
    costs = cost_matrix(a, b)
    edges = [ceil(Fraction(i * 17, 7)) for i in range(8)]
    expected = np.mean([costs[i, edges[i] : edges[i + 1]].min() for i in range(7)])
    assert lbm(a, b, 0, "released") == pytest.approx(expected, abs=1e-12)
    assert lbm(a, b, 0, "paper") < expected


def test_dropping_unlocated_boxes_from_the_truth_alone_spoils_a_perfect_prediction() -> None:
    truth = np.random.default_rng(7).random((12, 4))
    truth[[2, 3, 8]] = [0, 0, 1, 1]
    kept = located_boxes(truth)
    np.testing.assert_array_equal(kept, np.delete(truth, [2, 3, 8], axis=0))
    assert lbm(truth, truth, protocol="released") == 0.0
    assert lbm(truth, kept, protocol="released") > 0.01


def test_a_truth_without_located_boxes_cannot_be_scored() -> None:
    nothing = located_boxes([[0, 0, 1, 1], [0, 0, 1, 1]])
    assert nothing.shape == (0, 4)
    with pytest.raises(InvalidValue, match="empty"):
        lbm([[0, 0, 1, 1]], nothing, protocol="released")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("k", [0, 1, 2, 3, 4])
def test_a_batch_of_mixed_lengths_scores_like_its_pairs_one_by_one(k: int, protocol: str) -> None:
    rng = np.random.default_rng(8)
    pairs_a = random_traces(rng, rng.integers(1, 60, 80).tolist())
    pairs_b = random_traces(rng, rng.integers(1, 60, 80).tolist())
    expected = [lbm(a, b, k, protocol) for a, b in zip(pairs_a, pairs_b, strict=True)]
    np.testing.assert_allclose(lbm_many(pairs_a, pairs_b, k, protocol), expected, atol=1e-12, rtol=0)


def test_a_batch_larger_than_a_block_keeps_the_order_of_its_pairs() -> None:
    rng = np.random.default_rng(9)
    pairs_a = random_traces(rng, rng.integers(1, 4, 5000).tolist())
    shifts = rng.random(5000)
    scores = lbm_many(pairs_a, [a + shift for a, shift in zip(pairs_a, shifts, strict=True)])
    np.testing.assert_allclose(scores, shifts, atol=1e-12, rtol=0)


def test_no_pairs_give_no_scores() -> None:
    assert lbm_many([], []).shape == (0,)


def test_inputs_are_left_as_they_were_and_may_be_lists_or_float32() -> None:
    a, b = random_traces(np.random.default_rng(10), [5, 8])
    before = a.copy(), b.copy()
    scores = lbm_many([a, a.tolist(), a.astype(np.float32)], [b, b.tolist(), b.astype(np.float32)], k=1)
    assert scores[0] == scores[1] == pytest.approx(scores[2], abs=1e-6)
    np.testing.assert_array_equal(a, before[0])
    np.testing.assert_array_equal(b, before[1])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_accumulator_gives_the_mean_of_the_function(protocol: str) -> None:
    rng = np.random.default_rng(11)
    pairs_a, pairs_b = random_traces(rng, [3, 30, 25, 9]), random_traces(rng, [8, 22, 25, 1])
    expected = np.mean([lbm(a, b, 1, protocol) for a, b in zip(pairs_a, pairs_b, strict=True)])
    metric = LBM(k=1, protocol=protocol)
    metric.update(pairs_a[0], pairs_b[0])
    metric.update_many(pairs_a[1:], pairs_b[1:])
    assert metric.compute() == pytest.approx(expected, abs=1e-12)
    metric.reset()
    metric.update(pairs_a[3], pairs_b[3])
    assert metric.compute() == lbm(pairs_a[3], pairs_b[3], 1, protocol)


def test_an_accumulator_without_pairs_says_so() -> None:
    metric = LBM()
    with pytest.raises(InvalidValue, match="no pair"):
        metric.compute()
    metric.update([[0, 0, 1, 1]], [[0, 0, 1, 1]])
    metric.reset()
    with pytest.raises(InvalidValue, match="no pair"):
        metric.compute()


def test_a_refused_update_changes_nothing() -> None:
    box = np.array([[0.1, 0.2, 0.3, 0.4]])
    metric = LBM()
    metric.update(box, box + 0.5)
    with pytest.raises(InvalidValue):
        metric.update(box, box * np.nan)
    with pytest.raises(InvalidValue):
        metric.update_many([box, box], [box, box[:0]])
    assert metric.compute() == pytest.approx(0.5)


GOOD = np.full((3, 4), 0.5)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (np.zeros((0, 4)), "empty"),
        ([], "empty"),
        ([[0, 0, np.nan, 1]], r"box 0 is \[0.0, 0.0, nan, 1.0\]"),
        (np.vstack([GOOD, [0, 0, 1, np.inf]]), "box 3"),
        (np.vstack([GOOD, [0, 0, 1, -1e300]]), "finite and within"),
        (np.zeros((3, 5)), r"shape \(3, 5\), expected \(n, 4\)"),
        (np.zeros(4), "expected"),
        (np.zeros((1, 3, 4)), "expected"),
        ([[0, 0, 1, 1], [0, 0, 1]], "not an"),
        ([["0", "0", "1", "1"]], "real numbers"),
        (np.zeros((2, 4), dtype=complex), "real numbers"),
        ([[0, 0, 1, 10**400]], "real numbers"),
        (None, "real numbers"),
    ],
)
def test_a_trace_that_cannot_be_scored_is_named_with_the_reason(bad: object, reason: str, protocol: str) -> None:
    with pytest.raises(InvalidValue, match=rf"trace a: .*{reason}"):
        lbm(bad, GOOD, protocol=protocol)
    with pytest.raises(InvalidValue, match=rf"trace b: .*{reason}"):
        lbm(GOOD, bad, protocol=protocol)
    with pytest.raises(InvalidValue, match=rf"pairs_b\[1\]: .*{reason}"):
        lbm_many([GOOD, GOOD, GOOD], [GOOD, bad, GOOD], protocol=protocol)


@pytest.mark.parametrize("k", [-1, 0.5, "1", None])
def test_a_window_must_be_a_whole_number_from_zero(k: object) -> None:
    for make in (lambda: lbm(GOOD, GOOD, k), lambda: lbm_many([], [], k), lambda: LBM(k)):
        with pytest.raises(InvalidValue, match="LBM window k"):
            make()


def test_an_unknown_protocol_is_answered_with_the_known_ones() -> None:
    for make in (lambda: lbm(GOOD, GOOD, 0, "relased"), lambda: LBM(protocol="relased")):
        with pytest.raises(UnknownName, match="Did you mean 'released'"):
            make()


def test_sides_of_different_counts_are_refused() -> None:
    with pytest.raises(InvalidValue, match="2 traces on one side and 1 on the other"):
        lbm_many([GOOD, GOOD], [GOOD])
