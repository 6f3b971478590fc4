"""One look in the space of texts: vectors of regions, with and without names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import Box, BoxSet, InvalidValue, Patch, Point, Region, WholeImage
from saywhere.models.patchioner.eyes import AlignedView, Blend, is_scene
from saywhere.models.patchioner.tags import ClassNames, Tags
from saywhere.vision import Found, View
from saywhere.vision.things import Namer
from saywhere.vision.view import Proposals
from tests.models.patchioner_seeing import FOUND, THINGS, TOP_RIGHT, ColourEncoder, alignment, photo, tags

VIEW = ColourEncoder().look(photo())
SEEN = View(VIEW.frame, VIEW.patches, VIEW.whole, None, FOUND)


def test_a_region_s_vector_is_the_mean_of_its_patches_of_length_1() -> None:
    vectors = AlignedView(VIEW, alignment()).vectors([WholeImage(), Box(0, 0, 0.5, 1), Point(0.9, 0.9)])
    mean = np.array([0.5, 0.25, 0.25])
    np.testing.assert_allclose(vectors, [mean / np.linalg.norm(mean), (1, 0, 0), (0, 0, 1)], atol=1e-6)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=6))
def test_a_region_gets_the_same_alone_and_among_others(places: list[tuple[int, int]]) -> None:
    aligned = AlignedView(SEEN, alignment(), tags(), None, Blend(0.2, 1.0))
    together = aligned.vectors([Patch(*place) for place in places])
    for row, place in zip(together, places, strict=True):
        np.testing.assert_allclose(row, aligned.vectors([Patch(*place)])[0], atol=1e-6)


def test_each_patch_alone_makes_the_map() -> None:
    aligned = AlignedView(SEEN, alignment(), tags(), None, Blend(0.2, 1.0))
    cells = aligned.cell_vectors()
    assert cells.shape == (4, 4, 3)
    np.testing.assert_allclose(cells[1, 3], aligned.vectors([Patch(1, 3)])[0], atol=1e-6)


def test_names_are_as_loud_as_the_blend_says_for_the_whole_and_for_a_patch() -> None:
    blend = Blend(whole=0.5, region=9.0, doubt=0.1)
    whole = AlignedView(SEEN, alignment(), tags(), None, blend).vectors([WholeImage()])[0]
    # Of the whole photo the cat covers a half, dog and cup a quarter each.
    claims = np.array([0.9 * 0.5**0.7, 0.8 * 0.25**0.7, 0.7 * 0.25**0.7]) ** 2
    expected = np.array([2, 1, 1]) / np.sqrt(6) + 0.5 * claims / (claims.sum() + 0.1)
    np.testing.assert_allclose(whole, expected / np.linalg.norm(expected), atol=1e-5)
    # Green is taken for a cup by the detector; one patch is a quarter of it, and a sixteenth of the grid.
    mistaken = View(VIEW.frame, VIEW.patches, VIEW.whole, None, [Found(TOP_RIGHT, "cup", 0.8)])
    patch = AlignedView(mistaken, alignment(), tags(), None, blend).vectors([Patch(0, 3)])[0]
    claim = (0.8 * 0.25**0.7) ** 2
    expected = np.array([0, 1, (9.0 + (0.5 - 9.0) / 16) * claim / (claim + 0.1)])
    np.testing.assert_allclose(patch, expected / np.linalg.norm(expected), atol=1e-5)


def test_where_the_eye_sees_surroundings_the_detector_counts_little() -> None:
    mistaken = View(VIEW.frame, VIEW.patches, VIEW.whole, None, [Found(TOP_RIGHT, "cup", 0.8)])
    blend = Blend(whole=9.0, region=9.0, doubt=0.1)
    # Green is grass for this eye; red and blue are things.
    space = np.eye(3, dtype=np.float32)
    namer = Namer(("cat", "cup"), space[[0, 2]], around=space[[1]])
    named, doubted = (
        AlignedView(mistaken, alignment(), tags(), None, blend, one).vectors([Box(*TOP_RIGHT)])[0]
        for one in (None, namer)
    )
    claim = 0.8**2
    for vector, trust in ((named, 1.0), (doubted, 0.1)):
        expected = np.array([0, 1, 9.0 * trust * claim / (trust * claim + 0.1)])
        np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)


def test_a_box_around_a_thing_smaller_than_a_patch_looks_like_its_name() -> None:
    small = (0.55, 0.05, 0.6, 0.1)
    tiny = View(VIEW.frame, VIEW.patches, VIEW.whole, None, [*FOUND, Found(small, "cup", 0.8)])
    aligned = AlignedView(tiny, alignment(), tags(), None, Blend(0.2, 2.0))
    around, patch = aligned.vectors([Box(*small), Patch(0, 2)])
    assert (int(around.argmax()), int(patch.argmax())) == (2, 1)
    weights = aligned.weights([Box(*small)])
    np.testing.assert_array_equal(aligned.weighed(weights, [Box(*small)])[0], around)
    np.testing.assert_allclose(aligned.weighed(weights)[0], patch, atol=1e-6)


def test_a_set_of_boxes_is_a_scene_whose_names_are_as_loud_as_the_whole_photo_s() -> None:
    corner = Box(0, 0, 0.25, 0.25)
    aligned = AlignedView(SEEN, alignment(), tags(), None, Blend(whole=0.0, region=9.0))
    silent = AlignedView(SEEN, alignment(), tags(), None, Blend())
    regions = [BoxSet((Box(*TOP_RIGHT), corner)), corner, Box(0.25, 0, 0.75, 0.5)]
    several, _, box = aligned.vectors(regions)
    np.testing.assert_allclose(several, silent.vectors(regions)[0], atol=1e-6)
    assert not np.allclose(box, silent.vectors(regions)[2], atol=1e-2)


@pytest.mark.parametrize("doubt", [0.0, -0.1, float("nan")])
def test_names_without_any_doubt_are_refused(doubt: float) -> None:
    with pytest.raises(InvalidValue, match="doubt"):
        Blend(doubt=doubt)


def test_what_was_learnt_of_names_is_added_before_the_length_is_set() -> None:
    learnt = Tags(THINGS, np.array([0, 0, 3], np.float32), np.zeros((9, 3), np.float32), np.eye(3, dtype=np.float32))
    row = AlignedView(SEEN, alignment(), learnt).vectors([Box(0, 0, 0.5, 1)])[0]
    np.testing.assert_allclose(row, np.array([1, 0, 3]) / np.sqrt(10), atol=1e-6)


def test_the_encoder_s_own_classes_are_added_if_the_blend_wants_them() -> None:
    # A classifier that is certain: green is called a cup.
    certain = ClassNames(
        100 * np.eye(3, dtype=np.float32), np.zeros(3, np.float32), np.eye(3, dtype=np.float32)[[0, 2, 1]]
    )
    at = Box(0.5, 0, 1, 0.5)
    both = AlignedView(VIEW, alignment(), None, certain, Blend(classes=1.0)).vectors([at])[0]
    np.testing.assert_allclose(both, np.array([0, 1, 1]) / np.sqrt(2), atol=1e-6)
    silent = AlignedView(VIEW, alignment(), None, certain, Blend(classes=0.0)).vectors([at])[0]
    np.testing.assert_allclose(silent, (0, 1, 0), atol=1e-6)


def test_a_region_outside_the_photo_is_named_by_its_number() -> None:
    aligned = AlignedView(VIEW, alignment())
    with pytest.raises(InvalidValue, match=r"^region 2 of 2: box .* covers nothing"):
        aligned.vectors([WholeImage(), Box(2, 2, 3, 3)])
    with pytest.raises(InvalidValue, match=r"^box .* covers nothing"):
        aligned.vectors([Box(2, 2, 3, 3)])


@pytest.mark.parametrize(
    ("region", "scene"),
    [
        (WholeImage(), True),
        (BoxSet((Box(0, 0, 0.5, 1), Box(0.5, 0, 1, 1))), True),
        (BoxSet((Box(0, 0, 0.5, 1),)), False),
        (Box(0, 0, 1, 1), False),
    ],
)
def test_several_things_together_are_a_scene_and_one_box_is_not(region: Region, scene: bool) -> None:
    assert is_scene(region) is scene


def test_a_box_is_named_by_what_was_weighed_there_even_if_nothing_was_found() -> None:
    weighed = Proposals(np.array([TOP_RIGHT], np.float32), np.array([[0, 0, 0.1]], np.float32), THINGS)
    view = View(VIEW.frame, VIEW.patches, VIEW.whole, None, (), proposals=weighed)
    blend = Blend(whole=9.0, region=9.0, doubt=1e9, box_doubt=0.01)
    seen = AlignedView(view, alignment(), tags(), None, blend)
    box, patch = seen.vectors([Box(*TOP_RIGHT), Patch(0, 3)])
    expected = np.array([0, 1, 9.0 / 2])
    np.testing.assert_allclose(box, expected / np.linalg.norm(expected), atol=1e-5)
    np.testing.assert_allclose(patch, (0, 1, 0), atol=1e-5)


def test_presence_is_what_eye_and_detector_say_together_or_the_one_that_can_tell() -> None:
    present = {"cat": 0.5, "owl": 0.3}
    view = View(VIEW.frame, VIEW.patches, VIEW.whole, None, [Found(TOP_RIGHT, "cat", 0.5)], present=present)
    both, eye, detector = (
        AlignedView(view, alignment(), tags()),
        AlignedView(view),
        AlignedView(SEEN, alignment(), tags()),
    )
    # Log-odds of a half are 0, so that the bias is left; nothing found counts as one in a hundred.
    assert both.presence("cat") == pytest.approx(1 / (1 + np.exp(-1.54)))
    assert both.presence("owl") == 0.3
    assert eye.presence("cat") == 0.5
    assert detector.presence("cat") == pytest.approx(0.9)
    assert both.presence("unicorn") == 1
