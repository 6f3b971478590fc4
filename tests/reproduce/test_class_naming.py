"""Whether a model knows the class of a box: hand-made cases, and human captions as a reference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.build.region_texts import ClassBox, read_class_boxes
from saywhere.core import InvalidValue
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.formats import coco_captions
from saywhere.formats.coco_captions import CaptionRecord
from saywhere.reproduce.class_naming import (
    class_prompts,
    covered,
    naming_measures,
    pointing_measures,
    zero_shot_measures,
    zero_shot_ranks,
)


def test_prompts_mean_one_class_each_and_begin_with_the_best_name() -> None:
    prompts = class_prompts("a photo of a {}", most=3)
    by_class = defaultdict(list)
    for text, index in zip(prompts.texts, prompts.classes, strict=True):
        by_class[COCO_CLASSES[index]].append(text)
    assert set(by_class) == set(COCO_CLASSES)
    assert by_class["person"] == ["a photo of a person", "a photo of a man", "a photo of a woman"]
    assert len(set(prompts.texts)) == len(prompts.texts)
    assert "a glass" not in class_prompts().texts  # a cup, or one for wine?


def test_a_class_is_as_like_a_box_as_its_most_like_name() -> None:
    prompts = class_prompts(most=2)
    names = np.zeros((len(prompts.texts), 3))
    names[:, 2] = 1
    names[prompts.texts.index("a person")] = [1, 0, 0]
    names[prompts.texts.index("a man")] = [0, 5, 0]
    names[prompts.texts.index("a dog")] = [1, 1, 0]
    boxes = [[0.1, 3, 0], [2, 2, 0], [1, 0.2, 0]]
    assert zero_shot_ranks(boxes, names, prompts, ["person", "dog", "dog"]).tolist() == [0, 0, 1]
    assert zero_shot_ranks(boxes, names, prompts, ["dog", "person", "person"]).tolist() == [1, 1, 0]


def test_the_share_of_boxes_named_first_and_among_five() -> None:
    measures = zero_shot_measures([0, 4, 5, 0], ["person", "dog", "cat", "cup"])
    assert measures["top-1"] == 0.5
    assert measures["top-5"] == 0.75
    assert measures["top-1 (non-person)"] == pytest.approx(1 / 3)
    assert measures["top-5 (non-person)"] == pytest.approx(2 / 3)


def test_vectors_that_do_not_fit_are_a_clear_error() -> None:
    prompts = class_prompts(most=1)
    names = np.ones((80, 4))
    with pytest.raises(InvalidValue, match="do not fit"):
        zero_shot_ranks(np.ones((2, 3)), names, prompts, ["dog", "cat"])
    with pytest.raises(InvalidValue, match="all zeros"):
        zero_shot_ranks(np.zeros((1, 4)), names, prompts, ["dog"])
    with pytest.raises(InvalidValue, match="NaN"):
        zero_shot_ranks(np.full((1, 4), np.nan), names, prompts, ["dog"])


def test_a_caption_may_name_its_class_by_any_usual_name() -> None:
    captions = ["a woman with a hat", "a puppy", "a hot dog", "a red sofa"]
    measures = naming_measures(captions, ["person", "dog", "dog", "couch"])
    assert measures == {"names its class": 0.75, "names its class (non-person)": pytest.approx(2 / 3)}


DOG, SMALL_DOG, CAT = (0.0, 0.0, 0.4, 0.4), (0.8, 0.8, 0.9, 0.9), (0.1, 0.1, 0.9, 0.9)
TRUE = [
    ClassBox("1", "dog", DOG),
    ClassBox("1", "dog", SMALL_DOG),
    ClassBox("1", "cat", CAT),
    ClassBox("2", "dog", DOG),
]


def test_a_box_points_right_if_its_centre_is_in_any_true_box_of_the_class() -> None:
    found = {("1", "dog"): (0.7, 0.7, 1.0, 1.0), ("1", "cat"): (0.0, 0.0, 0.1, 0.1), ("2", "dog"): None}
    measures = pointing_measures(found, TRUE)
    assert measures["pointing"] == pytest.approx(1 / 3)
    assert measures["centre of the photo"] == pytest.approx(1 / 3)
    assert measures["pointing (covers < 30%)"] == 0.5
    assert measures["centre of the photo (covers < 30%)"] == 0.0
    assert (measures["classes on photos"], measures["classes on photos (covers < 30%)"]) == (3, 2)


def test_a_class_for_which_nothing_was_found_counts_as_wrong() -> None:
    assert pointing_measures({}, TRUE)["pointing"] == 0
    with pytest.raises(InvalidValue, match="not on the photo"):
        pointing_measures({("1", "zebra"): DOG}, TRUE)


def _box(corner_and_size: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    x, y, width, height = corner_and_size
    return x, y, min(20, x + width), min(20, y + height)


@given(
    st.lists(
        st.tuples(st.integers(0, 19), st.integers(0, 19), st.integers(1, 20), st.integers(1, 20)).map(_box),
        min_size=1,
        max_size=6,
    )
)
def test_what_boxes_cover_together_is_what_a_grid_counts(boxes: list[tuple[int, int, int, int]]) -> None:
    grid = np.zeros((20, 20))
    for x1, y1, x2, y2 in boxes:
        grid[y1:y2, x1:x2] = 1
    assert covered([(x1 / 20, y1 / 20, x2 / 20, y2 / 20) for x1, y1, x2, y2 in boxes]) == pytest.approx(grid.mean())


def test_people_name_the_class_of_large_boxes(shared: Callable[[str], Path]) -> None:
    boxes = [b for b in read_class_boxes(shared("data/coco_val/boxes.json"))[:1500] if covered([b.box_xyxy]) > 0.1]
    said: dict[str, list[str]] = defaultdict(list)
    for record in coco_captions.read(shared("data/coco_val/captions_val2017.json")):
        assert isinstance(record, CaptionRecord)
        said[str(record.image_id).zfill(12)].append(record.caption)
    told = [(". ".join(said[box.image_id]), box.class_name) for box in boxes if box.image_id in said]
    measures = naming_measures([caption for caption, _ in told], [name for _, name in told])
    assert measures["names its class"] > 0.85
    assert measures["names its class (non-person)"] > 0.8
