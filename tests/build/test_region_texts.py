"""What boxes of known classes are called: hand-made cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("spacy", reason="needs the extra 'language'")

from saywhere.build.region_texts import BoxNames, ClassBox, box_names, read_class_boxes, with_article
from saywhere.core import InvalidFile, UnknownName
from saywhere.core.coco_classes import COCO_CLASSES

LARGE, MIDDLE, SMALL = (0.0, 0.0, 0.8, 0.8), (0.1, 0.1, 0.5, 0.5), (0.4, 0.4, 0.5, 0.5)
CAPTIONS = [
    "A brown dog lying on a couch.",
    "The puppy sleeps beside a man.",
    "a brown dog on the lawn",
    "A hot dog near a glass",
]


def test_all_boxes_of_a_file_are_read(tmp_path: Path) -> None:
    path = tmp_path / "boxes.json"
    path.write_text(json.dumps({"7": [[16, 0.25, 0.25, 0.5, 0.5], [16, 0.9, 0.9, 0.4, 0.4]]}))
    first, second = read_class_boxes(path)
    assert first == ClassBox("7", "dog", (0.0, 0.0, 0.5, 0.5))
    assert second.box_xyxy == pytest.approx((0.7, 0.7, 1.0, 1.0))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"7": [[80, 0.5, 0.5, 0.1, 0.1]]}, "image 7: there is no class 80"),
        ({"7": [[0, 0.5, 0.5, 0.0, 0.1]]}, "image 7: a box has no area"),
        ({"7": [[0, 0.5, 0.5]]}, "is not boxes of images"),
        ([], "is not boxes of images"),
    ],
)
def test_a_file_with_a_bad_box_is_a_clear_error(tmp_path: Path, content: object, reason: str) -> None:
    path = tmp_path / "boxes.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InvalidFile, match=reason):
        read_class_boxes(path)


def test_a_class_that_coco_does_not_have_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="'giraffe'"):
        ClassBox("1", "girafe", LARGE)


@pytest.mark.parametrize(
    ("name", "called"),
    [("dog", "a dog"), ("umbrella", "an umbrella"), ("tv", "a tv"), ("scissors", "scissors"), ("skis", "skis")],
)
def test_a_class_is_called_with_its_article(name: str, called: str) -> None:
    assert name in COCO_CLASSES
    assert with_article(name) == called


def test_a_box_is_called_by_its_class_and_by_phrases_that_name_it_and_no_other() -> None:
    boxes = [ClassBox("1", "dog", LARGE), ClassBox("1", "couch", LARGE), ClassBox("1", "cup", SMALL)]
    called = box_names(boxes, {"1": CAPTIONS}, most_texts=9)
    texts = {one.texts[0]: one.texts for one in called}
    # Neither the dog that is also a couch, nor the hot dog.
    assert texts["a dog"] == ("a dog", "a brown dog", "the puppy", "a brown dog on the lawn")
    assert texts["a couch"] == ("a couch",)
    # A glass may be a cup or one for wine.
    assert texts["a cup"] == ("a cup",)


def test_texts_are_of_the_box_s_own_photo_and_no_more_than_asked_for() -> None:
    boxes = [ClassBox(name, "dog", LARGE) for name in ("2", "1", "3")]
    called = box_names(boxes, {"1": CAPTIONS, "2": ["a black dog", "A dog."]}, most_texts=3)
    # Photo 3 has no captions, so its boxes are left out.
    assert called == [
        BoxNames("1", LARGE, ("a dog", "a brown dog", "the puppy")),
        BoxNames("2", LARGE, ("a dog", "a black dog")),
    ]
    assert box_names(boxes, {}) == []


def test_the_largest_of_each_kind_in_each_photo_are_kept() -> None:
    boxes = [ClassBox("1", "dog", box) for box in (SMALL, LARGE, MIDDLE)]
    boxes += [ClassBox("1", "cat", SMALL), ClassBox("2", "dog", SMALL)]
    called = box_names(boxes, {"1": ["a pet"], "2": ["a pet"]}, most_each=2)
    assert [(one.image_id, one.texts[0], one.box_xyxy) for one in called] == [
        ("1", "a cat", SMALL),
        ("1", "a dog", LARGE),
        ("1", "a dog", MIDDLE),
        ("2", "a dog", SMALL),
    ]


def test_smaller_ones_are_called_by_their_class_alone() -> None:
    boxes = [ClassBox("1", "dog", box) for box in (SMALL, LARGE, MIDDLE)]
    called = box_names(boxes, {"1": ["a brown dog"]}, most_each=1, most_small=1)
    assert [(one.box_xyxy, one.texts) for one in called] == [(LARGE, ("a dog", "a brown dog")), (MIDDLE, ("a dog",))]
