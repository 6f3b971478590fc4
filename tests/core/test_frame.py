from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from saywhere.core import Frame, InvalidValue
from tests.strategies import coordinates, frames

points = st.lists(st.tuples(coordinates, coordinates), min_size=1, max_size=5)


@given(frames(), points)
def test_every_conversion_comes_back_exactly(frame: Frame, xy: list[tuple[float, float]]) -> None:
    for there, back in (
        (frame.to_input, frame.from_input),
        (frame.to_photo, frame.from_photo),
        (frame.to_grid, frame.from_grid),
    ):
        np.testing.assert_allclose(back(there(xy)), xy, atol=1e-12)


@given(frames())
def test_the_visible_part_covers_the_cells_that_see_it(frame: Frame) -> None:
    x1, y1, x2, y2 = frame.visible_xyxy
    assert 0 <= x1 < x2 <= 1
    assert 0 <= y1 < y2 <= 1
    middle = [[(x1 + x2) / 2, (y1 + y2) / 2]]
    assert frame.sees(middle).all()
    row, col = frame.cells(middle)[0]
    assert frame.coverage((x1, y1, x2, y2))[row, col] > 0


@given(frames(), st.tuples(*[st.floats(0, 1)] * 4))
def test_coverage_adds_up_to_the_boxs_visible_area(frame: Frame, corners: tuple[float, ...]) -> None:
    (x1, x2), (y1, y2) = sorted(corners[:2]), sorted(corners[2:])
    assume(x2 > x1 and y2 > y1)
    cell_area = np.outer(*(np.diff(edges) for edges in reversed(frame.cell_edges())))
    seen = frame.visible_xyxy
    width = max(0, min(x2, seen[2]) - max(x1, seen[0]))
    height = max(0, min(y2, seen[3]) - max(y1, seen[1]))
    covered = frame.coverage((x1, y1, x2, y2))
    assert covered.min() >= 0
    assert covered.max() <= 1 + 1e-9
    np.testing.assert_allclose((covered * cell_area).sum(), width * height, atol=1e-9)


def test_a_centre_crop_of_a_wide_photo_cuts_its_sides() -> None:
    # 640×480, short side → 518, crop 518: 691 wide, 86 cut left (floor of 173/2).
    frame = Frame.centre_crop((640, 480), 518, (518, 518), 14)
    assert (frame.span, frame.offset, frame.grid) == ((690, 518), (-86, 0), (37, 37))
    np.testing.assert_allclose(frame.visible_xyxy, (86 / 690, 0, 604 / 690, 1))
    assert frame.sees([[0.05, 0.5], [0.5, 0.5], [0.95, 0.5], [0.5, 1.0]]).tolist() == [False, True, False, True]


def test_a_letterbox_shows_all_and_pads_the_rest() -> None:
    frame = Frame.letterbox((200, 100), (112, 112), 14)
    assert (frame.span, frame.offset) == ((112, 56), (0, 28))
    assert frame.visible_xyxy == (0, 0, 1, 1)
    assert frame.cells([[0, 0], [1, 1]]).tolist() == [[2, 0], [5, 7]]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((640, 480), (644, 476)),
        ((28, 28), (56, 56)),
        ((100, 20), (112, 28)),
        ((4000, 3000), (1148, 840)),
        ((42, 70), (56, 56)),  # 1.5 and 2.5 patches both round to 2, the even number
    ],
)
def test_smart_resize_follows_qwens_rule(size: tuple[int, int], expected: tuple[int, int]) -> None:
    frame = Frame.smart_resize(size)
    assert frame.input_size[0] % 28 == frame.input_size[1] % 28 == 0
    assert 56 * 56 <= frame.input_size[0] * frame.input_size[1] <= 28 * 28 * 1280
    assert frame.input_size == expected


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Frame.squash((10, 10), (15, 14), 14), "15×14 is not a whole number of 14-pixel patches"),
        (lambda: Frame.letterbox((0, 10), (14, 14), 14), "at least one pixel"),
        (lambda: Frame.smart_resize((1000, 4)), "more than 200 times"),
        (lambda: Frame((1, 1), (1, 1), (0, 1), (1, 1), (0, 0)), "Frame.grid"),
        (lambda: Frame.of_grid(2, 2).to_input([1, 2]), r"not \(n, 2\)"),
    ],
)
def test_geometry_that_cannot_be_is_refused(make: object, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        make()  # type: ignore[operator]
