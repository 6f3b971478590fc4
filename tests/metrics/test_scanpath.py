from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import directed_hausdorff

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.metrics.scanpath import METHODS, Method, ScanpathDistance, scanpath_distance

paths = st.integers(1, 8).flatmap(
    lambda n: arrays(np.float64, (n, 2), elements=st.floats(-0.5, 1.5, allow_subnormal=False))
)


def plain_walk(a: np.ndarray, b: np.ndarray, combine: Callable[[float, float], float]) -> float:
    """The table of the definition, cell by cell."""
    best = np.full((len(a) + 1, len(b) + 1), np.inf)
    best[0, 0] = 0
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            step = min(best[i - 1, j], best[i, j - 1], best[i - 1, j - 1])
            best[i, j] = combine(float(np.linalg.norm(a[i - 1] - b[j - 1])), step)
    return float(best[-1, -1])


def plain_edit(a: list[object], b: list[object]) -> int:
    if not a or not b:
        return len(a) + len(b)
    swap = plain_edit(a[1:], b[1:]) + (a[0] != b[0])
    return swap if a[0] == b[0] else min(swap, plain_edit(a[1:], b) + 1, plain_edit(a, b[1:]) + 1)


def cells(path: np.ndarray, columns: int, rows: int) -> list[object]:
    visited: list[object] = []
    for x, y in path:
        cell = (min(max(int(x * columns // 1), 0), columns - 1), min(max(int(y * rows // 1), 0), rows - 1))
        if not visited or visited[-1] != cell:
            visited.append(cell)
    return visited


@given(paths, paths)
def test_dtw_and_frechet_equal_the_plain_table(a: np.ndarray, b: np.ndarray) -> None:
    assert scanpath_distance(a, b, "dtw") == pytest.approx(plain_walk(a, b, lambda x, y: x + y))
    assert scanpath_distance(a, b, "frechet") == pytest.approx(plain_walk(a, b, max))


@pytest.mark.parametrize("seed", range(8))
def test_frechet_of_wandering_paths_equals_shapely(seed: int) -> None:
    # On paths that turn back often GEOS is not always optimal, so only calm ones are compared.
    rng = np.random.default_rng(seed)
    a, b = (np.c_[np.linspace(0, 1, n), 0.3 * rng.random(n)] for n in rng.integers(5, 60, 2))
    expected = shapely.frechet_distance(shapely.LineString(a), shapely.LineString(b))
    assert scanpath_distance(a, b, "frechet") == pytest.approx(expected)


@given(paths, paths)
def test_hausdorff_equals_scipy(a: np.ndarray, b: np.ndarray) -> None:
    expected = max(directed_hausdorff(a, b)[0], directed_hausdorff(b, a)[0])
    assert scanpath_distance(a, b, "hausdorff") == pytest.approx(expected)


@given(paths, paths)
def test_edit_equals_the_recursive_definition(a: np.ndarray, b: np.ndarray) -> None:
    one, other = cells(a, 3, 2), cells(b, 3, 2)
    expected = plain_edit(one, other) / max(len(one), len(other))
    assert scanpath_distance(a, b, "edit", grid=(3, 2)) == pytest.approx(expected)


@pytest.mark.parametrize(("method", "expected"), [("dtw", 1.5), ("frechet", 0.5), ("hausdorff", 0.5), ("edit", 2 / 3)])
def test_distances_of_two_short_parallel_paths(method: Method, expected: float) -> None:
    top = [[0.1, 0.1], [0.5, 0.1], [0.9, 0.1]]
    bent = [[0.1, 0.6], [0.5, 0.6], [0.9, 0.6]]
    if method == "edit":
        bent = [[0.1, 0.1], [0.5, 0.6], [0.9, 0.6]]
    assert scanpath_distance(top, bent, method) == pytest.approx(expected)


def test_hausdorff_forgets_order_and_the_others_do_not() -> None:
    path = np.array([[0.1, 0.1], [0.9, 0.9], [0.1, 0.9]])
    assert scanpath_distance(path, path[::-1], "hausdorff") == 0
    assert all(scanpath_distance(path, path[::-1], method) > 0 for method in ("dtw", "frechet", "edit"))


def test_aspect_turns_widths_into_heights() -> None:
    assert scanpath_distance([[0, 0]], [[0.5, 0]], aspect=4 / 3) == pytest.approx(2 / 3)
    assert scanpath_distance([[0, 0]], [[0, 0.5]], aspect=4 / 3) == pytest.approx(1 / 2)


@pytest.mark.parametrize("method", METHODS)
@given(paths, paths)
def test_every_distance_is_symmetric_not_negative_and_0_to_itself(method: Method, a: np.ndarray, b: np.ndarray) -> None:
    assert scanpath_distance(a, b, method) == pytest.approx(scanpath_distance(b, a, method))
    assert scanpath_distance(a, b, method) >= 0
    assert scanpath_distance(a, a, method) == 0


@given(paths, paths)
def test_the_distances_are_ordered(a: np.ndarray, b: np.ndarray) -> None:
    dtw, frechet, hausdorff, edit = (scanpath_distance(a, b, method) for method in METHODS)
    assert hausdorff <= frechet + 1e-12
    assert frechet <= dtw + 1e-12
    assert edit <= 1


@given(paths)
def test_standing_still_for_longer_changes_nothing(path: np.ndarray) -> None:
    for method in METHODS:
        assert scanpath_distance(path, path.repeat(3, axis=0), method) == 0


@pytest.mark.parametrize("method", METHODS)
def test_the_class_averages_and_takes_times(method: Method) -> None:
    rng = np.random.default_rng(2)
    pairs = [(rng.random((4, 3)).cumsum(axis=0) / 4, rng.random((6, 2))) for _ in range(3)]
    metric = ScanpathDistance(method)
    metric.update([[0, 0]], [[1, 1]])
    metric.reset()
    for a, b in pairs:
        metric.update(a, b)
    assert metric.compute() == pytest.approx(np.mean([scanpath_distance(a[:, :2], b, method) for a, b in pairs]))


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: scanpath_distance([], [[0, 0]]), "no point"),
        (lambda: scanpath_distance([[0, 0, 0, 0]], [[0, 0]]), "has shape"),
        (lambda: scanpath_distance([0, 0, 0], [[0, 0]]), "has shape"),
        (lambda: scanpath_distance([[0, 0], [0]], [[0, 0]]), "not an array"),
        (lambda: scanpath_distance([[0, np.inf]], [[0, 0]]), "infinity"),
        (lambda: scanpath_distance([[0, 0, 1], [0, 0, 0.5]], [[0, 0]]), "backwards at point 1"),
        (lambda: scanpath_distance([[0, 0]], [[0, 0]], aspect=0), "aspect"),
        (lambda: scanpath_distance([[0, 0]], [[0, 0]], "edit", grid=(0, 5)), "grid"),
        (lambda: ScanpathDistance().compute(), "no item"),
    ],
)
def test_bad_input_is_named(call, reason: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidValue, match=reason):
        call()


def test_an_unknown_method_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="dtw"):
        scanpath_distance([[0, 0]], [[0, 0]], "dwt")  # type: ignore[arg-type]
