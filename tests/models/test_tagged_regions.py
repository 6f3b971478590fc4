"""Tagged regions: a value that is checked once, and from which things can be taken out of sight."""

from __future__ import annotations

import numpy as np
import pytest

from saywhere.core import InvalidValue
from saywhere.models.region_features import RegionFeatures
from saywhere.models.tagged_regions import TaggedRegions, of_found
from saywhere.vision import Found
from tests.models.oscar_small import image

BOXES = np.array([[0.1, 0.1, 0.5, 0.5], [0, 0, 1, 1]])


def test_an_image_owns_what_it_was_made_of() -> None:
    features = np.ones((2, 3))
    made = TaggedRegions(features, BOXES, ["cup", "palm tree"])
    features[:] = 0
    assert (made.features == 1).all()
    assert (made.region_size, len(made), made.tag_boxes_xyxy) == (3, 2, None)
    assert made.region_present.all()
    assert made.tag_present.tolist() == [True, True]
    for array in (made.features, made.boxes_xyxy, made.region_present, made.tag_present):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_photo_without_detections_is_an_image_too() -> None:
    empty = TaggedRegions(np.zeros((0, 5)), np.zeros((0, 4)), [], np.zeros((0, 4)))
    assert (len(empty), empty.region_size, empty.tags) == (0, 5, ())
    assert empty.region_present.dtype == empty.tag_present.dtype == bool
    assert empty.without().features.shape == (0, 5)
    assert TaggedRegions(np.zeros((0, 5)), []).boxes_xyxy.shape == (0, 4)


def test_what_is_taken_out_keeps_its_place_and_leaves_the_original() -> None:
    whole = image(0, 4, 3)
    less = whole.without(tags=[1], regions=[0, 3]).without(tags=[2])
    assert less.tag_present.tolist() == [True, False, False]
    assert less.region_present.tolist() == [False, True, True, False]
    assert (less.tags, less.features.tolist()) == (whole.tags, whole.features.tolist())
    np.testing.assert_array_equal(less.tag_boxes_xyxy, whole.tag_boxes_xyxy)
    assert whole.tag_present.all()


@pytest.mark.parametrize("gone", [{"tags": [3]}, {"regions": [-1]}, {"regions": [0, 4]}])
def test_taking_out_what_is_not_there_is_refused(gone: dict[str, list[int]]) -> None:
    with pytest.raises(InvalidValue, match="none with index"):
        image(0, 4, 3).without(**gone)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"features": np.ones(3)}, "not \\(regions, size\\)"),
        ({"features": np.ones((2, 0))}, "not \\(regions, size\\)"),
        ({"features": np.full((2, 3), np.nan)}, "NaN"),
        ({"boxes_xyxy": BOXES[:1]}, "region boxes"),
        ({"boxes_xyxy": BOXES * 2}, "leave the image"),
        ({"boxes_xyxy": BOXES * np.nan}, "leave the image"),
        ({"boxes_xyxy": BOXES[:, ::-1]}, "xyxy"),
        ({"tags": "cup"}, "tags"),
        ({"tags": ["cup", " "]}, "tags"),
        ({"tags": ["cup"], "tag_boxes_xyxy": BOXES}, "tag boxes"),
        ({"region_present": [True]}, "region_present"),
        ({"tags": ["cup"], "tag_present": [1.0]}, "tag_present"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, object], reason: str) -> None:
    values = {"features": np.ones((2, 3)), "boxes_xyxy": BOXES} | changes
    with pytest.raises(InvalidValue, match=reason):
        TaggedRegions(**values)  # type: ignore[arg-type]


def test_things_found_become_tags_one_for_each_and_the_surest_first() -> None:
    found = [
        Found((0.1, 0.1, 0.2, 0.2), "chair", 0.4),
        Found((0, 0, 0.5, 0.5), "oven", 0.9),
        Found((0.5, 0.5, 1, 1), "chair", 0.6),
    ]
    made = of_found(RegionFeatures(np.ones((2, 3)), BOXES), found)
    assert made.tags == ("oven", "chair", "chair")
    assert made.tag_boxes_xyxy is not None
    np.testing.assert_allclose(made.tag_boxes_xyxy[1], [0.5, 0.5, 1, 1])
    assert made.features.shape == (2, 3)
    nothing = of_found(RegionFeatures(np.ones((2, 3)), BOXES), [])
    assert nothing.tags == ()
    assert nothing.tag_boxes_xyxy is not None
    assert nothing.tag_boxes_xyxy.shape == (0, 4)
