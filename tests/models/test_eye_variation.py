"""Photos cut and mirrored at random: what is known of them goes where it belongs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from saywhere.models.eye.features import EyeItem
from saywhere.models.eye.variation import Variation, varied_photo
from saywhere.models.patchioner.photo_texts import PhotoTexts, RegionNameIds, varied

SIDE, GRID = 40, 4
LEFT_HALF = Variation((0.0, 0.0, 0.5, 1.0))


def one_photo() -> EyeItem:
    """Red on the left, blue on the right, a thing in each half, and people look at the upper left corner."""
    pixels = np.zeros((SIDE, SIDE, 3), np.uint8)
    pixels[:, : SIDE // 2, 0] = 255
    pixels[:, SIDE // 2 :, 2] = 255
    looks = np.full((GRID, GRID), 1e-3, np.float32)
    looks[0, 0] = 1
    return EyeItem(
        pixels,
        np.array([[0.1, 0.2, 0.3, 0.4], [0.6, 0.5, 0.9, 1.0]], np.float32),
        np.array([3, 5]),
        np.ones((1, 2), np.float32),
        np.zeros((0, 2), np.float32),
        looks.ravel() / looks.sum(),
        np.zeros(0, np.int64),
    )


def test_a_part_shows_what_is_in_it_and_leaves_out_the_rest() -> None:
    part = varied_photo(one_photo(), LEFT_HALF)
    assert part.inputs.shape == (SIDE, SIDE, 3)
    assert part.inputs[:, : SIDE - 4, 0].min() > 200
    assert part.inputs[:, : SIDE - 4, 2].max() < 50
    np.testing.assert_allclose(part.boxes_xyxy, [[0.2, 0.2, 0.6, 0.4]], atol=1e-6)
    assert part.classes.tolist() == [3]


def test_in_the_mirror_the_left_is_on_the_right() -> None:
    mirrored = varied_photo(one_photo(), Variation(mirrored=True))
    assert mirrored.inputs[0, -1].tolist() == [255, 0, 0]
    np.testing.assert_allclose(mirrored.boxes_xyxy, [[0.7, 0.2, 0.9, 0.4], [0.1, 0.5, 0.4, 1.0]], atol=1e-6)
    assert mirrored.saliency is not None
    assert int(mirrored.saliency.argmax()) == GRID - 1
    assert mirrored.saliency.sum() == pytest.approx(1)


def test_a_box_of_which_little_is_left_is_none() -> None:
    boxes = np.array([[0.4, 0.0, 0.9, 1.0], [0.3, 0.0, 0.6, 1.0]], np.float32)
    found, kept = LEFT_HALF.boxes(boxes)
    assert kept.tolist() == [1]
    np.testing.assert_allclose(found, [[0.6, 0, 1, 1]], atol=1e-6)


def test_drawn_parts_stay_inside_and_are_large_and_some_are_whole() -> None:
    generator = torch.Generator().manual_seed(1)
    drawn = [Variation.drawn(generator) for _ in range(200)]
    parts = np.array([one.part_xyxy for one in drawn])
    assert parts.min() >= 0
    assert parts.max() <= 1 + 1e-9
    assert ((parts[:, 2] - parts[:, 0]) * (parts[:, 3] - parts[:, 1])).min() > 0.5
    assert 0.2 < np.mean([one.part_xyxy == (0.0, 0.0, 1.0, 1.0) for one in drawn]) < 0.6
    assert 0.3 < np.mean([one.mirrored for one in drawn]) < 0.7


def test_what_speaks_of_sides_is_not_mirrored_and_names_follow_their_boxes() -> None:
    named = [RegionNameIds((0.1, 0.2, 0.3, 0.4), [[7]], 3), RegionNameIds((0.6, 0.5, 0.9, 1.0), [[9]], 5)]
    photo = PhotoTexts(one_photo(), [[1, 7, 2]], named, [])
    boxes = [varied(photo, {7}, torch.Generator().manual_seed(seed)) for seed in range(40)]
    for one in boxes:
        middles = [(two.box_xyxy[0] + two.box_xyxy[2]) / 2 for two in one.region_names]
        assert middles == sorted(middles)
        assert [two.kind for two in one.region_names] == one.photo.classes.tolist()
    mirrored = [varied(photo, {8}, torch.Generator().manual_seed(seed)).region_names for seed in range(40)]
    assert any(len(two) == 2 and two[0].box_xyxy[0] > two[1].box_xyxy[0] for two in mirrored)
