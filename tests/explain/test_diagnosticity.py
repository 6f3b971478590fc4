"""Most attended against most frequent objects, beside chance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import InvalidValue, UnknownName
from saywhere.explain import (
    ObjectAttention,
    attended_objects,
    diagnosticity,
    frequent_objects,
    measure_objects,
    object_attention,
    overlap_at,
)
from saywhere.explain.diagnosticity import By, _ShuffleNull, shuffled, uniform
from saywhere.models.attended import TokenKind
from tests.explain.laboratory import Even, P, R, S, T, attended, image


def _looked(received: list[float], names: str) -> ObjectAttention:
    """One tag of one letter for each number."""
    kinds = np.full(len(names), int(TokenKind.TAG))
    return ObjectAttention(
        np.array(received, np.float64), tuple((name,) for name in names), kinds, np.arange(len(names)), tuple(names)
    )


@pytest.mark.parametrize(
    ("a", "b", "k", "iou", "average"),
    [
        ([1, 2, 3], [1, 3, 2], 3, 1.0, (1 + 1 / 2 + 1) / 3),
        (list("abcdefg"), list("zcavwxy"), 7, 2 / 12, 0.312),
        (["a"], ["a"], 3, 1.0, (1 + 1 / 2 + 1 / 3) / 3),
        ([{"a", "b"}], ["b", "a"], 1, 1 / 2, 2 / 3),
    ],
)
def test_overlaps_at_a_depth_equal_those_worked_out_by_hand(
    a: list[object], b: list[object], k: int, iou: float, average: float
) -> None:
    found = overlap_at(a, b, k)
    assert found.iou == pytest.approx(iou)
    assert found.average_overlap == pytest.approx(average, abs=5e-4)
    assert 0 <= found.rbo <= 1


def test_rbo_at_a_depth_reads_no_further_than_the_depth() -> None:
    assert overlap_at(list("abc"), list("abd"), 2).rbo == pytest.approx(1.0)
    assert overlap_at(list("abc"), list("abd"), 3).rbo < 1
    # Of a tie that begins within the depth all belong to the top.
    assert overlap_at(["a", {"b", "c"}, "d"], ["a", "b", "c", "e"], 2) == overlap_at(["a", {"b", "c"}], list("abce"), 2)


def test_an_empty_ranking_overlaps_with_nothing_in_a_defined_way() -> None:
    assert math.isnan(overlap_at([], ["a"], 3).iou)
    assert math.isnan(overlap_at(["a"], [], 3).average_overlap)


# [CLS], two pieces of the tag "fire truck", the tag "cup", two regions.
PARTS = [S, T, T, T, R, R]
INDEX = [-1, 0, 0, 1, 0, 1]
ROWS = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.1, 0.2, 0.3, 0.4, 0.0],
        [0.0, 0.1, 0.2, 0.3, 0.4, 0.0],
        [0.0, 0.1, 0.2, 0.3, 0.4, 0.0],
        [0.0, 0.3, 0.2, 0.1, 0.0, 0.4],
        [0.0, 0.3, 0.2, 0.1, 0.0, 0.4],
    ]
)


@pytest.mark.parametrize(
    ("places", "askers", "expected"),
    [
        (
            "tags",
            (TokenKind.REGION, TokenKind.TAG),
            {"fire truck": (3 * 0.3 + 2 * 0.5) / 5, "cup": (3 * 0.3 + 2 * 0.1) / 5},
        ),
        ("tags", (TokenKind.REGION,), {"fire truck": 0.5, "cup": 0.1}),
        ("regions", (TokenKind.TAG,), {"fire truck": 0.4, "cup": 0.0}),
        ("regions", (TokenKind.REGION,), {"fire truck": 0.0, "cup": 0.4}),
        ("both", (TokenKind.REGION,), {"fire truck": 0.5, "cup": 0.5}),
        ("tags", (TokenKind.CAPTION,), {"fire truck": 0.0, "cup": 0.0}),
    ],
)
def test_objects_receive_at_their_tags_at_their_regions_or_at_both(
    places: str, askers: tuple[TokenKind, ...], expected: dict[str, float]
) -> None:
    seen = attended(ROWS[None, None, None], [PARTS], [INDEX])
    looked = object_attention(seen, [image(["fire truck", "cup"], [0, 1])], places=places, askers=askers)  # type: ignore[arg-type]
    assert attended_objects(looked) == pytest.approx(expected)


def test_a_region_that_shows_two_objects_counts_for_both_and_one_that_shows_none_for_none() -> None:
    shown = image(["cup", "cat"], [0, 5])
    boxes = np.array(shown.tag_boxes_xyxy)
    boxes[1] = (0, 0, 0.4, 1)
    wide = type(shown)(shown.features, shown.boxes_xyxy, shown.tags, boxes)
    seen = attended(np.full((1, 1, 1, 2, 2), 0.5), [[R, R]])
    (looked,) = object_attention(seen, [wide], places="regions")
    assert looked.names == (("cat", "cup"), ())
    assert attended_objects([looked]) == {"cat": 0.5, "cup": 0.5}


def test_the_image_as_a_whole_is_no_object() -> None:
    seen = attended(np.full((1, 1, 1, 3, 3), 1 / 3), [[R, R, T]], [[-1, 0, 0]])
    (looked,) = object_attention(seen, [image(["cup"], [0])], places="both")
    assert looked.owners.tolist() == [0, 0]
    assert looked.kinds.tolist() == [R, T]


def test_attention_is_summed_or_its_mean_taken_over_images_or_over_things() -> None:
    # Two cups in the first image; "fire truck" of two pieces is one thing.
    double = ObjectAttention(
        np.array([0.1, 0.3, 0.2, 0.2]),
        (("cup",), ("cup",), ("fire truck",), ("fire truck",)),
        np.full(4, int(TokenKind.TAG)),
        np.array([0, 1, 2, 2]),
        ("cup", "cup", "fire truck"),
    )
    looked = [double, ObjectAttention(np.array([0.6]), (("cup",),), np.array([3]), np.array([0]), ("cup",))]
    assert attended_objects(looked) == pytest.approx({"cup": 1.0, "fire truck": 0.4})
    assert attended_objects(looked, "mean") == pytest.approx({"cup": 0.5, "fire truck": 0.4})
    assert attended_objects(looked, "each") == pytest.approx({"cup": 1 / 3, "fire truck": 0.4})
    assert attended_objects(looked, "mean", min_images=2) == pytest.approx({"cup": 0.5})
    assert frequent_objects(one.objects for one in looked) == {"cup": 2, "fire truck": 1}
    assert frequent_objects((one.objects for one in looked), "instances") == {"cup": 3, "fire truck": 1}


def test_a_table_has_a_row_for_each_scene_the_commonest_first_and_counts_the_rest() -> None:
    looked = [
        _looked([0.9, 0.1], "ab"),
        _looked([0.8, 0.2], "ab"),
        _looked([0.5], "c"),
        _looked([], ""),
        _looked([1], "z"),
    ]
    found = diagnosticity(looked, ["sea", "sea", "road", "void", None], np.random.default_rng(0), shuffles=9)
    assert [(row.scene, row.images) for row in found.scenes] == [("sea", 2), ("road", 1), ("void", 1)]
    assert found.unlabelled == 1
    assert found.empty == ("void",)
    sea = found.scenes[0]
    assert sea.attended == ("a", "b")
    assert sea.frequent == (frozenset("ab"),)
    assert sorted(sea.at) == [3, 5, 7]
    assert sea.at[3].found.iou == 1.0
    assert math.isnan(found.scenes[2].at[3].found.iou)
    assert math.isnan(found.scenes[2].at[3].as_high.rbo)


def test_a_sum_gives_frequent_objects_the_first_places_even_by_chance_and_the_table_says_so() -> None:
    # Attention that knows nothing of the objects: a is in every image, b in half of them, c … in a few.
    rng = np.random.default_rng(1)
    looked = []
    for i in range(60):
        names = "a" + "b" * (i % 2 == 0) + "c" * (i % 4 == 0) + "d" * (i % 8 == 0)
        looked.append(_looked(rng.dirichlet(np.ones(len(names))).tolist(), names))
    at = diagnosticity(looked, ["sea"] * 60, rng, shuffles=49).scenes[0].at[3]
    assert at.found.average_overlap == pytest.approx(1.0)
    assert at.uniform.average_overlap == pytest.approx(1.0)
    assert at.shuffled.average_overlap > 0.95
    assert at.as_high.average_overlap > 0.5


def test_attention_that_follows_frequency_more_than_its_places_do_is_told_from_chance() -> None:
    # Four of eight objects in each image, so that none has its image for itself; by the mean over things.
    rng = np.random.default_rng(0)
    weight = np.arange(8, 0, -1)
    looked = []
    for _ in range(80):
        some = rng.choice(8, 4, replace=False, p=weight / weight.sum())
        looked.append(_looked((weight[some] / weight[some].sum()).tolist(), "".join("abcdefgh"[i] for i in some)))
    at = diagnosticity(looked, ["sea"] * 80, rng, by="each", shuffles=99).scenes[0].at[5]
    assert at.found.average_overlap > 0.85
    assert at.shuffled.average_overlap < 0.65
    assert at.as_high.average_overlap == pytest.approx(0.01)


def test_even_a_mean_favours_what_has_its_image_for_itself_and_chance_shows_it() -> None:
    looked = [_looked([1.0], "a")] * 6 + [_looked([0.1, 0.2, 0.7], "abc")] * 2
    at = diagnosticity(looked, ["sea"] * 8, np.random.default_rng(0), by="mean", shuffles=19).scenes[0].at[3]
    assert at.found.average_overlap == pytest.approx(at.uniform.average_overlap, abs=0.2)
    assert at.as_high.average_overlap > 0.5


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.integers(0, 99))
def test_chance_keeps_what_tags_and_regions_receive_in_all(received: list[float], seed: int) -> None:
    kinds = np.array([int(T if i % 2 else R) for i in range(len(received))])
    one = ObjectAttention(np.array(received), ((),) * len(kinds), kinds, np.arange(len(kinds)), ())
    for other in (uniform(one), shuffled(one, np.random.default_rng(seed))):
        for kind in (int(T), int(R)):
            assert other.received[kinds == kind].sum() == pytest.approx(one.received[kinds == kind].sum())
    assert sorted(shuffled(one, np.random.default_rng(seed)).received) == pytest.approx(sorted(received))
    assert len(set(uniform(one).received[kinds == int(R)].tolist())) == 1


def test_the_same_generator_gives_the_same_table() -> None:
    looked = [_looked([0.2, 0.5, 0.3], "abc"), _looked([0.6, 0.4], "bc")]
    one, other = (diagnosticity(looked, ["sea", "sea"], np.random.default_rng(3)) for _ in range(2))
    assert one.scenes[0].at == other.scenes[0].at


def test_any_model_is_measured_in_rounds_with_what_is_padded_left_out() -> None:
    images = {"a": image(["cup", "cat"], [0]), "b": image([], [1]), "c": image(["cup", "dog"], [1]).without(tags=[0])}
    looked = measure_objects(Even(), list(images), images.__getitem__, batch=2)
    assert [one.objects for one in looked] == [("cup", "cat"), (), ("dog",)]
    assert [one.names for one in looked] == [(("cup",), ("cat",)), (), (("dog",),)]
    np.testing.assert_allclose(looked[0].received, [0.25, 0.25])


def test_all_padding_receives_nothing() -> None:
    (looked,) = object_attention(attended(np.zeros((1, 1, 1, 2, 2)), [[P, P]]), [image([])], places="both")
    assert len(looked.received) == 0
    assert attended_objects([looked]) == {}


@pytest.mark.parametrize(
    ("ask", "error", "reason"),
    [
        (lambda: attended_objects([], "most"), UnknownName, "most"),  # type: ignore[arg-type]
        (lambda: frequent_objects([], "most"), UnknownName, "most"),  # type: ignore[arg-type]
        (lambda: diagnosticity([], ["a"], np.random.default_rng(0)), InvalidValue, "1 for 0"),
        (lambda: diagnosticity([], [], np.random.default_rng(0), shuffles=0), InvalidValue, "0 is not at least 1"),
        (lambda: object_attention(attended(np.zeros((1, 1, 1, 1, 1)), [[R]]), []), InvalidValue, "there are 0"),
    ],
)
def test_bad_requests_are_named(ask, error: type[Exception], reason: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=reason):
        ask()


@pytest.mark.parametrize("by", ["sum", "mean", "each"])
def test_the_quick_null_is_that_of_shuffling_each_image(by: By) -> None:
    """Images of tags and regions that show several things; the means of many draws agree, and so do their spreads."""
    rng = np.random.default_rng(3)
    kinds = np.array([T, T, T, R, R], dtype=np.int64)
    both = ((("cup",), ("sea",), ("dog",), ("cup", "sea"), ()), (("cup",), ("cup",), ("sun",), ("sun",), ("cup",)))
    looked = [
        ObjectAttention(
            rng.random(5),
            both[i % 2],
            kinds,
            np.array([0, 1, 2, 0, 1], dtype=np.int64),
            ("cup", "sea", "dog"),
        )
        for i in range(6)
    ]
    null = _ShuffleNull(looked, by, 1)
    slow = [attended_objects([shuffled(one, rng) for one in looked], by) for _ in range(3000)]
    fast = [null.draw(rng) for _ in range(3000)]
    assert set(fast[0]) == set(slow[0])
    for name in fast[0]:
        ours, theirs = (np.array([one[name] for one in some]) for some in (fast, slow))
        assert ours.mean() == pytest.approx(theirs.mean(), rel=0.03)
        assert ours.std() == pytest.approx(theirs.std(), rel=0.1, abs=1e-9)
