"""What a look gives: shapes that fit the frame, shares that sum to 1, boxes on the photo; and nobody can change it."""

from __future__ import annotations

import numpy as np
import pytest

from saywhere.core import Frame, InvalidValue
from saywhere.vision import Found, View

GRID = Frame.of_grid(2, 2)


def test_patch_boxes_tile_the_photo_row_by_row() -> None:
    view = View(Frame.squash((100, 50), (96, 64), 32), np.zeros((2, 3, 4)), np.zeros(4))
    boxes = view.patch_boxes_xyxy()
    np.testing.assert_allclose(boxes[0], [0, 0, 1 / 3, 0.5])
    np.testing.assert_allclose(boxes[1], [1 / 3, 0, 2 / 3, 0.5])
    np.testing.assert_allclose(boxes[5], [2 / 3, 0.5, 1, 1])


@pytest.mark.parametrize(
    ("patches", "whole", "reason"),
    [
        (np.zeros((2, 3, 4)), np.zeros(4), "View.patches"),
        (np.zeros((2, 2, 0)), np.zeros(0), "View.patches"),
        (np.zeros((2, 2, 4)), np.zeros(3), "View.whole"),
        (np.full((2, 2, 4), np.nan), np.zeros(4), "NaN"),
    ],
)
def test_a_view_that_cannot_be_is_refused(patches: np.ndarray, whole: np.ndarray, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        View(Frame.of_grid(2, 2), patches, whole)


def test_a_view_owns_its_numbers() -> None:
    patches = np.zeros((2, 2, 3), np.float32)
    view = View(Frame.of_grid(2, 2), patches, np.zeros(3))
    patches[:] = 1
    assert not view.patches.any()
    with pytest.raises(ValueError, match="read-only"):
        view.patches[0] = 1


def test_attention_sums_to_one_and_is_its_own() -> None:
    attention = np.array([[1.0, 2.0], [0.0, 5.0]])
    view = View(GRID, np.zeros((2, 2, 3)), np.zeros(3), attention)
    attention[:] = 9
    np.testing.assert_allclose(view.attention, [[0.125, 0.25], [0, 0.625]])
    assert view.attention.dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        view.attention[0] = 1


@pytest.mark.parametrize(
    ("attention", "reason"),
    [
        (np.ones((2, 3)), r"has shape \(2, 3\)"),
        (np.zeros((2, 2)), "somewhere above"),
        (np.array([[1.0, -0.1], [0, 0]]), "nowhere below 0"),
        (np.array([[1.0, np.nan], [0, 0]]), "finite"),
        (np.array([[1.0, np.inf], [0, 0]]), "finite"),
    ],
)
def test_attention_that_cannot_be_is_refused(attention: np.ndarray, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        View(GRID, np.zeros((2, 2, 3)), np.zeros(3), attention)


def test_a_view_has_no_attention_and_nothing_found_unless_told() -> None:
    cup = Found((0, 0, 0.5, 1), "cup", 0.9)
    bare = View(GRID, np.zeros((2, 2, 3)), np.zeros(3))
    assert bare.attention is None
    assert bare.found == ()
    assert View(GRID, bare.patches, bare.whole, None, [cup]).found == (cup,)


@pytest.mark.parametrize(
    ("box_xyxy", "name", "score", "reason"),
    [
        ((0.5, 0, 0.5, 1), "cup", 0.5, "with an area"),
        ((0, 0.6, 1, 0.5), "cup", 0.5, "with an area"),
        ((-0.1, 0, 1, 1), "cup", 0.5, "within"),
        ((0, 0, 1, 1.1), "cup", 0.5, "within"),
        ((0, 0, 1, float("nan")), "cup", 0.5, "within"),
        ((0, 0, 1), "cup", 0.5, "left, top, right, bottom"),
        ((0, 0, 1, 1), " ", 0.5, "name"),
        ((0, 0, 1, 1), "cup", 1.5, "score"),
        ((0, 0, 1, 1), "cup", float("nan"), "score"),
    ],
)
def test_a_finding_that_cannot_be_is_refused(
    box_xyxy: tuple[float, float, float, float], name: str, score: float, reason: str
) -> None:
    with pytest.raises(InvalidValue, match=reason):
        Found(box_xyxy, name, score)
