from __future__ import annotations

import numpy as np
import pytest

from saywhere.core import AttentionMap, Frame, InvalidValue, Trace


def test_importance_compares_the_mean_inside_with_the_mean_outside() -> None:
    # Left half 3, right half 1: E_in = 3, E_out = 1 → 3/4; the whole image has no outside → 1/2.
    half = AttentionMap(np.repeat([[3.0, 1.0]], 2, axis=0))
    np.testing.assert_allclose(half.importance([(0, 0, 0.5, 1), (0.5, 0, 1, 1), (0, 0, 1, 1)]), [0.75, 0.25, 0.5])
    np.testing.assert_allclose(half.importance([(-1, -1, 0.5, 2)]), [0.75])
    # Half of each side: E_in = 2, E_out = 2.
    np.testing.assert_allclose(half.importance([(0.25, 0, 0.75, 1)]), [0.5])


def test_maps_come_from_traces_fixations_boxes_and_masks() -> None:
    trace = Trace([(0.25, 0.25, 0), (0.25, 0.25, 3), (0.75, 0.75, 4)])
    seen = AttentionMap.from_trace(trace, (2, 2), sigma=0)
    np.testing.assert_allclose(seen.values, [[3.5, 0], [0, 0.5]])
    looked = AttentionMap.from_fixations([(0.1, 0.1), (0.9, 0.1), (5, 5)], [0.2, 0.6, 9], (2, 2), sigma=0)
    np.testing.assert_allclose(looked.density, [[0.25, 0.75], [0, 0]])
    boxed = AttentionMap.from_boxes([(0, 0, 0.5, 1), (0, 0, 0.75, 0.5)], (2, 2))
    np.testing.assert_allclose(boxed.values, [[2, 0.5], [1, 0]])
    masked = AttentionMap.from_masks([np.eye(4), np.ones((1, 1))], (2, 2))
    np.testing.assert_allclose(masked.values, [[1.5, 1], [1, 1.5]])


def test_a_blur_moves_attention_and_loses_none() -> None:
    sharp = AttentionMap.from_fixations([(0.02, 0.5)], shape=(16, 32), sigma=0)
    soft = AttentionMap.from_fixations([(0.02, 0.5)], shape=(16, 32), sigma=0.1)
    np.testing.assert_allclose(soft.values.sum(), sharp.values.sum())
    assert soft.values.max() < sharp.values.max()
    assert np.unravel_index(soft.values.argmax(), soft.values.shape) == np.unravel_index(
        sharp.values.argmax(), sharp.values.shape
    )


def test_resizing_keeps_the_mean_and_the_importance() -> None:
    rng = np.random.default_rng(0)
    coarse = AttentionMap(rng.random((3, 5)))
    fine = coarse.resized((12, 20))
    np.testing.assert_allclose(fine.values.mean(), coarse.values.mean())
    np.testing.assert_allclose(fine.resized((3, 5)).values, coarse.values)
    boxes = [(0.1, 0.2, 0.6, 0.9), (0.5, 0, 1, 1)]
    np.testing.assert_allclose(fine.importance(boxes), coarse.importance(boxes))


def test_attention_falls_on_the_patches_that_the_frame_sees() -> None:
    frame = Frame.centre_crop((40, 20), 2, (2, 2), 1)
    split = AttentionMap([[9, 1, 3, 9]])
    np.testing.assert_allclose(split.on_patches(frame), [[1 / 8, 3 / 8]] * 2)
    with pytest.raises(InvalidValue, match="outside the visible part"):
        AttentionMap([[1, 0, 0, 1]]).on_patches(frame)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: AttentionMap(np.zeros((3, 3))), "zero everywhere"),
        (lambda: AttentionMap([[1, -1]]), "negative"),
        (lambda: AttentionMap([[np.nan]]), "NaN"),
        (lambda: AttentionMap(np.zeros((0, 0))), "is empty"),
        (lambda: AttentionMap([1, 2, 3]), "shape"),
        (lambda: AttentionMap.from_trace(Trace([])), "zero everywhere"),
        (lambda: AttentionMap.from_boxes([]), "zero everywhere"),
        (lambda: AttentionMap.from_fixations([(0.5, 0.5)], sigma=-1), "sigma"),
        (lambda: AttentionMap.from_fixations([(0.5, 0.5)], [1, 2]), "durations"),
        (lambda: AttentionMap([[1]]).importance([(0, 0, 1, 1), (0.5, 0, 0.5, 1)]), "region 1: has no area"),
    ],
)
def test_maps_that_say_nothing_are_refused(make: object, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        make()  # type: ignore[operator]
