"""Reports that are kept fit the code that is here, or say that older code made them."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from saywhere.build.coco_regions import CocoFolder
from saywhere.cli.reproduce import app
from saywhere.reproduce import code_hash
from saywhere.reproduce.code_hash import changed_files, code_hashes
from saywhere.reproduce.freshness import NO_HASH, kept_reports, mark_older, problems
from saywhere.reproduce.hint import HintExperiment
from saywhere.reproduce.report import write_report
from saywhere.reproduce.results import Results, load_report, save_report

KEPT = Path(__file__).parents[2] / "docs" / "reports"


@pytest.mark.parametrize("folder", kept_reports(KEPT), ids=lambda folder: folder.name)
def test_a_kept_report_fits_its_code_or_says_that_it_is_older(folder: Path) -> None:
    assert list(problems(folder)) == []


def report(folder: Path, code: dict[str, str]) -> Path:
    write_report(Results("Toys", "a paper", {}, {}, (), (), code=code), folder)
    return folder


def test_a_report_of_todays_code_has_no_problem_until_the_code_changes(tmp_path: Path) -> None:
    code = code_hashes("saywhere.reproduce.claims")
    folder = report(tmp_path / "toys", code)
    assert list(problems(folder)) == []
    save_report(replace(load_report(folder), code={**code, "reproduce/claims.py": "0" * 12}), folder)
    [problem] = problems(folder)
    assert "Changed since: reproduce/claims.py." in problem
    assert mark_older(folder).startswith("Made by an older version of the code. Changed since")
    assert list(problems(folder)) == []
    assert "**Made by an older version of the code." in (folder / "report.md").read_text()
    assert "Made by an older version" in (folder / "report.html").read_text()


def test_a_report_without_hashes_is_a_problem_until_it_is_marked(tmp_path: Path) -> None:
    folder = report(tmp_path / "toys", {})
    assert NO_HASH in next(problems(folder))
    told = CliRunner().invoke(app, ["check", str(tmp_path)])
    assert told.exit_code == 1
    told = CliRunner().invoke(app, ["check", str(tmp_path), "--mark", "--note", "The gap was left open."])
    assert told.exit_code == 0
    assert "The gap was left open." in (folder / "report.md").read_text()


def test_a_text_that_is_not_what_the_numbers_say_is_a_problem(tmp_path: Path) -> None:
    folder = report(tmp_path / "toys", code_hashes("saywhere.reproduce.tables"))
    (folder / "report.md").write_text("# All claims held\n")
    assert "report.md is not what numbers.json says" in next(problems(folder))


def test_comments_and_docstrings_are_no_change_but_code_is(tmp_path: Path) -> None:
    name = "reproduce/decisions.py"
    noted = code_hashes("saywhere.reproduce.decisions")
    here = Path(__file__).parents[2] / "src" / "saywhere"
    source = (here / name).read_text()
    copy = tmp_path / name
    copy.parent.mkdir()
    for text, changed in (
        (source, []),
        (source.replace("LEVEL = 0.05", "\nLEVEL = 0.05  # one in twenty"), []),
        (source.replace('"""Each p as', '"""Every p as'), []),
        (source.replace("LEVEL = 0.05", "LEVEL = 0.5"), [name]),
    ):
        copy.write_text(text)
        assert changed_files({name: noted[name]}, tmp_path) == changed
    copy.unlink()
    assert changed_files({name: noted[name]}, tmp_path) == [name]


def test_code_is_followed_through_imports_but_not_into_drawing() -> None:
    code = code_hashes("saywhere.reproduce.mitr")
    assert {"models/mitr/cycle.py", "metrics/lbm.py", "world/pointer.py", "reproduce/claims.py"} <= set(code)
    assert not any(name.startswith(("plots/", "cli/", "studio/", "reproduce/_")) for name in code)


def test_models_are_part_of_the_code_only_of_what_loads_them() -> None:
    # Both know the package's version, but only one calls its `load`.
    assert "loading.py" not in code_hashes("saywhere.reproduce.mitr")
    assert "models/patchioner/seer_config.py" not in code_hashes("saywhere.reproduce.mitr")
    assert "loading.py" in code_hashes("saywhere.build.coco_regions")


def test_what_a_run_does_not_use_is_no_part_of_its_code() -> None:
    world = HintExperiment()
    assert "build/coco_regions.py" not in code_hashes("saywhere.reproduce.hint", world.unused())
    photos = replace(world, coco=CocoFolder(Path("photos"), Path("boxes.json"), Path("captions.json")))
    assert "build/coco_regions.py" in code_hashes("saywhere.reproduce.hint", photos.unused())


def test_a_parser_that_fails_by_chance_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parse, failures = ast.parse, iter([True, False])

    def unlucky(source: str) -> ast.Module:
        if next(failures, False):
            raise SystemError("AST constructor recursion depth mismatch")
        return parse(source)

    monkeypatch.setattr(ast, "parse", unlucky)
    assert code_hash._bare('"""Doc."""\nx = 1  # one\n') == "x = 1"


def test_a_parser_that_always_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_source: str) -> ast.Module:
        raise SystemError("AST constructor recursion depth mismatch")

    monkeypatch.setattr(ast, "parse", broken)
    with pytest.raises(SystemError, match="recursion depth"):
        code_hash._bare("x = 1")
