from __future__ import annotations

import math
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.metrics.ranking import (
    RBO,
    AverageOverlap,
    IoUAt,
    RankBiasedOverlap,
    Spearman,
    average_overlap,
    iou_at,
    rank_biased_overlap,
    ranking_from_scores,
    spearman,
)

# Few distinct values, so that ties are the rule.
tied_lists = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20)
plain_rankings = st.permutations("abcdefgh").flatmap(
    lambda letters: st.integers(1, 8).map(lambda n: letters[:n]),
)
tied_rankings = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3), min_size=1).map(ranking_from_scores)
persistence = st.floats(0.05, 0.95)


def parsed(text: str) -> list[object]:
    """ "a (b c) d" → ["a", {"b", "c"}, "d"]"""
    groups = text.replace("(", "|(").replace(")", ")|").split("|")
    ranking: list[object] = []
    for group in groups:
        words = group.strip("()").split()
        ranking += [set(words)] if group.startswith("(") else words
    return ranking


@given(tied_lists)
def test_spearman_equals_scipy_also_with_ties(pairs: list[tuple[int, int]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    ours = spearman(a, b)
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert math.isnan(ours)
        return
    assert ours == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)
    assert ours == spearman(b, a)


@given(st.lists(st.integers(-50, 50), min_size=2, unique=True))
def test_spearman_sees_only_the_order(values: list[int]) -> None:
    assert spearman(values, np.exp(np.array(values) / 10)) == pytest.approx(1.0)
    assert spearman(values, [-v for v in values]) == pytest.approx(-1.0)


@pytest.mark.parametrize("pair", [([], []), ([1], [2]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [5, 5, 5])])
def test_spearman_without_an_order_is_nan(pair: tuple[list[float], list[float]]) -> None:
    assert math.isnan(spearman(*pair))


def test_a_nan_is_an_error_or_left_out_with_its_pair() -> None:
    a, b = [1, 2, math.nan, 4, 3], [2, 1, 9, math.nan, 5]
    with pytest.raises(InvalidValue, match="pair 2 holds NaN"):
        spearman(a, b)
    assert spearman(a, b, nan_policy="omit") == spearman([1, 2, 3], [2, 1, 5])
    with pytest.raises(UnknownName):
        spearman(a, b, nan_policy="ignore")  # type: ignore[arg-type]


def test_the_spearman_class_averages_and_counts_what_is_undefined() -> None:
    metric = Spearman()
    metric.update([1, 2, 3], [1, 2, 3])
    metric.update([1, 2, 3], [1, 1, 1])
    metric.update([1, 2, 3], [3, 2, 1])
    assert metric.compute() == pytest.approx(0.0)
    assert (metric.items, metric.undefined) == (3, 1)
    metric.reset()
    metric.update([1, 2, 3], [1, 3, 2])
    assert metric.compute() == spearman([1, 2, 3], [1, 3, 2])


@pytest.mark.parametrize(
    ("depth", "expected"), [(1, 0.0), (2, 0.0), (3, 0.222), (4, 0.292), (5, 0.313), (6, 0.317), (7, 0.312)]
)
def test_average_overlap_equals_figure_5_of_webber(depth: int, expected: float) -> None:
    assert round(average_overlap("abcdefg", "zcavwxy", depth), 3) == expected


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1, 2, 3], [1, 3, 2], 0.8333),
        ("abcdefg", "zcavwxy", 0.3122),
        ("abcde", "bacde", 0.8),
        ("abcde", "abced", 0.95),
        (string.ascii_lowercase, "abcdefg", 1.0),
        ("abcde", "fghij", 0.0),
        ([{"a", "b"}, "c"], ["a", {"b", "c"}], (2 / 3 + 4 / 5 + 1) / 3),
    ],
)
def test_average_overlap_of_known_lists(a: list[object], b: list[object], expected: float) -> None:
    assert round(average_overlap(a, b), 4) == round(expected, 4)


def test_places_missing_below_the_end_agree_with_nothing() -> None:
    assert average_overlap("abc", "a", 3) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert average_overlap("abc", "a") == 1.0


@pytest.mark.parametrize(
    ("a", "b", "k", "expected"),
    [
        ("abcde", "abxyz", 3, 2 / 4),
        ("abc", "abcdefg", 7, 3 / 7),
        (["a", {"b", "c"}], ["a", "b"], 2, 2 / 3),
        ("abc", "xyz", 3, 0.0),
    ],
)
def test_iou_of_the_tops(a: list[object], b: list[object], k: int, expected: float) -> None:
    assert iou_at(a, b, k) == pytest.approx(expected)


# From the table of examples that Corsi and Urbano publish with their paper (columns of RBO^w): extrapolated, minimum,
# maximum. They cover ties, unequal lengths, and no overlap at all.
KNOWN = [
    (
        "red (blue green) yellow pink",
        "(blue red) white (yellow black purple) green",
        0.95,
        0.7068257,
        0.3429684,
        0.9049857,
    ),
    ("3 (1 5 7) 9", "(1 9) 7 3 4", 0.930093081332594, 0.69709671, 0.351760942, 0.836304028),
    ("2 10 (1 4 5 6)", "(2 4 6) 10 7 1 5 12", 0.975209133774857, 0.91542189, 0.302950208, 0.9508817),
    ("1 15 (2 3 4)", "1 (12 15) 4 6 (2 3 13) (5 8)", 0.921692836285129, 0.778860753, 0.500428789, 0.896472033),
    ("13 (1 4 5 6)", "3 14 11 (10 15) 12 (6 9) 4 2", 0.92238320668128, 0.11757849, 0.076313526, 0.539993661),
    ("(3 6) (2 7) 10", "(3 6 7 10) (1 2)", 0.965413635276732, 0.946064538, 0.34370679, 0.958770958),
    ("(1 9 15 17) 13 4 3 2", "(1 17) 15 9 13 4 (2 3) 14", 0.959906916802432, 0.966438584, 0.512284508, 0.966438584),
    (
        "21 20 (1 16 19) (5 10) 4",
        "(12 17) (2 3 8 11) (15 18) (6 13) (7 14) 9",
        0.930074017489188,
        0.0,
        0.0,
        0.389142712,
    ),
]


@pytest.mark.parametrize(("a", "b", "p", "extrapolated", "minimum", "maximum"), KNOWN)
def test_rbo_with_ties_equals_corsi_and_urbano(
    a: str, b: str, p: float, extrapolated: float, minimum: float, maximum: float
) -> None:
    rbo = rank_biased_overlap(parsed(a), parsed(b), p)
    assert rbo.extrapolated == pytest.approx(extrapolated, abs=1e-7)
    assert rbo.minimum == pytest.approx(minimum, abs=1e-7)
    assert rbo.minimum + rbo.residual == pytest.approx(maximum, abs=1e-7)


def webber(a: str | list[str], b: str | list[str], p: float) -> RBO:
    """Equations 11, 30 and 32 of Webber et al. 2010, term by term; no ties. 11 is taken to the longer list's depth."""
    short, long = sorted((a, b), key=len)
    s, n = len(short), len(long)
    x = [len(set(short[:d]) & set(long[:d])) for d in range(n + 1)]
    f = n + s - x[n]
    minimum = (1 - p) / p * (sum((x[d] - x[n]) * p**d / d for d in range(1, n + 1)) - x[n] * math.log(1 - p))
    rest = s * sum(p**d / d for d in range(s + 1, f + 1)) + n * sum(p**d / d for d in range(n + 1, f + 1))
    rest += x[n] * (math.log(1 / (1 - p)) - sum(p**d / d for d in range(1, f + 1)))
    residual = p**s + p**n - p**f - (1 - p) / p * rest
    seen = sum(x[d] / d * p**d for d in range(1, n + 1))
    seen += sum(x[s] * (d - s) / (s * d) * p**d for d in range(s + 1, n + 1))
    return RBO((1 - p) / p * seen + ((x[n] - x[s]) / n + x[s] / s) * p**n, minimum, residual)


@given(plain_rankings, plain_rankings, persistence)
def test_rbo_without_ties_equals_webbers_equations(a: list[str], b: list[str], p: float) -> None:
    ours, theirs = rank_biased_overlap(a, b, p), webber(a, b, p)
    assert ours.extrapolated == pytest.approx(theirs.extrapolated, abs=1e-9)
    assert ours.minimum == pytest.approx(theirs.minimum, abs=1e-9)
    assert ours.residual == pytest.approx(theirs.residual, abs=1e-9)


@given(tied_rankings, tied_rankings, persistence)
def test_rbo_is_symmetric_and_its_estimate_lies_within_its_bounds(a: list[object], b: list[object], p: float) -> None:
    rbo = rank_biased_overlap(a, b, p)
    assert rbo == rank_biased_overlap(b, a, p)
    assert -1e-12 <= rbo.minimum <= rbo.extrapolated + 1e-12
    assert rbo.extrapolated <= rbo.minimum + rbo.residual + 1e-12 <= 1 + 1e-9


@given(tied_rankings, persistence, st.integers(1, 12))
def test_a_ranking_agrees_wholly_with_itself(ranking: list[object], p: float, k: int) -> None:
    assert rank_biased_overlap(ranking, ranking, p).extrapolated == pytest.approx(1.0)
    assert average_overlap(ranking, ranking) == pytest.approx(1.0)
    assert iou_at(ranking, ranking, k) == 1.0


@given(tied_rankings, tied_rankings, st.integers(1, 12))
def test_overlaps_are_symmetric_and_between_0_and_1(a: list[object], b: list[object], k: int) -> None:
    for score in (average_overlap(a, b, k), iou_at(a, b, k)):
        assert 0 <= score <= 1
    assert average_overlap(a, b, k) == average_overlap(b, a, k)
    assert iou_at(a, b, k) == iou_at(b, a, k)


def test_rbo_approaches_average_agreement_at_the_first_rank_as_p_falls() -> None:
    assert rank_biased_overlap("abc", "acb", 1e-9).extrapolated == pytest.approx(1.0)
    assert rank_biased_overlap("abc", "bac", 1e-9).extrapolated == pytest.approx(0.0, abs=1e-8)


@given(st.lists(st.tuples(tied_rankings, tied_rankings), min_size=1, max_size=5))
def test_ranking_classes_average_the_functions(pairs: list[tuple[list[object], list[object]]]) -> None:
    overlap, top, biased = AverageOverlap(3), IoUAt(2), RankBiasedOverlap(0.9)
    for metric in (overlap, top, biased):
        metric.update("ab", "cd")
        metric.reset()
        for a, b in pairs:
            metric.update(a, b)
    assert overlap.compute() == pytest.approx(np.mean([average_overlap(a, b, 3) for a, b in pairs]))
    assert top.compute() == pytest.approx(np.mean([iou_at(a, b, 2) for a, b in pairs]))
    each = [rank_biased_overlap(a, b, 0.9) for a, b in pairs]
    assert biased.compute().extrapolated == pytest.approx(np.mean([rbo.extrapolated for rbo in each]))
    assert biased.compute().residual == pytest.approx(np.mean([rbo.residual for rbo in each]))


def test_scores_become_a_ranking_with_sets_for_ties() -> None:
    assert ranking_from_scores({"a": 1, "b": 3.0, "c": 1, "d": -math.inf}) == ["b", {"a", "c"}, "d"]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: spearman([1, 2], [1, 2, 3]), "2 against 3"),
        (lambda: spearman([[1, 2]], [1, 2]), "has shape"),
        (lambda: rank_biased_overlap("ab", "ab", 1.0), "use average_overlap"),
        (lambda: rank_biased_overlap("ab", "ab", math.nan), "not in"),
        (lambda: rank_biased_overlap("aba", "ab", 0.9), "holds 'a' twice"),
        (lambda: rank_biased_overlap(["a", {"a", "b"}], "ab", 0.9), "holds 'a' twice"),
        (lambda: average_overlap("", "ab"), "is empty"),
        (lambda: average_overlap([set()], "ab"), "empty set"),
        (lambda: average_overlap([["a"]], "ab"), "cannot be an item"),
        (lambda: average_overlap("ab", "ab", 0), "at least 1"),
        (lambda: iou_at("ab", "ab", 2.5), "at least 1"),
        (lambda: ranking_from_scores({"a": math.nan}), "NaN"),
        (lambda: IoUAt(3).compute(), "no item"),
        (lambda: RankBiasedOverlap(0.9).compute(), "no item"),
    ],
)
def test_bad_input_is_named(call, reason: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidValue, match=reason):
        call()
