"""From a COCO store to a part that finds expressions: what is said, how photos are split, and what can be learnt."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from saywhere.build.coco import FIELDS, KIND
from saywhere.build.referring import LOOKS, look_at_photos, looked_photos, name_vectors
from saywhere.build.referring_part import build_referring, install_referring
from saywhere.build.referring_report import largest, measure
from saywhere.build.referring_texts import (
    COLOUR,
    MADE,
    NOUN,
    TRUE,
    Said,
    made_from,
    mirrored,
    replaced,
    said_of,
    split_of_photo,
)
from saywhere.build.referring_training import ReferringData, TrainingConfig, precision, train_referring, with_threshold
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.language.coco_aliases import classes_named
from saywhere.models.patchioner.seer_config import read_config, save_config
from saywhere.store import Store, StoreWriter
from tests.models.patchioner_seeing import LEFT, TOP_RIGHT, alignment, photo, seer, tags
from tests.models.referring_small import NAMES, made_photos, reader, row_of_horses
from tests.models.test_patchioner_seer import CONFIG

CAT, DOG = COCO_CLASSES.index("cat"), COCO_CLASSES.index("dog")
SMALL = TrainingConfig(epochs=1, batch=8, width=16, layers=1, least_count=1)


def quiet(what: str, done: int, total: int) -> None:
    """Says nothing."""


def test_the_mirror_turns_sides_and_nothing_else() -> None:
    assert mirrored("Left man, far right, bright leftmost") == "right man, far left, bright rightmost"
    assert mirrored(mirrored("second from the left")) == "second from the left"


def test_a_photo_is_in_one_split_for_ever_and_the_eyes_validation_photos_are_for_the_test() -> None:
    splits = [split_of_photo(f"{number:012}", "train") for number in range(2000)]
    shares = {name: splits.count(name) / len(splits) for name in set(splits)}
    assert shares == pytest.approx({"train": 0.8, "validation": 0.1, "test": 0.1}, abs=0.03)
    assert split_of_photo("000000000001", "validation") == "test"
    assert splits[:50] == [split_of_photo(f"{number:012}", "train") for number in range(50)]


def test_what_replaces_a_thing_or_a_colour_is_not_what_was_there() -> None:
    rng = np.random.default_rng(0)
    said = Said("the red cat", "the red cat", TRUE, LEFT)
    made = [one for _ in range(30) for one in replaced(said, {"cat", "dog"}, rng)]
    assert {one.kind for one in made} == {NOUN, COLOUR}
    for one in made:
        assert one.box_xyxy is None
        assert not classes_named(one.text) & {"dog"}
        assert (one.kind == NOUN) == ("cat" not in one.text.split())
        assert one.kind == NOUN or "red" not in one.text
    assert list(replaced(Said("on the left", "on the right", TRUE, LEFT), {"cat"}, rng)) == []


def test_expressions_made_from_boxes_mean_the_box_that_they_say() -> None:
    boxes = [(0.5, 0.0, 0.7, 0.5), (0.0, 0.0, 0.3, 0.9), (0.8, 0.0, 1.0, 0.4)]
    made = {
        one.text: one.box_xyxy
        for seed in range(300)
        for one in made_from(boxes, [CAT] * 3, np.random.default_rng(seed))
    }
    assert made["second cat from the right"] == boxes[0]
    assert made["cat on the left"] == boxes[1]
    assert made["largest cat"] == boxes[1]
    assert {one.kind for one in made_from(boxes, [CAT] * 3, np.random.default_rng(0))} == {MADE}


def _row(**labels: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {"boxes_xyxy": None, "classes": None, "captions": None, "referring": None}
    return plain | labels


def test_expressions_without_a_word_are_not_said() -> None:
    expressions = [
        {"split": "unc_val", "class": CAT, "box_xyxy": LEFT, "expression": text} for text in (" ", "!", "cat")
    ]
    said, there = said_of(_row(referring=expressions, captions=["a dog"]), "1", "test")
    assert [one.text for one in said if one.kind == TRUE] == ["cat"]
    assert there == {"cat", "dog"}


def jpeg() -> bytes:
    file = BytesIO()
    photo().save(file, "JPEG", quality=95)
    return file.getvalue()


@pytest.fixture
def coco(tmp_path: Path) -> Store:
    """Sixty photos of a cat and a dog, one that is broken and one of which nothing is said."""
    with StoreWriter(tmp_path / "coco", KIND, FIELDS, {}) as writer:
        for number in range(62):
            said = [
                {"split": "unc_val", "class": kind, "box_xyxy": box, "expression": text}
                for text, kind, box in (("red cat", CAT, LEFT), ("the dog on the right", DOG, TOP_RIGHT))
            ]
            writer.add(
                f"{number:012}",
                jpeg=b"no picture" if number == 60 else jpeg(),
                boxes_xyxy=[LEFT, TOP_RIGHT],
                classes=[CAT, DOG],
                captions=["a cat and a dog"],
                referring=None if number == 61 else said,
                split="validation" if number % 20 == 0 else "train",
            )
    return Store(tmp_path / "coco")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    for name, part in (("alignment", alignment()), ("tags", tags())):
        part.save_pretrained(folder / name)
    save_config(folder, CONFIG)
    return folder


def test_photos_are_looked_at_once_and_broken_ones_are_named(coco: Store, model: Path, tmp_path: Path) -> None:
    own, out = seer(), tmp_path / "out"
    first = look_at_photos(coco, own, model, out, quiet, limit=10)
    # The broken one is among the photos that the store keeps for validation, which come first.
    assert (first.photos, first.unreadable) == (9, ("000000000060",))
    whole = look_at_photos(coco, own, model, out, quiet)
    assert (whole.photos, whole.unreadable) == (60, ("000000000060",))
    looks = own.eyes.encoder.looks  # type: ignore[attr-defined]
    assert looks == 60
    one = next(iter(looked_photos(out)))
    assert one.offered.names[-1] == ""
    assert len(one.said) == len(one.said_vectors) == len(one.mirror_vectors)


def test_a_look_with_other_eyes_is_not_gone_on_with(coco: Store, model: Path, tmp_path: Path) -> None:
    look_at_photos(coco, seer(), model, tmp_path / "out", quiet, limit=2)
    save_config(model, CONFIG | {"input_px": 224})
    with pytest.raises(InvalidFile, match="another sees"):
        look_at_photos(coco, seer(), model, tmp_path / "out", quiet)


def test_a_store_without_expressions_or_of_another_kind_is_refused(model: Path, tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "plain", KIND, FIELDS, {}) as writer:
        writer.add("1", jpeg=jpeg(), split="train")
    with pytest.raises(InvalidFile, match="no referring expressions"):
        look_at_photos(Store(tmp_path / "plain"), seer(), model, tmp_path / "out", quiet)
    with StoreWriter(tmp_path / "other", "other", {"x": "json"}, {}) as writer:
        writer.add("1", x=1)
    with pytest.raises(InvalidFile, match="holds other"):
        look_at_photos(Store(tmp_path / "other"), seer(), model, tmp_path / "out", quiet)


def test_the_part_is_built_reported_and_put_into_the_model(coco: Store, model: Path, tmp_path: Path) -> None:
    made = build_referring(coco, seer(), model, tmp_path / "out", SMALL, quiet)
    report = json.loads((made.part / "report.json").read_text())["measures"]
    assert report == pytest.approx(made.measures)
    assert {"P@0.5", "P@0.5, by likeness alone", "wrongly not there", "P@0.5, RefCOCO"} <= made.measures.keys()
    assert made.measures["a candidate fits"] == 100
    assert "P@0.5" in (made.part / "report.md").read_text()
    install_referring(made.part, model)
    assert read_config(model).referring == "referring"
    with pytest.raises(InvalidFile, match="already"):
        install_referring(model / "referring", model)


def test_left_second_and_red_are_learnt_and_absent_things_are_told_from_those_that_are_there() -> None:
    torch.set_num_threads(1)
    data = ReferringData(made_photos(250, 40), NAMES, reader(list(NAMES)))
    settings = TrainingConfig(epochs=8, batch=64, lr=4e-3, width=32, layers=1, dropout=0.0, least_count=1)
    learnt = train_referring(data, settings, quiet)
    learnt = with_threshold(data, learnt, np.random.default_rng(0), NOUN)
    test = data.split("test", TRUE)
    for word in ("left horse", "second horse from the right", "red horse"):
        asked = [one for one in test if data.texts[one.text].text == word]
        assert precision(data, learnt, asked) > 0.9, word
    measures = measure(data, learnt)
    assert measures["wrongly not there"] < 10
    assert measures["wrongly there: a noun replaced"] < 10
    offered = row_of_horses(np.random.default_rng(999), 3)
    index, there = learnt.refer(offered, "second horse from the left", reader)
    assert index == np.argsort(offered.boxes_xyxy[:-1, 0])[1]
    assert there > learnt.config.least_there


def test_the_same_seed_gives_the_same_network() -> None:
    data = ReferringData(made_photos(20, 4), NAMES, reader(list(NAMES)))
    once, again = (train_referring(data, SMALL, quiet).net.state_dict() for _ in range(2))
    assert all(torch.equal(once[name], again[name]) for name in once)


def test_without_photos_to_learn_or_to_measure_there_is_a_clear_error() -> None:
    with pytest.raises(InvalidValue, match="there are none"):
        ReferringData([], NAMES, reader(list(NAMES)))
    only_test = ReferringData(made_photos(0, 2)[2:], NAMES, reader(list(NAMES)))
    with pytest.raises(InvalidValue, match="none is for training"):
        train_referring(only_test, SMALL, quiet)
    only_train = ReferringData(made_photos(4, 0), NAMES, reader(list(NAMES)))
    learnt = train_referring(only_train, SMALL, quiet)
    with pytest.raises(InvalidValue, match="for validation"):
        with_threshold(only_train, learnt, np.random.default_rng(0), NOUN)
    with pytest.raises(InvalidValue, match="test"):
        measure(only_train, learnt)


def test_the_largest_thing_of_a_kind_is_a_guess_that_needs_no_learning() -> None:
    offered = row_of_horses(np.random.default_rng(3), 3)
    sizes = (offered.boxes_xyxy[:, 2:] - offered.boxes_xyxy[:, :2]).prod(axis=1)[:-1]
    expected = tuple(offered.boxes_xyxy[int(sizes.argmax())].tolist())
    assert largest(offered, frozenset(["horse"])) == expected
    assert largest(offered, frozenset(["dog"])) == expected
    assert largest(row_of_horses(np.random.default_rng(0), 0), frozenset()) == (0, 0, 1, 1)


def test_names_of_candidates_have_vectors(coco: Store, model: Path, tmp_path: Path) -> None:
    own = seer()
    look_at_photos(coco, own, model, tmp_path / "out", quiet, limit=2)
    names, vectors = name_vectors(tmp_path / "out", own)
    assert names == ("cat", "cup", "dog")
    assert vectors.shape == (3, 3)
    assert (tmp_path / "out" / LOOKS).is_dir()
