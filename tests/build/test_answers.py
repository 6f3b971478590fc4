"""How the answering part is made: what is asked while pointing, and COCO folders with and without faults."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from saywhere.build import coco_regions
from saywhere.build.answers import (
    IS_THIS,
    THIS,
    AnswerScale,
    box_fits,
    build_answers,
    pointing_questions,
    prepare_answers,
)
from saywhere.build.base_photos import held_out
from saywhere.build.coco_regions import CocoFolder, box_importance, see_photos
from saywhere.build.photo_boxes import PhotoBoxes
from saywhere.core import InvalidFile, InvalidValue
from saywhere.models.region_features import RegionFeatures
from saywhere.models.tagged_regions import TaggedRegions
from saywhere.models.updown import UpDnVqa

DOG, CAT = (0.1, 0.1, 0.5, 0.5), (0.6, 0.2, 0.9, 0.8)
SCALE = AnswerScale(passes=2, steps=4, batch=8, width=8, embedding=4)


def quiet(what: str, done: int, total: int) -> None:
    """Says nothing."""


def _random_look(photo: Path) -> TaggedRegions:
    rng = np.random.default_rng(int(photo.stem))
    return TaggedRegions(rng.normal(size=(4, 6)), [(0, 0, 1, 1), DOG, CAT, (0, 0, 0.5, 1)])


@pytest.fixture
def coco(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CocoFolder:
    """Photos with a dog, or a dog and a cat, some of them held out; what is seen in them is made up."""
    monkeypatch.setattr(coco_regions, "_see", _random_look)
    folder = tmp_path / "coco"
    (folder / "photos").mkdir(parents=True)
    held = [*sorted(held_out("test"))[:6], *sorted(held_out("validation"))[:6]]
    names = [*held, *(f"{900_000_000_000 + i}" for i in range(20))]
    boxes, captions = {}, []
    for i, name in enumerate(names):
        Image.new("RGB", (8, 8)).save(folder / "photos" / f"{name}.png")
        boxes[name] = [[16, 0.3, 0.3, 0.4, 0.4], *([[15, 0.75, 0.5, 0.3, 0.6]] if i % 2 else [])]
        captions.append({"id": i, "image_id": int(name), "caption": "a brown dog beside a cat" if i % 2 else "a dog"})
    (folder / "boxes.json").write_text(json.dumps(boxes))
    images = [{"id": int(name), "file_name": f"{name}.png"} for name in names]
    (folder / "captions_val2017.json").write_text(json.dumps({"images": images, "annotations": captions}))
    return CocoFolder.of(folder)


def test_pointing_asks_what_is_there_and_half_the_time_what_is_not() -> None:
    photo = PhotoBoxes("1", {"dog": (DOG,), "cat": (CAT,)})
    rng = np.random.default_rng(0)
    asked = [one for _ in range(200) for one in pointing_questions(photo, AnswerScale(), rng)]
    named = {tuple(one.pointed_xyxy.tolist()): one.answer for one in asked if one.question_type == THIS}  # type: ignore[union-attr]
    assert named == {DOG: "dog", CAT: "cat"}
    yes_no = [one.answer for one in asked if one.question_type == IS_THIS]
    assert yes_no.count("yes") / len(yes_no) == pytest.approx(0.5, abs=0.08)
    for one in asked:
        if one.question_type == IS_THIS:
            truth = "dog" if one.pointed_xyxy is not None and one.pointed_xyxy[0] == DOG[0] else "cat"
            assert (one.answer == "yes") == (one.text.removesuffix("?").split(" ", 3)[3] == truth)


def test_a_place_must_fit_what_is_pointed_at() -> None:
    places = np.array([(0, 0, 1, 1), DOG, CAT, (0.1, 0.1, 0.5, 0.3)])
    fits = box_fits(np.array(DOG), places)
    assert fits == pytest.approx([0.16, 1.0, 0.0, 0.5])


def test_questions_of_held_out_photos_are_never_learnt_from(coco: CocoFolder, tmp_path: Path) -> None:
    questions = prepare_answers(tmp_path / "out", coco, SCALE, quiet, workers=0)
    for split, which in (("test", "test"), ("validation", "validation")):
        items = questions.split(split)
        assert {items.question(i).image for i in range(len(items))} <= held_out(which)
    train = questions.split("train")
    asked = [train.question(i) for i in range(len(train))]
    assert not {one.image for one in asked} & (held_out("test") | held_out("validation"))
    assert len({(one.image, one.text) for one in asked if one.pointed is None}) == sum(o.pointed is None for o in asked)


def test_the_part_is_trained_saved_and_measured_by_type(coco: CocoFolder, tmp_path: Path) -> None:
    found = build_answers(tmp_path / "out", coco, SCALE, quiet, workers=0)
    network = UpDnVqa.from_pretrained(tmp_path / "out" / "answers")
    assert network.config.region_size == 6
    assert 0 <= found["accuracy"] <= 1
    assert any(name.startswith(THIS) for name in found)


def test_no_photo_is_looked_at_twice(coco: CocoFolder, tmp_path: Path) -> None:
    paths = sorted(coco.photos.iterdir())[:3]
    told: list[int] = []
    see_photos(paths[:2], tmp_path, quiet, workers=0)
    seen = see_photos(paths, tmp_path, lambda what, done, total: told.append(done), workers=0)
    assert told == [3]
    assert list(seen) == [path.stem for path in paths]


@pytest.mark.parametrize("missing", ["photos", "boxes.json", "captions_val2017.json"])
def test_a_folder_that_lacks_something_is_named(coco: CocoFolder, missing: str) -> None:
    path = coco.photos.parent / missing
    path.rename(path.with_name("elsewhere"))
    with pytest.raises(InvalidFile, match=f"{missing}.*is not there"):
        CocoFolder.of(coco.photos.parent)


def test_boxes_of_other_photos_are_refused(coco: CocoFolder, tmp_path: Path) -> None:
    coco.boxes.write_text(json.dumps({"000000000001": [[0, 0.5, 0.5, 0.2, 0.2]]}))
    with pytest.raises(InvalidValue, match="none of the 1 photos with boxes"):
        prepare_answers(tmp_path / "out", coco, SCALE, quiet, workers=0)


def test_importance_is_highest_where_the_box_is() -> None:
    image = RegionFeatures(np.zeros((3, 2)), [(0, 0, 1, 1), DOG, CAT])
    whole, dog, cat = box_importance(np.array([DOG]), image).tolist()
    assert dog > 0.95
    assert whole == pytest.approx(0.5)
    assert cat == pytest.approx(0, abs=1e-9)
