"""`saywhere answer` and `saywhere why` with a model whose every part is small."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer
from click.testing import Result
from PIL import Image
from typer.testing import CliRunner

from saywhere import loading
from saywhere.cli import asking
from saywhere.cli.asking import _lines
from saywhere.core import Box, InvalidValue, UnknownName
from saywhere.explain.seen import Reason
from saywhere.models.patchioner.seer import OptionalParts, Seer
from saywhere.models.patchioner.writers import MemoryWriter, VectorWriter
from saywhere.models.updown import Answerer
from saywhere.vision import read_photo
from tests.models.patchioner_seeing import BOTTOM_RIGHT, LEVELS, level_decoder, photo
from tests.models.test_patchioner_answering import network
from tests.models.test_patchioner_why import loud_seer

app = typer.Typer()
for command in (asking.answer, asking.why):
    app.command()(command)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Seer:
    """Every model is the tiny one, and needs nothing of others."""
    model = loud_seer()
    model.parts = OptionalParts(answerer=lambda: Answerer(network()))
    monkeypatch.setattr(loading, "load", lambda name: model)
    monkeypatch.setattr(loading, "needed_assets", lambda name, *, texts: ())
    return model


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    photo().save(tmp_path / "pets.png")
    return tmp_path / "pets.png"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_answers_come_likeliest_first_with_what_was_not_understood(tiny: Seer, pets: Path) -> None:
    lines = run("answer", pets, "is there a zebra?").stdout.splitlines()
    ranked = tiny.look(pets).answer("is there a zebra?").ranked
    assert lines[:3] == [f"{chance:4.0%}  {text}" for text, chance in ranked]
    assert lines[3] == "not known to this model: zebra"
    assert run("answer", pets, "is there a cat is there a cat").stdout.splitlines()[-1] == "too long, not read: a cat"


def test_what_cannot_be_known_is_said_before_the_guesses(
    tiny: Seer, pets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = replace(
        tiny.look(pets).answer("is there a cat?"), text="I cannot know that", reason="it asks for a time or a date"
    )
    monkeypatch.setattr(type(tiny.look(pets)), "answer", lambda *_: given)
    lines = run("answer", pets, "what time is it?").stdout.splitlines()
    assert lines[:2] == ["I cannot know that: it asks for a time or a date", "guesses, not to be relied on:"]
    assert lines[2].endswith(given.ranked[0][0])
    said = json.loads(run("answer", pets, "what time is it?", "--json").stdout)
    assert said["not_answered"] == given.reason


def test_what_is_pointed_at_reaches_the_model(tiny: Seer, pets: Path) -> None:
    said = json.loads(run("answer", pets, "what is it", "--box", "20,20,40,40", "--pixels", "--json").stdout)
    expected = tiny.look(pets).answer("what is it", Box(*BOTTOM_RIGHT))
    assert said["region"] == {"box_xyxy": list(BOTTOM_RIGHT)}
    assert said["answers"][0]["text"] == expected.text
    assert said["answers"][0]["probability"] == pytest.approx(expected.probability)
    assert np.shape(said["reason"]["weights"]) == (64, 64)


@pytest.mark.parametrize("method", ["gradient", "attention", "occlusion"])
def test_why_says_the_caption_and_what_the_map_is_worth(tiny: Seer, pets: Path, method: str) -> None:
    caption = tiny.look(pets).caption().text
    ran = run("why", pets, caption.split()[1], "--method", method)
    assert ran.stdout.splitlines()[0] == caption
    assert "likely" in ran.stdout
    assert "-0%" not in ran.stdout
    assert ("rank correlation" in ran.stdout) == (method == "gradient")
    assert ("count the same" in ran.stdout) == (method == "attention")


@pytest.mark.usefixtures("tiny")
def test_a_reason_is_drawn_and_given_as_json(pets: Path, tmp_path: Path) -> None:
    ran = run("why", pets, "CAT", "--caption", "a red cat.", "--json", "--png", tmp_path / "why.png")
    said = json.loads(ran.stdout)
    assert (said["caption"], said["reason"]["said"], said["region"]) == ("a red cat.", "cat.", {"whole": True})
    assert np.shape(said["reason"]["weights"]) == (4, 4)
    assert read_photo(tmp_path / "why.png").size[0] > 500
    assert run("answer", pets, "is there a cat", "--png", tmp_path / "answer.png").exit_code == 0
    assert read_photo(tmp_path / "answer.png").size[0] > 500


def test_a_mask_is_asked_about_like_the_box_that_it_covers(tiny: Seer, pets: Path, tmp_path: Path) -> None:
    marked = np.zeros((40, 40), dtype=np.uint8)
    marked[20:, 20:] = 255
    Image.fromarray(marked).save(tmp_path / "mask.png")
    said = json.loads(run("answer", pets, "what is it", "--mask", tmp_path / "mask.png", "--json").stdout)
    assert said["region"] == {"mask_shape": [40, 40]}
    assert said["answers"][0]["text"] == tiny.look(pets).answer("what is it", Box(*BOTTOM_RIGHT)).text


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("arguments", "error", "reason"),
    [
        (("why", "dog", "--caption", "a red cat"), UnknownName, "word of the caption"),
        (("why", "cat", "--method", "gradiant"), UnknownName, "gradient"),
        (("why", "cat", "--png", "x.jpg"), InvalidValue, "png"),
        (("why", "cat", "--box", "0,0,1,1", "--point", "0,0"), InvalidValue, "2 are given"),
        (("answer", " "), InvalidValue, "has no word"),
        (("answer", "is it", "--point", "2,2"), InvalidValue, "covers nothing"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    pets: Path, arguments: tuple[str, ...], error: type[Exception], reason: str
) -> None:
    command, *rest = arguments
    ran = run(command, pets, *rest)
    assert isinstance(ran.exception, error)
    assert reason in str(ran.exception)


@pytest.mark.usefixtures("tiny")
def test_nothing_is_drawn_where_nothing_speaks_for_it(tmp_path: Path) -> None:
    # All patches are alike, so that none adds anything.
    Image.new("RGB", (40, 40)).save(tmp_path / "dark.png")
    ran = run("why", tmp_path / "dark.png", "cat", "--caption", "a red cat", "--png", tmp_path / "x.png")
    assert ran.exit_code == 0
    assert ran.stdout.startswith("a red cat")
    assert "no picture is written" in ran.stderr
    assert not (tmp_path / "x.png").exists()


def test_a_question_is_answered_even_where_there_is_nothing_to_draw(
    tiny: Seer, pets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blank = Reason("yes", "gradient", np.zeros((4, 4)), 0.0, None, 0.0, None)
    monkeypatch.setattr("saywhere.explain.seen.why_answer", lambda *_: blank)
    ran = run("answer", pets, "is there a cat", "--png", tmp_path / "x.png")
    assert ran.exit_code == 0
    assert tiny.look(pets).answer("is there a cat").text in ran.stdout
    assert "no picture is written" in ran.stderr
    assert not (tmp_path / "x.png").exists()


@pytest.mark.parametrize(("share", "said"), [(0.0, "as likely"), (0.004, "as likely"), (0.3, "30% less likely")])
def test_names_that_took_nothing_away_are_never_minus_nothing(share: float, said: str) -> None:
    reason = Reason("cat", "gradient", np.ones((2, 2)), -1.0, 1.0, 0.0, share, 0.4)
    lines = _lines(reason)
    assert f"without the detector's names it would be {said}" in lines
    assert any("1.00, the rank correlation with occlusion; of a map that ignores the word: 0.40" in x for x in lines)


def test_a_word_of_a_caption_above_objects_is_explained_at_its_level(tiny: Seer, pets: Path) -> None:
    own = tiny.writer
    tiny.writer = MemoryWriter(own.bank, own.objects, LEVELS, lambda: VectorWriter(level_decoder()))
    text = tiny.look(pets).caption(level="action").text
    said = json.loads(run("why", pets, text.split()[0], "--level", "action", "--json").stdout)
    assert (said["level"], said["caption"], said["reason"]["said"]) == ("action", text, text.split()[0])
    unknown = run("why", pets, text.split()[0], "--level", "scenes")
    assert isinstance(unknown.exception, UnknownName)
