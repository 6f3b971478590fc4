"""Official VQA files with features and human attention, made ready; what is wrong is named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from saywhere.build.prepare import Splits, parse_splits, prepare_questions
from saywhere.cli.app import app
from saywhere.core import InvalidValue
from saywhere.models.region_features import open_features
from saywhere.models.updown import Questions

LEFT, RIGHT = (0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0)


@pytest.fixture
def files(tmp_path: Path) -> Splits:
    """Two questions about photo 1, one about photo 2, which has no features; one that nobody answered."""
    features = tmp_path / "features"
    features.mkdir()
    np.savez(features / "1.npz", feat=np.eye(2, 3, dtype=np.float32), bbox=np.array([LEFT, RIGHT], dtype=np.float32))
    asked = [(10, 1, "What is left?"), (11, 1, "What is right?"), (12, 2, "What is it?"), (13, 1, "Who is it?")]
    questions = [{"question_id": i, "image_id": image, "question": text} for i, image, text in asked]
    answers = [
        {
            **{"question_id": i, "image_id": image, "question_type": "what is", "answer_type": "other"},
            "answers": [{"answer": "cup"}] * 10,
        }
        for i, image, _ in asked[:3]
    ]
    for name, content in (("questions", questions), ("annotations", answers)):
        (tmp_path / f"{name}.json").write_text(json.dumps({name: content}))
    return {"train": (tmp_path / "questions.json", tmp_path / "annotations.json")}


def _hat(folder: Path) -> Path:
    """Two people look left for question 10; a map that is black for 11; one of a question that nobody asks."""
    folder.mkdir()
    left = np.zeros((8, 8), dtype=np.uint8)
    left[:, :4] = 200
    for name, values in (("10_1", left), ("10_2", left), ("11_1", np.zeros_like(left)), ("99_1", left)):
        Image.fromarray(values).save(folder / f"{name}.png")
    return folder


def test_hat_maps_become_importance_of_regions(files: Splits, tmp_path: Path) -> None:
    with open_features(tmp_path / "features") as features:
        made = prepare_questions(tmp_path / "out", files, features, _hat(tmp_path / "hat"), lambda *_: None, 1)
    train = Questions(tmp_path / "out").split("train")
    first, second = (train.question(i) for i in range(2))
    assert first.importance is not None
    assert first.importance.tolist() == pytest.approx([1, 0])
    assert second.importance is None
    assert made.counts["attention maps of no question"] == 1
    assert any("zero everywhere" in reason for reason in made.left_out)
    assert any("question 13 has no answers" in reason for reason in made.left_out)
    assert made.left_out[-1] == "question 12: its image is not there"


def test_boxes_to_look_at_do_as_well_and_the_command_says_what_is_left_out(files: Splits, tmp_path: Path) -> None:
    looked = {"attention": [{"question_id": 11, "boxes_xyxy": [RIGHT]}, {"question_id": 10, "boxes_xyxy": []}]}
    (tmp_path / "looked.json").write_text(json.dumps(looked))
    split = f"train={files['train'][0]},{files['train'][1]}"
    arguments = ["prepare", "questions", split, "--features", str(tmp_path / "features"), "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(app, [*arguments, "--attention", str(tmp_path / "looked.json"), "--least-count", "1"])
    assert result.exit_code == 1
    assert "2 kept, 1 hinted" in result.output
    assert "question 12: its image is not there" in result.output.replace("\n", " ")


def test_of_boxes_to_look_at_the_clock_counts_and_not_the_sky_around_it(files: Splits, tmp_path: Path) -> None:
    sky, clock, street = (0.0, 0.0, 1.0, 0.6), (0.4, 0.2, 0.5, 0.3), (0.0, 0.6, 1.0, 1.0)
    boxes = np.array([(0, 0, 1, 1), sky, clock, street], np.float32)
    np.savez(tmp_path / "features" / "1.npz", feat=np.eye(4, dtype=np.float32), bbox=boxes)
    looked = {"attention": [{"question_id": 10, "boxes_xyxy": [clock]}]}
    (tmp_path / "looked.json").write_text(json.dumps(looked))
    with open_features(tmp_path / "features") as features:
        prepare_questions(tmp_path / "out", files, features, tmp_path / "looked.json", lambda *_: None, 1)
    importance = Questions(tmp_path / "out").split("train").question(0).importance
    assert importance is not None
    np.testing.assert_allclose(importance, [np.nan, 0, 1, 0])


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["train"], "not of the form"),
        (["train=a.json"], "not of the form"),
        (["test=a.json,b.json"], "add train=QUESTIONS,ANSWERS"),
        (["train=a,b", "train=a,b"], "given twice"),
    ],
)
def test_splits_that_cannot_be_are_refused(given: list[str], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        parse_splits(given, "QUESTIONS,ANSWERS")
