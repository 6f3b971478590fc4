from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from saywhere.formats import localized_narratives
from saywhere.models.mitr import MITR
from saywhere.models.mitr.prepared import Prepared, split_of
from tests.cli.conftest import Ran
from tests.cli.test_data import CUP

Run = Callable[..., Ran]
SPLIT_NAMES = ("train", "restval", "val", "test")


def test_a_world_is_made_and_its_files_pass_the_check(saywhere: Run, tmp_path: Path) -> None:
    ran = saywhere("world", "make", "--out", tmp_path / "world", "-n", 6, "--seed", 4, "--size", 64)
    assert ran.code == 0, ran.err
    assert "6 photos" in ran.out
    assert saywhere("data", "check", tmp_path / "world" / "narratives.jsonl").code == 0
    page = tmp_path / "page.html"
    shown = saywhere(
        "data", "show", tmp_path / "world" / "narratives.jsonl", "--photos", tmp_path / "world" / "photos", "-o", page
    )
    assert "6 narratives" in shown.out


def test_a_contact_sheet_is_drawn(saywhere: Run, tmp_path: Path) -> None:
    assert saywhere("world", "show", "-n", 4, "--place", "kitchen", "--out", tmp_path / "sheet.png").code == 0
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.width > 128
    assert "is not a .png" in saywhere("world", "show", "--out", tmp_path / "sheet.pdf").err
    ran = saywhere("world", "show", "--place", "kichen", "--out", tmp_path / "x.png")
    assert ran.code == 2
    assert "kitchen" in ran.err


@pytest.fixture
def prepared(saywhere: Run, tmp_path: Path) -> Path:
    """Forty narratives joined with the features of their photos."""
    localized_narratives.write(tmp_path / "n.jsonl", [replace(CUP, image_id=str(i)) for i in range(60)])
    (tmp_path / "features").mkdir()
    for i in range(58):
        boxes = np.array([[0, 0, 0.5, 0.5], [0.2, 0.2, 1, 1]], dtype=np.float32)
        np.savez(tmp_path / "features" / f"{i}.npz", feat=np.ones((2, 4), dtype=np.float32), bbox=boxes)
    ran = saywhere(
        "prepare", "narratives", tmp_path / "n.jsonl", "--features", tmp_path / "features", "--out", tmp_path / "data"
    )
    assert ran.code == 0, ran.err
    assert "2 without features" in ran.out
    return tmp_path / "data"


def recipe(folder: Path) -> Path:
    path = folder.parent / "tiny.toml"
    path.write_text(
        'name = "tiny"\ntask = "mitr"\n[model]\nwidth = 8\nheads = 2\nfeed_forward = 16\ncycle = 0.0\n'
        f'[data]\nfolder = "{folder}"\n[train]\nsteps = 4\nbatch_size = 4\nlr = 1e-2\nnum_threads = 1\n'
        '[validate]\nmetric = "loss"\nevery_steps = 2\n[checkpoint]\nevery_steps = 2\n[log]\nplot = false\n'
    )
    return path


def test_a_recipe_is_trained_and_evaluated(saywhere: Run, prepared: Path, tmp_path: Path) -> None:
    ran = saywhere("train", recipe(prepared), "train.steps=3", "--out", tmp_path / "run")
    assert ran.code == 0, ran.err
    assert "finished after 3 steps, best loss" in ran.out
    ran = saywhere("eval", tmp_path / "run", "--which", "last")
    assert ran.code == 0, ran.err
    assert "joint_caption" in ran.out
    assert json.loads((tmp_path / "run" / "evaluation-last.json").read_text())["step"] == 3
    ran = saywhere("export", tmp_path / "run", "--out", tmp_path / "network", "--which", "last")
    assert ran.code == 0, ran.err
    assert "step-00000003" in ran.out
    assert MITR.from_pretrained(tmp_path / "network").config.width == 8


def test_a_mitr_is_tested_on_a_split_or_a_list_and_writes_what_it_said(
    saywhere: Run, prepared: Path, tmp_path: Path
) -> None:
    assert saywhere("train", recipe(prepared), "train.steps=2", "--out", tmp_path / "run").code == 0
    said = tmp_path / "said.jsonl"
    ran = saywhere("eval", tmp_path / "run", "--split", "test", "--beams", 2, "--predictions", said)
    assert ran.code == 0, ran.err
    for measure in ("trace LBM (k=0)", "trace LBM (k=1)", "caption CIDEr", "joint LBM (k=1)", "joint BLEU-4"):
        assert measure in ran.out
    rows = [json.loads(line) for line in said.read_text().splitlines()]
    narratives = Prepared(prepared).split("test")
    assert len(rows) == 3 * len(narratives)
    assert {row["test"] for row in rows} == {"trace", "caption", "joint"}
    first = next(row for row in rows if row["test"] == "trace")
    assert len(first["boxes_xyxy"]) == len(narratives[0].words)
    assert first["image"] == narratives.image_name(0)
    (tmp_path / "list.txt").write_text("3\n000000000005.jpg\n")
    ran = saywhere("eval", tmp_path / "run", "--split", tmp_path / "list.txt", "--beams", 1, "--data", prepared)
    assert ran.code == 0, ran.err
    assert "2 narratives, 1 beams" in ran.out
    ran = saywhere("eval", tmp_path / "run", "--split", tmp_path / "list.txt", "--beams", 1)
    assert ("narratives were learnt from" in ran.err) == any(split_of(name) == "train" for name in "35")
    images = [{"cocoid": 3, "split": "train"}, {"cocoid": 5, "split": "test"}, {"cocoid": 4, "split": "val"}]
    (tmp_path / "dataset_coco.json").write_text(json.dumps({"images": images}))
    karpathy = tmp_path / "dataset_coco.json"
    ran = saywhere("eval", tmp_path / "run", "--split", karpathy, "--beams", 1, "--data", prepared)
    assert "1 narratives, 1 beams" in ran.out
    ran = saywhere("eval", tmp_path / "run", "--predictions", said)
    assert ran.code == 2
    assert "--split" in ran.err


def test_official_split_lists_are_followed(saywhere: Run, prepared: Path, tmp_path: Path) -> None:
    images = [{"cocoid": i, "filename": f"COCO_val2014_{i:012}.jpg", "split": s} for i, s in enumerate(SPLIT_NAMES)]
    (tmp_path / "dataset_coco.json").write_text(json.dumps({"images": images, "dataset": "coco"}))
    arguments = ("prepare", "narratives", tmp_path / "n.jsonl", "--features", tmp_path / "features")
    ran = saywhere(*arguments, "--out", tmp_path / "karpathy", "--split", tmp_path / "dataset_coco.json")
    assert ran.code == 0, ran.err
    assert "2 train, 1 validation, 1 test" in ran.out
    test = Prepared(tmp_path / "karpathy").split("test")
    assert [test.image_name(i) for i in range(len(test))] == ["3"]
    (tmp_path / "train.txt").write_text("COCO_train2014_000000000003.jpg 3\n")
    both = ("--split", tmp_path / "dataset_coco.json", "--split", f"train={tmp_path / 'train.txt'}")
    ran = saywhere(*arguments, "--out", tmp_path / "both", *both)
    assert ran.code == 2
    assert "image 3 is in two splits, test and train" in ran.err
    ran = saywhere(*arguments, "--out", tmp_path / "none", "--split", tmp_path / "train.txt")
    assert "does not say which split" in ran.err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("train", "nowhere.toml"), "nowhere.toml"),
        (("train", "{recipe}", "train.stepps=3"), "steps"),
        (("train", "{recipe}", "task='mitre'"), "Did you mean 'mitr'"),
        (("eval", "nowhere"), "nowhere"),
        (("eval", "nowhere", "--which", "beste"), "Did you mean 'best'"),
        (("export", "nowhere", "--out", "x"), "nowhere"),
    ],
)
def test_what_cannot_be_trained_is_said_in_one_line(
    saywhere: Run, prepared: Path, arguments: tuple[str, ...], reason: str
) -> None:
    ran = saywhere(*(a.replace("{recipe}", str(recipe(prepared))) for a in arguments))
    assert ran.code == 2
    assert reason in ran.err
    assert "Traceback" not in ran.err


def test_the_papers_are_listed(saywhere: Run) -> None:
    assert "mitr" in saywhere("reproduce", "--help").out
