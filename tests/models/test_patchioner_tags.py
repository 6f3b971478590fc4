"""Names that a detector and a classifier give: how loud each is in a region, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

from saywhere.core import Box, Frame, InvalidFile, InvalidValue, WholeImage
from saywhere.models.patchioner.tags import ClassNames, Tags, tag_scores
from saywhere.vision import Found
from tests.models.patchioner_seeing import tags

GRID = Frame.of_grid(2, 2)
NAMES = ("cat", "dog")


def _weights(*regions: Box | WholeImage) -> np.ndarray:
    return np.stack([region.weights(GRID) for region in regions]).astype(np.float32)


def test_a_thing_is_as_loud_as_its_score_its_share_inside_and_what_it_covers_of_the_region() -> None:
    quarter = Found((0, 0, 0.5, 0.5), "cat", 0.8)
    scores = tag_scores([quarter], NAMES, _weights(WholeImage(), Box(0, 0, 0.5, 0.5), Box(0.5, 0.5, 1, 1)), GRID)
    np.testing.assert_allclose(scores, [(0.8 * 0.25**0.3, 0), (0.8, 0), (0, 0)], rtol=1e-6)


def test_a_region_that_holds_half_of_a_thing_hears_half_of_it() -> None:
    left = Found((0, 0, 0.5, 1), "dog", 1.0)
    scores = tag_scores([left], NAMES, _weights(Box(0, 0, 0.5, 0.5)), GRID)
    np.testing.assert_allclose(scores, [(0, 0.5)], rtol=1e-6)


def test_the_loudest_of_a_kind_counts_and_faint_or_unknown_things_do_not() -> None:
    everywhere = (0.0, 0.0, 1.0, 1.0)
    found = [Found(everywhere, "cat", score) for score in (0.3, 0.6, 0.1)]
    found += [Found(everywhere, "dog", 0.01), Found(everywhere, "boat", 0.9)]
    np.testing.assert_allclose(tag_scores(found, NAMES, _weights(WholeImage()), GRID), [(0.6, 0)], rtol=1e-6)


def test_nothing_found_or_no_region_gives_silence() -> None:
    assert tag_scores([], NAMES, _weights(WholeImage()), GRID).tolist() == [[0, 0]]
    assert tag_scores([Found((0, 0, 1, 1), "cat", 1.0)], NAMES, np.empty((0, 2, 2), np.float32), GRID).shape == (0, 2)


def test_tags_come_back_from_their_folder_and_a_wrong_folder_is_a_clear_error(tmp_path: Path) -> None:
    tags().save_pretrained(tmp_path / "tags")
    back = Tags.from_pretrained(tmp_path / "tags")
    assert back.names == tags().names
    for name in ("offset", "weight", "vectors"):
        np.testing.assert_array_equal(getattr(back, name), getattr(tags(), name))
    with pytest.raises(InvalidFile, match=r"cannot be opened|hub"):
        Tags.from_pretrained(tmp_path)


def test_tags_say_what_scores_add() -> None:
    offset, weight = np.array([1, 0, 0], np.float32), np.full((3, 3), 2, np.float32)
    some = Tags(("a", "b", "c"), offset, weight, np.eye(3, dtype=np.float32))
    scores = np.array([[0, 0.5, 0]], np.float32)
    np.testing.assert_allclose(some.learnt(scores), [[2, 1, 1]])
    np.testing.assert_allclose(some.named(scores), [[0, 0.5, 0]])
    with pytest.raises(InvalidValue, match="2 names do not fit"):
        Tags(("a", "b"), offset, weight, np.eye(3, dtype=np.float32))


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
