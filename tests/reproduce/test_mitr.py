"""`saywhere reproduce mitr` on a world so small that it decides nothing, but runs whole."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from saywhere.core import InvalidFile, MissingDependency, Narrative, Trace, Utterance
from saywhere.models.mitr import RegionFeatures
from saywhere.models.mitr.prepared import Prepared
from saywhere.reproduce import mitr, mitr_run
from saywhere.reproduce.eye import all_names, patch_names
from saywhere.reproduce.mitr_files import prepare_narratives, split_of
from saywhere.reproduce.mitr_rows import CLAIMS, ROWS, TABLES
from saywhere.reproduce.mitr_run import RunScale
from saywhere.reproduce.mitr_world import WorldScale, regions_of
from saywhere.reproduce.results import Column, Row, judge
from saywhere.world import make_scene

TINY = mitr.Plan(
    seeds=(0,),
    workers=0,
    world=WorldScale(train=12, validation=4, test=5, eye_scenes=4, eye_steps=2, eye_size=16),
    run=RunScale(steps=3, batch=4, width=8, heads=2, beams=2, test=5),
)


def test_everything_runs_and_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java() -> None:
        raise MissingDependency("a Java runtime", "METEOR", "install one")

    monkeypatch.setattr(mitr, "MeteorTool", no_java)
    said: list[str] = []
    results = mitr.reproduce(tmp_path, TINY, lambda what, done, total: said.append(what))
    assert [table.number for table in results.tables] == [5, 2, 3]
    assert len(results.claims) == len(CLAIMS)
    assert {"drawing and narrating scenes", "training", "scoring captions"} <= set(said)
    assert any("a Java runtime" in remark for remark in results.remarks)
    assert json.loads((tmp_path / "numbers.json").read_text())["seeds"] == [0]
    page = (tmp_path / "report.html").read_text()
    assert "MITR, Task 1 + 2 + cycle_b" in page
    kept = (tmp_path / "runs" / "task12-0" / "made.json").stat().st_mtime_ns
    (tmp_path / "runs" / "task1-0" / "made.json").unlink()
    again = mitr.reproduce(tmp_path, TINY, lambda *_: None)
    assert again.tables == results.tables
    assert (tmp_path / "runs" / "task12-0" / "made.json").stat().st_mtime_ns == kept


def test_a_run_that_was_interrupted_leaves_nothing_to_be_taken_for_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped:
        status = "interrupted"

    monkeypatch.setattr(mitr_run, "recipe_of", lambda job: None)
    monkeypatch.setattr(mitr_run, "train", lambda recipe, folder: Stopped())
    job = mitr_run.Job(ROWS["task1"], 0, tmp_path, tmp_path / "run", RunScale())
    with pytest.raises(KeyboardInterrupt):
        mitr_run.run_job(job)
    assert not (tmp_path / "run" / "made.json").exists()


def test_every_row_and_claim_can_be_looked_up() -> None:
    for table in TABLES:
        for key, numbers in table.rows.items():
            assert set(table.tests) <= set(ROWS[key].tests)
            assert len(numbers) == len(table.columns)
    for _, test, measure, better, worse in CLAIMS:
        assert test in ROWS[better].tests
        assert test in ROWS[worse].tests
        assert measure in {column.name for table in TABLES for column in table.columns}


@pytest.mark.parametrize(
    ("better", "worse", "lower", "verdict"),
    [
        ([3.0, 3.1, 2.9], [1.0, 1.1, 1.0], False, "held"),
        ([3.0, 3.1, 2.9], [1.0, 1.1, 1.0], True, "not held"),
        ([1.0, 3.0, 2.0], [2.0, 2.1, 1.9], False, "undecided"),
        ([3.0], [1.0], False, "undecided"),
    ],
)
def test_a_claim_is_judged_by_the_interval_of_its_paired_differences(
    better: list[float], worse: list[float], lower: bool, verdict: str
) -> None:
    rows = [Row(name, tuple({"m": v} for v in values)) for name, values in (("a", better), ("b", worse))]
    claim = judge("a beats b", Column("m", lower_is_better=lower), *rows)
    assert claim.verdict == verdict
    assert np.mean(claim.differences) == pytest.approx((1 - 2 * lower) * (np.mean(better) - np.mean(worse)))


def test_the_interval_is_students() -> None:
    rows = [Row(name, tuple({"m": v} for v in values)) for name, values in (("a", [1.0, 2.0, 4.0]), ("b", [0.0] * 3))]
    claim = judge("a beats b", Column("m"), *rows)
    # mean 7/3, sd 1.5275, t(0.975, 2) = 4.3027
    assert (claim.low, claim.high) == pytest.approx((7 / 3 - 3.7945, 7 / 3 + 3.7945), abs=1e-3)


def test_a_patch_is_named_after_what_covers_it() -> None:
    scene = make_scene(0, 3)
    names = all_names()
    found = patch_names(scene, names)
    assert found.shape == (64, len(names))
    for i, thing in enumerate(scene.things):
        if thing.area > 0.05:
            assert found[:, names[thing.kind]].any(), thing.kind
        assert not found[:, names[thing.kind]].all() or (scene.labels == i + 1).mean() > 0.02


def test_regions_are_the_whole_image_and_every_thing() -> None:
    scene = make_scene(0, 3)
    patches = np.arange(64 * 2, dtype=np.float16).reshape(64, 2)
    regions = regions_of(scene, patches)
    assert len(regions) == 1 + len(scene.things)
    np.testing.assert_allclose(regions.features[0], patches.astype(float).mean(axis=0), rtol=1e-3)


def narrative(image_id: str, text: str = "a cup on the table") -> Narrative:
    said = (Utterance(text, 0, 2),) if text else ()
    return Narrative(image_id, text, said, Trace([(0.1, 0.1, 0), (0.5, 0.5, 1), (0.9, 0.9, 2)]))


def test_real_narratives_are_joined_with_features_and_split_by_image(tmp_path: Path) -> None:
    features = RegionFeatures(np.ones((2, 3)), [[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]])
    told = [narrative(str(i)) for i in range(200)] + [narrative("7", ""), narrative("lost")]
    counts = prepare_narratives(tmp_path, told, lambda i: None if i == "lost" else features, {"from": "a test"})
    assert counts["train"] + counts["validation"] + counts["test"] == 200
    assert (counts["without features"], counts["without words"]) == (1, 1)
    assert 8 <= counts["test"] <= 40
    prepared = Prepared(tmp_path)
    assert all(split_of(prepared.split("test").image_name(i)) == "test" for i in range(counts["test"]))
    with pytest.raises(InvalidFile, match="no narrative falls into the split"):
        prepare_narratives(tmp_path / "few", [narrative("1")], lambda _: features, {})
