"""A photo described from a look: what is sure, in the order in which people look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from saywhere.core import Caption, Frame, Region
from saywhere.core.description import NOTHING_SURE
from saywhere.models.describing import by_attention
from saywhere.models.face import Answer, Look, MissingSkill
from saywhere.models.search import GREEDY
from saywhere.vision import Found, View
from tests.models.patchioner_seeing import photo, seer

CAT, DOG, CUP = ((x, 0.0, x + 0.25, 1.0) for x in (0.0, 0.25, 0.5))
FOUND = (Found(CAT, "cat", 0.9), Found(DOG, "dog", 0.8), Found(CUP, "cup", 0.7))


class Describer:
    """says: the caption of each kind. unsure: kinds, and "whole", of which it is not sure. colour: of all things."""

    name, levels, generation = "describer", ("object",), GREEDY
    skills = ("caption", "answer")

    def __init__(
        self, says: dict[str, str] | None = None, unsure: Sequence[str] = (), sure_colour: float = 0.0
    ) -> None:
        self.says, self.unsure, self.sure_colour = says or {}, unsure, sure_colour
        self.batches: list[int] = []

    def see(self, view: View, image: None = None, image_id: str = "photo") -> DescriberLook:
        return DescriberLook(self, view)


class DescriberLook(Look):
    def captions(self, regions: Sequence[Region], how: Any = None, level: str = "object") -> list[Caption]:
        self.model.batches.append(len(regions))
        kinds = ["whole", *(one.name for region in regions[1:] for one in self.view.found if region == _box(one))]
        return [
            Caption(self.model.says.get(kind, f"a {kind}"), -0.1, region, sure=kind not in self.model.unsure)
            for kind, region in zip(kinds, regions, strict=True)
        ]

    def answer(self, question: str, region: Region | None = None) -> Answer:
        return Answer("red", self.model.sure_colour, (), np.zeros(1, np.float32))


def _box(one: Found) -> Region:
    from saywhere.core import Box

    return Box(*one.box_xyxy)


def looked(
    model: Describer, found: Sequence[Found] = FOUND, attention: Any = None, present: Any = None
) -> DescriberLook:
    view = View(Frame.of_grid(1, 4), np.zeros((1, 4, 2)), np.zeros(2), attention, found, present=present)
    return model.see(view)


def test_what_people_look_at_first_is_told_first() -> None:
    told = looked(Describer({"whole": "a table"}), attention=[[1, 2, 5, 1]]).describe()
    assert [one.name for one in told.things] == ["a cup", "a dog", "a cat"]
    assert told.text.startswith("A table. The eye goes first to a cup in the middle.")
    assert told.origin == "describer"


def test_a_large_thing_is_looked_at_as_much_as_all_that_lies_in_it() -> None:
    large = Found((0.0, 0.0, 0.5, 1.0), "couch", 0.9)
    view = looked(Describer(), attention=[[3, 3, 5, 1]]).view
    assert [one.name for one in by_attention([FOUND[2], large], view)] == ["couch", "cup"]


def test_without_a_map_of_looking_the_surest_is_first() -> None:
    assert [one.name for one in looked(Describer(), tuple(reversed(FOUND))).describe().things] == [
        "a cat",
        "a dog",
        "a cup",
    ]


def test_nothing_is_told_that_is_not_sure() -> None:
    weak = Found((0.75, 0, 1, 1), "fork", 0.45)
    same = Found((0.01, 0.0, 0.25, 1.0), "bear", 0.6)
    model = Describer({"cup": "a red chair"}, unsure=("whole", "dog"))
    told = looked(model, (*FOUND, weak, same)).describe()
    assert told.text == "In this photo: a cat. The eye goes first to a cat on the left."
    absent = looked(Describer({"whole": "a cat"}), present={"cat": 0.1, "dog": 0.9, "cup": 0.49}).describe()
    assert [one.name for one in absent.things] == ["a dog"]


def test_where_nothing_is_sure_that_is_said() -> None:
    told = looked(Describer(unsure=("whole",)), ()).describe()
    assert (told.text, told.things) == (NOTHING_SURE, ())


@pytest.mark.parametrize(("sure", "first"), [(0.6, "A red cat."), (0.4, "On the left, large.")])
def test_a_colour_is_said_if_it_is_rather_right_than_not(sure: float, first: str) -> None:
    told = looked(Describer(sure_colour=sure), FOUND[:1]).describe()
    assert told.things[0].about[0] == first


def test_a_caption_that_says_more_than_the_name_is_how_it_looks() -> None:
    told = looked(Describer({"cat": "a black cat"}, sure_colour=0.9), FOUND[:1]).describe()
    assert told.things[0].about[0] == "A black cat."


def test_all_is_written_in_one_batch_and_once() -> None:
    model = Describer()
    look = looked(model)
    assert look.describe() is look.describe()
    assert model.batches == [4]


def test_a_model_that_does_not_caption_does_not_describe() -> None:
    model = Describer()
    model.skills = ("answer",)  # type: ignore[assignment]
    with pytest.raises(MissingSkill, match="say what a region shows"):
        looked(model).describe()


def test_a_seer_describes_what_its_eyes_found() -> None:
    told = seer().look(photo()).describe()
    assert [one.name for one in told.things] == ["a cat", "a dog", "a cup"]
    assert told.things[0].neighbours == {"right": 1}
    assert told.things[1].neighbours == {"left": 0, "below": 2}
