"""`saywhere scene` and `saywhere caption --level` with a tiny model that has captions above objects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from saywhere import loading
from saywhere.cli import seeing
from saywhere.cli.app import app as whole_app
from saywhere.core import Box, InvalidFile, InvalidValue, UnknownName
from saywhere.models.face import MissingSkill
from saywhere.models.patchioner.seer import Seer
from saywhere.models.patchioner.writers import VectorWriter
from saywhere.models.search import GenerationConfig
from saywhere.vision import read_photo
from tests.models.patchioner_seeing import LEVELS, level_decoder, photo, seer

app = typer.Typer()
for command in (seeing.caption, seeing.scene):
    app.command()(command)


@pytest.fixture
def scenic(monkeypatch: pytest.MonkeyPatch) -> Seer:
    """Every model is one that tells the levels of `LEVELS`."""
    return _serve(monkeypatch, seer(level_writer=VectorWriter(level_decoder())))


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    photo().save(tmp_path / "pets.png")
    return tmp_path / "pets.png"


def _serve(monkeypatch: pytest.MonkeyPatch, model: Seer) -> Seer:
    monkeypatch.setattr(loading, "load", lambda name: model)
    monkeypatch.setattr(loading, "needed_assets", lambda name, *, texts: ())
    return model


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_scene_is_said_with_how_likely_its_words_are(scenic: Seer, pets: Path) -> None:
    said = scenic.look(pets).scene()
    ran = _run("scene", pets)
    assert (ran.exit_code, ran.stdout) == (0, f"{said.confidence:4.0%}  {said.text} (unsure)\n")


def test_all_levels_are_said_each_on_its_line(scenic: Seer, pets: Path) -> None:
    look = scenic.look(pets)
    ran = _run("scene", pets, "--levels")
    assert ran.stdout.splitlines() == [
        f"{level:<9}  {one.confidence:4.0%}  {one}"
        for level, one in ((level, look.caption(level=level)) for level in ("object", *LEVELS))
    ]


def test_scenes_as_json_hold_everything(scenic: Seer, pets: Path) -> None:
    look = scenic.look(pets)
    [only] = json.loads(_run("scene", pets, "--json").stdout)["captions"]
    assert (only["level"], only["text"], only["sure"]) == ("scene", look.scene().text, False)
    assert only["confidence"] == pytest.approx(look.scene().confidence)
    assert only["nearest"][0]["sentence"] == "a red cat"
    said = json.loads(_run("scene", pets, "--levels", "--json").stdout)
    assert [one["level"] for one in said["captions"]] == ["object", *LEVELS]
    assert (said["photo"], said["made_by"]["model"]) == ("pets.png", "tiny")


def test_regions_are_captioned_at_a_level(scenic: Seer, pets: Path, tmp_path: Path) -> None:
    look = scenic.look(pets)
    first, second = look.captions([Box(0, 0, 0.5, 1), Box(0.5, 0, 1, 0.5)], level="action")
    boxes = ("--box", "0,0,.5,1", "--box", "0.5,0,1,0.5")
    ran = _run("caption", pets, *boxes, "--level", "action", "--png", tmp_path / "c.png")
    assert ran.stdout.splitlines() == [f"box 0,0,0.5,1: {first}", f"box 0.5,0,1,0.5: {second}"]
    assert read_photo(tmp_path / "c.png").size[0] > 500
    said = json.loads(_run("caption", pets, "--level", "scene", "--json").stdout)
    assert (said["level"], said["captions"][0]["text"]) == ("scene", look.scene().text)
    assert json.loads(_run("caption", pets, "--json").stdout)["level"] == "object"


def test_beams_reach_the_writer_of_a_level(scenic: Seer, pets: Path) -> None:
    look = scenic.look(pets)
    plain, careful = (
        look.caption(how=how, level="action") for how in (GenerationConfig(), GenerationConfig("beam", beams=5))
    )
    assert plain.text != careful.text
    assert _run("caption", pets, "--level", "action").stdout == f"{plain}\n"
    assert _run("caption", pets, "--level", "action", "--beams", 5).stdout == f"{careful}\n"


@pytest.mark.usefixtures("scenic")
@pytest.mark.parametrize("arguments", [("scene", "--levels"), ("scene",), ("caption", "--level", "scene")])
def test_levels_are_drawn(pets: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    command, *options = arguments
    assert _run(command, pets, *options, "--png", tmp_path / "scene.png").exit_code == 0
    assert read_photo(tmp_path / "scene.png").size[0] > 500


def test_a_model_without_the_level_says_so_before_it_looks(monkeypatch: pytest.MonkeyPatch, pets: Path) -> None:
    plain, scenic = seer(), seer(level_writer=VectorWriter(level_decoder()))
    for model, arguments, kind, reason in (
        (plain, ("scene", pets), MissingSkill, "the model tiny cannot say where a photo is taken"),
        (plain, ("scene", pets, "--levels"), MissingSkill, "models that can: saywhere-base"),
        (plain, ("caption", pets, "--level", "scene"), InvalidValue, "alone, none of 'scene'"),
        (scenic, ("caption", pets, "--level", "scnee"), UnknownName, "Did you mean 'scene'"),
    ):
        _serve(monkeypatch, model)
        ran = _run(*arguments)
        assert isinstance(ran.exception, kind)
        assert reason in str(ran.exception)
        assert model.eyes.encoder.looks == 0


def test_bad_input_is_said_before_anything_is_loaded(monkeypatch: pytest.MonkeyPatch, pets: Path) -> None:
    monkeypatch.setattr(loading, "load", lambda name: pytest.fail("loaded"))
    for arguments, kind, reason in (
        (("scene", pets, "--png", "out.jpg"), InvalidValue, "does not end in .png"),
        (("scene", pets.parent / "absent.png"), InvalidFile, "was not found"),
    ):
        ran = _run(*arguments)
        assert isinstance(ran.exception, kind)
        assert reason in str(ran.exception)


def test_the_command_is_among_all_commands() -> None:
    assert "where a photo was taken" in CliRunner().invoke(whole_app, ["scene", "--help"]).stdout
