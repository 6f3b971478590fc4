"""`saywhere segment`: a mask to a file, a drawing, JSON; and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from saywhere import loading
from saywhere.core.run_lengths import mask_of_runs
from tests.cli.conftest import Ran
from tests.models.patchioner_seeing import photo
from tests.models.test_seer_segment import cutting

Run = Callable[..., Ran]


@pytest.fixture
def pets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    model, _ = cutting()
    monkeypatch.setattr(loading, "load", lambda name: model)
    monkeypatch.setattr(loading, "needed_assets", lambda name, *, texts: ())
    monkeypatch.setattr(loading, "needed_for_masks", lambda name: ())
    photo().save(tmp_path / "pets.png")
    return tmp_path / "pets.png"


def test_a_mask_is_written_drawn_and_printed(saywhere: Run, pets: Path, tmp_path: Path) -> None:
    files = ("--out", tmp_path / "mask.png", "--png", tmp_path / "drawn.png")
    ran = saywhere("segment", pets, "--box", "0,0,0.5,1", *files)
    assert ran.code == 0, ran.err
    with Image.open(tmp_path / "mask.png") as mask, Image.open(tmp_path / "drawn.png") as drawn:
        inside, width = np.asarray(mask), drawn.width
    assert inside.shape == (40, 40)
    assert inside[:, :20].all()
    assert not inside[:, 20:].any()
    assert ran.out == "50.0% of the photo, inside 0.000,0.000,0.500,1.000\n"
    assert width > 500
    told = json.loads(saywhere("segment", pets, "--box", "0,0,20,40", "--pixels", "--json").out)
    np.testing.assert_array_equal(mask_of_runs(told["mask"]["counts"], *told["mask"]["size"]), inside)
    assert told["box_xyxy"] == pytest.approx([0, 0, 0.5, 1])


def test_what_is_named_is_cut_out(saywhere: Run, pets: Path) -> None:
    told = json.loads(saywhere("segment", pets, "--phrase", "a cat", "--json").out)
    assert told["phrase"] == "a cat"
    assert told["mask"] == {"size": [40, 40], "counts": [0, 800, 800]}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "is not given"),
        (["--phrase", "a cat", "--point", "0.5,0.5"], "is given twice"),
        (["--point", "0.5,0.5", "--box", "0,0,1,1"], "point at one"),
        (["--point", "2,2"], "nothing of the visible part of the photo"),
        (["--point", "0.5,0.5", "-o", "mask.jpg"], "does not end in .png"),
        (["--phrase", "a horse"], "seems not to be in the photo"),
    ],
)
def test_what_cannot_be_cut_out_is_refused(saywhere: Run, pets: Path, options: list[str], words: str) -> None:
    ran = saywhere("segment", pets, *options)
    assert ran.code == 2
    assert words in ran.err
