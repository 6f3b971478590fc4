"""`saywhere report gallery`: a folder in, one page out."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result
from PIL import Image
from typer.testing import CliRunner

from saywhere import loading
from saywhere.cli.report import app, regions_of
from saywhere.core import InvalidFile, InvalidValue
from saywhere.models.patchioner.narration import overlap
from saywhere.models.patchioner.writers import VectorWriter
from saywhere.vision import Found
from tests.models.patchioner_seeing import FOUND, LEVELS, level_decoder, photo, seer


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    model = seer()
    monkeypatch.setattr(loading, "load", lambda name: model)
    monkeypatch.setattr(loading, "needed_assets", lambda name, *, texts: ())


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    photo().save(folder / "a.png")
    Image.new("RGB", (1, 1), "blue").save(folder / "b.png")
    return folder


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["gallery", *(str(argument) for argument in arguments)])


def test_every_photo_is_on_the_page_with_what_was_said(photos: Path, tmp_path: Path) -> None:
    ran = _run(photos, "--out", tmp_path / "page.html", "--title", "Pets & cups")
    assert (ran.exit_code, ran.stdout) == (0, f"{tmp_path / 'page.html'}: 2 photos\n")
    page = (tmp_path / "page.html").read_text()
    for text in (
        "a.png",
        "b.png",
        "Pets &amp; cups",
        "looked at by tiny",
        "a dog",
        ">unsure<",
        "Narrated from the photo alone",
    ):
        assert text in page
    assert "http" not in page.replace("http-equiv", "")


def test_a_model_with_levels_tells_them_on_the_page_and_one_without_shows_none(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run(photos, "--out", tmp_path / "plain.html")
    assert '<dl class="levels">' not in (tmp_path / "plain.html").read_text()
    model = seer(level_writer=VectorWriter(level_decoder()))
    monkeypatch.setattr(loading, "load", lambda name: model)
    assert _run(photos, "--out", tmp_path / "page.html").exit_code == 0
    page = (tmp_path / "page.html").read_text()
    assert page.count('<dl class="levels">') == 2
    look = model.look(photos / "a.png")
    for level in LEVELS:
        assert f"<dt>{level}</dt>" in page
        assert look.caption(level=level).text in page


def test_a_photo_that_cannot_be_read_is_named_and_the_rest_are_shown(photos: Path, tmp_path: Path) -> None:
    (photos / "c.jpg").write_bytes(b"torn")
    ran = _run(photos, "--out", tmp_path / "page.html")
    assert ran.exit_code == 1
    assert "2 photos" in ran.stdout
    assert "c.jpg: is not an image" in ran.stderr
    page = (tmp_path / "page.html").read_text()
    assert "Not shown" in page
    assert "c.jpg: is not an image" in page


def test_a_limit_takes_the_first_by_name(photos: Path, tmp_path: Path) -> None:
    _run(photos, "--out", tmp_path / "page.html", "--limit", 1)
    page = (tmp_path / "page.html").read_text()
    assert "a.png" in page
    assert "b.png" not in page


def test_no_photo_a_wrong_ending_and_no_folder_are_errors_and_nothing_is_written(photos: Path, tmp_path: Path) -> None:
    torn = tmp_path / "torn"
    torn.mkdir()
    (torn / "a.jpg").write_bytes(b"torn")
    for arguments, kind, reason in (
        ((torn, "--out", tmp_path / "page.html"), InvalidFile, "none of 1 photos could be read; a.jpg is not an image"),
        ((photos, "--out", tmp_path / "page.pdf"), InvalidValue, "does not end in .html"),
        ((tmp_path / "absent", "--out", tmp_path / "page.html"), InvalidFile, "cannot be read as a folder"),
    ):
        ran = _run(*arguments)
        assert isinstance(ran.exception, kind)
        assert reason in str(ran.exception)
    assert not list(tmp_path.glob("page*"))


def test_regions_are_what_was_found_and_parts_unlike_it() -> None:
    regions = regions_of(FOUND)
    assert [region.xyxy for region in regions[:3]] == [one.box_xyxy for one in FOUND]
    assert len(regions) == 6
    assert all(overlap(part.xyxy, one.box_xyxy) < 0.6 for part in regions[3:] for one in FOUND)
    assert len(regions_of(())) == 4
    many = tuple(Found((x / 10, 0, x / 10 + 0.1, 0.1), f"thing {x}", 0.9) for x in range(9))
    assert len(regions_of(many)) == 6
