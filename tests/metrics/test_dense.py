from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core.errors import InvalidValue
from saywhere.metrics.dense import DenseMAP, DenseScores, DetectedRegions, TrueRegions, dense_map
from saywhere.metrics.referring import box_iou

LEFT, RIGHT, LOW = [0.0, 0.0, 0.4, 0.4], [0.6, 0.0, 1.0, 0.4], [0.0, 0.6, 0.4, 1.0]
NONE = np.zeros((0, 4))


def word_overlap(candidates: list[str], references: list[list[str]]) -> list[float]:
    """Share of the candidate's words in the best reference: a stand-in for METEOR."""
    return [
        max(len(set(c.split()) & set(r.split())) / max(len(c.split()), 1) for r in refs)
        for c, refs in zip(candidates, references, strict=True)
    ]


def detected(boxes: object, captions: list[str], scores: list[float]) -> DetectedRegions:
    return DetectedRegions(boxes, captions, scores)  # type: ignore[arg-type]


def true(boxes: object, captions: list[str]) -> TrueRegions:
    return TrueRegions(boxes, captions)  # type: ignore[arg-type]


def test_finding_and_naming_every_region_scores_1() -> None:
    scores = dense_map(
        [(detected([LEFT, RIGHT], ["a cup", "a dog"], [0.9, 0.8]), true([RIGHT, LEFT], ["a dog", "a cup"]))],
        word_overlap,
    )
    assert scores.mean_ap == scores.detection_ap == 1.0
    assert scores.grid.shape == (5, 6)
    assert (scores.true_regions, scores.detections) == (2, 2)


def test_a_wrong_caption_on_the_right_box_counts_for_detection_only() -> None:
    scores = dense_map([(detected([LEFT], ["zebra"], [1.0]), true([LEFT], ["a cup"]))], word_overlap)
    assert (scores.mean_ap, scores.detection_ap) == (0.0, 1.0)


def test_one_of_two_regions_behind_a_false_alarm_is_worth_half_the_precision_on_half_the_grid() -> None:
    # Ranks: false alarm, hit. Precision 1/2 at recall 1/2: recalls 0, 0.01 ... 0.5 are 51 of 101 grid points.
    scores = dense_map(
        [(detected([LOW, LEFT], ["a cup", "a cup"], [0.9, 0.8]), true([LEFT, RIGHT], ["a cup", "a dog"]))],
        word_overlap,
    )
    assert scores.mean_ap == pytest.approx(0.5 * 51 / 101)


def test_thresholds_cut_the_grid_at_the_iou_and_strictly_above_the_similarity() -> None:
    box = [0.0, 0.0, 0.4, 0.22]  # IoU 0.55 with LEFT
    scores = dense_map(
        [(detected([box], ["any"], [1.0]), true([LEFT], ["a cup"]))], lambda candidates, references: [0.1]
    )
    expected = np.zeros((5, 6))
    expected[:3, :2] = 1.0  # IoU 0.3, 0.4, 0.5; similarity 0.1 passes 0 and 0.05 but not 0.1
    np.testing.assert_array_equal(scores.grid, expected)
    assert scores.mean_ap == pytest.approx(6 / 30)
    assert scores.detection_ap == pytest.approx(3 / 5)


def test_true_boxes_that_overlap_by_0_7_become_one_region_with_all_captions() -> None:
    shifted = [0.0, 0.0, 0.4, 0.34]  # IoU 0.85 with LEFT
    seen: list[list[str]] = []

    def spy(candidates: list[str], references: list[list[str]]) -> list[float]:
        seen.extend(references)
        return [1.0] * len(candidates)

    scores = dense_map([(detected([LEFT], ["x"], [1.0]), true([LEFT, RIGHT, shifted], ["one", "two", "three"]))], spy)
    assert scores.true_regions == 2
    assert seen == [["one", "three"]]
    # The merged box is the mean: (0, 0, 0.4, 0.37), IoU 0.925 with the detection.
    assert scores.detection_ap == pytest.approx(51 / 101)


def test_who_comes_second_to_a_region_is_wrong_even_if_the_first_was_a_poor_fit() -> None:
    poor = [0.3, 0.3, 0.7, 0.7]
    scores = dense_map(
        [(detected([LEFT, poor], ["a cup", "a cup"], [0.1, 0.9]), true([LEFT], ["a cup"]))], word_overlap
    )
    assert scores.mean_ap == 0.0


def test_a_detection_that_touches_nothing_claims_nothing() -> None:
    scores = dense_map(
        [(detected([LOW, RIGHT], ["a dog", "a dog"], [0.9, 0.8]), true([LEFT, RIGHT], ["a cup", "a dog"]))],
        word_overlap,
    )
    assert scores.mean_ap == pytest.approx(0.5 * 51 / 101)


def test_images_without_detections_or_without_truth_count() -> None:
    good = (detected([LEFT], ["a cup"], [0.5]), true([LEFT], ["a cup"]))
    missed = (detected(NONE, [], []), true([LEFT], ["a cup"]))
    alarm = (detected([LEFT], ["a cup"], [0.9]), true(NONE, []))
    assert dense_map([good, missed], word_overlap).mean_ap == pytest.approx(51 / 101)
    assert dense_map([good, alarm], word_overlap).mean_ap == pytest.approx(0.5)
    assert dense_map([missed], word_overlap).mean_ap == 0.0
    assert math.isnan(dense_map([alarm], word_overlap).mean_ap)
    assert math.isnan(dense_map([], word_overlap).mean_ap)


def plain_dense_map(images: list[tuple[DetectedRegions, TrueRegions]]) -> float:
    """The definition in plain loops: merge, claim, sweep."""
    records, positives = [], 0
    for found, real in images:
        boxes, groups, left = [], [], list(range(len(real.captions)))
        while left:
            near = {
                i: [j for j in left if i == j or box_iou(real.boxes_xyxy[[i]], real.boxes_xyxy[[j]]) >= 0.7]
                for i in left
            }
            members = max(near.values(), key=len)
            boxes.append(real.boxes_xyxy[members].mean(axis=0))
            groups.append([real.captions[j] for j in members])
            left = [i for i in left if i not in members]
        positives += len(boxes)
        used = set()
        for d in sorted(range(len(found.captions)), key=lambda d: -found.scores[d]):
            ious = [float(box_iou(found.boxes_xyxy[[d]], [box])[0, 0]) for box in boxes]
            best = max(range(len(ious)), key=lambda j: ious[j], default=None)
            ok = best is not None and ious[best] > 0 and best not in used
            language = 0.0
            if ok:
                used.add(best)
                language = word_overlap([found.captions[d]], [groups[best]])[0]
            records.append((found.scores[d], ok, ious[best] if ok else 0.0, language))
    records.sort(key=lambda record: -record[0])
    aps = []
    for t in (0.3, 0.4, 0.5, 0.6, 0.7):
        for m in (0, 0.05, 0.1, 0.15, 0.2, 0.25):
            hits, points = 0, []
            for rank, (_, ok, iou, language) in enumerate(records, start=1):
                hits += ok and iou >= t and language > m
                points.append((hits, hits / rank))
            best_at = [max((p for h, p in points if 100 * h >= k * positives), default=0.0) for k in range(101)]
            aps.append(sum(best_at) / 101)
    return sum(aps) / 30


def random_image(rng: np.random.Generator, n_true: int, n_found: int) -> tuple[DetectedRegions, TrueRegions]:
    words = ["cup", "dog", "a", "red", "table", "the"]

    def boxes(n: int) -> np.ndarray:
        corner = rng.integers(0, 3, (n, 2)) / 4
        return np.c_[corner, corner + 0.25 + rng.random((n, 2)) / 10]

    def captions(n: int) -> list[str]:
        return [" ".join(rng.choice(words, 5)) for _ in range(n)]

    return (
        detected(boxes(n_found), captions(n_found), list(rng.random(n_found))),
        true(boxes(n_true), captions(n_true)),
    )


@given(st.integers(0, 2**32 - 1), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), min_size=1, max_size=3))
def test_dense_map_equals_plain_loops_image_by_image_or_at_once(seed: int, sizes: list[tuple[int, int]]) -> None:
    rng = np.random.default_rng(seed)
    images = [random_image(rng, n_true, n_found) for n_true, n_found in sizes]
    whole = dense_map(images, word_overlap)
    if not any(n_true for n_true, _ in sizes):
        assert math.isnan(whole.mean_ap)
        return
    assert whole.mean_ap == pytest.approx(plain_dense_map(images))
    assert 0 <= whole.mean_ap <= whole.detection_ap + 1e-12 <= 1 + 1e-9
    metric = DenseMAP(word_overlap)
    metric.update(*images[0])
    metric.reset()
    for image in reversed(images):
        metric.update(*image)
    backwards: DenseScores = metric.compute()
    np.testing.assert_array_equal(backwards.grid, whole.grid)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: detected([LEFT], ["a", "b"], [1.0]), "2 for 1 boxes"),
        (lambda: detected([LEFT], ["a"], [1.0, 2.0]), "has shape"),
        (lambda: detected([LEFT], ["a"], [math.nan]), "NaN"),
        (lambda: true([LEFT], "a"), "not a list of strings"),  # type: ignore[arg-type]
        (lambda: true([LEFT], [None]), "not a list of strings"),  # type: ignore[list-item]
        (lambda: true([[0.5, 0, 0.1, 1]], ["a"]), "x1 < x0"),
        (
            lambda: dense_map([(detected([LEFT], ["a"], [1.0]), true([LEFT], ["a"]))], lambda c, r: [0.1, 0.2]),
            "similarities",
        ),
    ],
)
def test_bad_input_is_named(call, reason: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidValue, match=reason):
        call()
