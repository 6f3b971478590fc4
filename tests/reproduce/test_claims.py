"""Claims: intervals and tests against scipy and the bootstrap, verdicts, and where there is nothing to compare."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from saywhere.core import InvalidValue
from saywhere.reproduce.claims import (
    MOST_FLIPPED,
    Claim,
    compare,
    judge,
    judge_photos,
    judge_together,
    least_p_flips,
    mean_interval,
    photo_interval,
)
from saywhere.reproduce.decisions import (
    LEVEL,
    POWER,
    detectable_difference,
    detectable_margin,
    equivalence_p,
    holm,
)
from saywhere.reproduce.tables import MeasureColumn, ModelRow

NAN = float("nan")
values = st.lists(st.integers(-1000, 1000).map(lambda i: i / 8), min_size=2, max_size=8)


@pytest.mark.parametrize("n", [2, 3, 5, 8])
@pytest.mark.parametrize("shift", [0.0, 0.5, -2.0])
def test_interval_and_both_tests_agree_with_scipy(n: int, shift: float) -> None:
    a, b = np.random.default_rng(n).normal(size=(2, n))
    a += shift
    found = compare(a, b)
    student = stats.ttest_rel(a, b)
    low, high = student.confidence_interval(0.95)
    assert (found.low, found.high, found.p) == pytest.approx((low, high, student.pvalue))
    flips = stats.permutation_test((a, b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf)
    assert found.p_flips == pytest.approx(flips.pvalue)
    assert found.mean == pytest.approx(np.mean(a - b))


@given(values)
def test_the_direction_of_the_measure_only_turns_the_sign(differences: list[float]) -> None:
    zeros = np.zeros(len(differences))
    one, other = compare(differences, zeros), compare(differences, zeros, lower_is_better=True)
    assert (one.mean, one.low, one.p, one.p_flips) == (-other.mean, -other.high, other.p, other.p_flips)


@given(values)
def test_the_interval_leaves_out_zero_just_where_the_t_test_is_below_five_percent(differences: list[float]) -> None:
    found = compare(differences, np.zeros(len(differences)))
    if abs(found.p - 0.05) > 1e-9:
        assert (found.low > 0 or found.high < 0) == (found.p < 0.05)


@given(values)
def test_flips_count_in_whole_flips_and_never_below_the_least(differences: list[float]) -> None:
    found = compare(differences, np.zeros(len(differences)))
    assert found.p_flips is not None
    assert (found.p_flips * 2 ** len(differences)).is_integer()
    assert least_p_flips(len(differences)) <= found.p_flips <= 1


def test_five_seeds_that_all_agree_give_the_least_that_32_flips_can() -> None:
    assert compare([2, 3, 4, 5, 6], [1, 1, 1, 1, 1]).p_flips == least_p_flips(5) == 2 / 32


@pytest.mark.parametrize(
    ("differences", "p", "p_flips"),
    [([0.0, 0.0, 0.0], 1.0, 1.0), ([2.0, 2.0, 2.0], 0.0, 0.25), ([0.1, 0.2, -0.3], 1.0, 1.0)],
)
def test_differences_without_spread_or_mean_have_a_probability(
    differences: list[float], p: float, p_flips: float
) -> None:
    found = compare(differences, [0.0] * 3)
    assert (found.p, found.p_flips) == pytest.approx((p, p_flips))


def test_one_seed_tells_nothing() -> None:
    found = compare([2.0], [1.0])
    assert (found.mean, found.low, found.high, found.p_flips) == (1.0, -math.inf, math.inf, 1.0)
    assert math.isnan(found.p)
    assert mean_interval([3.0]) == (3.0, -math.inf, math.inf)


def test_a_run_that_is_no_number_makes_the_comparison_none() -> None:
    found = compare([1.0, NAN, 2.0], [0.0, 0.0, 0.0])
    assert [math.isnan(v or 0.0) for v in (found.mean, found.low, found.high, found.p, found.p_flips)] == [True] * 5


def test_more_flips_than_can_be_tried_are_not_guessed() -> None:
    assert compare(np.ones(MOST_FLIPPED), np.zeros(MOST_FLIPPED)).p_flips == least_p_flips(MOST_FLIPPED)
    assert compare(np.ones(MOST_FLIPPED + 1), np.zeros(MOST_FLIPPED + 1)).p_flips is None


@pytest.mark.parametrize(("a", "b"), [([], []), ([1.0], [1.0, 2.0]), ([[1.0]], [[1.0]]), (1.0, 1.0)])
def test_what_is_no_pairs_is_refused(a: object, b: object) -> None:
    with pytest.raises(InvalidValue, match="values"):
        compare(a, b)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("better", "worse", "lower", "verdict"),
    [
        ([3.0, 3.1, 2.9], [1.0, 1.1, 1.0], False, "held"),
        ([3.0, 3.1, 2.9], [1.0, 1.1, 1.0], True, "not held"),
        ([1.0, 3.0, 2.0], [2.0, 2.1, 1.9], False, "undecided"),
        ([3.0], [1.0], False, "undecided"),
    ],
)
def test_a_claim_is_judged_by_the_interval_of_its_paired_differences(
    better: list[float], worse: list[float], lower: bool, verdict: str
) -> None:
    rows = [ModelRow(name, tuple({"m": v} for v in values)) for name, values in (("a", better), ("b", worse))]
    claim = judge("a beats b", MeasureColumn("m", lower_is_better=lower), *rows)
    assert claim.verdict == verdict
    assert np.mean(claim.differences) == pytest.approx((1 - 2 * lower) * (np.mean(better) - np.mean(worse)))


def test_the_interval_is_students() -> None:
    rows = [
        ModelRow(name, tuple({"m": v} for v in values)) for name, values in (("a", [1.0, 2.0, 4.0]), ("b", [0.0] * 3))
    ]
    claim = judge("a beats b", MeasureColumn("m"), *rows)
    # mean 7/3, sd 1.5275, t(0.975, 2) = 4.3027
    assert (claim.low, claim.high) == pytest.approx((7 / 3 - 3.7945, 7 / 3 + 3.7945), abs=1e-3)


@given(
    st.lists(st.tuples(st.floats(-10, 10), st.integers(0, 5)), min_size=1, max_size=40),
    st.floats(0.1, 100),
)
def test_an_interval_holds_the_mean_of_alike_values_and_turns_with_their_sign(
    rows: list[tuple[float, int]], value: float
) -> None:
    differences, photos = np.array([row[0] for row in rows]), [row[1] for row in rows]
    low, high = photo_interval(differences, photos, draws=200)
    mirrored = photo_interval(-differences, photos, draws=200)
    assert low <= high
    np.testing.assert_allclose(mirrored, (-high, -low), atol=1e-9)
    if len(set(photos)) > 1:
        np.testing.assert_allclose(photo_interval(np.full(len(rows), value), photos, draws=50), value)


def test_the_interval_is_the_bootstraps_of_the_mean() -> None:
    differences = np.random.default_rng(1).normal(0.3, 1.0, 400)
    low, high = photo_interval(differences, list(range(400)))
    error = differences.std(ddof=1) / np.sqrt(400)
    assert low == pytest.approx(differences.mean() - 1.96 * error, abs=0.015)
    assert high == pytest.approx(differences.mean() + 1.96 * error, abs=0.015)


def test_items_of_one_photo_are_drawn_together() -> None:
    differences = np.repeat(np.random.default_rng(2).normal(size=50), 20)
    alone = photo_interval(differences, list(range(1000)))
    together = photo_interval(differences, [i // 20 for i in range(1000)])
    assert together[1] - together[0] > 3 * (alone[1] - alone[0])


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [([1.0, 2.0, 1.5], "held"), ([-1.0, -2.0, -1.5], "not held"), ([1.0, -1.0, 0.1], "undecided")],
)
def test_a_verdict_is_what_the_interval_says(differences: list[float], verdict: str) -> None:
    claim = judge_photos("a is better", "CIDEr", "a", "b", differences, ["x", "y", "z"])
    assert claim.verdict == verdict
    assert claim.differences == (pytest.approx(np.mean(differences)),)


def test_one_photo_decides_nothing() -> None:
    assert judge_photos("a is better", "CIDEr", "a", "b", [1.0, 1.0], ["x", "x"]).verdict == "undecided"


@pytest.mark.parametrize("differences", [[], [1.0], [np.nan, 1.0], [[1.0, 2.0]]])
def test_differences_that_do_not_fit_their_photos_are_refused(differences: object) -> None:
    with pytest.raises(InvalidValue):
        photo_interval(differences, ["x", "y"])  # type: ignore[arg-type]


def claimed(differences: list[float], source: str = "paper", margin: float | None = None) -> Claim:
    rows = [
        ModelRow(name, tuple({"m": value} for value in values))
        for name, values in (("a", differences), ("b", [0.0] * len(differences)))
    ]
    return judge("a beats b", MeasureColumn("m"), *rows, source, margin)


@pytest.mark.parametrize("n", [3, 5, 10])
def test_the_smallest_detectable_difference_is_found_as_often_as_it_says(n: int) -> None:
    generator, error = np.random.default_rng(n), 1 / np.sqrt(n)
    size = detectable_difference(error, n - 1)
    samples = generator.normal(size, 1.0, (20_000, n))
    # The spread is known here, as it is where power is worked out.
    found = stats.ttest_1samp(samples, 0.0, axis=1).pvalue < LEVEL
    assert found.mean() == pytest.approx(POWER, abs=0.012)
    assert stats.ttest_1samp(generator.normal(size / 2, 1.0, (20_000, n)), 0.0, axis=1).pvalue.mean() > LEVEL


@pytest.mark.parametrize("freedom", [4, 9, math.inf])
def test_the_smallest_margin_is_shown_for_equal_rows(freedom: float) -> None:
    margin = detectable_margin(1.0, freedom)
    # At the edge of what 80 % of equal rows give, the test just passes.
    edge = float(stats.t.isf((1 - POWER) / 2, freedom))
    assert equivalence_p(edge, 1.0, freedom, margin) == pytest.approx(LEVEL, abs=1e-9)


@pytest.mark.parametrize(
    ("differences", "margin", "verdict"),
    [
        ([0.1, -0.1, 0.05, -0.05, 0.0], 0.5, "held"),
        ([0.1, -0.1, 0.05, -0.05, 0.0], 0.05, "undecided"),
        ([3.0, 3.1, 2.9, 3.0, 3.05], 0.5, "not held"),
        ([3.0, -3.1, 2.9, -3.0, 0.05], 0.5, "undecided"),
    ],
)
def test_rows_are_equal_only_within_a_stated_margin(differences: list[float], margin: float, verdict: str) -> None:
    claim = claimed(differences, margin=margin)
    assert claim.verdict == verdict
    if verdict != "not held":
        upper, lower = (
            stats.ttest_1samp(differences, m, alternative=side).pvalue
            for m, side in ((margin, "less"), (-margin, "greater"))
        )
        assert claim.p == pytest.approx(max(upper, lower))


def test_a_margin_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidValue, match="margin"):
        claimed([1.0, 2.0], margin=0.0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_never_lowers_a_probability_nor_changes_their_order(probabilities: list[float]) -> None:
    corrected = holm(probabilities)
    order = np.argsort(probabilities, kind="stable")
    assert all(after >= before for before, after in zip(probabilities, corrected, strict=True))
    assert np.all(np.diff(np.array(corrected)[order]) >= 0)
    assert corrected[order[0]] == min(1.0, len(probabilities) * min(probabilities))


def test_claims_of_one_source_are_corrected_together_and_the_undecided_say_what_could_have_been_shown() -> None:
    weak = [1.0, 1.9, 0.2, 1.4, 0.6]
    alone = claimed(weak)
    assert alone.verdict == "held"
    noise = [claimed([1.0, -1.0, 0.5, -0.4, 0.0]) for _ in range(5)]
    judged = judge_together([claimed(weak), *noise, claimed(weak, "x")])
    assert [claim.verdict for claim in judged] == ["undecided"] * 6 + ["held"]
    assert judged[0].p_together == pytest.approx(6 * (alone.p or 0))
    assert alone.error is not None
    assert judged[0].detectable == pytest.approx(detectable_difference(alone.error, 4, LEVEL / 6))
    assert judged[-1].detectable is None


def test_what_could_not_be_tested_counts_in_the_correction_but_stays_undecided() -> None:
    one = claimed([2.0])
    assert (one.verdict, one.p, one.detectable) == ("undecided", None, None)
    judged = judge_together([one, claimed([2.0, 2.1, 1.9])])
    assert [claim.verdict for claim in judged] == ["undecided", "held"]
    assert judged[1].p_together == pytest.approx(2 * (judged[1].p or 0))


def test_photos_have_a_power_line_of_their_own() -> None:
    values = np.random.default_rng(0).normal(0.0, 1.0, 400)
    claim = judge_photos("a", "m", "a", "b", values - values.mean(), list(range(400)))
    assert claim.verdict == "undecided"
    assert claim.detectable == pytest.approx(2.8 / 20, abs=0.01)
