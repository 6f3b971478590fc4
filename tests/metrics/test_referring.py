from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pycocotools import mask as coco_mask

from saywhere.core.errors import InvalidValue
from saywhere.metrics.referring import (
    CIoU,
    GIoU,
    PrecisionAt,
    ReferringScores,
    box_iou,
    ciou,
    giou,
    mask_iou,
    paired_box_iou,
    precision_at,
)

coordinates = st.floats(-2, 2, width=32)
boxes = st.builds(
    lambda x, y, w, h: [x, y, x + w, y + h],
    coordinates,
    coordinates,
    st.floats(0, 2, width=32),
    st.floats(0, 2, width=32),
)
mask_pairs = st.tuples(st.integers(1, 6), st.integers(1, 6)).flatmap(
    lambda shape: st.tuples(arrays(np.bool_, shape), arrays(np.bool_, shape))
)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([0, 0, 2, 2], [1, 1, 3, 3], 1 / 7),
        ([0, 0, 1, 1], [0, 0, 1, 1], 1.0),
        ([0, 0, 1, 1], [1, 0, 2, 1], 0.0),
        ([0, 0, 4, 1], [1, 0, 2, 1], 0.25),
        ([0, 0, 0, 1], [0, 0, 0, 1], 0.0),
    ],
)
def test_box_iou_is_shared_area_over_joint_area(a: list[float], b: list[float], expected: float) -> None:
    assert paired_box_iou([a], [b])[0] == pytest.approx(expected)


def test_box_iou_equals_pycocotools() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.random((40, 4)), rng.random((30, 4))
    ours = box_iou(np.c_[a[:, :2], a[:, :2] + a[:, 2:]], np.c_[b[:, :2], b[:, :2] + b[:, 2:]])
    np.testing.assert_allclose(ours, coco_mask.iou(a, b, [0] * len(b)), atol=1e-12)


@given(st.lists(boxes, max_size=5), st.lists(boxes, max_size=5))
def test_box_iou_is_symmetric_and_between_0_and_1(a: list[list[float]], b: list[list[float]]) -> None:
    ious = box_iou(a, b)
    assert ious.shape == (len(a), len(b))
    np.testing.assert_array_equal(ious, box_iou(b, a).T)
    assert ((ious >= 0) & (ious <= 1)).all()


@given(st.lists(st.tuples(boxes, boxes), min_size=1, max_size=5))
def test_paired_iou_is_the_diagonal_of_the_matrix(pairs: list[tuple[list[float], list[float]]]) -> None:
    a, b = [p for p, _ in pairs], [q for _, q in pairs]
    np.testing.assert_array_equal(paired_box_iou(a, b), np.diagonal(box_iou(a, b)))


@given(mask_pairs)
def test_mask_iou_equals_pycocotools_and_counts_two_empty_masks_as_equal(pair: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = pair
    if not (a | b).any():
        assert mask_iou(a, b) == 1.0
        return
    encoded = [coco_mask.encode(np.asfortranarray(mask, np.uint8)) for mask in pair]
    assert mask_iou(a, b) == pytest.approx(coco_mask.iou(encoded[:1], encoded[1:], [0])[0, 0])
    assert mask_iou(a, b) == mask_iou(b, a)


def test_ciou_weighs_by_area_and_giou_by_item() -> None:
    small, large = np.zeros((4, 4), bool), np.ones((10, 10), bool)
    small[0, 0] = True
    half = large.copy()
    half[5:] = False
    predicted, target = [small, half], [small, large]
    assert ciou(predicted, target) == pytest.approx(51 / 101)
    assert giou(predicted, target) == pytest.approx((1 + 0.5) / 2)


def test_an_empty_target_follows_grefcoco() -> None:
    nothing, something = np.zeros((3, 3), bool), np.eye(3, dtype=bool)
    assert giou([nothing], [nothing]) == 1.0
    assert giou([something], [nothing]) == 0.0
    assert giou([nothing], [something]) == 0.0
    assert math.isnan(ciou([nothing], [nothing]))
    # The false alarm's area joins the union; the empty pair adds nothing.
    assert ciou([nothing, something, something], [nothing, nothing, something]) == pytest.approx(3 / 6)


@given(st.lists(mask_pairs, min_size=1, max_size=6))
def test_mask_metrics_are_the_same_one_by_one(pairs: list[tuple[np.ndarray, np.ndarray]]) -> None:
    predicted, target = [p for p, _ in pairs], [t for _, t in pairs]
    for function, metric in ((ciou, CIoU()), (giou, GIoU())):
        metric.update([np.ones((1, 1), bool)], [np.zeros((1, 1), bool)])
        metric.reset()
        for p, t in pairs:
            metric.update([p], [t])
        np.testing.assert_equal(metric.compute(), function(predicted, target))
    assert giou(predicted, target) == pytest.approx(np.mean([mask_iou(p, t) for p, t in pairs]))


def test_precision_counts_an_iou_at_the_threshold() -> None:
    assert precision_at([0.5, 0.49, 0.9, 0.0]) == 0.5
    assert precision_at([0.5, 0.49, 0.9, 0.0], 0.7) == 0.25


@given(st.lists(st.floats(0, 1), min_size=1), st.floats(0.01, 1))
def test_precision_is_the_same_one_by_one(ious: list[float], threshold: float) -> None:
    metric = PrecisionAt(threshold)
    metric.update([1.0, 0.0])
    metric.reset()
    for iou in ious:
        metric.update([iou])
    assert metric.compute() == precision_at(ious, threshold)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: box_iou([[0, 0, 1]], [[0, 0, 1, 1]]), "not \\(n, 4\\)"),
        (lambda: box_iou([[0, 0, np.nan, 1]], [[0, 0, 1, 1]]), "NaN"),
        (lambda: box_iou([[0, 0, 1, 1], [1, 0, 0, 1]], [[0, 0, 1, 1]]), "row 1 has x1 < x0"),
        (lambda: paired_box_iou([[0, 0, 1, 1]], np.zeros((2, 4))), "1 boxes against 2"),
        (lambda: mask_iou(np.zeros((2, 2)), np.zeros((2, 3))), "shapes"),
        (lambda: mask_iou(np.zeros(4), np.zeros(4)), "has shape"),
        (lambda: mask_iou(np.zeros(4, bool), np.zeros(4, bool)), "has shape"),
        (lambda: mask_iou([[0, 1], [1]], [[0, 1], [1]]), "not an array"),
        (lambda: mask_iou(np.full((2, 2), 255), np.zeros((2, 2))), "threshold it first"),
        (lambda: mask_iou(np.full((2, 2), np.nan), np.zeros((2, 2))), "other than 0 and 1"),
        (lambda: giou([np.zeros((2, 2))], []), "1 predicted masks against 0"),
        (lambda: giou([], []), "no pair"),
        (lambda: CIoU().compute(), "no pair"),
        (lambda: precision_at([]), "no item"),
        (lambda: precision_at([1.2]), "outside"),
        (lambda: precision_at([np.nan]), "NaN"),
        (lambda: precision_at([0.5], 0.0), "not in \\(0, 1\\]"),
    ],
)
def test_bad_input_is_named(call, reason: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidValue, match=reason):
        call()


def test_scores_of_expressions_are_those_of_boxes_and_masks_item_by_item() -> None:
    scores = ReferringScores(0.4)
    assert scores.add_box((0, 0, 2, 1), (1, 0, 3, 1)) == pytest.approx(1 / 3)
    assert scores.add_box((0, 0, 1, 1), (0, 0, 2, 1)) == pytest.approx(1 / 2)
    assert scores.add_box(None, (0, 0, 1, 1)) == 0
    assert scores.add_mask([[1, 1, 1, 1]], [[1, 1, 0, 0]]) == pytest.approx(1 / 2)
    assert scores.add_mask([[0, 0]], [[1, 0]]) == 0
    expected = {"boxes": 3, "P@0.4": 1 / 3, "mean IoU": 5 / 18, "pointing": 2 / 3}
    # Two pixels in both, of four and one in either.
    expected |= {"masks": 2, "mask P@0.4": 1 / 2, "cIoU": 2 / 5, "gIoU": 1 / 4}
    assert scores.compute() == pytest.approx(expected)
    scores.reset()
    with pytest.raises(InvalidValue, match="no item was given"):
        scores.compute()
    scores.add_mask([[1, 0]], [[1, 0]])
    assert "boxes" not in scores.compute()
