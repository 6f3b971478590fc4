"""`saywhere collect`: what it serves, what it says, what it writes."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from saywhere.cli.app import app
from saywhere.core.errors import InvalidFile, InvalidValue, MissingDependency
from saywhere.formats import hl
from saywhere.formats.coco_captions import CaptionRecord
from saywhere.formats.coco_captions import write as write_captions
from saywhere.studio.collect import read_collection
from saywhere.studio.collect_desk import CollectDesk
from tests.studio.conftest import png

Run = Callable[..., Any]


@pytest.fixture
def run() -> Run:
    return lambda *arguments: CliRunner().invoke(app, ["collect", *(str(one) for one in arguments)])


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    (tmp_path / "photos").mkdir()
    for number in (7, 8):
        (tmp_path / "photos" / f"COCO_val2014_{number:012d}.png").write_bytes(png(60 + number, 48))
    (tmp_path / "photos" / "broken.jpg").write_bytes(b"no photo")
    return tmp_path / "photos"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, str | None]]:
    """What would be served, instead of serving it: the app and the address that would be opened."""
    found: list[tuple[Any, str | None]] = []
    monkeypatch.setattr("saywhere.cli.collect.run", lambda server, _, __, opened: found.append((server, opened)))
    return found


@pytest.fixture
def collected(run: Run, photos: Path, tmp_path: Path, served: list[Any]) -> Path:
    """A collection of two photos with all their answers for one of them, and one answer for the other."""
    folder = tmp_path / "collection"
    result = run("serve", folder, "--photos", photos, "--port", 0, "--no-browser")
    assert result.exit_code == 0, result.output
    first, second = [photo.id for photo in read_collection(folder).photos]
    desk = CollectDesk(folder)
    for who, text in (("ANNA", "in a kitchen"), ("BERT", "the picture is taken in a kitchen"), ("CLEO", "at home")):
        desk.answer(who, (first, "scene"), text, 5, 3.0)
    desk.answer("ANNA", (second, "scene"), "on a beach", 2)
    return folder


def test_a_collection_is_served_from_a_folder_of_photos(
    run: Run, photos: Path, tmp_path: Path, served: list[tuple[Any, str | None]]
) -> None:
    folder = tmp_path / "new" / "collection"
    result = run("serve", folder, "--photos", photos, "--level", "scene", "--level", "action", "--annotators", 2,
                 "--title", "Places", "--hold", 5, "--port", 0)  # fmt: skip
    assert result.exit_code == 0, result.output
    [(server, opened)] = served
    assert opened is not None
    assert opened in result.stdout
    assert "passed over" in result.stderr
    assert "2 photos" in result.stderr
    desk = server.state.collection
    assert desk.hold_s == 300
    assert (desk.collection.title, desk.collection.annotators) == ("Places", 2)
    assert list(desk.collection.levels) == ["scene", "action"]


def test_what_is_not_given_stays_as_it_was(run: Run, collected: Path, served: list[Any]) -> None:
    before = (collected / "collection.json").read_bytes()
    assert run("serve", collected, "--port", 0, "--no-browser").exit_code == 0
    assert (collected / "collection.json").read_bytes() == before
    assert len(served) == 2


@pytest.mark.parametrize(
    ("arguments", "error", "reason"),
    [
        (["--level", "mood"], InvalidValue, "--question 'mood="),
        (["--level", "object"], InvalidValue, "--captions"),
        (["--annotators", "0"], InvalidValue, "annotators"),
        (["--hold", "0"], InvalidValue, "hold"),
        (["--host", "0.0.0.0"], InvalidValue, "token"),
        (["--photos", "no-such-folder"], InvalidFile, "is not a folder"),
        ([], InvalidFile, "--photos PHOTOS"),
    ],
)
def test_what_cannot_be_served_is_refused_and_nothing_is_left(
    run: Run, tmp_path: Path, served: list[Any], arguments: list[str], error: type[Exception], reason: str
) -> None:
    result = run("serve", tmp_path / "c", "--port", 0, *arguments)
    assert isinstance(result.exception, error)
    assert reason in str(result.exception)
    assert served == []
    assert not (tmp_path / "c").exists()


def test_an_answered_question_cannot_be_asked_otherwise(run: Run, collected: Path) -> None:
    result = run("serve", collected, "--question", "scene=Where?", "--port", 0)
    assert isinstance(result.exception, InvalidValue)
    assert "another folder" in str(result.exception)


def test_the_status_is_said(run: Run, collected: Path) -> None:
    pytest.importorskip("spacy")
    result = run("status", collected)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["scene", "0", "1", "0", "1", "4", "0", "4.25"] in lines
    assert ["ANNA", "2", "3.50", "3.0", "3.0"] in lines
    assert "at least two name the same scene: 100 % (1 of 1 photos" in result.stdout


def test_without_a_parser_the_status_says_all_but_the_agreement(
    run: Run, collected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: Any) -> Any:
        raise MissingDependency("spacy", "scene labels", "language")

    monkeypatch.setattr("saywhere.language.scene_labels.scene_nouns_of", missing)
    result = run("status", collected)
    assert result.exit_code == 0, result.output
    assert "agreement is left out" in result.stderr
    assert "same scene" not in result.stdout
    assert "ANNA" in result.stdout


def test_the_export_is_good_hl_and_names_nobody(run: Run, collected: Path, tmp_path: Path) -> None:
    out = tmp_path / "scenes.jsonl"
    result = run("export", collected, out)
    assert result.exit_code == 0, result.output
    assert "1 rows" in result.stdout
    assert "1 photos that lack answers" in result.stderr
    check = CliRunner().invoke(app, ["data", "check", str(out)])
    assert check.exit_code == 0, check.output
    assert "1 good" in check.stdout
    assert not any(who in out.read_text("utf-8") for who in ("ANNA", "BERT", "CLEO"))


def test_object_captions_are_joined_and_photos_taken_in_part(run: Run, collected: Path, tmp_path: Path) -> None:
    write_captions(tmp_path / "captions.json", [CaptionRecord(7, 1, "a cup on a table")])
    out = tmp_path / "scenes.jsonl"
    result = run("export", collected, out, "--captions", tmp_path / "captions.json", "--partial")
    assert result.exit_code == 0, result.output
    assert "1 photos have no caption" in result.stderr
    rows = [row for row in hl.read(out) if isinstance(row, hl.HLRow)]
    assert [row.captions.get("object") for row in rows] == [("a cup on a table",), None]
    assert [len(row.captions["scene"]) for row in rows] == [3, 1]


@pytest.mark.parametrize("command", [["status"], ["export", "out.jsonl"]])
def test_a_folder_without_a_collection_is_refused(run: Run, tmp_path: Path, command: builtins.list[str]) -> None:
    result = run(command[0], tmp_path, *command[1:])
    assert isinstance(result.exception, InvalidFile)
    assert "saywhere collect serve DIR" in str(result.exception)
