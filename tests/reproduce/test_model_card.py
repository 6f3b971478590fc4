"""The numbers of a card: invented things, retrieval, names and pointing of a model whose answers are known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from saywhere.build.region_texts import ClassBox
from saywhere.core import Box, InvalidValue, Region
from saywhere.formats.coco_captions import CaptionRecord
from saywhere.reproduce.model_card import RESULTS, TABLE, invented, measure_models, true_things
from saywhere.reproduce.patchioner_data import HeldOut, box_task, image_task

NAMES = ("cat", "dog")
BOX = (0.0, 0.0, 0.5, 0.5)


@pytest.fixture
def held() -> HeldOut:
    """A photo of a cat and one of a dog, each with two captions and a box."""
    boxes = tuple(ClassBox(name, name, BOX) for name in NAMES)
    texts = [(name, f"{article} {name} on a couch") for name in NAMES for article in ("a", "the")]
    captions = [CaptionRecord(name, number, text) for number, (name, text) in enumerate(texts)]
    photos = {name: Path(name) for name in NAMES}
    return HeldOut(photos, image_task(captions), box_task(boxes), boxes, None, (), {})


class Knowing:
    """A model that says `said` of everything it looks at; of a photo "cat" it knows that it is one."""

    skills = ("caption", "ground")

    def __init__(self, said: str) -> None:
        self.said = said

    def look(self, photo: Path) -> Any:
        def captions(regions: Sequence[Region]) -> list[Any]:
            return [SimpleNamespace(text=self.said.format(photo)) for _ in regions]

        def find_all(texts: Sequence[str]) -> list[Any]:
            return [Box(*BOX) if str(photo) in text else None for text in texts]

        vector = np.eye(2, dtype=np.float32)[NAMES.index(str(photo))]
        aligned = SimpleNamespace(contrast=lambda: vector)
        return SimpleNamespace(
            captions=captions, caption=lambda region: captions([region])[0], find_all=find_all, aligned=aligned
        )

    def queries(self, texts: Sequence[str]) -> Any:
        return np.stack([np.eye(2, dtype=np.float32)[0 if "cat" in text else 1] for text in texts])


def test_a_model_that_knows_all_has_the_best_numbers_and_one_that_knows_nothing_the_worst(
    held: HeldOut, tmp_path: Path
) -> None:
    models = {"good": Knowing("a {} on a couch"), "bad": Knowing("a pizza")}
    results = measure_models(models, held, tmp_path, lambda *_: None)
    good, bad = results["good"], results["bad"]
    assert good["CIDEr"] > 100 > 1 > bad["CIDEr"]
    assert (good["CHAIR-i"], bad["CHAIR-i"]) == (0, 100)
    assert (good["box caption names its class"], bad["box caption names its class"]) == (100, 0)
    assert good["pointing"] == good["text → photo R@1"] == 100
    assert json.loads((tmp_path / RESULTS).read_text())["results"].keys() == models.keys()
    assert "| CHAIR-i | 0.0 | 100.0 |" in (tmp_path / TABLE).read_text()


def test_a_thing_that_people_name_is_not_invented_though_nobody_drew_a_box(held: HeldOut) -> None:
    things = true_things(held)
    assert things["cat"] == {"cat", "couch"}
    scored = invented({"cat": "a cat on a couch", "dog": "a dog with a bottle"}, things)
    assert scored["CHAIR-i"] == pytest.approx(25)
    assert scored["CHAIR-s"] == 50


def test_no_captions_are_refused() -> None:
    with pytest.raises(InvalidValue, match="none"):
        invented({}, {})
