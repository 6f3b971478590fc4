"""The region tasks: what becomes an item, and what is left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from saywhere.core import Box, BoxSet, InvalidValue, WholeImage
from saywhere.formats import entities
from saywhere.formats.coco_captions import CaptionRecord
from saywhere.formats.entities import EntitiesCaption
from saywhere.reproduce.patchioner_data import image_task, region_set_task


def test_captions_that_share_their_boxes_are_references_of_one_item() -> None:
    boxes = ((0.0, 0.0, 50.0, 25.0), (10.0, 10.0, 100.0, 50.0))
    told = [
        EntitiesCaption("1", "two dogs", boxes),
        EntitiesCaption("1", "dogs play", boxes),
        EntitiesCaption("1", "one dog", boxes[:1]),
        EntitiesCaption("1", "nothing", ()),
        EntitiesCaption("2", "of unknown size", boxes),
    ]
    task = region_set_task(told, {"1": (100, 50)})
    assert [item.references for item in task.items] == [("two dogs", "dogs play"), ("one dog",)]
    assert task.items[0].region == BoxSet((Box(0, 0, 0.5, 0.5), Box(0.1, 0.2, 1.0, 1.0)))
    assert task.left_out == {"without boxes": 1, "photo of unknown size": 1}


def test_all_captions_of_a_photo_are_references_of_the_whole() -> None:
    task = image_task([CaptionRecord(5, 1, "a dog"), CaptionRecord(6, 2, "a cat"), CaptionRecord(5, 3, "a hound")])
    assert [(item.image_id, item.references) for item in task.items] == [("5", ("a dog", "a hound")), ("6", ("a cat",))]
    assert isinstance(task.items[0].region, WholeImage)


def test_a_task_without_items_says_what_was_left_out() -> None:
    with pytest.raises(InvalidValue, match=r"has no items \(1 without boxes"):
        region_set_task([EntitiesCaption("1", "a dog", ())])


def test_the_real_entities_become_a_task(shared: Callable[[str], Path]) -> None:
    read = [c for c in entities.read(shared("data/entities/coco_entities_test.json")) if isinstance(c, EntitiesCaption)]
    sizes = {caption.image_id: (640, 640) for caption in read[:500]}
    task = region_set_task(read[:600], sizes)
    assert sum(len(item.references) for item in task.items) + sum(task.left_out.values()) == 600
    assert any(len(item.references) > 1 for item in task.items)
