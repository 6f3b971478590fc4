"""`saywhere reproduce mitr` on a world so small that it decides nothing, but runs whole."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from saywhere.build.prepare import prepare_narratives
from saywhere.core import (
    InvalidFile,
    InvalidValue,
    MissingDependency,
    Narrative,
    Trace,
    UnknownName,
    Utterance,
)
from saywhere.models.mitr import RegionFeatures
from saywhere.models.mitr.prepared import Prepared, split_of
from saywhere.reproduce import caption_metrics, mitr_data
from saywhere.reproduce.experiment import TrainingJob, run_job
from saywhere.reproduce.eyes import all_names, patch_names
from saywhere.reproduce.mitr import CLAIMS, ROWS, TABLES, MitrExperiment, smaller_claims
from saywhere.reproduce.mitr_data import MitrWorld, key_boxes, prepare_guided, prepare_world, regions_of
from saywhere.reproduce.mitr_measure import MitrScale
from saywhere.reproduce.results import Results
from saywhere.world import ObjectCaption, make_scene, object_captions

TINY = MitrExperiment(
    seeds=(0,),
    workers=0,
    world=MitrWorld(train=12, validation=4, test=5, eye_scenes=4, eye_steps=2, eye_size=16),
    scale=MitrScale(steps=3, batch=4, width=8, heads=2, beams=2, test=5),
)


def test_everything_runs_and_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java() -> None:
        raise MissingDependency("a Java runtime", "METEOR", "install one")

    monkeypatch.setattr(caption_metrics, "MeteorTool", no_java)
    monkeypatch.setattr(MitrExperiment, "decides_from", 1)
    said: list[str] = []
    results = TINY.run(tmp_path, lambda what, done, total: said.append(what))
    assert [table.number for table in results.tables] == [5, 2, 3]
    plans = [*CLAIMS, *smaller_claims()]
    assert {claim.text for claim in results.claims} == {plan.text for test, plan in plans if test != "guided"}
    assert {"drawing and narrating scenes", "training", "scoring captions"} <= set(said)
    assert any("a Java runtime" in remark for remark in results.remarks)
    assert json.loads((tmp_path / "numbers.json").read_text())["seeds"] == [0]
    _check_bounds(results)
    page = (tmp_path / "report.html").read_text()
    assert page.index("What departs from the paper") < page.index("Did the claims hold?")
    assert "MITR, Task 1 + 2 + cycle_b" in page
    kept = (tmp_path / "runs" / "task12-0" / "measured.json").stat().st_mtime_ns
    (tmp_path / "runs" / "task1-0" / "measured.json").unlink()
    full = replace(TINY, full=True).run(tmp_path, lambda *_: None)
    assert full.tables[:3] == results.tables
    assert (tmp_path / "runs" / "task12-0" / "measured.json").stat().st_mtime_ns == kept
    _check_guided(full, tmp_path)
    (tmp_path / "plan.json").unlink()
    fewer = replace(TINY, left_out=("task12-cycle-s", "task123-mask")).run(tmp_path, lambda *_: None)
    assert not any("cycle_s" in row.name for table in fewer.tables for row in table.rows)
    assert not any("cycle_s" in claim.text for claim in fewer.claims)
    assert any(one.setting == "rows left out" for one in fewer.departures)
    assert all(len(one.made) == 2 for one in fewer.examples)


def test_rows_that_are_not_there_or_that_others_start_from_are_not_left_out() -> None:
    with pytest.raises(UnknownName, match="row 'task4'"):
        replace(TINY, left_out=("task4",))
    with pytest.raises(InvalidValue, match="starts from it"):
        replace(TINY, full=True, left_out=("task12-cycle-b",))


def test_every_setting_that_departs_from_the_paper_is_listed() -> None:
    told = {one.setting: (one.here, one.paper) for one in MitrExperiment().departures()}
    assert told["words of a narration"] == ("at most 30", "at most 100")
    assert told["gradients"] == ("clipped to a norm of 1", "each number clipped to 0.1")
    assert told["width, heads, feed-forward"] == ("64, 4, 256", "512, 8, 2048")
    assert told["dropout of attention, of inputs"] == ("0, 0.1", "0.1, 0.5")
    assert told["previous boxes in Task 1 and the cycle"] == ("100 % hidden", "all seen")
    # Rows differ in the weights of their tasks, as the paper's do.
    assert not any(setting.startswith("weight") for setting in told)


def test_smaller_differences_are_claimed_by_the_papers_own() -> None:
    margins = {plan.better: plan.margin for test, plan in smaller_claims() if test == "trace"}
    assert margins["task1"] == pytest.approx(0.208 - 0.171)
    assert "task1-seen" not in margins


def _check_bounds(results: Results) -> None:
    """Blind and ceiling rows stand where they apply, and pointing anew at the same words is nearer than guessing."""
    rows = {table.number: {row.name.split(":")[0]: row for row in table.rows} for table in results.tables}
    assert [n for n in (5, 2, 3) if "blind" in rows[n]] == [5, 2, 3]
    assert [n for n in (5, 2, 3) if "ceiling" in rows[n]] == [5, 3]
    again, guessed = (rows[5][name].mean("LBM (k=0)") for name in ("ceiling", "blind"))
    assert 0 < again < guessed
    assert rows[3]["ceiling"].mean("CIDEr") > 0


def test_a_quick_run_judges_nothing() -> None:
    assert not MitrExperiment.quick().decides
    assert not replace(MitrExperiment.quick(), seeds=(0, 1, 2, 3)).decides
    assert not TINY.decides
    assert MitrExperiment().decides


def _check_guided(full: Results, out: Path) -> None:
    """Table 6 is there, its pre-trained row started from the row it names, and the claim about it is judged."""
    assert [table.number for table in full.tables] == [5, 2, 3, 6, 7, 8]
    assert len(full.claims) == len([*CLAIMS, *smaller_claims()])
    table = full.tables[3]
    assert [row.paper.get("CIDEr") for row in table.rows] == [None, 1.746, 1.819]
    assert all("CIDEr" in row.scores[0] for row in table.rows)
    claim = next(claim for claim in full.claims if claim.better == table.rows[2].name)
    assert claim.worse == table.rows[1].name
    assert any("filled up to 20" in remark for remark in full.remarks)
    recipes = {
        key: json.loads((out / "runs" / f"{key}-0" / "result.json").read_text())["recipe"]
        for key in ("guided", "guided-pretrained")
    }
    assert recipes["guided"]["train"]["init_from"] is None
    assert recipes["guided-pretrained"]["train"]["init_from"] == str(out / "runs" / "task12-cycle-b-0")
    assert Prepared(out / "guided").vocabulary.fingerprint == Prepared(out / "data").vocabulary.fingerprint


def test_a_run_that_was_interrupted_leaves_nothing_to_be_taken_for_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped:
        status = "interrupted"

    monkeypatch.setattr("saywhere.reproduce.experiment.train", lambda recipe, folder: Stopped())
    with pytest.raises(KeyboardInterrupt):
        run_job(TrainingJob(TINY, ROWS["task1"], 0, tmp_path, tmp_path / "run"))
    assert not (tmp_path / "run" / "measured.json").exists()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Prepared narratives of a tiny world."""
    folder = tmp_path_factory.mktemp("world")
    prepare_world(folder, TINY.world, lambda *_: None)
    return Prepared(folder)


def test_guided_captions_are_of_the_same_scenes_words_and_splits(told: Prepared, tmp_path: Path) -> None:
    prepare_guided(tmp_path, told, lambda *_: None)
    guided = Prepared(tmp_path)
    for split in ("train", "validation", "test"):
        scenes = {told.split(split).image_name(i) for i in range(len(told.split(split)))}
        assert {guided.split(split).image_name(i) for i in range(len(guided.split(split)))} <= scenes
    assert len(guided.split("train")) > 2 * len(told.split("train"))
    one, name = guided.split("test")[0], guided.split("test").image_name(0)
    narrative = next(told.split("test")[i] for i in range(5) if told.split("test").image_name(i) == name)
    np.testing.assert_array_equal(one.image.features, narrative.image.features)
    scene = make_scene(TINY.world.seed, int(name))
    keys = key_boxes(scene, object_captions(scene, TINY.world.seed, 1)[0])
    np.testing.assert_array_equal(one.boxes[: len(keys), :4], keys)
    np.testing.assert_array_equal(one.boxes[len(keys) :], [[0, 0, 1, 1, 1]] * (len(one.boxes) - len(keys)))
    assert not one.located.any()
    assert one.words.tolist() == list(
        told.vocabulary.encode(object_captions(scene, TINY.world.seed, 1)[0].text.split()).ids
    )


def test_key_boxes_come_in_the_order_they_are_told_of_and_once() -> None:
    scene = make_scene(0, 3)
    caption = ObjectCaption("two by the one and two", ((2,), (), (), (0, 1), (), (2,)))
    np.testing.assert_allclose(key_boxes(scene, caption), [scene.things[i].box_xyxy for i in (2, 0, 1)], atol=1e-6)
    assert key_boxes(scene, ObjectCaption("a view", ((), ()))).shape == (0, 4)


def test_guided_captions_of_other_narratives_or_of_another_world_are_refused(
    told: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_guided(tmp_path / "guided", told, lambda *_: None)
    prepare_world(tmp_path / "other", replace(TINY.world, seed=5), lambda *_: None)
    with pytest.raises(InvalidFile, match="belongs to other narratives"):
        prepare_guided(tmp_path / "guided", Prepared(tmp_path / "other"), lambda *_: None)
    monkeypatch.setattr(mitr_data, "make_scene", lambda seed, index, size: make_scene(seed + 1, index, size))
    with pytest.raises(InvalidFile, match="no longer drawn as it was"):
        prepare_guided(tmp_path / "anew", told, lambda *_: None)


def test_narratives_from_files_have_no_table_of_guided_captions(told: Prepared, tmp_path: Path) -> None:
    features = RegionFeatures(np.ones((2, 3)), [[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]])
    images = {str(i): features for i in range(99)}
    prepare_narratives(tmp_path, [narrative(name) for name in images], images, {"from": "a test"})
    full = replace(TINY, full=True)
    assert [table.number for table in full.tables(Prepared(tmp_path))] == [5, 2, 3, 7, 8]
    assert [table.number for table in full.tables(told)] == [5, 2, 3, 6, 7, 8]


def test_every_row_and_claim_can_be_looked_up() -> None:
    for table in TABLES:
        for key in table.rows:
            assert set(table.tests) <= set(ROWS[key].tests)
            assert set(ROWS[key].paper) <= {column.name for table in TABLES for column in table.columns}
            # A row is trained in one of two rounds, so the one it starts from starts from none.
            assert not ROWS[key].start or not ROWS[ROWS[key].start].start
            assert not ROWS[key].start or any(ROWS[key].start in one.rows for one in TABLES if not one.full)
    for test, plan in CLAIMS:
        assert test in ROWS[plan.better].tests
        assert test in ROWS[plan.worse].tests
        assert plan.measure in {column for table in TABLES for column in table.columns}


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
    images = {str(i): features for i in range(200)}
    counts = prepare_narratives(tmp_path, told, images, {"from": "a test"}).counts
    assert counts["train"] + counts["validation"] + counts["test"] == 200
    assert (counts["without features"], counts["without words"]) == (1, 1)
    assert 8 <= counts["test"] <= 40
    prepared = Prepared(tmp_path)
    assert all(split_of(prepared.split("test").image_name(i)) == "test" for i in range(counts["test"]))
    with pytest.raises(InvalidFile, match="no narrative falls into the split"):
        prepare_narratives(tmp_path / "few", [narrative("1")], images, {})
