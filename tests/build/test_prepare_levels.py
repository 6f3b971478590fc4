"""HL rows and photos made ready for Oscar: what is kept, and what is left out and named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from saywhere.build import coco_regions
from saywhere.build.prepare import Splits, parse_splits, prepare_levels
from saywhere.cli.app import app
from saywhere.core import InvalidFile, InvalidValue
from saywhere.engine import OneProcess
from saywhere.models.oscar import LevelCaptions
from saywhere.models.tagged_regions import TaggedRegions

LEVELS = {"scene": ["in a park", "at the park"], "object": ["a dog on the grass"], "action": ["playing"]}


def quiet(what: str, done: int, total: int) -> None:
    """Says nothing."""


def _made_up_look(photo: Path) -> TaggedRegions:
    empty = photo.stem == "p1"  # A photo in which nothing is detected still has its windows.
    features = np.random.default_rng(3).normal(size=(3, 6))
    places = [(0, 0, 1, 1), (0.1, 0.1, 0.5, 0.5), (0, 0, 0.5, 1)]
    tag_boxes = [(0.1, 0.1, 0.5, 0.5), (0, 0, 1, 1)]
    return TaggedRegions(features, places, [] if empty else ["dog", "frisbee"], [] if empty else tag_boxes)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Splits:
    """Two HL files; photos that shrank to another format."""
    monkeypatch.setattr(coco_regions, "_see", _made_up_look)
    (tmp_path / "photos").mkdir()
    files: dict[str, tuple[Path, ...]] = {}
    for split, names in (("train", ("p0", "p1", "p2")), ("validation", ("p3",))):
        files[split] = (tmp_path / f"{split}.jsonl",)
        files[split][0].write_text(
            "".join(json.dumps({"file_name": f"{name}.jpg", "captions": LEVELS}) + "\n" for name in names)
        )
        for name in names:
            Image.new("RGB", (8, 8)).save(tmp_path / "photos" / f"{name}.webp")
    return files


def test_every_level_of_every_row_is_kept_with_tags_of_its_photo(rows: Splits, tmp_path: Path) -> None:
    made = prepare_levels(tmp_path / "out", rows, tmp_path / "photos", quiet, OneProcess(), least_word_count=1)
    folder = LevelCaptions(tmp_path / "out")
    assert folder.levels == {"scene": 8, "object": 4, "action": 4}
    assert folder.splits == {"train": 12, "validation": 4}
    assert folder.image("p0").tags == ("dog", "frisbee")
    assert folder.image("p1").tags == ()
    assert made.left_out == ()
    assert made.counts == {"captions": 16, "of scene": 8, "of object": 4, "of action": 4}


def test_bad_rows_and_photos_are_named_and_the_rest_is_kept(rows: Splits, tmp_path: Path) -> None:
    with rows["train"][0].open("a") as file:
        file.write('{"file_name": "p9.jpg", "captions": {}}\n')
        file.write(json.dumps({"file_name": "gone.jpg", "captions": LEVELS}) + "\n")
        file.write(json.dumps({"file_name": "broken.jpg", "captions": LEVELS}) + "\n")
    (tmp_path / "photos" / "broken.jpg").write_bytes(b"no photo")
    made = prepare_levels(tmp_path / "out", rows, tmp_path / "photos", quiet, OneProcess())
    assert len(made.left_out) == 3
    for reason, said in zip(
        ("train.jsonl:4:", "gone.jpg: is not in the folder", "broken.jpg"), made.left_out, strict=True
    ):
        assert reason in said
    assert LevelCaptions(tmp_path / "out").image_names("train") == ["p0", "p1", "p2"]


def test_photos_of_other_rows_are_refused(rows: Splits, tmp_path: Path) -> None:
    (tmp_path / "others").mkdir()
    with pytest.raises(InvalidFile, match="none of the photos"):
        prepare_levels(tmp_path / "out", rows, tmp_path / "others", quiet, OneProcess())


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["train"], "not of the form NAME=FILE"),
        (["train=a.jsonl", "train=b.jsonl"], "given twice"),
        (["train=a.jsonl"], "add validation=FILE"),
        ([], "add train=FILE"),
    ],
)
def test_splits_that_make_no_sense_are_refused(given: list[str], complaint: str) -> None:
    with pytest.raises(InvalidValue, match=complaint):
        parse_splits(given, "FILE", ("train", "validation"))


def test_the_command_says_what_was_left_out(rows: Splits, tmp_path: Path) -> None:
    (tmp_path / "photos" / "p2.webp").unlink()
    splits = [f"{name}={path}" for name, (path,) in rows.items()]
    # Looks that are there already: other processes would not see made-up ones.
    photos = [tmp_path / f"{name}.webp" for name in ("p0", "p1", "p3")]
    coco_regions.see_tagged(photos, tmp_path / "out" / "looks", quiet, OneProcess())
    command = ["prepare", "levels", *splits, "--photos", str(tmp_path / "photos"), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1, result.output
    assert "12 captions" in result.output
    assert "p2.jpg: is not in the folder" in result.output
