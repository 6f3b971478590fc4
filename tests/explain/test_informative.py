"""PMI of scenes and objects on a table worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import InvalidValue, UnknownName
from saywhere.explain import SceneObjects

# 4 kitchens, 2 beaches, one image of nowhere. cup: 3 + 1, person: 2 + 2, surfboard: 0 + 1.
OBJECTS = [
    ["cup", "person"],
    ["cup", "cup"],
    ["cup", "person"],
    [],
    ["person", "cup"],
    ["person", "surfboard"],
    ["cup"],
]
SCENES = ["kitchen"] * 4 + ["beach"] * 2 + [None]


def _counts() -> SceneObjects:
    return SceneObjects.of(OBJECTS, SCENES)


def test_images_are_counted_once_for_each_object_and_those_without_a_scene_not_at_all() -> None:
    counts = _counts()
    assert counts.scenes == ("kitchen", "beach")
    assert counts.objects == ("cup", "person", "surfboard")
    assert counts.together.tolist() == [[3, 2, 0], [1, 2, 1]]
    assert counts.scene_images.tolist() == [4, 2]
    assert counts.object_images.tolist() == [4, 4, 1]
    assert (counts.images, counts.unlabelled) == (6, 1)


def test_pmi_equals_the_one_worked_out_by_hand() -> None:
    # P(cup | kitchen) / P(cup) = (3/4) / (4/6) = 9/8, and so on.
    expected = np.log2([[9 / 8, 3 / 4, 1.0], [3 / 4, 3 / 2, 3.0]])
    expected[0, 2] = -np.inf
    np.testing.assert_allclose(_counts().pmi(), expected)


def test_smoothing_adds_images_with_and_without_the_object_to_every_scene() -> None:
    # Kitchen: (0 + 1) / (4 + 2) over (1 + 2) / (6 + 4).
    np.testing.assert_allclose(_counts().pmi(1.0)[0, 2], np.log2((1 / 6) / (3 / 10)))
    assert np.isfinite(_counts().pmi(0.1)).all()


@pytest.mark.parametrize(
    ("scene", "k", "min_count", "expected"),
    [
        ("beach", 3, 1, ["surfboard", "person"]),
        ("beach", 1, 1, ["surfboard"]),
        ("beach", 3, 2, ["person"]),
        ("kitchen", 3, 1, ["cup"]),
        ("kitchen", 3, 5, []),
    ],
)
def test_the_most_informative_objects_are_often_enough_there_and_more_than_elsewhere(
    scene: str, k: int, min_count: int, expected: list[str]
) -> None:
    assert _counts().most_informative(scene, k, min_count=min_count) == expected


def test_equal_pmi_goes_by_how_often_and_then_by_name() -> None:
    counts = SceneObjects.of([["b", "a", "c"], ["c"], ["d"]], ["sea", "sea", "road"])
    assert counts.most_informative("sea", 3, min_count=1) == ["c", "a", "b"]


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.frozensets(st.sampled_from("abcd"))), min_size=1, max_size=12))
def test_the_mean_of_two_to_the_pmi_over_scenes_is_one(rows: list[tuple[str, frozenset[str]]]) -> None:
    counts = SceneObjects.of([names for _, names in rows], [scene for scene, _ in rows])
    weights = counts.scene_images / counts.images
    np.testing.assert_allclose(weights @ 2.0 ** counts.pmi(), 1.0)


def test_no_labels_give_an_empty_table() -> None:
    counts = SceneObjects.of([["cup"]], [None])
    assert counts.pmi().shape == (0, 0)
    assert counts.unlabelled == 1


def test_bad_requests_are_named() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'beach'"):
        _counts().most_informative("beech")
    with pytest.raises(InvalidValue, match="2 for 1"):
        SceneObjects.of([["cup"]], ["a", "b"])
    with pytest.raises(InvalidValue, match="-1"):
        _counts().pmi(-1)
    with pytest.raises(InvalidValue, match="k and min_count"):
        _counts().most_informative("beach", 0)
