"""Tags of regions by their boxes, at the thresholds of the paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import InvalidValue, UnknownName
from saywhere.explain import box_cover, covered_regions, region_tags
from saywhere.models.tagged_regions import TaggedRegions
from tests.explain.laboratory import image

TAG = (0.2, 0.2, 0.6, 0.6)


def _one(region: tuple[float, ...], *tags: tuple[float, ...]) -> TaggedRegions:
    return TaggedRegions(np.ones((1, 2)), [region], [f"thing {i}" for i in range(len(tags))], list(tags))


@pytest.mark.parametrize(
    ("region", "gets"),
    [
        (TAG, True),
        ((0.2, 0.2, 0.6, 0.44), True),  # IoU 0.6, and wholly covered
        ((0.3, 0.3, 0.31, 0.31), True),  # tiny, but inside
        ((0.2, 0.2, 0.6, 0.7), True),  # IoU 0.8 and 80 % covered
        ((0.55, 0.2, 0.65, 0.6), False),  # half covered
        ((0.0, 0.0, 1.0, 1.0), False),  # the tag is inside the region, not the region in the tag
        ((0.0, 0.2, 0.6, 0.6), True),  # IoU 0.667, 66.7 % covered
        ((0.52, 0.2, 0.62, 0.6), True),  # 80 % covered at IoU 0.19
        ((0.53, 0.2, 0.63, 0.6), False),  # 70 % covered
        ((0.3, 0.3, 0.3, 0.5), False),  # no area
    ],
)
def test_a_region_gets_a_tag_by_iou_or_by_cover(region: tuple[float, ...], gets: bool) -> None:
    assert region_tags(_one(region, TAG)).tolist() == [[gets]]


def test_reaching_a_threshold_is_enough() -> None:
    # IoU 0.6 in float32, where 0.6 is a little more than 0.6, or 0.59 …; and 80 % covered.
    assert region_tags(_one((0, 0, 1, 1), (0, 0, 0.6, 1))).tolist() == [[True]]
    assert region_tags(_one((0, 0, 1, 1), (0, 0, 0.59, 1))).tolist() == [[False]]
    assert region_tags(_one((0, 0, 0.1, 0.1), (0.02, 0, 1, 1))).tolist() == [[True]]


def test_a_region_may_show_several_tags_or_the_best_alone() -> None:
    seen = _one(
        (0.2, 0.2, 0.4, 0.4), (0.0, 0.0, 1.0, 1.0), (0.2, 0.2, 0.4, 0.5), (0.2, 0.2, 0.4, 0.5), (0.8, 0.8, 1, 1)
    )
    assert region_tags(seen).tolist() == [[True, True, True, False]]
    assert region_tags(seen, which="best").tolist() == [[False, True, False, False]]


def test_what_is_padded_shows_nothing_and_is_not_shown() -> None:
    seen = image(["cup", "cat"], [0, 1, 1])
    assert region_tags(seen).tolist() == [[True, False], [False, True], [False, True]]
    assert region_tags(seen.without(tags=[0], regions=[2])).tolist() == [[False, False], [False, True], [False, False]]


@given(st.lists(st.tuples(*[st.floats(0, 1)] * 4), min_size=1, max_size=4))
def test_cover_is_a_share_and_whole_of_itself(corners: list[tuple[float, ...]]) -> None:
    boxes = np.array([(min(a, c), min(b, d), max(a, c), max(b, d)) for a, b, c, d in corners])
    cover = box_cover(boxes, boxes)
    assert ((cover >= 0) & (cover <= 1)).all()
    area = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    np.testing.assert_allclose(np.diag(cover)[area > 1e-200], 1.0, rtol=1e-9)


def test_the_share_of_regions_with_a_tag_leaves_out_what_has_none_and_names_what_has_no_boxes() -> None:
    images = {
        "half": TaggedRegions(np.ones((2, 2)), [TAG, (0.8, 0.8, 1, 1)], ["cup"], [TAG]),
        "no regions": image(["cup"]),
        "no tags": image([], [1, 1]),
        "no boxes": TaggedRegions(np.ones((1, 2)), [TAG], ["cup"]),
    }
    found = covered_regions(list(images), images.__getitem__)
    np.testing.assert_allclose(found.share, [0.5, np.nan, 0.0])
    assert found.mean == 0.25
    assert [str(one) for one in found.refused] == [
        "no boxes: tags have no boxes, so it is not known which regions show them"
    ]
    assert np.isnan(covered_regions(["no regions"], images.__getitem__).mean)


def test_bad_requests_are_named() -> None:
    with pytest.raises(UnknownName, match="some"):
        region_tags(image(["cup"], [0]), which="some")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="have no boxes"):
        region_tags(TaggedRegions(np.ones((1, 2)), [TAG], ["cup"]))
