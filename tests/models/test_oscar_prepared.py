"""Prepared captions at several levels: what goes in comes out, and what cannot is named and counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from saywhere.core import InvalidFile, InvalidValue, UnknownName
from saywhere.models.oscar import LevelCaption, LevelCaptions, TaggedRegions, save_level_captions
from saywhere.models.oscar.prepared import NO_LEVEL
from saywhere.models.prepared import NO_IMAGE, NO_WORDS, OTHER_SIZE, TOO_LARGE, TWICE
from tests.models import oscar_small as small

SPLITS = ("train",) * 5 + ("validation",) * 2 + ("test",)


def say(name: str, image: str = "a", split: str = "train", level: str = "object", text: str = "a cup") -> LevelCaption:
    return LevelCaption(name, image, split, level, text)


def same(one: TaggedRegions, two: TaggedRegions) -> bool:
    boxes = [image.tag_boxes_xyxy for image in (one, two)]
    alike = (boxes[0] is None) == (boxes[1] is None) and one.tags == two.tags
    return alike and all(
        np.array_equal(getattr(one, name), getattr(two, name).astype(getattr(one, name).dtype))
        for name in ("boxes_xyxy", "region_present", "tag_present")
    )


def test_captions_come_back_as_they_were(tmp_path: Path) -> None:
    said = small.save_captions(tmp_path, SPLITS)
    found = LevelCaptions(tmp_path)
    assert len(found) == len(said) == 16
    assert [found.caption(i) for i in range(16)] == said
    assert found.splits == {name: 2 * count for name, count in Counter(SPLITS).items()}
    assert found.levels == {"object": 8, "scene": 8}
    assert (found.counts, found.skipped, found.about) == ({"given": 16, "kept": 16}, (), {"made": "here"})
    assert found.region_size == small.REGION
    assert found.image_names("validation") == ["photo 5", "photo 6"]


def test_images_of_all_kinds_come_back_as_they_were(tmp_path: Path) -> None:
    images = {f"photo {i}": image for i, image in enumerate(small.images())}
    images["nowhere"] = TaggedRegions(np.ones((1, small.REGION)), [[0, 0, 1, 1]], ["cup"])
    # Those without regions first, between and last.
    names = ["photo 3", "photo 0", "photo 2", "photo 5", "photo 4", "nowhere", "photo 1"]
    save_level_captions(tmp_path, images, [say(name, name) for name in names], {})
    found = LevelCaptions(tmp_path)
    assert sorted(found.image_names("train")) == sorted(names)
    for name, image in images.items():
        assert same(image, found.image(name))
        np.testing.assert_array_equal(found.image(name).features, image.features.astype(np.float16))
    assert found.image("nowhere").tag_boxes_xyxy is None
    np.testing.assert_array_equal(found.image("photo 0").tag_boxes_xyxy, images["photo 0"].tag_boxes_xyxy)


def test_a_split_can_be_asked_for_by_level_and_number(tmp_path: Path) -> None:
    small.save_captions(tmp_path, SPLITS)
    found = LevelCaptions(tmp_path)
    assert {one.level for one in found.split("train", ["scene"]).captions} == {"scene"}
    assert [one.id for one in found.split("train", most=3).captions] == ["o0", "s0", "o1"]
    items = found.split("test")
    assert len(items) == 2
    assert [item.caption.id for item in items] == ["o7", "s7"]
    assert items[0].image.tags == found.image("photo 7").tags
    assert [one.id for one in items[1:].captions] == ["s7"]


def test_captions_that_cannot_be_used_are_named_counted_and_left_out(tmp_path: Path) -> None:
    bright = TaggedRegions(np.full((1, small.REGION), 1e6), [[0, 0, 1, 1]])
    images = {"a": small.image(), "wide": small.image(size=4), "bright": bright, "empty": small.image(0, 0, 1, size=9)}
    bad = {
        "absent": (NO_IMAGE, {"image": "gone"}),
        "wide": (OTHER_SIZE, {"image": "wide"}),
        "bright": (TOO_LARGE, {"image": "bright"}),
        "empty": (OTHER_SIZE, {"image": "empty"}),
        "mute": (NO_WORDS, {"text": " ?!"}),
        "flat": (NO_LEVEL, {"level": ""}),
        "good": (TWICE, {}),
    }
    given = [say("good"), *(say(name, **changes) for name, (_, changes) in bad.items())]
    save_level_captions(tmp_path, images, given, {})
    found = LevelCaptions(tmp_path)
    assert {one.id: one.reason for one in found.skipped} == {name: reason for name, (reason, _) in bad.items()}
    assert found.counts["given"] == len(given) == found.counts["kept"] + len(found.skipped)


def test_the_vocabulary_knows_the_words_of_training_captions_and_their_tags(tmp_path: Path) -> None:
    images = {"a": small.image(0, 1, ["palm tree"]), "b": small.image(1, 1, ["oven"])}
    given = [
        say("0", text="A cup."),
        say("1", level="scene", text="in a kitchen"),
        say("2", "b", "test", text="a boat"),
    ]
    save_level_captions(tmp_path, images, given, {})
    assert set(LevelCaptions(tmp_path).vocabulary.pieces) == {"<unk>", "a", "cup", ".", "in", "kitchen", "palm", "tree"}


def test_rare_words_are_unknown_if_asked(tmp_path: Path) -> None:
    given = [say("0", text="a cup"), say("1", text="a dog")]
    save_level_captions(tmp_path, {"a": small.image(0, 1, 0)}, given, {}, least_word_count=2)
    assert LevelCaptions(tmp_path).vocabulary.pieces == ("<unk>", "a")


def test_a_fingerprint_tells_data_apart(tmp_path: Path) -> None:
    prints = []
    for name, text in (("a", "a cup"), ("b", "a cup"), ("c", "a dog")):
        save_level_captions(tmp_path / name, {"a": small.image()}, [say("0", text=text)], {})
        prints.append(LevelCaptions(tmp_path / name).fingerprint)
    save_level_captions(tmp_path / "d", {"a": small.image(1)}, [say("0")], {})
    prints.append(LevelCaptions(tmp_path / "d").fingerprint)
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3


def test_names_that_are_not_there_are_refused(tmp_path: Path) -> None:
    small.save_captions(tmp_path, SPLITS)
    found = LevelCaptions(tmp_path)
    with pytest.raises(UnknownName, match="Did you mean 'train'"):
        found.split("trian")
    with pytest.raises(UnknownName, match="Did you mean 'scene'"):
        found.split("train", ["scenes"])
    with pytest.raises(UnknownName, match="unknown image"):
        found.image("photo 99")
    with pytest.raises(UnknownName, match="unknown split"):
        found.image_names("nowhere")


@pytest.mark.parametrize("given", [[], [say("0", split="test")], [say("0", text="")]])
def test_a_folder_without_a_training_caption_is_not_made(tmp_path: Path, given: list[LevelCaption]) -> None:
    with pytest.raises(InvalidValue):
        save_level_captions(tmp_path, {"a": small.image()}, given, {})
    with pytest.raises(InvalidFile, match="not a folder of prepared level captions"):
        LevelCaptions(tmp_path)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    small.save_captions(tmp_path, SPLITS)
    path = tmp_path / "index.json"
    path.write_text(path.read_text().replace('"kind": "level captions"', '"kind": "recipes"'))
    with pytest.raises(InvalidFile, match="holds recipes, not level captions"):
        LevelCaptions(tmp_path)
    path.write_text(path.read_text().replace('"kind": "recipes"', '"kind": "level captions"'))
    next((tmp_path / "images").glob("00*")).unlink()
    with pytest.raises(InvalidFile, match="images"):
        LevelCaptions(tmp_path)
