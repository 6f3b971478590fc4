"""Objects taken away, with a model that only pretends to caption."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import InvalidValue
from saywhere.explain import (
    Removal,
    compared,
    control_removals,
    qualifying,
    removal,
    removed,
    write_many,
)
from saywhere.models.search import Written
from saywhere.models.tagged_regions import TaggedRegions
from tests.explain.laboratory import Says, image

IMAGES = {
    "both": image(["oven", "cup", "cat", "dog"], [0, 0, 1, 2, 3]),
    "one": image(["oven", "cat"], [0, 1]),
    "beach": image(["cup", "sand"], [0, 1]),
    "nowhere": image(["oven", "cup"], [0, 1]),
    "odd": image(["oven", "cup"], [0, 1]),
    "empty": image([]),
    "boxless": TaggedRegions(np.ones((1, 6)), [(0, 0, 1, 1)], ["oven", "cup"]),
}
SCENES = {
    "both": "kitchen",
    "one": "kitchen",
    "beach": "beach",
    "nowhere": None,
    "odd": "moon",
    "empty": "kitchen",
    "boxless": "kitchen",
}
INFORMATIVE = {"kitchen": ["oven", "cup", "spoon"], "beach": ["sand"]}


def test_an_object_goes_with_all_its_tags_and_every_region_that_shows_one() -> None:
    shown = image(["cup", "cat", "cup"], [0, 1, 2, 2])
    gone = removal(shown, ["cup"])
    assert gone == Removal(("cup",), (0, 2), (0, 2, 3))
    left = gone(shown)
    assert left.tag_present.tolist() == [False, True, False]
    assert left.region_present.tolist() == [False, True, False, False]
    assert removal(left, ["cup"]) == Removal(("cup",), (), ())


def test_images_qualify_that_have_all_the_objects_and_the_others_are_told_why_not() -> None:
    chosen = qualifying(list(IMAGES), IMAGES.__getitem__, SCENES, INFORMATIVE, 2)
    assert chosen.removals == {"both": Removal(("oven", "cup"), (0, 1), (0, 1, 2))}
    assert {one.name: one.reason for one in chosen.refused} == {
        "one": "lacks cup",
        "beach": "is of the scene 'beach', which has 1 informative objects",
        "nowhere": "has no scene",
        "odd": "is of the scene 'moon', whose objects are not told",
        "empty": "lacks oven, cup",
        "boxless": "tags have no boxes, so it is not known which regions show them",
    }
    assert len(chosen.ids) + len(chosen.refused) == len(IMAGES)


def test_the_more_objects_go_the_fewer_images_qualify() -> None:
    sizes = [len(qualifying(list(IMAGES), IMAGES.__getitem__, SCENES, INFORMATIVE, k).ids) for k in (1, 2, 3)]
    assert sizes == [3, 1, 0]


def test_images_are_captioned_in_rounds_and_without_what_is_gone() -> None:
    model, told = Says(" ".join), []
    ids = ["both", "one", "empty"]
    before = write_many(model, ids, IMAGES.__getitem__, level="scene", batch=2, progress=lambda _, *at: told.append(at))
    assert {name: text.text for name, text in before.items()} == {
        "both": "oven cup cat dog",
        "one": "oven cat",
        "empty": "",
    }
    assert (model.most, model.levels, told) == (2, {"scene"}, [(2, 3), (3, 3)])
    gone = {"both": removal(IMAGES["both"], ["oven"])}
    after = write_many(model, ids, removed(IMAGES.__getitem__, gone))
    assert [after[name].text for name in ids] == ["cup cat dog", "oven cat", ""]


def _written(text: str, score: float) -> Written:
    return Written(text, score, (score,))


def test_changes_are_of_the_text_of_its_content_or_of_its_label() -> None:
    before = {
        "same": _written("in a kitchen", math.log(0.8)),
        "surer": _written("in a kitchen", math.log(0.5)),
        "article": _written("in a kitchen", -1.0),
        "place": _written("in a kitchen", -1.0),
        "lost": _written("in a kitchen", -1.0),
    }
    after = {
        "same": _written("in a kitchen", math.log(0.7)),
        "surer": _written("in a kitchen", math.log(0.6)),
        "article": _written("in the kitchen", -1.0),
        "place": _written("in a restaurant", -1.0),
        "lost": _written("somewhere", -1.0),
    }
    small = {"in", "a", "the", "somewhere"}

    def content(text: str) -> list[str]:
        return [word for word in text.split() if word not in small]

    def label(text: str) -> str | None:
        return next(iter(content(text)), None)

    found = compared(before, after, content=content, label=label)
    assert found.changed == pytest.approx(3 / 5)
    assert found.content_changed == pytest.approx(2 / 5)
    assert found.label_changed == pytest.approx(1 / 4)
    np.testing.assert_allclose(found.unchanged_confidences, [0.7, 0.6])
    np.testing.assert_allclose(found.unchanged_shifts, [0.1, -0.1])
    plain = compared(before, after)
    assert plain.changed == found.changed
    assert math.isnan(plain.content_changed)
    assert math.isnan(plain.label_changed)


def test_nothing_compared_has_no_share() -> None:
    assert math.isnan(compared({}, {}).changed)
    assert len(compared({}, {}).unchanged_shifts) == 0


def test_a_caption_without_its_counterpart_is_named() -> None:
    with pytest.raises(InvalidValue, match="none of 'x', nor of 0 others"):
        compared({}, {"x": _written("a", -1.0)})


def test_the_objects_that_a_model_speaks_of_change_its_captions_and_the_control_does_not() -> None:
    images = {f"{i}": image(["oven", "cup", "cat", "dog"], [0, 1, 2, 3], seed=i) for i in range(6)}
    model = Says(lambda tags: "a kitchen" if "oven" in tags else "a room")
    chosen = qualifying(list(images), images.__getitem__, dict.fromkeys(images, "kitchen"), {"kitchen": ["oven"]}, 1)
    control = control_removals(chosen.removals, images.__getitem__, np.random.default_rng(0))
    before = write_many(model, chosen.ids, images.__getitem__)
    gone, other = (
        compared(before, write_many(model, chosen.ids, removed(images.__getitem__, taken)))
        for taken in (chosen.removals, control.removals)
    )
    assert gone.changed == 1.0
    assert other.changed == 0.0
    # One region in four is gone: exp(−1/5) was exp(−1/4).
    np.testing.assert_allclose(other.unchanged_shifts, math.exp(-1 / 5) - math.exp(-1 / 4))


def test_a_control_takes_as_many_tags_and_regions_as_can_be_had_of_other_objects() -> None:
    shown = image(["oven", "cup", "cat", "dog"], [0, 0, 0, 1, 2, 2, 2, 3])
    gone = {"x": removal(shown, ["oven"])}
    found = control_removals(gone, {"x": shown}.__getitem__, np.random.default_rng(0))
    assert found.removals == {"x": Removal(("cat",), (2,), (4, 5, 6))}
    two = control_removals({"x": removal(shown, ["oven", "cup"])}, {"x": shown}.__getitem__, np.random.default_rng(0))
    assert two.removals["x"].objects == ("cat", "dog")


def test_a_control_leaves_regions_that_show_the_object_too() -> None:
    shown = image(["oven", "cup"], [0, 1, 1])
    boxes = np.array(shown.tag_boxes_xyxy)
    boxes[1] = (0, 0, 0.2, 1)  # the cup's box covers the oven's region as well
    shown = TaggedRegions(shown.features, shown.boxes_xyxy, shown.tags, boxes)
    assert removal(shown, ["cup"]).regions == (0, 1, 2)
    found = control_removals({"x": removal(shown, ["oven"])}, {"x": shown}.__getitem__, np.random.default_rng(0))
    assert found.removals["x"] == Removal(("cup",), (1,), (1, 2))


def test_images_with_too_few_other_objects_have_no_control() -> None:
    shown = image(["oven", "cup"], [0, 1])
    found = control_removals({"x": removal(shown, ["oven", "cup"])}, {"x": shown}.__getitem__, np.random.default_rng(0))
    assert found.removals == {}
    assert [str(one) for one in found.refused] == ["x: has fewer than 2 other objects"]


@given(st.integers(0, 10_000), st.integers(1, 3))
def test_a_control_never_touches_what_the_removal_takes(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    shown = image(list(rng.permutation(list("abcdefghaj"))), rng.integers(0, 10, 12).tolist())
    gone = removal(shown, list("abc")[:k])
    other = control_removals({"x": gone}, {"x": shown}.__getitem__, rng).removals["x"]
    assert len(other.objects) == k
    assert not set(other.tags) & set(gone.tags)
    assert not set(other.regions) & set(gone.regions)
    assert not set(other.objects) & set(gone.objects)


def test_many_sets_of_other_objects_are_drawn_not_listed() -> None:
    names = [f"thing {i}" for i in range(24)]
    rng = np.random.default_rng(0)
    boxes = np.sort(rng.random((24, 2, 2)), axis=1).reshape(24, 4)
    shown = TaggedRegions(rng.random((24, 3)), boxes, names, boxes)
    gone = removal(shown, names[:3])
    drawn = [
        control_removals({"x": gone}, {"x": shown}.__getitem__, np.random.default_rng(s)).removals["x"]
        for s in (0, 0, 1)
    ]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]


def test_no_object_is_no_ablation() -> None:
    with pytest.raises(InvalidValue, match="0 is not at least 1"):
        qualifying([], IMAGES.__getitem__, {}, {}, 0)
