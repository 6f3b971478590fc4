"""`saywhere chat`: turns, what they point at, and what a model could not keep or say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from saywhere import loading
from saywhere.cli import chatting
from saywhere.core import Box, InvalidValue, Point, Region
from saywhere.models.face import Spoken
from saywhere.models.patchioner.look import SeerLook
from saywhere.models.patchioner.seer import Seer
from tests.models.patchioner_seeing import photo
from tests.models.test_patchioner_why import loud_seer

app = typer.Typer()
app.command()(chatting.chat)


class Echo:
    """Says again what was said to it, and points at where it was pointed."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Region | None]] = []

    def say(self, text: str, region: Region | None = None) -> Spoken:
        self.heard.append((text, region))
        if "too long" in text:
            raise InvalidValue("prompt", "does not fit", "shorten the question")
        shown = () if region is None else (region,)
        if text == "hush":
            return Spoken("", shown)
        return Spoken(f"you said: {text}", shown, forgotten=len(self.heard) - 1, lost=("half a mask",))


class Talkative(Seer):
    """A seer that also talks."""

    skills = ("caption", "chat")


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> Echo:
    model: Any = loud_seer()
    model.__class__ = Talkative
    conversation = Echo()
    monkeypatch.setattr(loading, "load", lambda name: model)
    monkeypatch.setattr(loading, "needed_assets", lambda name, *, texts: ())
    monkeypatch.setattr(SeerLook, "chat", lambda self: conversation)
    return conversation


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    photo().save(tmp_path / "pets.png")
    return tmp_path / "pets.png"


def run(typed: str, *arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=typed)


def test_options_point_in_the_first_turn_and_lines_may_point_again(echo: Echo, pets: Path) -> None:
    done = run("what is this?\n@0.5,0.25 and this?\nand both?\n\nnever read\n", pets, "--box", "0,0,0.5,1")
    assert done.exit_code == 0, done.output
    assert echo.heard == [("what is this?", Box(0, 0, 0.5, 1)), ("and this?", Point(0.5, 0.25)), ("and both?", None)]
    assert "you said: and both?" in done.stdout
    assert "→ box 0.00,0.00,0.50,1.00" in done.stdout
    assert "the first 2 messages were left out" in done.stderr
    assert "lost of the answer: half a mask" in done.stderr


def test_a_line_that_points_nowhere_is_told_and_the_talk_goes_on(echo: Echo, pets: Path) -> None:
    done = run("@0.5,x what is this?\n@0.5,0.5\nhello\n", pets)
    assert done.exit_code == 0, done.output
    assert echo.heard == [("hello", None)]
    assert "is not numbers between commas" in done.stderr
    assert "says nothing" in done.stderr


def test_a_question_that_does_not_fit_is_told_and_the_talk_goes_on(echo: Echo, pets: Path) -> None:
    done = run("too long\nshort\n", pets, "--box", "0,0,0.5,1")
    assert done.exit_code == 0, done.output
    assert "does not fit" in done.stderr
    assert echo.heard[1:] == [("short", Box(0, 0, 0.5, 1))], "what was pointed at stays for the next line"


def test_a_model_that_says_nothing_leaves_no_blank_line(echo: Echo, pets: Path) -> None:
    done = run("hush\n@0.5,0.25 hush\n", pets)
    assert done.stdout == "  → point\n"
    assert done.stderr.count("the model said nothing") == 1


def test_what_answers_point_out_is_drawn_into_a_file_or_a_folder(echo: Echo, pets: Path, tmp_path: Path) -> None:
    typed = "@0,0,0.5,1 this?\nwhat?\n@0.5,0.25 and this?\n"
    done = run(typed, pets, "--png", tmp_path / "all")
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["turn-001.png", "turn-003.png"]
    run(typed, pets, "--png", tmp_path / "last.png")
    assert (tmp_path / "last.png").read_bytes() == (tmp_path / "all" / "turn-003.png").read_bytes()


def test_a_model_that_does_not_talk_is_refused(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "load", lambda name: loud_seer())
    monkeypatch.setattr(loading, "needed_assets", lambda name, *, texts: ())
    assert "chat" in str(run("hello\n", pets).exception)
