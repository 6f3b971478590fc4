"""Names that a detector and a classifier give: how loud each is in a region, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from saywhere.core import Box, BoxSet, Frame, InvalidFile, InvalidValue, Point, Region, Trace, WholeImage
from saywhere.models.common.overlaps import Overlaps, overlaps
from saywhere.models.patchioner.tags import ClassNames, Tags, claims, shared, tag_features
from saywhere.vision import Found
from tests.models.patchioner_seeing import tags

GRID, FINE = Frame.of_grid(2, 2), Frame.of_grid(8, 8)
NAMES = ("cat", "dog")
EVERYWHERE = (0.0, 0.0, 1.0, 1.0)
QUARTER = Box(0, 0, 0.5, 0.5)


def _lying(found: Sequence[Found], *regions: Region, grid: Frame = GRID, exact: bool = True) -> Overlaps:
    """exact: the regions are known, and not only their weights."""
    weights = np.stack([region.weights(grid) for region in regions]).astype(np.float32)
    return overlaps(found, NAMES, weights, grid, regions if exact else None)


def naming(lying: Overlaps, names: int, doubt: float) -> np.ndarray:
    return shared(claims(lying, names), doubt)


def _features(found: Sequence[Found], *regions: Region) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The strongest, the surest and how many, each (regions, names)."""
    strongest, surest, many = np.split(tag_features(_lying(found, *regions), 2), 3, axis=1)
    return strongest, surest, many


def _box(numbers: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    x, y, width, height = numbers
    return x, y, min(1.0, x + width), min(1.0, y + height)


boxes = st.tuples(st.floats(0, 0.9), st.floats(0, 0.9), st.floats(0.01, 1), st.floats(0.01, 1)).map(_box)
things = st.builds(Found, boxes, st.sampled_from(NAMES), st.floats(0, 1))


def test_a_thing_is_as_loud_as_its_score_its_share_inside_and_what_it_covers_of_the_region() -> None:
    quarter = Found(QUARTER.xyxy, "cat", 0.8)
    strongest, surest, many = _features([quarter], WholeImage(), QUARTER, Box(0.5, 0.5, 1, 1))
    np.testing.assert_allclose(strongest, [(0.8 * 0.25**0.3, 0), (0.8, 0), (0, 0)], rtol=1e-6)
    np.testing.assert_allclose(surest, [(0.8, 0), (0.8, 0), (0, 0)], rtol=1e-6)
    np.testing.assert_allclose(many, np.log1p([(0.8, 0), (0.8, 0), (0, 0)]), rtol=1e-6)


@given(boxes, st.floats(0.02, 1), st.integers(1, 9), st.integers(1, 9))
def test_in_the_whole_photo_a_thing_is_as_strong_as_its_score_times_a_power_of_its_area(
    box: tuple[float, float, float, float], score: float, rows: int, cols: int
) -> None:
    lying = _lying([Found(box, "dog", score)], WholeImage(), grid=Frame.of_grid(rows, cols))
    area = (box[2] - box[0]) * (box[3] - box[1])
    counted = score if score >= 0.2 else 0
    expected = [[0, score * area**0.3, 0, score, 0, np.log1p(counted)]]
    np.testing.assert_allclose(tag_features(lying, 2), expected, rtol=1e-4)


def test_a_region_that_holds_half_of_a_thing_hears_half_of_it() -> None:
    strongest, surest, many = _features([Found((0, 0, 0.5, 1), "dog", 1.0)], QUARTER)
    np.testing.assert_allclose([strongest[0], surest[0]], [(0, 0.5), (0, 0.5)], rtol=1e-6)
    np.testing.assert_allclose(many, [(0, np.log1p(0.5))], rtol=1e-6)


def test_the_loudest_of_a_kind_counts_and_faint_or_unknown_things_do_not() -> None:
    found = [Found(EVERYWHERE, "cat", score) for score in (0.3, 0.6, 0.1)]
    found += [Found(EVERYWHERE, "dog", 0.01), Found(EVERYWHERE, "boat", 0.9)]
    strongest, surest, _ = _features(found, WholeImage())
    np.testing.assert_allclose(strongest, [(0.6, 0)], rtol=1e-6)
    np.testing.assert_allclose(surest, [(0.6, 0)], rtol=1e-6)


def test_things_of_a_kind_are_counted_if_they_are_there_at_all_likely() -> None:
    found = [Found(EVERYWHERE, "cat", score) for score in (0.3, 0.6, 0.19)]
    found += [Found((0.5, 0.5, 1, 1), "dog", 0.9)] * 3
    _, _, many = _features(found, WholeImage(), QUARTER)
    np.testing.assert_allclose(many, np.log1p([(0.9, 2.7), (0.9 / 4, 0)]), rtol=1e-6)


def test_nothing_found_or_no_region_gives_silence() -> None:
    assert not tag_features(_lying([], WholeImage()), 2).any()
    assert not naming(_lying([], WholeImage()), 2, 0.01).any()
    none = overlaps([Found(EVERYWHERE, "cat", 1.0)], NAMES, np.empty((0, 2, 2), np.float32), GRID, [])
    assert tag_features(none, 2).shape == (0, 6)
    assert naming(none, 2, 0.01).shape == (0, 2)


def test_a_thing_that_the_frame_does_not_see_is_silent() -> None:
    frame = Frame.centre_crop((40, 20), 20, (20, 20), 10)
    lying = _lying([Found((0, 0, 0.2, 1), "cat", 0.9)], WholeImage(), grid=frame)
    assert not tag_features(lying, 2).any()
    assert not naming(lying, 2, 0.01).any()


@given(st.lists(things, max_size=6), st.lists(boxes, min_size=1, max_size=4), st.floats(0.001, 1))
def test_names_share_what_is_at_least_nothing_and_together_less_than_all(
    found: list[Found], regions: list[tuple[float, float, float, float]], doubt: float
) -> None:
    across = Trace([(0.1, 0.1, 0.0), (0.9, 0.9, 1.0)])
    asked = [*(Box(*box) for box in regions), WholeImage(), Point(0.5, 0.5), across]
    shares = naming(_lying(found, *asked, grid=FINE), 2, doubt)
    assert shares.shape == (len(asked), 2)
    assert (shares >= 0).all()
    assert (shares.sum(axis=1) < 1).all()


def test_a_claim_as_large_as_the_doubt_gets_half() -> None:
    shares = naming(_lying([Found(EVERYWHERE, "cat", 0.3)], WholeImage()), 2, 0.09)
    np.testing.assert_allclose(shares, [(0.5, 0)], rtol=1e-6)


def test_a_box_that_is_a_thing_has_its_name_even_if_it_is_smaller_than_a_patch() -> None:
    small = (0.1, 0.1, 0.15, 0.15)
    found = [Found(EVERYWHERE, "cat", 0.9), Found(small, "dog", 0.9)]
    cat, dog = naming(_lying(found, Box(*small)), 2, 0.01)[0]
    assert dog > 0.95 > 0.05 > cat
    # By the grid alone it would have been what fills the patch.
    cat, dog = naming(_lying(found, Box(*small), exact=False), 2, 0.01)[0]
    assert cat > 0.5 > dog


def test_a_box_that_leaves_the_photo_is_what_of_it_lies_inside() -> None:
    found = [Found((0, 0, 0.5, 1), "cat", 0.9)]
    over, inside = naming(_lying(found, Box(-3, -1, 0.5, 2), Box(0, 0, 0.5, 1)), 2, 0.01)
    np.testing.assert_array_equal(over, inside)


@pytest.mark.parametrize("line", [Trace([(0.05, 0.4, 0.0), (0.95, 0.4, 1.0)]), Point(0.3, 0.3)], ids=["line", "point"])
def test_a_line_over_a_thing_hears_its_name_although_it_covers_little_of_it_and_a_small_area_does_not(
    line: Region,
) -> None:
    found = [Found(EVERYWHERE, "cat", 0.9)]
    by_line, by_box, by_boxes = naming(
        _lying(found, line, Box(0, 0, 0.1, 0.1), BoxSet((Box(0, 0, 0.1, 0.1),)), grid=FINE), 2, 0.01
    )[:, 0]
    assert by_line > 0.95
    assert by_box < 0.25
    assert by_boxes < 0.25


def test_a_line_beside_a_thing_does_not_hear_its_name() -> None:
    line = Trace([(0.6, 0.1, 0.0), (0.9, 0.9, 1.0)])
    assert not naming(_lying([Found((0, 0, 0.5, 1), "cat", 0.9)], line, grid=FINE), 2, 0.01).any()


def test_tags_come_back_from_their_folder_and_a_wrong_folder_is_a_clear_error(tmp_path: Path) -> None:
    tags().save_pretrained(tmp_path / "tags")
    back = Tags.from_pretrained(tmp_path / "tags")
    assert back.names == tags().names
    for name in ("offset", "weight", "vectors"):
        np.testing.assert_array_equal(getattr(back, name), getattr(tags(), name))
    with pytest.raises(InvalidFile, match=r"cannot be opened|hub"):
        Tags.from_pretrained(tmp_path)


def test_tags_say_what_things_add() -> None:
    offset, weight = np.array([1, 0, 0], np.float32), np.zeros((6, 3), np.float32)
    weight[1], weight[3], weight[5] = (0, 2, 0), (0, 0, 4), (8, 0, 0)
    some = Tags(NAMES, offset, weight, np.eye(3, dtype=np.float32)[1:])
    lying = _lying([Found((0, 0, 0.5, 1), "dog", 0.5)], WholeImage())
    np.testing.assert_allclose(some.learnt(lying), [[1 + 8 * np.log1p(0.5), 2 * 0.5 * 0.5**0.3, 4 * 0.5]], rtol=1e-6)
    claim = (0.5 * 0.5**0.7) ** 2
    np.testing.assert_allclose(some.named(claims(lying, 2), 0.04), [[0, 0, claim / (claim + 0.04)]], rtol=1e-6)


@pytest.mark.parametrize(("names", "rows"), [(("a", "b"), 9), (("a", "b", "c"), 3), (("a", "b", "c"), 6)])
def test_tags_whose_parts_do_not_fit_are_refused(names: tuple[str, ...], rows: int) -> None:
    with pytest.raises(InvalidValue, match=f"{len(names)} names do not fit"):
        Tags(names, np.zeros(3, np.float32), np.zeros((rows, 3), np.float32), np.eye(3, dtype=np.float32))


def test_a_region_is_called_what_the_classifier_thinks_it_is() -> None:
    weight = np.array([[2.0, 0], [0, 1], [1, 1]], np.float32)
    names = ClassNames(weight, np.array([0, 0.5, 0], np.float32), np.eye(3, dtype=np.float32))
    features = np.array([[1.0, 2.0], [300.0, 0.0]])
    np.testing.assert_allclose(
        names.probabilities(features), softmax(features @ weight.T + [0, 0.5, 0], axis=1), atol=1e-6
    )
    np.testing.assert_allclose(names.named(features), names.probabilities(features), atol=1e-6)
    with pytest.raises(InvalidValue, match="3, 2 and 3"):
        ClassNames(weight, np.zeros(2, np.float32), np.eye(3, dtype=np.float32))
