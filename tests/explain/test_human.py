"""Human importance of regions and patches, heat maps, and agreement of explanations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import AttentionMap, Frame, InvalidValue, Trace, UnknownName
from saywhere.explain import (
    human_importance,
    mean_attention,
    overlap_importance,
    patch_boxes,
    patch_heat,
    rank_agreement,
    region_heat,
    top_box_iou,
    top_map_iou,
)

LEFT = AttentionMap([[1, 0], [1, 0]])
BOXES = np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1], [0, 0, 1, 0.5], [0.25, 0, 0.75, 1]])


def test_regions_by_hand() -> None:
    # Means inside: 1, 0, ½, ½; outside: 0, 1, ½, ½.
    assert human_importance(LEFT, BOXES).tolist() == [1, 0, 0.5, 0.5]
    np.testing.assert_allclose(human_importance(LEFT, BOXES), LEFT.importance(BOXES))


def test_a_plain_array_is_a_map_too() -> None:
    assert human_importance([[3, 1], [0, 0]], [[0, 0, 0.5, 0.5]]).tolist() == pytest.approx([3 / (3 + 1 / 3)])


def test_patches_by_hand_row_by_row() -> None:
    found = human_importance([[3, 1], [0, 0]], Frame.of_grid(2, 2))
    assert found.tolist() == pytest.approx([3 / (3 + 1 / 3), 1 / (1 + 1), 0, 0])


def test_patches_that_show_only_padding_have_no_importance() -> None:
    # A photo twice as wide as high, letterboxed into a square of 4 × 4 patches: the outer rows are padding.
    frame = Frame.letterbox((200, 100), (4, 4), 1)
    boxes = patch_boxes(frame)
    assert boxes.shape == (16, 4)
    found = human_importance(LEFT, frame).reshape(4, 4)
    assert np.isnan(found[[0, 3]]).all()
    assert (found[1:3, :2] > 0.5).all()
    assert (found[1:3, 2:] == 0).all()


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 1000))
def test_patches_are_boxes_that_tile_the_photo(rows: int, cols: int, seed: int) -> None:
    frame = Frame.of_grid(rows, cols)
    boxes = patch_boxes(frame)
    assert np.prod(boxes[:, 2:] - boxes[:, :2], axis=1).sum() == pytest.approx(1)
    attention = AttentionMap(np.random.default_rng(seed).random((5, 7)) + 0.01)
    np.testing.assert_allclose(human_importance(attention, frame), attention.importance(boxes))


@pytest.mark.parametrize(
    ("attention", "boxes", "size", "said"),
    [
        (np.zeros((2, 2)), BOXES, None, "zero everywhere"),
        ([[1, math.nan]], BOXES, None, "NaN"),
        ([[1, -1]], BOXES, None, "negative"),
        (np.ones(4), BOXES, None, "shape"),
        (np.ones((0, 3)), BOXES, None, "empty"),
        (np.ones((10, 20)), BOXES, (10, 20), "not the shape"),
        (LEFT, [[0.2, 0.2, 0.2, 0.8]], None, "no area"),
        (LEFT, [[1.2, 0.2, 1.6, 0.8]], None, "no area"),
    ],
)
def test_bad_maps_and_regions_are_refused_one_by_one(
    attention: object, boxes: object, size: tuple[int, int] | None, said: str
) -> None:
    with pytest.raises(InvalidValue, match=said):
        human_importance(attention, boxes, size)  # type: ignore[arg-type]  # bad on purpose


def test_a_map_may_be_a_little_off_the_photos_shape() -> None:
    assert human_importance(np.ones((100, 204)), BOXES, (200, 100)).shape == (4,)


def test_every_source_of_attention_gives_its_place_the_highest_importance() -> None:
    sources = {
        "trace": AttentionMap.from_trace(Trace([[0.2, 0.2, 0], [0.25, 0.3, 1], [0.2, 0.25, 2]])),
        "boxes": AttentionMap.from_boxes([[0.1, 0.1, 0.4, 0.4]]),
        "masks": AttentionMap.from_masks([np.pad(np.ones((4, 4)), (0, 6))]),
        "fixations": AttentionMap.from_fixations([[0.2, 0.2], [0.3, 0.1]]),
        "people": mean_attention([AttentionMap([[9, 0], [0, 0]]), AttentionMap([[1, 0, 0], [0, 0, 0], [0, 0, 0]])]),
    }
    quarters = np.array([[0, 0, 0.5, 0.5], [0.5, 0, 1, 0.5], [0, 0.5, 0.5, 1], [0.5, 0.5, 1, 1]])
    for name, attention in sources.items():
        assert human_importance(attention, quarters).argmax() == 0, name
        assert human_importance(attention, Frame.of_grid(2, 2)).argmax() == 0, name


def test_people_count_the_same_however_bright_their_maps_are() -> None:
    both = mean_attention([AttentionMap([[100, 0]]), AttentionMap([[0, 1]])], (1, 2))
    assert both.density.tolist() == [[0.5, 0.5]]
    with pytest.raises(InvalidValue, match="none"):
        mean_attention([])


def test_heat_is_that_of_the_most_important_region_over_each_place() -> None:
    heat = region_heat([1.0, 4.0, -3.0], [[0, 0, 0.5, 1], [0.25, 0, 1, 1], [0.75, 0, 1, 1]], (1, 4))
    np.testing.assert_allclose(heat, [[0.25, 1, 1, 1]])
    against = region_heat([1.0, 4.0, -3.0], [[0, 0, 0.5, 1], [0.25, 0, 1, 1], [0.75, 0, 1, 1]], (1, 4), part="against")
    np.testing.assert_allclose(against, [[0, 0, 0, 1]])


def test_the_whole_image_paints_over_nothing_unless_it_is_all_there_is() -> None:
    whole, left = (0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 0.5, 1.0)
    np.testing.assert_allclose(region_heat([9.0, 1.0], [whole, left], (1, 2)), [[1, 0]])
    np.testing.assert_allclose(region_heat([9.0], [whole], (1, 2)), [[1, 1]])


def test_what_is_asked_about_counts_more_than_what_holds_it() -> None:
    clock, sky, beside, whole = (0.4, 0.2, 0.6, 0.4), (0, 0, 1, 0.6), (0.42, 0.2, 0.62, 0.4), (0, 0, 1, 1)
    importance = overlap_importance([whole, sky, clock, beside, (0, 0.8, 0.1, 1)], [clock])
    assert math.isnan(importance[0])
    np.testing.assert_allclose(importance[1:], [0.05, 1.0, 0.8, 0.0])
    # By energy inside and outside, the sky is as good as the clock that it holds.
    by_energy = AttentionMap.from_boxes([clock], (100, 100)).importance(np.array([sky, clock]))
    assert abs(by_energy[0] - by_energy[1]) < 0.01
    np.testing.assert_allclose(overlap_importance([clock, beside], [clock, beside]), [1, 1])
    with pytest.raises(InvalidValue, match="none to look at"):
        overlap_importance([clock], np.zeros((0, 4)))


def test_heat_of_nothing_positive_is_zero_and_nan_is_none() -> None:
    assert not region_heat([-1.0, math.nan], BOXES[:2], (2, 2)).any()
    np.testing.assert_allclose(region_heat([math.nan, 2.0], BOXES[:2], (2, 2)), [[0, 1], [0, 1]])
    np.testing.assert_allclose(region_heat([], np.zeros((0, 4)), (1, 2)), [[0, 0]])


def test_heat_of_patches_lies_where_they_are() -> None:
    heat = patch_heat([[0, 2], [1, 0]], Frame.of_grid(2, 2), (4, 4))
    np.testing.assert_allclose(heat, np.kron([[0, 1], [0.5, 0]], np.ones((2, 2))))
    with pytest.raises(InvalidValue, match="3 numbers"):
        patch_heat([1, 2, 3], Frame.of_grid(2, 2))


@pytest.mark.parametrize(("importance", "error"), [([math.inf, 1], InvalidValue), ([1, 2, 3], InvalidValue)])
def test_heat_refuses_what_does_not_fit(importance: list[float], error: type[Exception]) -> None:
    with pytest.raises(error):
        region_heat(importance, BOXES[:2])
    with pytest.raises(UnknownName):
        region_heat([1.0, 2.0], BOXES[:2], part="both")  # type: ignore[arg-type]  # wrong on purpose


def test_rank_agreement_is_spearman_over_the_regions_that_are_there() -> None:
    one = [[1, 2, 3, 100], [1, 2, 3, 4], [5, 5, 5, 5], [1, 2, 3, 4]]
    two = [[10, 20, 30, 0], [4, 3, 2, 1], [1, 2, 3, 4], [1, math.nan, 0, math.nan]]
    present = [[True, True, True, False]] + [[True] * 4] * 3
    found = rank_agreement(one, two, present)
    np.testing.assert_allclose(found.each, [1, -1, math.nan, -1])
    assert found.undefined == 1
    assert found.mean == pytest.approx(-1 / 3)
    assert math.isnan(rank_agreement([[1, 1]], [[1, 2]], [[True, True]]).mean)


def test_rank_agreement_refuses_what_does_not_fit() -> None:
    with pytest.raises(InvalidValue):
        rank_agreement([[1, 2]], [[1, 2, 3]], [[True, True]])
    with pytest.raises(InvalidValue, match="boolean"):
        rank_agreement([[1, 2]], [[1, 2]], [[1, 1]])


def test_the_top_regions_overlap_by_hand() -> None:
    assert top_box_iou([0, 1, 0, 0.5], [1, 0, 0, 0.5], BOXES) == 0
    assert top_box_iou([0, 0, 0, 1], [1, 0, 0, 0.5], BOXES) == pytest.approx(1 / 3)
    # Two at the top: the mean of 1 and 0.
    assert top_box_iou([1, 1, 0, 0], [1, 0, 0, 0], BOXES) == pytest.approx(0.5)
    assert math.isnan(top_box_iou([math.nan] * 4, [1, 0, 0, 0], BOXES))
    with pytest.raises(InvalidValue):
        top_box_iou([1, 2, 3, 4], [1, 2], BOXES)


def test_the_top_region_overlaps_where_people_look() -> None:
    assert top_map_iou([1, 0, 0, 0], BOXES, LEFT) == pytest.approx(1)
    assert top_map_iou([0, 1, 0, 0], BOXES, LEFT) == 0
    assert top_map_iou([0, 0, 0, 1], BOXES, LEFT) == pytest.approx(1 / 3)
    assert top_map_iou([1, 1, 0, 0], BOXES, LEFT) == pytest.approx(0.5)
    # Half of the highest value is reached by 4 and 2, not by 1.
    assert top_map_iou([1.0], [[0, 0, 0.5, 1]], AttentionMap([[4, 2, 1, 0]])) == pytest.approx(1)
    assert math.isnan(top_map_iou([math.nan] * 4, BOXES, LEFT))
    with pytest.raises(InvalidValue, match="level"):
        top_map_iou([1, 0, 0, 0], BOXES, LEFT, level=0)
