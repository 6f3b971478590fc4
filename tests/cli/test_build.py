from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from saywhere.cli.build import app
from saywhere.core import UnknownName
from saywhere.models.patchioner.memory import MemoryBank
from tests.build.test_memory import LetterEncoder


def build(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("A dog runs.\na dog runs\nA cat\n")
    return path


@pytest.fixture
def _letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saywhere.language.embed.open_text_encoder", lambda name: LetterEncoder())


@pytest.mark.usefixtures("_letters")
def test_build_memory_writes_a_bank_and_says_what_is_in_it(texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "bank.safetensors"
    ran = build("memory", texts, "--out", out)
    assert ran.exit_code == 0
    assert "2 sentences and 0 phrases" in ran.output
    assert "1 were there already, 0 bad" in ran.output
    assert list(MemoryBank.load(out).sentences) == ["A dog runs.", "A cat"]


@pytest.mark.usefixtures("_letters")
def test_bad_lines_are_named_and_the_rest_is_kept(texts: Path, tmp_path: Path) -> None:
    texts.write_text(texts.read_text() + "???\n" * 25)
    out = tmp_path / "bank.safetensors"
    ran = build("memory", texts, "--out", out, "--limit", 2)
    assert ran.exit_code == 1
    assert "texts.txt:4: holds no word" in ran.output
    assert "left out 5 more" in ran.output
    assert len(MemoryBank.load(out)) == 2


def test_an_unknown_encoder_is_a_clear_error_and_nothing_is_written(texts: Path, tmp_path: Path) -> None:
    ran = build("memory", texts, "--out", tmp_path / "bank.safetensors", "--encoder", "all-minilm-l6-v3")
    assert isinstance(ran.exception, UnknownName)
    assert "all-minilm-l6-v2" in str(ran.exception)
    assert not (tmp_path / "bank.safetensors").exists()
