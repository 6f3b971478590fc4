"""What a study found, against counts made by hand, the paper's numbers and other people's formulas."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from math import comb, sqrt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from saywhere.cli.study import app
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.studio.study import read_study, turns
from saywhere.studio.study_ratings import Rating, RatingLog, RatingState
from saywhere.studio.study_summary import agreement, share, sign_test, summarise, write_results
from tests.studio.logs import add_raw
from tests.studio.studies import make_study

scale = st.sampled_from((-2, -1, 0, 1, 2))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_study(tmp_path / "study")


def said(folder: Path, ratings: Iterable[tuple[str, str, int]], left: str = "") -> None:
    """Let participants rate: (code, item, rating towards b). left: whose side is left for all, else as it was drawn."""
    study = read_study(folder)
    log = RatingLog(folder)
    for i, (who, item, value) in enumerate(ratings):
        shown = left or next(turn.left for turn in turns(study, who) if turn.item == item)
        given = value if shown == "a" else -value
        values = {"participant": who, "item": item, "left": shown, "rating": given, "at": "2020-01-01", "seconds": i}
        log.add(Rating(**values))


EXAMPLE = [
    ("P1", "q0", 2),
    ("P1", "q1", 1),
    ("P1", "q2", 0),
    ("P1", "q3", -1),
    ("P2", "q0", 1),
    ("P2", "q1", 2),
    ("P3", "q0", -2),
]


def test_a_study_of_seven_ratings_is_counted_as_by_hand(folder: Path) -> None:
    said(folder, EXAMPLE)
    found = write_results(folder)
    assert (found.ratings, found.rated_items, found.items) == (7, 4, 4)
    assert (found.a.model, found.a.clearly, found.a.slightly, found.a.of_all.count) == ("plain", 1, 1, 2)
    assert (found.b.model, found.b.clearly, found.b.slightly, found.b.of_all.count) == ("hinted", 2, 2, 4)
    assert (found.equal.count, found.equal.total) == (1, 7)
    assert (found.preferring_b.count, found.preferring_b.total) == (4, 6)
    assert found.mean_towards_b == pytest.approx(3 / 7)
    assert (found.over_ratings.a, found.over_ratings.b, found.over_ratings.ties) == (2, 4, 1)
    assert found.over_ratings.p == pytest.approx(2 * (comb(6, 4) + comb(6, 5) + 1) / 2**6)
    # P1 preferred b twice and a once, P2 b, P3 a; q0 is for b by 1, q1 by 3, q2 a tie, q3 for a.
    assert (found.over_participants.a, found.over_participants.b, found.over_participants.ties) == (1, 2, 0)
    assert (found.over_items.a, found.over_items.b, found.over_items.ties) == (1, 2, 1)
    assert (found.agreement.items, found.agreement.pairs) == (2, 4)
    assert (found.agreement.same.count, found.agreement.opposite.count) == (2, 2)
    first = found.participants[0]
    assert (first.code, first.ratings, first.finished) == ("P1", 4, True)
    assert (first.preferred_a, first.equal, first.preferred_b, first.seconds) == (1, 1, 2, 1.5)
    assert not found.participants[1].finished
    assert found.passed_over == []


def test_the_files_say_what_was_rated(folder: Path) -> None:
    said(folder, EXAMPLE)
    write_results(folder)
    with (folder / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = {-1: "plain", 0: "equal", 1: "hinted"}
    assert [row["preferred"] for row in rows] == [names[(value > 0) - (value < 0)] for _, _, value in EXAMPLE]
    assert {row["left"] for row in rows} | {row["right"] for row in rows} == {"plain", "hinted"}
    summary = json.loads((folder / "summary.json").read_text("utf-8"))
    assert summary["over_ratings"]["ties"] == 1
    assert summary["models"] == {"a": "plain", "b": "hinted"}


def test_who_always_likes_the_left_is_seen(folder: Path) -> None:
    said(folder, [(f"P{i}", f"q{j}", -1) for i in range(3) for j in range(4)], left="a")
    sides = summarise(read_study(folder), RatingLog(folder).given).sides
    assert (sides.left.share, sides.a_was_left.share) == (1, 1)
    assert sides.p == pytest.approx(2 / 2**12)
    drawn = make_study(folder.parent / "drawn")
    said(drawn, [(f"P{i}", f"q{j}", -1) for i in range(3) for j in range(4)])
    sides = summarise(read_study(drawn), RatingLog(drawn).given).sides
    assert sides.left.share == sides.a_was_left.share == 0.5
    assert sides.p == 1


def test_the_paper_preference_of_1000_ratings_is_far_from_chance() -> None:
    found = sign_test([1] * 499 + [-1] * 331 + [0] * 170)
    assert (found.a, found.b, found.ties) == (331, 499, 170)
    tail = sum(comb(830, k) for k in range(499, 831))
    assert found.p == pytest.approx(float(2 * tail / 2**830), rel=1e-6)
    assert share(499, 1000).low == pytest.approx(0.468, abs=1e-3)


@given(st.integers(0, 200), st.integers(1, 200))
def test_intervals_are_wilsons(count: int, more: int) -> None:
    total = count + more
    found = share(count, total)
    z = 1.959963984540054
    p = count / total
    middle = (p + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z * sqrt(p * (1 - p) / total + z**2 / (4 * total**2)) / (1 + z**2 / total)
    assert (found.low, found.high) == pytest.approx((middle - half, middle + half), abs=1e-9)


@given(st.lists(scale))
def test_swapping_the_models_changes_names_and_nothing_else(values: list[int]) -> None:
    one, other = sign_test(values), sign_test(-value for value in values)
    assert (one.a, one.b, one.ties) == (other.b, other.a, other.ties)
    assert one.p == pytest.approx(other.p) if one.p is not None else other.p is None


@given(st.lists(st.lists(scale, max_size=5), max_size=6))
def test_alpha_is_krippendorffs_by_its_matrix_of_coincidences(items: list[list[int]]) -> None:
    shared = [ratings for ratings in items if len(ratings) > 1]
    pairs = [(a, b, len(r) - 1) for r in shared for i, a in enumerate(r) for j, b in enumerate(r) if i != j]
    everything = [value for ratings in shared for value in ratings]
    observed = sum((a - b) ** 2 / others for a, b, others in pairs)
    expected = sum((a - b) ** 2 for a in everything for b in everything)
    found = agreement(items)
    assert found.pairs == len(pairs) / 2
    if not expected:
        assert found.alpha is None
    else:
        assert found.alpha == pytest.approx(1 - (len(everything) - 1) * observed / expected)


def test_people_who_agree_have_an_alpha_of_one() -> None:
    assert agreement([[2, 2, 2], [-1, -1], [0]]).alpha == 1
    assert agreement([[2], [1]]).alpha is None


def test_a_study_nobody_has_rated_has_a_summary(folder: Path) -> None:
    found = summarise(read_study(folder), RatingState())
    assert (found.ratings, found.over_ratings.p, found.equal.share, found.mean_towards_b) == (0, None, None, None)


def test_ratings_of_items_that_left_the_study_are_named_and_do_not_count(folder: Path) -> None:
    said(folder, EXAMPLE)
    written = json.loads((folder / "study.json").read_text("utf-8"))
    written["items"] = written["items"][1:]
    (folder / "study.json").write_text(json.dumps(written), "utf-8")
    add_raw(folder, "ratings", b"torn")
    found = write_results(folder)
    assert found.ratings == 4
    assert len(found.passed_over) == 4
    assert found.passed_over[0].startswith("line 8: ")
    assert found.passed_over[1] == "P1 rated q0, which is not in the study"


# The command line.


def test_the_command_prints_the_summary_and_writes_both_files(folder: Path) -> None:
    said(folder, EXAMPLE)
    result = CliRunner().invoke(app, ["summary", str(folder)])
    assert result.exit_code == 0, result.output
    assert "hinted preferred" in result.stdout
    assert "57.1 % [25.0, 84.2] (4 of 7); clearly 2, slightly 2" in result.stdout
    assert "hinted 4, plain 2, p = 0.69; 1 ties left out" in result.stdout
    assert (folder / "results.csv").is_file()
    assert (folder / "summary.json").is_file()


def test_the_command_names_lines_that_do_not_count(folder: Path) -> None:
    add_raw(folder, "ratings", b"x")
    result = CliRunner().invoke(app, ["summary", str(folder)])
    assert "passed over line 1: is not a rating" in result.stderr
    assert "none" in result.stdout


def test_serving_starts_the_study_alone_on_a_free_port(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[tuple[str, str | None]] = []

    def run(server: object, _: object, __: object, opened: str | None) -> None:
        served.append((server.state.study.study.title, opened))  # type: ignore[attr-defined]

    monkeypatch.setattr("saywhere.cli.study.run", run)
    result = CliRunner().invoke(app, ["serve", str(folder), "--port", "0", "--no-browser"])
    assert result.exit_code == 0, result.output
    assert served == [("Where do they look?", None)]
    assert "http://127.0.0.1:" in result.stdout
    assert f"Answers are kept in {folder}" in result.stderr


@pytest.mark.parametrize(("arguments", "error"), [(["none"], InvalidFile), (["", "--host", "0.0.0.0"], InvalidValue)])
def test_serving_refuses_what_cannot_be_served(folder: Path, arguments: list[str], error: type[Exception]) -> None:
    where = str(folder / arguments[0])
    result = CliRunner().invoke(app, ["serve", where, "--port", "0", "--no-browser", *arguments[1:]])
    assert isinstance(result.exception, error)
