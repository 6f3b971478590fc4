"""Reports that are kept fit the code that is here, or say that older code made them."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from saywhere.build.coco_regions import CocoFolder
from saywhere.cli.reproduce import app
from saywhere.core import InvalidFile
from saywhere.core.types import Progress
from saywhere.reproduce import code_hash
from saywhere.reproduce.code_hash import changed_files, code_hashes
from saywhere.reproduce.experiment import MEASURED, RowPlan, TrainedExperiment, TrainingJob
from saywhere.reproduce.freshness import NO_HASH, OLDER, kept_reports, mark_older, problems
from saywhere.reproduce.hint import HintExperiment
from saywhere.reproduce.report import render, write_report
from saywhere.reproduce.results import Results, load_report, save_report

KEPT = Path(__file__).parents[2] / "docs" / "reports"


@pytest.mark.parametrize("folder", kept_reports(KEPT), ids=lambda folder: folder.name)
def test_a_kept_report_fits_its_code_or_says_that_it_is_older(folder: Path) -> None:
    assert list(problems(folder)) == []


def report(folder: Path, code: dict[str, str]) -> Path:
    write_report(Results("Toys", "a paper", {}, {}, (), (), code=code), folder)
    return folder


def checked(folder: Path, *options: str) -> tuple[int, str]:
    told = CliRunner().invoke(app, ["check", str(folder), *options])
    return told.exit_code, told.output.replace("\n", " ")


def allow(folder: Path, **known: str) -> None:
    (folder / OLDER).write_text(json.dumps(known))


def changed(folder: Path, *names: str) -> None:
    """Let the report have been made by other code in these files."""
    made = load_report(folder)
    save_report(replace(made, code={**made.code, **dict.fromkeys(names, "0" * 12)}), folder)
    render(folder)


def test_a_report_of_todays_code_has_no_problem_until_the_code_changes(tmp_path: Path) -> None:
    folder = report(tmp_path / "toys", code_hashes("saywhere.reproduce.claims"))
    assert list(problems(folder)) == []
    changed(folder, "reproduce/claims.py")
    [problem] = problems(folder)
    assert "Changed since: reproduce/claims.py." in problem
    allow(tmp_path, toys="The gap was left open.")
    assert "does not say what older.json says" in next(problems(folder))
    mark_older(folder)
    assert list(problems(folder)) == []
    said = "**Made by an older version of the code. The gap was left open.**"
    assert said in (folder / "report.md").read_text()
    assert "Made by an older version" in (folder / "report.html").read_text()


def test_what_is_older_is_said_with_what_has_changed_by_today(tmp_path: Path) -> None:
    folder = report(tmp_path / "toys", code_hashes("saywhere.reproduce.claims"))
    assert checked(tmp_path) == (0, "toys: as it should be ")
    changed(folder, "reproduce/claims.py")
    allow(tmp_path, toys="The gap was left open.")
    assert checked(tmp_path, "--mark") == (0, "toys: older. Changed since: reproduce/claims.py. ")
    changed(folder, "reproduce/decisions.py")
    code, said = checked(tmp_path)
    assert code == 0
    assert {"older.", "reproduce/claims.py,", "reproduce/decisions.py."} <= set(said.split())


def test_only_reports_that_are_listed_may_be_older(tmp_path: Path) -> None:
    folder = report(tmp_path / "toys", {})
    assert NO_HASH in next(problems(folder))
    save_report(replace(load_report(folder), older="Nothing is wrong."), folder)
    code, said = checked(tmp_path, "--mark")
    assert (code, load_report(folder).older) == (1, "")
    assert NO_HASH in said
    allow(tmp_path, toys="The gap was left open.")
    assert checked(tmp_path, "--mark")[0] == 0
    assert "The gap was left open." in (folder / "report.md").read_text()


def test_a_report_that_was_remade_is_to_be_taken_off_the_list(tmp_path: Path) -> None:
    folder = report(tmp_path / "toys", code_hashes("saywhere.reproduce.claims"))
    allow(tmp_path, toys="The gap was left open.")
    assert "Take it out" in next(problems(folder))


@pytest.mark.parametrize("content", ["[]", '{"toys": ""}', "{"])
def test_a_list_that_says_nothing_is_refused(tmp_path: Path, content: str) -> None:
    folder = report(tmp_path / "toys", {})
    (tmp_path / OLDER).write_text(content)
    with pytest.raises(InvalidFile, match=r"older\.json"):
        list(problems(folder))


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


def test_what_a_package_passes_on_is_where_it_is_defined_and_the_package_itself_is_no_part() -> None:
    code = set(code_hashes("saywhere.reproduce.mitr"))
    # From `saywhere.core`, `saywhere.metrics` and `saywhere.world`, of which other names are not used.
    assert {"core/grounded.py", "metrics/lbm.py", "world/narrators.py", "metrics/captions/_cider.py"} <= code
    assert not code & {"metrics/__init__.py", "metrics/referring.py", "world/video.py", "core/__init__.py"}
    assert not code & {"learn/registry.py", "models/registry.py", "formats/registry.py", "__init__.py"}
    assert not any(name.startswith("engine/") for name in code)
    # A package that defines names itself is a part: this one opens encoders.
    assert {"vision/__init__.py", "vision/hub.py"} <= set(code_hashes("saywhere.reproduce.narrations"))


def test_what_a_package_passes_on_when_it_is_asked_for_is_followed_too() -> None:
    code = set(code_hashes("saywhere.reproduce.patchioner"))
    assert {"vision/cache.py", "core/grounded.py", "core/attention.py", "models/eye/encoder.py"} <= code
    assert "models/mitr/network.py" not in code


def test_what_a_run_finds_by_name_is_part_of_its_code() -> None:
    assert "learn/hint_task.py" not in code_hashes("saywhere.reproduce.hint")
    assert {"learn/hint.py", "learn/hint_task.py", "models/updown/vqa.py"} <= set(HintExperiment().code(["hint-vqa"]))
    photos = HintExperiment(coco=CocoFolder(Path("photos"), Path("boxes.json"), Path("captions.json")))
    assert {"models/patchioner/look.py", "vision/eye.py"} <= set(photos.code())
    assert "models/patchioner/look.py" not in HintExperiment().code()


@dataclass(frozen=True, kw_only=True)
class Toys(TrainedExperiment[RowPlan, dict[str, float]]):
    """One row, which is trained already."""

    seeds: tuple[int, ...] = (0,)
    task: str

    def jobs(self, out: Path, progress: Progress) -> list[TrainingJob[RowPlan]]:
        [job] = self.jobs_of([RowPlan(key="row", title="Row")], out, out)
        job.folder.mkdir(parents=True)
        (job.folder / MEASURED).write_text("{}")
        return [job]

    def recipe(self, job: TrainingJob[RowPlan]) -> dict[str, Any]:
        return {"task": self.task, "train": {"steps": 1}}

    def measure(self, job: TrainingJob[RowPlan]) -> dict[str, float]:
        return {}

    def compare(self, out: Path, measured: Mapping[TrainingJob[RowPlan], Any], progress: Progress) -> Results:
        return Results("Toys", "a paper", {}, {}, (), ())


def test_tasks_that_were_trained_are_part_of_a_reports_code(tmp_path: Path) -> None:
    code = {task: Toys(task=task).run(tmp_path / task, lambda *_: None).code for task in ("mitr", "oscar")}
    for task, other in (("mitr", "oscar"), ("oscar", "mitr")):
        assert {f"models/{task}/network.py", f"models/{task}/objective.py", "learn/trainer.py"} <= set(code[task])
        assert f"models/{other}/network.py" not in code[task]


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
