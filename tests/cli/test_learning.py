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
from tests.cli.conftest import Ran
from tests.cli.test_data import CUP

Run = Callable[..., Ran]


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
