"""What the README shows is what happens."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from tests.test_docs import GENERATED

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_code_prints_what_the_readme_says(monkeypatch: pytest.MonkeyPatch) -> None:
    (code, printed), *_ = re.findall(r"```python\n([^`]*)```\n```\n([^`]*)```", README)
    monkeypatch.chdir(ROOT)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    assert out.getvalue() == printed


def test_the_calls_on_the_embedded_model_exist() -> None:
    import saywhere
    from saywhere.models.face import Look
    from saywhere.models.patchioner.seer import Seer

    (code,) = re.findall(r"```python\n([^`]*sw\.load\(\)[^`]*)```", README)
    compile(code, "README.md", "exec")
    assert callable(saywhere.load)
    assert callable(Seer.look)
    asked = set(re.findall(r"look\.(\w+)\(", code))
    assert asked == {"caption", "ground", "narrate", "answer", "scene"}
    assert all(callable(getattr(Look, name)) for name in asked)


def test_every_file_that_documents_point_to_exists() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    broken = [
        f"{page.name} → {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
        if "://" not in link and link not in GENERATED and not (page.parent / link).exists()
    ]
    assert broken == []


def test_every_command_in_the_readme_is_known() -> None:
    from saywhere.cli import data, score

    known = {
        command.callback.__name__
        for app in (data.app, score.app)
        for command in app.registered_commands
        if command.callback
    }
    named = re.findall(r"^saywhere (?:data|score) ([a-z|-]+)", README, re.MULTILINE)
    assert named
    assert {name.replace("-", "_") for group in named for name in group.split("|")} <= known
