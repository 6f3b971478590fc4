"""Things out of cells: boxes decoded, doubles suppressed, names by cosine."""

from __future__ import annotations

import numpy as np
import pytest

from saywhere.core import InvalidValue
from saywhere.vision.things import Namer, box_means, decoded, suppressed

NAMES = Namer(("cat", "dog"), np.eye(2, dtype=np.float32), sharpness=20.0, least=0.3)


def photo() -> tuple[np.ndarray, np.ndarray]:
    """4 × 4 cells: a cat in the left half, a dog in the lower right quarter; two cells tell of the cat."""
    cells = np.zeros((4, 4, 2), np.float32)
    cells[:, :2, 0] = cells[:, 2:, 1] = 1
    boxes = np.full((4, 4, 5), -9.0, np.float32)
    # Reaches of 1.5, 1.5, 0.5 and 2.5 cells from the cell in row 1, column 1.
    boxes[1, 1] = [*np.log([1.5, 1.5, 0.5, 2.5]), 4.0]
    boxes[2, 1] = [*np.log([1.5, 2.5, 0.5, 1.5]), 3.0]
    boxes[3, 3] = [*np.log([1.5, 1.5, 0.5, 0.5]), 2.0]
    return cells, boxes


def test_each_thing_is_found_once_and_called_by_its_name_surest_first() -> None:
    cat, dog = NAMES.found(*photo())
    assert (cat.name, dog.name) == ("cat", "dog")
    np.testing.assert_allclose(cat.box_xyxy, (0, 0, 0.5, 1), atol=1e-6)
    np.testing.assert_allclose(dog.box_xyxy, (0.5, 0.5, 1, 1), atol=1e-6)
    assert 1 >= cat.score > dog.score > 0.3


def test_an_empty_photo_has_no_things() -> None:
    assert NAMES.found(np.ones((4, 4, 2), np.float32), np.full((4, 4, 5), -9.0, np.float32)) == ()


def test_boxes_stay_within_the_photo_however_far_they_reach() -> None:
    corners, chances = decoded(np.full((2, 3, 5), 50.0, np.float32))
    np.testing.assert_allclose(corners, [[0, 0, 1, 1]] * 6)
    np.testing.assert_allclose(chances, 1)


def test_of_two_boxes_that_overlap_the_better_one_stays() -> None:
    boxes = np.array([[0, 0, 0.5, 0.5], [0, 0, 0.52, 0.5], [0.6, 0.6, 1, 1]], np.float32)
    assert suppressed(boxes, np.array([0.5, 0.9, 0.1], np.float32), 0.5).tolist() == [1, 2]
    assert suppressed(boxes, np.array([0.5, 0.9, 0.1], np.float32), 0.99).tolist() == [1, 0, 2]


def test_a_box_smaller_than_a_cell_means_that_cell() -> None:
    cells, _ = photo()
    np.testing.assert_allclose(box_means(cells, [[0.8, 0.1, 0.82, 0.12]]), [[0, 1]])


def test_names_without_vectors_are_refused() -> None:
    with pytest.raises(InvalidValue, match="3"):
        Namer(("a", "b", "c"), np.eye(2, dtype=np.float32))
