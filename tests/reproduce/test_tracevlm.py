"""TraceVLM's ablations, as small as they can be, and how photographs are judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from saywhere.core import Narrative, Trace, Utterance
from saywhere.models.tracevlm.examples import USER, InstructionFile
from saywhere.models.tracevlm.small_photos import PHOTOS
from saywhere.reproduce import tracevlm_photos
from saywhere.reproduce.claims import PAPER, Claim
from saywhere.reproduce.tables import Table
from saywhere.reproduce.tracevlm import ROWS, TinyScale, TraceExperiment, _word_boxes, power
from saywhere.reproduce.tracevlm_data import BLIND, FIXED, MIXED, ORDER, RILN, TraceWorld, prepare_trace_world
from saywhere.reproduce.tracevlm_photos import (
    _ALWAYS,
    _OURS,
    PhotoMeasures,
    TracePhotos,
    TracePhotosExperiment,
    _caption_results,
    _Finding,
    _found_results,
    _Presence,
    _presence_results,
    _Told,
)
from saywhere.store import Store

WORLD = TraceWorld(
    train=8, validation=2, test=3, talks=24, size=64, eye_scenes=4, eye_steps=2, eye_size=8, pieces=400, max_words=24
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    prepare_trace_world(folder, WORLD, lambda *_: None)
    return folder


def test_a_quick_run_judges_nothing_however_many_seeds_it_has() -> None:
    assert not replace(TraceExperiment.quick(), seeds=(0, 1, 2)).decides
    assert replace(TraceExperiment(), seeds=(0, 1, 2)).decides


def test_rows_learn_from_as_many_talks_about_the_same_scenes(world: Path) -> None:
    talks = {name: list(InstructionFile(world / name / "train.jsonl")) for name in (MIXED, FIXED, BLIND, RILN)}
    assert {len(some) for some in talks.values()} == {24}
    photos = Store(world / PHOTOS)
    assert len(photos) == 13
    test = [row.key for row in photos][-3:]
    assert not {name for some in talks.values() for talk in some for name in talk.images} & set(test)


def test_a_fixed_order_has_the_same_talks_one_task_after_another(world: Path) -> None:
    mixed, fixed = (list(InstructionFile(world / name / "train.jsonl")) for name in (MIXED, FIXED))
    assert sorted(talk.id for talk in mixed) == sorted(talk.id for talk in fixed)
    assert [talk.task for talk in fixed] == [task for task in ORDER for _ in range(8)]
    assert [talk.task for talk in mixed] != [talk.task for talk in fixed]


def test_without_a_trajectory_nobody_points_in_a_question(world: Path) -> None:
    for talk in InstructionFile(world / BLIND / "train.jsonl"):
        assert not [turn for turn in talk.turns if turn.role == USER and turn.trajectories]


def test_the_whole_experiment_runs_and_says_what_it_could_have_shown(tmp_path: Path) -> None:
    experiment = TraceExperiment(
        seeds=(0,), world=WORLD, scale=TinyScale(batch=8, width=16, layers=1, words=8), workers=0
    )
    results = experiment.run(tmp_path, lambda *_: None)
    [table] = results.tables
    assert [row.name for row in table.rows] == [row.title for row in ROWS]
    assert [row.paper["BLEU-4"] for row in table.rows] == [0.250, 0.265, 0.310, 0.328, 0.328]
    assert table.rows[1].paper == {"BLEU-4": 0.265, "LBM (k=0)": 0.135, "LBM (k=1)": 0.125}
    assert results.paper.startswith("Connecting Where You Look With What You Understand")
    for row in table.rows:
        assert row.scores[0]["LBM (k=1)"] <= row.scores[0]["LBM (k=0)"] + 1e-9
    assert any(remark.startswith("Power: with one seed") for remark in results.remarks)
    assert (tmp_path / "report.md").is_file()


def test_power_is_half_of_each_interval() -> None:
    claim = Claim("a", "CIDEr", "x", "y", (0.1, 0.3), 0.05, 0.35, "held")
    assert power([claim]).endswith("claim by claim: 0.150 in CIDEr.")


def test_words_get_the_points_of_their_time() -> None:
    said = (Utterance("a", 0.0, 1.0), Utterance("dog", 1.0, 2.0))
    told = Narrative("1", "a dog", said, Trace([(0.1, 0.1, 0.0)]))
    boxes = _word_boxes(told, "<traj>(100,100),(200,300),(800,900)</traj>")
    assert np.allclose(boxes, [(0.1005, 0.1005, 0.2005, 0.3005), (0.2005, 0.3005, 0.8005, 0.9005)])
    assert np.array_equal(_word_boxes(told, "nothing"), np.tile([0, 0, 1, 1], (2, 1)))


def test_expressions_are_right_from_half_of_overlap_on() -> None:
    truth = (0.0, 0.0, 0.4, 0.4)
    ours = [(0.0, 0.0, 0.4, 0.21), (0.0, 0.0, 0.4, 0.19), None]
    finding = _Finding(["1", "1", "2"], [truth] * 3, {_OURS: ours, "the whole photo": [(0.0, 0.0, 1.0, 1.0)] * 3})
    table, claim, twice = _found_results(finding)
    assert isinstance(table, Table)
    assert isinstance(claim, Claim)
    assert finding.right(_OURS).tolist() == [1, 0, 0]
    assert finding.pointed(_OURS).tolist() == [1, 1, 0]
    assert table.rows[0].scores[0]["P@0.5, %"] == pytest.approx(100 / 3)
    assert claim.differences == pytest.approx((1 / 3,))
    assert isinstance(twice, Claim)
    assert (twice.worse, twice.differences) == ("twice the whole photo", pytest.approx((1 / 3,)))
    assert PAPER not in (claim.source, twice.source), "the paper claims nothing about these photographs"


def test_answers_are_counted_against_saying_yes_to_everything() -> None:
    asked = _Presence(
        ["1", "1", "2", "2"], ["yes", "no"] * 2, {_OURS: ["yes", "no", "yes", "yes"], _ALWAYS: ["yes"] * 4}
    )
    table, claim = _presence_results(asked)
    assert isinstance(table, Table)
    assert isinstance(claim, Claim)
    assert table.rows[0].scores[0] == {"right, %": 75, "yes, %": 75}
    assert table.rows[1].scores[0] == {"right, %": 50, "yes, %": 100}
    assert claim.differences == pytest.approx((0.25,))
    assert claim.source != PAPER


def test_what_photographs_show_becomes_a_report_without_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, asked = (
        (0.0, 0.0, 0.4, 0.4),
        _Presence(["1", "2"], ["yes", "no"], {_OURS: ["yes"] * 2, _ALWAYS: ["yes"] * 2}),
    )
    finding = _Finding(["1", "2"], [truth] * 2, {_OURS: [truth, None], "the whole photo": [(0.0, 0.0, 1.0, 1.0)] * 2})
    told = _Told({"1": "a dog", "2": "a cup"}, {"1": "a dog", "2": "a cat"}, {"1": ["a dog"], "2": ["a cup"]})
    parts = [*_caption_results(told), *_found_results(finding), *_presence_results(asked)]
    tables, claims = (tuple(one for one in parts if isinstance(one, kind)) for kind in (Table, Claim))
    monkeypatch.setattr(tracevlm_photos, "measure_photos", lambda *_: PhotoMeasures(tables, claims))
    results = TracePhotosExperiment(photos=TracePhotos(tmp_path)).run(tmp_path / "out", lambda *_: None)
    assert [table.number for table in results.tables] == [1, 2, 3]
    assert "always yes" in (tmp_path / "out" / "report.md").read_text()
