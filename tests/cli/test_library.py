"""`saywhere index`, `search` and `batch` with a model whose every answer is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from click.testing import Result
from PIL import Image
from typer.testing import CliRunner

pytest.importorskip("lancedb")

from saywhere import index, loading
from saywhere.cli import batch, library
from saywhere.core import InvalidFile, InvalidValue, Narrative, Trace, UnknownName, Utterance
from saywhere.formats import localized_narratives
from saywhere.index.seen import NoTextVectors
from tests.models.patchioner_seeing import TOP_RIGHT, photo, seer

app = typer.Typer()
for command in (library.index, library.search, batch.batch):
    app.command()(command)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every model is the tiny one, and needs nothing of others."""
    model = seer()
    monkeypatch.setattr(loading, "load", lambda name: model)
    monkeypatch.setattr(loading, "needed_assets", lambda name, *, texts: ())


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    folder = tmp_path / "pets"
    folder.mkdir()
    photo().save(folder / "all.png")
    Image.new("RGB", (40, 40), (5, 5, 250)).save(folder / "blue.png")
    return folder


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_other_processes_open_the_model_that_was_named_and_this_one_opens_it_once(
    pets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    given: dict[str, object] = {}
    monkeypatch.setattr(loading, "load", lambda name: opened.append(name) or seer())

    def update(*_: object, **arguments: object) -> object:
        given.update(arguments)
        raise InvalidValue("work", "is for others")

    monkeypatch.setattr(index, "update", update)
    assert isinstance(_run("index", pets, "--workers", 2, "--model", "mine").exception, InvalidValue)
    assert (opened, given["opens"]) == (["mine"], "mine")


def test_a_folder_becomes_a_library_that_is_searched(pets: Path, tmp_path: Path) -> None:
    indexed = _run("index", pets)
    assert indexed.exit_code == 0, indexed.output
    assert "2 photos (2 new, 0 changed, 0 gone)" in indexed.stdout
    assert "looking at photos: 2 of 2" in indexed.stderr
    found = _run("search", "a cup", "--library", pets, "--word", "dog")
    assert [line.split()[1] for line in found.stdout.splitlines()[1:]] == ["blue.png", "all.png"]
    told = json.loads(_run("search", "a dog", "-l", pets, "--region", "--json", "-n", "1").stdout)
    assert told["made_by"]["model"] == "tiny"
    assert (told["hits"][0]["name"], told["hits"][0]["box_xyxy"]) == ("dog", list(TOP_RIGHT))
    for name, begins in (("hits.html", b"<!DOCTYPE html>"), ("hits.png", b"\x89PNG")):
        assert _run("search", "a dog", "-l", pets, "-o", tmp_path / name).exit_code == 0
        assert (tmp_path / name).read_bytes().startswith(begins)


def test_a_photo_that_cannot_be_read_is_named(pets: Path) -> None:
    (pets / "odd.jpg").write_bytes(b"?")
    ran = _run("index", pets)
    assert ran.exit_code == 1
    assert "odd.jpg: is not an image" in ran.stderr
    assert "2 photos" in ran.stdout


def test_an_example_is_looked_for_whole_by_box_and_by_trace(pets: Path) -> None:
    _run("index", pets)
    example = pets / "all.png"
    for option in (("--box", "0.5,0.5,1,1"), ("--trace", "0.6,0.6;0.9,0.9")):
        hits = json.loads(_run("search", "--like", example, *option, "-l", pets, "--json").stdout)["hits"]
        assert {hit["photo"]: hit["name"] for hit in hits}["all.png"] == "cup"
    whole = json.loads(_run("search", "--like", example, "-l", pets, "--json").stdout)["hits"]
    assert whole[0]["photo"] == "all.png"
    assert whole[0]["score"] == pytest.approx(1, abs=1e-3)


def test_what_was_said_is_found(pets: Path, tmp_path: Path) -> None:
    trace = Trace([(0.6, 0.1, 0.0), (0.9, 0.4, 1.0)])
    said = [Narrative("all", "a dog", (Utterance("a dog", 0, 1),), trace, annotator_id="7")]
    localized_narratives.write(tmp_path / "said.jsonl", said)
    _run("index", pets, "--narratives", tmp_path / "said.jsonl")
    assert "“a dog” at 0.0 s, annotator 7" in _run("search", "a dog", "--said", "-l", pets).stdout


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["search"], InvalidValue, "needs a text or --like PHOTO"),
        (["search", "a dog", "--box", "0,0,1,1"], InvalidValue, "of the photo of --like"),
        (["search", "a dog", "-o", "hits.pdf"], InvalidValue, "neither in .html nor in .png"),
        (["search", "a dog"], InvalidFile, "is not a library"),
        (["batch", "sing", ".", "-o", "out"], UnknownName, "unknown task 'sing'"),
        (["batch", "look", ".", "-o", "out", "--engine", "cloud"], UnknownName, "unknown engine 'cloud'"),
        (["batch", "look", ".", "-o", "out", "--address", "auto"], InvalidValue, "add --engine ray"),
    ],
)
def test_what_cannot_be_is_said(
    arguments: list[str], error: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = _run(*arguments)
    assert isinstance(ran.exception, error)
    assert message in str(ran.exception)


def test_a_model_without_vectors_of_texts_is_refused(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "load", lambda name: object())
    assert isinstance(_run("index", pets).exception, NoTextVectors)


def test_a_batch_tells_its_rate_and_what_a_million_costs(pets: Path, tmp_path: Path) -> None:
    ran = _run("batch", "caption", pets, "-o", tmp_path / "out", "--price", "2", "--machines", "3")
    assert ran.exit_code == 0, ran.output
    assert "2 photos in" in ran.stdout
    assert "at 2 a machine hour" in ran.stdout
    assert (tmp_path / "out" / "manifest.json").exists()
    (pets / "odd.jpg").write_bytes(b"?")
    assert _run("batch", "caption", pets, "-o", tmp_path / "again").exit_code == 1
