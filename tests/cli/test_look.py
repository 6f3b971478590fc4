"""`saywhere look`: a folder in, views out, every photo accounted for."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from click.testing import Result
from PIL import Image
from typer.testing import CliRunner

from saywhere import vision
from saywhere.cli.look import look
from saywhere.core import InvalidFile, UnknownName
from saywhere.vision import open_views
from saywhere.vision.look import LiteEncoder
from tests.vision.conftest import tiny_network

app = typer.Typer()
app.command()(look)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for n, ending in enumerate(("png", "jpg", "WEBP")):
        Image.new("RGB", (30 + n, 20), (n, 50, 90)).save(folder / f"{n}.{ending}")
    (folder / "notes.txt").write_text("no photo")
    return folder


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every encoder is a small one of random weights."""
    monkeypatch.setattr(
        vision,
        "open_encoder",
        lambda name, side: LiteEncoder(tiny_network(), name, "0" * 64, 64 if side is None else side),
    )


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.usefixtures("tiny")
def test_every_photo_of_the_folder_gets_a_view(tmp_path: Path, photos: Path) -> None:
    ran = _run(photos, "--out", tmp_path / "views", "--encoder", "efficientnet-lite1", "--input-px", 96)
    assert ran.exit_code == 0
    assert "3 views of 3×3×9 by efficientnet-lite1" in ran.stdout
    assert "looking at photos: 3 of 3" in ran.stderr
    views = open_views(tmp_path / "views")
    assert list(views) == ["0", "1", "2"]
    assert views.encoder["encoder"] == "efficientnet-lite1"


@pytest.mark.usefixtures("tiny")
def test_a_photo_that_cannot_be_read_is_named_and_the_rest_are_kept(tmp_path: Path, photos: Path) -> None:
    (photos / "1.jpg").write_bytes(b"torn")
    ran = _run(photos, "--out", tmp_path / "views")
    assert ran.exit_code == 1
    assert "2 views of 2×2×9" in ran.stdout
    assert f"{photos / '1'}: is not an image" in ran.stderr
    assert len(open_views(tmp_path / "views")) == 2


def test_a_folder_that_is_none_or_empty_and_an_unknown_encoder_are_errors(tmp_path: Path, photos: Path) -> None:
    (tmp_path / "empty").mkdir()
    for folder, reason in (
        (tmp_path / "empty", "holds no photos"),
        (tmp_path / "absent", "cannot be read as a folder"),
    ):
        ran = _run(folder, "--out", tmp_path / "views")
        assert isinstance(ran.exception, InvalidFile)
        assert reason in str(ran.exception)
    assert isinstance(_run(photos, "--out", tmp_path / "views", "--encoder", "resnet").exception, UnknownName)
    assert not (tmp_path / "views").exists()
