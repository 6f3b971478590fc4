from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from saywhere.core.errors import InvalidValue
from saywhere.metrics.attention import CC, KL, NSS, SIM, AUCJudd, auc_judd, cc, kl, nss, sim

shapes = st.tuples(st.integers(2, 6), st.integers(2, 6))
# Few distinct values, so that ties are the rule; and plain reals.
values = st.one_of(st.integers(0, 3).map(float), st.floats(0, 1e6, allow_subnormal=False))
maps_with_fixations = shapes.flatmap(
    lambda shape: st.tuples(arrays(np.float64, shape, elements=values), arrays(np.bool_, shape))
)
pairs_of_maps = shapes.flatmap(lambda shape: st.tuples(*[arrays(np.float64, shape, elements=values)] * 2))


def test_nss_of_a_hand_computed_map() -> None:
    saliency = [[0, 0], [0, 4]]  # mean 1, deviation sqrt((3 * 1 + 9) / 3) = 2
    assert nss(saliency, [[0.9, 0.9]]) == pytest.approx(1.5)
    assert nss(saliency, [[0.9, 0.9], [0.1, 0.1]]) == pytest.approx(0.5)


@given(maps_with_fixations)
def test_nss_equals_scipys_z_scores(given_: tuple[np.ndarray, np.ndarray]) -> None:
    saliency, fixated = given_
    score = nss(saliency, fixated)
    if saliency.min() == saliency.max() or not fixated.any():
        assert math.isnan(score)
        return
    assume(np.ptp(saliency) > 1e-6 * saliency.max())
    z = stats.zscore(saliency, axis=None, ddof=1)
    assert score == pytest.approx(z[fixated].mean(), abs=1e-7)


def judd(saliency: np.ndarray, fixated: np.ndarray) -> float:
    """The benchmark's curve, threshold by threshold; for maps without ties."""
    flat, marked = saliency.ravel(), fixated.ravel()
    n = marked.sum()
    curve = [(0.0, 0.0)]
    for i, threshold in enumerate(sorted(flat[marked], reverse=True), start=1):
        curve.append((((flat >= threshold).sum() - i) / (flat.size - n), i / n))
    curve.append((1.0, 1.0))
    return sum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in pairwise(curve))


def rank_sum(saliency: np.ndarray, fixated: np.ndarray) -> float:
    inside, outside = saliency[fixated], saliency[~fixated]
    return float(stats.mannwhitneyu(inside, outside).statistic / inside.size / outside.size)


@pytest.mark.parametrize("seed", range(10))
def test_auc_judd_equals_the_benchmark_and_the_rank_sum_plus_its_surplus(seed: int) -> None:
    rng = np.random.default_rng(seed)
    saliency = rng.permutation(63).reshape(7, 9).astype(float)
    fixated = rng.random((7, 9)) < 0.2
    area = auc_judd(saliency, fixated)
    assert area == pytest.approx(judd(saliency, fixated))
    above = (saliency[~fixated] > saliency[fixated].min()).mean()
    assert area == pytest.approx(rank_sum(saliency, fixated) + above / (2 * fixated.sum()))


@given(arrays(np.float64, (3, 3), elements=st.integers(0, 3)), st.sets(st.integers(0, 8), min_size=1, max_size=3))
@settings(max_examples=20)
def test_auc_judd_with_ties_is_the_benchmark_averaged_over_the_ways_to_break_them(
    saliency: np.ndarray, cells: set[int]
) -> None:
    fixated = np.isin(np.arange(9), list(cells)).reshape(3, 3)
    rng = np.random.default_rng(0)
    broken = [judd(saliency + 0.1 * rng.random((3, 3)), fixated) for _ in range(1000)]
    assert auc_judd(saliency, fixated) == pytest.approx(np.mean(broken), abs=5 * np.std(broken) / 1000**0.5 + 1e-9)


@given(maps_with_fixations)
def test_auc_judd_exceeds_the_rank_sum_by_at_most_half_a_fixation(given_: tuple[np.ndarray, np.ndarray]) -> None:
    saliency, fixated = given_
    assume(fixated.any() and not fixated.all())
    surplus = auc_judd(saliency, fixated) - rank_sum(saliency, fixated)
    assert -1e-12 <= surplus <= 1 / (2 * fixated.sum()) + 1e-12


@pytest.mark.parametrize(
    ("saliency", "expected"),
    [
        ([[1, 0], [0, 0]], 1.0),
        ([[0, 1], [1, 1]], 0.5),  # one straight line from corner to corner
        ([[1, 2], [0, 0]], 1 / 3 * 1 / 2 + 2 / 3),
        ([[5, 5], [5, 5]], 0.5 + 1 / 4),
    ],
)
def test_auc_judd_of_one_fixation_in_the_first_cell(saliency: list[list[float]], expected: float) -> None:
    assert auc_judd(saliency, [[0.1, 0.1]]) == pytest.approx(expected)


@given(maps_with_fixations)
def test_auc_judd_lies_between_0_and_1_and_sees_only_the_order(given_: tuple[np.ndarray, np.ndarray]) -> None:
    saliency, fixated = given_
    area = auc_judd(saliency, fixated)
    if fixated.all() or not fixated.any():
        assert math.isnan(area)
        return
    assert 0 <= area <= 1 + 1e-12
    ranks = stats.rankdata(saliency, axis=None).reshape(saliency.shape)
    assert area == pytest.approx(auc_judd(ranks, fixated))


def test_jitter_comes_from_the_given_generator_and_breaks_ties_only() -> None:
    saliency = np.arange(12.0).reshape(3, 4)
    fixated = saliency % 5 == 0
    assert auc_judd(saliency, fixated, jitter=np.random.default_rng(1)) == auc_judd(saliency, fixated)
    flat = np.ones((30, 30))
    marked = np.zeros((30, 30), bool)
    marked[:3] = True
    first, again, other = (auc_judd(flat, marked, jitter=np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert first == pytest.approx(0.5, abs=0.1)


@given(pairs_of_maps)
def test_cc_equals_pearson(pair: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = pair
    score = cc(a, b)
    if a.min() == a.max() or b.min() == b.max():
        assert math.isnan(score)
        return
    assume(np.ptp(a) > 1e-6 * a.max() and np.ptp(b) > 1e-6 * b.max())
    assert score == pytest.approx(stats.pearsonr(a.ravel(), b.ravel()).statistic, abs=1e-7)
    assert score == pytest.approx(cc(b, a))
    assert cc(a, a) == pytest.approx(1.0)
    assert cc(a, -a) == pytest.approx(-1.0)


@given(pairs_of_maps)
def test_kl_equals_scipys_entropy_where_both_maps_are_positive(pair: tuple[np.ndarray, np.ndarray]) -> None:
    model, people = (m + 0.01 * (m.max() or 1.0) for m in pair)
    assert kl(model, people) == pytest.approx(stats.entropy(people.ravel(), model.ravel()), abs=1e-9)
    assert kl(model, people) >= -1e-9
    assert kl(model, model) == pytest.approx(0.0, abs=1e-9)


def test_kl_of_a_hand_computed_map_and_of_a_cell_the_model_rules_out() -> None:
    assert kl([[1, 1]], [[3, 1]]) == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5))
    epsilon = np.finfo(float).eps
    assert kl([[0, 1]], [[1, 0]]) == pytest.approx(math.log(1 / epsilon))


def test_sim_of_hand_computed_maps() -> None:
    assert sim([[0, 1, 3]], [[0, 1, 1]]) == pytest.approx(0.25 + 0.5)
    assert sim([[1, 0]], [[0, 1]]) == 0.0
    assert sim([[10, 11, 13]], [[0, 1, 1]]) == pytest.approx(0.75)


@given(pairs_of_maps)
def test_sim_is_symmetric_between_0_and_1_and_1_for_equal_maps(pair: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = pair
    score = sim(a, b)
    if a.min() == a.max() or b.min() == b.max():
        assert math.isnan(score)
        return
    assert 0 <= score <= 1 + 1e-12
    assert score == sim(b, a)
    assert sim(a, a) == pytest.approx(1.0)


@given(maps_with_fixations)
def test_points_and_the_map_they_mark_give_the_same_score(given_: tuple[np.ndarray, np.ndarray]) -> None:
    saliency, fixated = given_
    h, w = saliency.shape
    rows, cols = np.nonzero(fixated)
    points = np.c_[(cols + 0.5) / w, (rows + 0.5) / h].repeat(2, axis=0)
    for score in (nss, auc_judd):
        np.testing.assert_equal(score(saliency, points), score(saliency, fixated))


def test_a_point_on_the_far_edge_belongs_to_the_last_cell() -> None:
    assert nss([[0, 0], [0, 4]], [[1.0, 1.0]]) == pytest.approx(1.5)
    assert math.isnan(nss([[0, 0], [0, 4]], []))


@given(pairs_of_maps, st.floats(1e-3, 1e3))
def test_scale_does_not_matter(pair: tuple[np.ndarray, np.ndarray], scale: float) -> None:
    a, b = pair
    for score in (cc, kl, sim):
        np.testing.assert_allclose(score(a * scale, b), score(a, b), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("metric", "function"), [(NSS(), nss), (AUCJudd(), auc_judd), (CC(), cc), (KL(), kl), (SIM(), sim)]
)
def test_the_classes_average_the_functions(metric: CC, function: Callable[..., float]) -> None:
    rng = np.random.default_rng(5)
    images = [(rng.random((5, 6)), rng.random((5, 6))) for _ in range(4)]
    if function in (nss, auc_judd):
        images = [(saliency, human > 0.7) for saliency, human in images]
    metric.update(images[0][1].astype(float), images[0][1])
    metric.reset()
    metric.update(*images[0])
    assert metric.compute() == function(*images[0])
    for image in images[1:]:
        metric.update(*image)
    assert metric.compute() == pytest.approx(np.mean([function(*image) for image in images]))
    assert (metric.items, metric.undefined) == (4, 0)


def test_images_without_a_score_are_counted_not_averaged() -> None:
    metric = NSS()
    metric.update(np.ones((2, 2)), [[0.5, 0.5]])
    assert math.isnan(metric.compute())
    metric.update([[0, 0], [0, 4]], [[0.9, 0.9]])
    assert metric.compute() == pytest.approx(1.5)
    assert (metric.items, metric.undefined) == (2, 1)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: nss([1, 2], [[0.5, 0.5]]), "has shape"),
        (lambda: nss([[1, np.nan]], [[0.5, 0.5]]), "NaN"),
        (lambda: nss(np.zeros((0, 3)), [[0.5, 0.5]]), "no cell"),
        (lambda: nss([[1, 2]], [[0.5, 1.5]]), "outside the image"),
        (lambda: nss([[1, 2]], [[0.5, np.nan]]), "NaN"),
        (lambda: nss([[1, 2]], np.zeros((2, 2), bool)), "fixation map"),
        (lambda: nss(np.eye(3), np.eye(3)), "dtype bool"),
        (lambda: nss(np.eye(3), [[0.1, 0.1], [0.2]]), "not an array"),
        (lambda: cc([[1, 2]], [[1], [2]]), "resize one"),
        (lambda: kl([[-1, 2]], [[1, 2]]), "negative"),
        (lambda: KL().compute(), "no item"),
    ],
)
def test_bad_input_is_named(call: Callable[[], float], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        call()


def test_a_map_of_zeros_is_no_distribution() -> None:
    assert math.isnan(kl([[0, 0]], [[1, 2]]))
    assert math.isnan(kl([[1, 2]], [[0, 0]]))
