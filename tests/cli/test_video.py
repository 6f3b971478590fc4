"""`saywhere video`: every frame through the same looks as photos, and what is missing named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from click.testing import Result
from PIL import Image
from typer.testing import CliRunner

from saywhere import loading
from saywhere.cli import video
from saywhere.core import InvalidFile, InvalidValue, Mask, Region, Trace
from saywhere.models.face import MissingSkill
from saywhere.models.patchioner.seer import Seer, SeerLook
from tests.models.patchioner_seeing import photo, seer
from tests.videos import NAMES, write_video

app = typer.Typer()
app.add_typer(video.app, name="video")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Seer:
    """Every model is the tiny one, and needs nothing of others."""
    model = seer()
    monkeypatch.setattr(loading, "load", lambda name: model)
    monkeypatch.setattr(loading, "needed_assets", lambda name, *, texts: ())
    return model


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """Narratives of a video with pets on two of its three frames."""
    path = write_video(tmp_path / "videos", frames=())
    for name in NAMES[:2]:
        photo().save(path.parent / "frames" / "c1a40349" / f"{name}.png")
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["video", *map(str, arguments)])


@pytest.mark.usefixtures("tiny")
def test_frames_of_a_folder_are_captioned_one_by_one(told: Path) -> None:
    ran = run("caption", told.parent / "frames" / "c1a40349")
    assert ran.stdout.splitlines() == [f"c1a40349 {name}: a cat (unsure)" for name in NAMES[:2]]


@pytest.mark.usefixtures("tiny")
def test_what_was_pointed_at_is_captioned_and_missing_frames_are_named(told: Path) -> None:
    ran = run("caption", told, "--json")
    assert ran.exit_code == 0
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(one["frame"], one["actor"]) for one in found] == [(NAMES[0], "Cat"), (NAMES[1], "background")]
    assert found[0]["text"] == "a cat"
    assert f"skipped c1a40349 {NAMES[2]} Cat: the frame has no file" in ran.stderr


@pytest.mark.usefixtures("tiny")
def test_a_text_is_found_in_every_frame(told: Path) -> None:
    ran = run("ground", told.parent / "frames" / "c1a40349", "a dog", "--json")
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [one["frame"] for one in found] == list(NAMES[:2])
    assert found[0]["phrases"] == found[1]["phrases"]
    assert found[0]["phrases"][0]["text"] == "a dog"
    own = run("ground", told)
    assert own.stdout.startswith(f"c1a40349 {NAMES[0]} Cat: A cat ")


def test_what_was_pointed_at_is_cut_out_of_every_frame(
    tiny: Seer, told: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(look: SeerLook, region: Region) -> Mask:
        assert isinstance(region, Trace)
        if region.start_s > 0:
            raise InvalidValue("mask", "is empty")
        x1, y1, x2, y2 = region.bounds_xyxy
        rows, cols = np.indices((40, 40)) / 40
        return Mask((cols >= x1) & (cols <= x2) & (rows >= y1) & (rows <= y2))

    monkeypatch.setattr(SeerLook, "segment", cut)
    monkeypatch.setattr(Seer, "skills", property(lambda self: ("segment",)))
    ran = run("segment", told, "--out", tmp_path / "masks")
    assert ran.exit_code == 0, ran.exception
    paths = sorted((tmp_path / "masks" / "c1a40349").iterdir())
    assert [path.name for path in paths] == [f"{NAMES[0]}-Cat.png"]
    assert f"skipped c1a40349 {NAMES[1]} background: mask: is empty" in ran.stderr
    mask = np.asarray(Image.open(paths[0]))
    assert mask[10, 8] == 255  # between the points (0.1, 0.2) and (0.4, 0.4)
    assert mask[30, 30] == 0


@pytest.mark.usefixtures("tiny")
def test_bad_input_is_said(told: Path, tmp_path: Path) -> None:
    folder = told.parent / "frames" / "c1a40349"
    assert isinstance(run("ground", folder).exception, InvalidValue)
    assert isinstance(run("segment", told, "--out", tmp_path).exception, MissingSkill)
    assert isinstance(run("segment", folder, "--out", tmp_path).exception, InvalidFile)
    gone = run("caption", told, "--photos", tmp_path)
    assert "has no frame to look at" in str(gone.exception)
    (folder / f"{NAMES[1]}.png").write_bytes(b"no picture")
    ran = run("caption", folder)
    assert len(ran.stdout.splitlines()) == 1
    assert f"skipped c1a40349 {NAMES[1]}" in ran.stderr
