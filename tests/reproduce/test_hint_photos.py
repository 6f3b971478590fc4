"""Real photos made ready for HINT, with made-up photos."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from saywhere.build.coco_regions import CocoFolder
from saywhere.build.held_out import held_out
from saywhere.models.updown import Captions, Questions
from saywhere.reproduce.hint_data import HintPhotos, prepare_hint_photos
from tests.build.test_coco_regions import coco, quiet

__all__ = ["coco"]


def test_tests_are_about_photos_that_the_eye_never_saw(coco: CocoFolder, tmp_path: Path) -> None:
    prepare_hint_photos(tmp_path / "out", coco, HintPhotos(), quiet, workers=0)
    questions, captions = Questions(tmp_path / "out" / "questions"), Captions(tmp_path / "out" / "captions")
    for split, items in (("same", questions.split("same")), ("changed", questions.split("changed"))):
        assert len(items), split
        assert {items.question(i).image for i in range(len(items))} <= held_out("test")
    train = questions.split("train")
    assert not {train.question(i).image for i in range(len(train))} & held_out("test")
    told = captions.split("test")
    assert {told.caption(i).image for i in range(len(told))} <= held_out("test")


def test_visual_words_are_looked_for_where_their_class_has_boxes(coco: CocoFolder, tmp_path: Path) -> None:
    prepare_hint_photos(tmp_path / "out", coco, HintPhotos(), quiet, workers=0)
    train = Captions(tmp_path / "out" / "captions").split("train")
    both = next(train.caption(i) for i in range(len(train)) if "cat" in train.caption(i).text)
    assert [both.text.split()[place] for place, _ in both.visual] == ["dog", "cat"]
    # Places are the whole photo, the dog's box and the cat's: see the fixture.
    (_, dog), (_, cat) = both.visual
    assert dog[1] > dog[2]
    assert cat[2] > cat[1]


def test_popes_questions_about_test_photos_are_asked_too(coco: CocoFolder, tmp_path: Path) -> None:
    [image] = sorted(held_out("test"))[:1]
    text = "Is there a dog in the image?"
    asked = [
        {"question_id": 1, "image": f"COCO_val2014_{image}.jpg", "text": text, "label": "yes"},
        {"question_id": 2, "image": "COCO_val2014_000000000139.jpg", "text": text, "label": "no"},
    ]
    folder = coco.photos.parent.parent / "pope"
    folder.mkdir()
    (folder / "coco_pope_random.json").write_text("\n".join(json.dumps(one) for one in asked))
    prepare_hint_photos(tmp_path / "out", CocoFolder.of(coco.photos.parent), HintPhotos(), quiet, workers=0)
    pope = Questions(tmp_path / "out" / "questions").split("pope")
    assert [pope.question(i).answers[0] for i in range(len(pope))] == ["yes"]


@pytest.mark.parametrize("most", [8, None])
def test_fewer_photos_can_be_asked_for(coco: CocoFolder, tmp_path: Path, most: int | None) -> None:
    prepare_hint_photos(tmp_path / "out", coco, HintPhotos(photos=most), quiet, workers=0)
    kept = Questions(tmp_path / "out" / "questions").about["photos"]["kept"]
    assert kept == (20 if most else 32)
