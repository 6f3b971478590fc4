"""`saywhere describe`: printed, as JSON, as a text file and as a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from saywhere import loading
from saywhere.cli import describing
from tests.models.patchioner_seeing import photo, seer

TEXT = (
    "In this photo: a cat, a dog and a cup. The eye goes first to a cat on the left. "
    "We can see a dog at the top right. A cup is at the bottom right."
)
app = typer.Typer()
app.command()(describing.describe)


@pytest.fixture
def pets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    model = seer()
    monkeypatch.setattr(loading, "load", lambda name: model)
    monkeypatch.setattr(loading, "needed_assets", lambda name, *, texts: ())
    photo().save(tmp_path / "pets.png")
    return tmp_path / "pets.png"


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_what_is_sure_is_printed_and_written_as_texts(pets: Path, tmp_path: Path) -> None:
    ran = _run(pets, "-o", tmp_path / "alt.txt")
    assert " ".join(ran.stdout.split()) == TEXT
    lines = (tmp_path / "alt.txt").read_text().splitlines()
    assert lines[0] == "Photo: pets.png"
    assert lines[2:4] == ["Alt text (machine-written, by tiny):", "In this photo: a cat, a dog and a cup."]
    assert lines[-1] == TEXT


def test_the_page_has_the_photo_and_a_number_for_each_sentence(pets: Path, tmp_path: Path) -> None:
    assert _run(pets, "-o", tmp_path / "page.html").exit_code == 0
    page = (tmp_path / "page.html").read_text()
    assert page.count("<li>") == page.count('class="number"') == 3
    assert "data:image/jpeg" in page


def test_as_json_things_have_their_places_and_neighbours(pets: Path) -> None:
    said = json.loads(_run(pets, "--json").stdout)
    assert said["alt_text"] == "In this photo: a cat, a dog and a cup."
    assert said["text"] == TEXT
    assert said["things"][0] == {
        "name": "a cat",
        "box_xyxy": [0.0, 0.0, 0.5, 1.0],
        "about": ["On the left, large.", "It reaches the left, top and bottom edges.", "Right of it: a dog."],
        "neighbours": {"right": 1},
    }


def test_a_file_of_another_kind_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    ran = _run(tmp_path / "none.jpg", "-o", tmp_path / "page.pdf")
    assert "ends neither in .txt nor in .html" in str(ran.exception)
