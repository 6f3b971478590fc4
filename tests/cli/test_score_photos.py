"""`saywhere score photo-captions` with a CLIP that was never trained."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from saywhere.cli.app import app
from saywhere.language.clip_text import open_clip_text
from saywhere.vision.hub import open_hub_encoder
from tests.language.test_embed import folders

__all__ = ["folders"]


@pytest.fixture
def told(tmp_path: Path) -> Path:
    (tmp_path / "photos").mkdir()
    for number, colour in enumerate(("red", "blue", "white")):
        Image.new("RGB", (12, 8), colour).save(tmp_path / "photos" / f"{number}.png")
    (tmp_path / "said.json").write_text(json.dumps({"0": "a cat", "1": "a dog", "2": "a cup"}))
    (tmp_path / "true.json").write_text(json.dumps({str(i): ["a cat", "a dog on a cup"] for i in range(3)}))
    return tmp_path


def _scored(told: Path, clip: Path, *more: str) -> dict[str, dict[str, dict[str, float]]]:
    given = ["score", "photo-captions", str(told / "said.json"), "--photos", str(told / "photos"), "--clip", str(clip)]
    result = CliRunner().invoke(app, [*given, "-o", str(told / "out.json"), *more])
    assert result.exit_code == 0, result.output
    found: dict[str, dict[str, dict[str, float]]] = json.loads((told / "out.json").read_text())
    return found


def test_captions_are_scored_by_the_cosine_to_the_middle_of_their_photo(told: Path, folders: dict[str, Path]) -> None:
    found = _scored(told, folders["clip"], "--references", str(told / "true.json"))
    [view] = open_hub_encoder(f"clip:{folders['clip']}", fit="centre_crop").look_many([told / "photos" / "1.png"])
    said, *true = open_clip_text(str(folders["clip"])).embed(
        [f"A photo depicts {text}" for text in ("a dog", "a cat", "a dog on a cup")]
    )
    near = 2.5 * max(float(view.whole @ said / np.linalg.norm(view.whole)), 0)
    assert found["per_item"]["1"]["CLIP-S"] == pytest.approx(near, abs=1e-5)
    reference = max(float(one @ said) for one in true)
    assert found["per_item"]["1"]["RefCLIP-S"] == pytest.approx(2 * near * reference / (near + reference), abs=1e-5)


def test_pac_s_counts_cosines_twice(told: Path, folders: dict[str, Path]) -> None:
    clip, pac = (_scored(told, folders["clip"], *more)["per_item"]["2"] for more in ([], ["--pac"]))
    assert set(pac) == {"PAC-S"}
    assert pac["PAC-S"] == pytest.approx(clip["CLIP-S"] * 2 / 2.5)


def test_a_caption_without_photo_or_references_is_named(told: Path, folders: dict[str, Path]) -> None:
    given = ["score", "photo-captions", str(told / "said.json"), "--photos", str(told / "photos")]
    given += ["--clip", str(folders["clip"])]
    (told / "true.json").write_text(json.dumps({"0": ["a cat"]}))
    lacking = CliRunner().invoke(app, [*given, "--references", str(told / "true.json")])
    assert lacking.exit_code != 0
    assert "no caption of 2 images, such as 1" in str(lacking.exception) + lacking.output
    (told / "photos" / "2.png").unlink()
    without = CliRunner().invoke(app, given)
    assert without.exit_code != 0
    assert "1 images that" in str(without.exception) + without.output
