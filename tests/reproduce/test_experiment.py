"""What all experiments share: settings are kept, what made a report is said, measures survive, commands agree."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner

from saywhere import __version__
from saywhere.cli.reproduce import app
from saywhere.core import InvalidFile
from saywhere.core.types import Progress
from saywhere.reproduce.claims import ClaimPlan, judge_measures, judge_plan
from saywhere.reproduce.experiment import Experiment, load_measured, save_measured
from saywhere.reproduce.results import Results
from saywhere.reproduce.tables import MeasureColumn, Scoreboard

CIDER, LBM = MeasureColumn("CIDEr"), MeasureColumn("LBM", lower_is_better=True)


@dataclass(frozen=True, kw_only=True)
class Toy(Experiment):
    """Compares nothing."""

    steps: int = 1
    decides_from: ClassVar[int] = 2

    def settings(self) -> dict[str, Any]:
        return {"steps": self.steps}

    def results(self, out: Path, progress: Progress) -> Results:
        progress("playing", 1, 1)
        return Results("Toys", "a paper", {}, {"data": "f00d"}, (), (), remarks=("Toys are drawn.",))


def quiet(doing: str, done: int, total: int) -> None:
    assert done <= total, doing


def test_a_report_says_what_made_it_and_whether_it_decides_anything(tmp_path: Path) -> None:
    results = Toy(seeds=(4,)).run(tmp_path, quiet)
    assert list(results.made_by) == ["saywhere", "git", "data"]
    assert "reproduce/claims.py" in results.code
    assert results.settings["plan"] == {"steps": 1}
    assert "| plan · steps | 1 |" in (tmp_path / "report.md").read_text()
    assert results.made_by["saywhere"] == __version__
    assert results.seeds == (4,)
    assert [remark.split(":")[0] for remark in results.remarks] == ["A quick run", "Toys are drawn."]
    assert Toy(seeds=(0, 1)).run(tmp_path, quiet).remarks == ("Toys are drawn.",)


def test_a_folder_that_was_begun_with_other_settings_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    toy = Toy()
    toy.run(tmp_path / "out", quiet)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir() if path.is_file()}
    with pytest.raises(InvalidFile, match="other settings"):
        replace(toy, steps=2).run(tmp_path / "out", quiet)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir() if path.is_file()} == before
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidFile, match="not a folder"):
        toy.run(tmp_path / "file", quiet)


def test_measures_that_are_no_numbers_survive(tmp_path: Path) -> None:
    save_measured({"a": math.nan, "b": -math.inf, "ρ": 0.1}, tmp_path / "m.json")
    again = load_measured(tmp_path / "m.json", dict[str, float])
    assert math.isnan(again["a"])
    assert (again["b"], again["ρ"]) == (-math.inf, 0.1)
    for kind in (dict[str, int], list[float]):
        with pytest.raises(InvalidFile, match="holds no measures"):
            load_measured(tmp_path / "m.json", kind)


def board() -> Scoreboard:
    scores = {("a", 0): {"CIDEr": 2.0, "LBM": 0.1}, ("a", 1): {"CIDEr": 3.0, "LBM": 0.2}}
    scores |= {("b", 0): {"CIDEr": 1.0, "LBM": 0.4}, ("b", 1): {"CIDEr": 1.5, "LBM": 0.6}}
    return Scoreboard({"a": "ours", "b": "theirs"}, (0, 1), scores, "the world")


def test_a_table_shows_its_columns_of_its_rows_and_the_papers_numbers_beside_them() -> None:
    table = board().table(3, "captions", [CIDER], ["b", "a"], {"a": {"CIDEr": 9.0, "LBM": 8.0}}, compete=False)
    assert [row.name for row in table.rows] == ["theirs", "ours"]
    assert table.rows[1].scores == ({"CIDEr": 2.0}, {"CIDEr": 3.0})
    assert [row.paper for row in table.rows] == [{}, {"CIDEr": 9.0}]
    assert (table.section, table.compete) == ("the world", False)


def test_a_planned_claim_is_judged_on_the_rows_it_names_and_says_where() -> None:
    claim = judge_plan(ClaimPlan("ours points better", LBM, "a", "b", "a control"), board(), "world")
    assert (claim.text, claim.better, claim.worse) == ("world: ours points better", "world: ours", "theirs")
    assert claim.differences == pytest.approx((0.3, 0.4))
    # Two seeds leave a wide interval.
    assert (claim.source, claim.verdict) == ("a control", "undecided")
    assert judge_plan(ClaimPlan("ours", CIDER, "b", "a"), board()).differences == (-1.0, -1.5)


def test_two_measures_of_one_row_can_be_compared() -> None:
    claim = judge_measures("c", MeasureColumn("both"), {"captions": CIDER, "distance": LBM}, "a", board())
    assert (claim.better, claim.worse, claim.measure) == ("captions", "distance", "both")
    assert claim.differences == pytest.approx((1.9, 2.8))


def test_a_report_is_written_anew_by_a_command(tmp_path: Path) -> None:
    Toy(seeds=(0, 1)).run(tmp_path, quiet)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    (tmp_path / "report.md").unlink()
    told = CliRunner().invoke(app, ["render", str(tmp_path)])
    assert told.exit_code == 0, told.output
    assert "report.html" in told.output
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == text
