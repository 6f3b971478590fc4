"""`saywhere build riln`, from files to report, picture and review sheet."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from saywhere.cli.riln import _finder, riln
from saywhere.core import InvalidFile, InvalidValue
from saywhere.formats import localized_narratives
from tests.build.endpoint import served
from tests.build.riln.told import answer_well, told

app = typer.Typer()
app.command()(riln)


@pytest.fixture
def narratives(tmp_path: Path) -> Path:
    path = tmp_path / "narratives.jsonl"
    localized_narratives.write(path, [told("1"), told("2"), told("3", "x_val")])
    with path.open("a") as file:
        file.write("{}\n")
    return path


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def test_offline_a_file_becomes_a_data_set_and_a_review_changes_it(narratives: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = run(narratives, "--out", out, "--evaluation", _text(tmp_path), "--seed", 3)
    assert {path.name for path in out.iterdir()} == {
        *("examples-00000.jsonl", "manifest.json", "report.md", "statistics.png", "review.html"),
    }
    assert "rejected: narrative: not of a training split" in said
    assert "rejected: narrative: it cannot be read" in said
    assert "5-gram overlap" in said
    report = (out / "report.md").read_text()
    assert "| narratives used | 2 | – |" in report
    assert (out / "statistics.png").read_bytes().startswith(b"\x89PNG")
    first = json.loads((out / "examples-00000.jsonl").read_text().splitlines()[0])
    shown = re.search(f'data-id="{first["id"]}" data-digest="([0-9a-f]+)"', (out / "review.html").read_text())
    assert shown is not None
    decisions = [{"id": name, "digest": shown[1], "decision": "reject"} for name in (first["id"], "nobody")]
    (tmp_path / "decisions.json").write_text(json.dumps(decisions))
    said = run(narratives, "--out", out, "--seed", 3, "--review", tmp_path / "decisions.json")
    assert "rejected: review: rejected by a person" in said
    assert "1 of 2 decisions are about a text that is not there" in said
    assert first["id"] not in (out / "examples-00000.jsonl").read_text()


def test_models_by_role_are_asked_and_their_price_is_shown(narratives: Path, tmp_path: Path) -> None:
    with served(answer_well) as server:
        tables = [
            f'[{role}]\nurl = "{server.url}"\nmodel = "{role}-model"' for role in ("phrases", "questions", "answers")
        ]
        price = "prompt_price = 1000.0"
        tables.append(f'[default]\nurl = "{server.url}"\nmodel = "dialogues-model"\n{price}')
        (tmp_path / "roles.toml").write_text("\n".join(tables))
        said = run(narratives, "--out", tmp_path / "out", "--roles", tmp_path / "roles.toml")
        run(narratives, "--out", tmp_path / "out", "--roles", tmp_path / "roles.toml")
    # Both narratives say the same, so that each role is asked once.
    assert len(server.asked) == 4
    assert "price" in said
    assert "0.2000" in said


def test_what_cannot_be_is_refused_before_any_work(narratives: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="belong together"):
        run(narratives, "--out", tmp_path / "out", "--llm", "http://127.0.0.1:1/v1")
    with pytest.raises(InvalidFile, match="does not exist"):
        run(tmp_path / "nothing", "--out", tmp_path / "out")
    with pytest.raises(InvalidFile, match="not a folder"):
        run(narratives, "--out", tmp_path / "out", "--photos", tmp_path / "nothing")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("image", "file"),
    [("139", "000000000139.jpg"), ("7", "000007.png"), ("clip/img_3", "clip/img_3.webp"), ("../x", ""), ("a/../x", "")],
)
def test_photos_are_found_by_the_names_that_data_sets_give(tmp_path: Path, image: str, file: str) -> None:
    for name in ("p/000000000139.jpg", "p/000007.png", "p/clip/img_3.webp", "x.jpg", "p/x.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert _finder(tmp_path / "p")(image) == (tmp_path / "p" / file if file else None)


def test_nothing_usable_is_said_and_gives_exit_code_1(tmp_path: Path) -> None:
    localized_narratives.write(tmp_path / "n.jsonl", [told("3", "x_val")])
    assert "nothing became an example" in run(tmp_path / "n.jsonl", "--out", tmp_path / "out", code=1)


def _text(folder: Path) -> Path:
    path = folder / "evaluation.txt"
    path.write_text("Two cats sleep on a wide sofa.\n")
    return path
