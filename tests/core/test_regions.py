from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st

from saywhere.core import Box, BoxSet, Frame, InvalidValue, Mask, Patch, Point, Polygon, Region, Trace, WholeImage
from tests.strategies import frames

GRID = Frame.of_grid(4, 4)
EVERY_KIND: list[Region] = [
    WholeImage(),
    Patch(0, 0),
    Point(0.5, 0.5),
    Box(0.2, 0.2, 0.8, 0.7),
    BoxSet((Box(0.4, 0.4, 0.6, 0.6), Box(0.3, 0.3, 0.9, 0.9))),
    Mask(np.eye(5)),
    Polygon([(0.2, 0.2), (0.8, 0.3), (0.5, 0.9)]),
    Trace([(0.4, 0.5, 0), (0.5, 0.5, 1), (0.6, 0.5, 2)]),
]


@pytest.mark.parametrize("region", EVERY_KIND, ids=lambda region: type(region).__name__)
@given(frame=frames())
def test_the_weights_of_every_region_are_a_distribution(region: Region, frame: Frame) -> None:
    assert isinstance(region, Region)
    weights = region.weights(frame)
    assert weights.shape == frame.grid
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(), 1)


def test_a_box_touches_every_patch_that_it_meets() -> None:
    weights = Box(0.2, 0.2, 0.55, 0.3).weights(GRID)
    np.testing.assert_allclose(weights, np.array([[1, 1, 1, 0], [1, 1, 1, 0], [0] * 4, [0] * 4]) / 6)
    exact = Box(0.25, 0.25, 0.5, 0.5).weights(GRID)
    assert exact[1, 1] == 1
    covered = Box(0.2, 0.25, 0.5, 0.5).weights(GRID, by="coverage")
    np.testing.assert_allclose(covered[1], [1 / 6, 5 / 6, 0, 0])


def test_in_a_box_set_large_boxes_weigh_more_unless_asked_otherwise() -> None:
    frame = Frame.of_grid(20, 20)
    pair = BoxSet((Box(0, 0, 0.1, 0.1), Box(0.5, 0.5, 1, 1)))
    small = (slice(0, 2), slice(0, 2))
    np.testing.assert_allclose(pair.weights(frame)[small].sum(), 4 / 104)
    np.testing.assert_allclose(pair.weights(frame, by="box")[small].sum(), 1 / 2)
    twice = BoxSet((Box(0, 0, 0.5, 0.5), Box(0, 0, 1, 1)))
    np.testing.assert_allclose(twice.weights(frame)[0, 0], 2 / 500)


def test_the_whole_image_leaves_out_the_padding() -> None:
    frame = Frame.letterbox((200, 100), (4, 4), 1)
    np.testing.assert_allclose(WholeImage().weights(frame), np.array([[0] * 4, [1] * 4, [1] * 4, [0] * 4]) / 8)
    gaussian = WholeImage().weights(Frame.of_grid(3, 3), by="gaussian")
    np.testing.assert_allclose(gaussian[0, 0] / gaussian[1, 1], np.exp(-2))
    assert WholeImage().weights(GRID, by="centre")[2, 2] == 1


def test_a_mask_is_weighed_by_area_in_any_resolution() -> None:
    mask = np.zeros((6, 6))
    mask[0, :3] = 1
    np.testing.assert_allclose(Mask(mask).weights(GRID)[0], [1 / 2, 1 / 2, 0, 0])
    fine = np.kron(mask, np.ones((7, 5)))
    np.testing.assert_allclose(Mask(fine).weights(GRID), Mask(mask).weights(GRID), atol=1e-12)


@given(frames(), st.tuples(*[st.floats(0.05, 0.95)] * 4))
def test_a_rectangle_weighs_the_same_as_box_and_as_polygon(frame: Frame, corners: tuple[float, ...]) -> None:
    (x1, x2), (y1, y2) = sorted(corners[:2]), sorted(corners[2:])
    seen = frame.visible_xyxy
    x1, x2 = max(x1, seen[0]), min(x2, seen[2])
    y1, y2 = max(y1, seen[1]), min(y2, seen[3])
    if x2 - x1 < 1e-3 or y2 - y1 < 1e-3:
        return
    outline = Polygon([(x1, y1), (x2, y1), (x2, y2), (x1, y2)])
    np.testing.assert_allclose(outline.weights(frame), Box(x1, y1, x2, y2).weights(frame, by="coverage"), atol=1e-9)


def test_a_lasso_may_cross_itself() -> None:
    bow_tie = Polygon([(0, 0), (1, 1), (1, 0), (0, 1)]).weights(Frame.of_grid(2, 2))
    np.testing.assert_allclose(bow_tie, np.full((2, 2), 0.25))


@given(st.integers(4, 9), st.integers(0, 2**32))
def test_a_crossing_outline_weighs_as_exact_geometry_says(corners: int, seed: int) -> None:
    # Drawn by chance, so that no two edges lie on each other: there the two rules differ.
    points = np.random.default_rng(seed).uniform(-0.2, 1.2, (corners, 2))
    exact = shapely.intersection(shapely.make_valid(shapely.Polygon(points)), shapely.box(0, 0, 1, 1))
    assume(shapely.area(exact) > 0.02)
    cells = shapely.box(*np.meshgrid([0, 0.25, 0.5, 0.75], [0, 0.5]), *np.meshgrid([0.25, 0.5, 0.75, 1], [0.5, 1]))
    expected = shapely.area(shapely.intersection(cells, exact)) / shapely.area(exact)
    np.testing.assert_allclose(Polygon(points).weights(Frame.of_grid(2, 4)), expected, atol=0.03)


def test_nobody_looks_for_all_crossings_of_a_scribble(monkeypatch: pytest.MonkeyPatch) -> None:
    # Exact geometry takes minutes here; `make bench` has the seconds.
    for name in ("intersection", "make_valid", "unary_union"):
        monkeypatch.delattr(shapely, name)
    weights = Polygon(np.random.default_rng(0).random((2_000, 2))).weights(Frame.of_grid(14, 14))
    assert weights.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Box(0.5, 0, 0.5, 1), "has no area"),
        (lambda: Box(0, 0, np.nan, 1), "NaN"),
        (lambda: Box(1.5, 0, 2, 1).weights(GRID), "covers nothing of the visible part of the photo, x 0–1"),
        (lambda: Box(0, 0, 0.1, 1).weights(Frame.centre_crop((400, 100), 14, (14, 14), 7)), "x 0.375–0.625"),
        (lambda: Box(0, 0, 1, 1).weights(GRID, by="area"), "not 'touch'"),
        (lambda: BoxSet(()), "is empty"),
        (lambda: BoxSet((Box(0, 0, 1, 1),)).weights(GRID, by="x"), "not 'patch'"),
        (lambda: BoxSet((Box(0, 0, 1, 1), Box(2, 2, 3, 3))).weights(GRID), "covers nothing"),
        (lambda: Point(1.2, 0.5).weights(GRID), "covers nothing"),
        (lambda: Point(np.inf, 0), "infinity"),
        (lambda: Patch(4, 0).weights(GRID), "not on the 4×4 grid"),
        (lambda: Mask(np.zeros((3, 3))), "is empty"),
        (lambda: Mask([[1, -1]]), "negative"),
        (lambda: Mask(np.zeros((0, 3))), "is empty"),
        (lambda: Polygon([(0, 0), (1, 1)]), "needs three"),
        (lambda: Polygon([(0, 0), (1, 1), (0.5, 0.5)]).weights(GRID), "covers nothing"),
        (lambda: WholeImage().weights(GRID, by="x"), "not 'uniform'"),
    ],
)
def test_regions_that_mean_nothing_are_refused(make: object, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        make()  # type: ignore[operator]
