"""The scenes experiment, small: that it runs, goes on where it was, and measures what it says."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from saywhere.core import InvalidFile, UnknownName
from saywhere.explain import probing
from saywhere.models.oscar import LevelCaptions
from saywhere.models.search import Written
from saywhere.reproduce import scenes_measure as measures
from saywhere.reproduce.experiment import MEASURED, TrainingJob, load_measured, recipe_of
from saywhere.reproduce.eyes import WorldRegionEye
from saywhere.reproduce.results import Results
from saywhere.reproduce.scenes import ALL as ALL_LEVELS
from saywhere.reproduce.scenes import CLAIMS, CONTROL, ROWS, SCRATCH, SceneRow, ScenesExperiment, ScenesScale
from saywhere.reproduce.scenes_data import (
    LEVELS,
    OBJECT,
    SCENE,
    ScenesWorld,
    named_place,
    object_text,
    tagged_regions,
)
from saywhere.reproduce.scenes_figures import AFTER, BEFORE, LONGER
from saywhere.reproduce.scenes_measure import HeldOutScenes, MeasureScale, SceneMeasures, object_scores, scene_scores
from saywhere.world import PLACES, kinds_named, make_scene, object_captions

WORLD = ScenesWorld(train=110, validation=12, test=60, captions=2, eye_scenes=8, eye_steps=2, eye_size=16)
MEASURE = MeasureScale(attended=12, rare=2, rare_images=3, probe_seeds=1, shuffles=19)
PLAN = ScenesExperiment(
    seeds=(0,),
    workers=0,
    world=WORLD,
    scale=ScenesScale(steps=6, tuning=4, batch=8, width=16, layers=2, heads=2, measure=MEASURE),
    shown=2,
)


def quiet(what: str, done: int, total: int) -> None:
    pass


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    out = tmp_path_factory.mktemp("scenes")
    with pytest.MonkeyPatch.context() as patch:
        # Networks that learnt nothing need no converged probes.
        patch.setattr(probing, "_MAX_ITERATIONS", 10)
        patch.setattr(ScenesExperiment, "decides_from", 1)
        return out, PLAN.run(out, quiet)


def job_of(out: Path, key: str) -> TrainingJob[SceneRow]:
    [row] = [row for row in ROWS if row.key == key]
    [job] = PLAN.jobs_of([row], out / "data", out / "runs")
    return job


def test_every_table_has_every_measure_of_every_row(made: tuple[Path, Results]) -> None:
    titles = [table.title for table in made[1].tables]
    assert titles[:2] == ["captions of scenes", "captions of objects"]
    assert sum("tells the place" in title for title in titles) == 2 * len(measures.SPLITS)
    for table in made[1].tables:
        for row in table.rows:
            assert {column.name for column in table.columns} <= row.scores[0].keys(), (table.title, row.name)


def test_every_claim_has_a_verdict_and_controls_stand_beside_the_papers(made: tuple[Path, Results]) -> None:
    claims = made[1].claims
    assert len(claims) == len(CLAIMS) + 4
    assert {claim.verdict for claim in claims} <= {"held", "not held", "undecided"}
    assert {claim.source for claim in claims} == {CONTROL, "paper"}


def test_the_report_has_the_papers_figures_and_examples_of_both_levels(made: tuple[Path, Results]) -> None:
    out, results = made
    assert len(results.figures) == 7
    assert all(figure.png.startswith(b"\x89PNG") and figure.dark_png for figure in results.figures)
    assert results.levels
    for one in results.levels:
        assert (out / one.photo).is_file()
        assert [line.label for line in one.lines] == ["object", "object, ablated", "scene", "scene, ablated"]
        assert one.removed
    text = (out / "report.md").read_text(encoding="utf-8")
    assert "asked: 95 %" in text
    assert "Fig. 4" in text


def test_rows_can_be_left_out_and_their_claims_with_them(made: tuple[Path, Results], tmp_path: Path) -> None:
    shutil.copytree(made[0] / "data", tmp_path / "data")
    for key in (BEFORE, AFTER, LONGER):
        shutil.copytree(made[0] / "runs" / f"{key}-0", tmp_path / "runs" / f"{key}-0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScenesExperiment, "decides_from", 1)
        results = replace(PLAN, left_out=(ALL_LEVELS, SCRATCH)).run(tmp_path, quiet)
    assert len(results.claims) == len(made[1].claims) - 1
    assert not any("captions of scenes alone" in row.name for table in results.tables for row in table.rows)
    with pytest.raises(UnknownName, match="row to leave out 'longer'"):
        replace(PLAN, left_out=(LONGER,))


def test_both_networks_are_kept_and_the_one_for_all_levels_can_be_asked_at_each(made: tuple[Path, Results]) -> None:
    from saywhere.models.oscar import Oscar

    out, _ = made
    levels = {
        key: Oscar.from_pretrained(out / "runs" / f"{key}-0" / "model").config.levels
        for key in (BEFORE, AFTER, ALL_LEVELS)
    }
    assert levels == {BEFORE: (OBJECT,), AFTER: (SCENE,), ALL_LEVELS: LEVELS}


def test_what_is_done_is_not_done_again(made: tuple[Path, Results], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScenesExperiment, "decides_from", 1)
    out, results = made
    before = {path: path.stat().st_mtime_ns for path in out.rglob("measured.json")}
    again = PLAN.run(out, quiet)
    assert {path: path.stat().st_mtime_ns for path in out.rglob("measured.json")} == before
    assert len(before) == len(ROWS)
    # NaN is not equal to itself.
    assert repr(again.claims) == repr(results.claims)


def test_a_run_with_other_settings_does_not_go_on_from_these_results(made: tuple[Path, Results]) -> None:
    with pytest.raises(InvalidFile, match="other settings"):
        replace(PLAN, seeds=(0, 1)).run(made[0], quiet)


def test_measures_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / MEASURED).write_text('{"scores": ')
    with pytest.raises(InvalidFile, match="holds no measures"):
        load_measured(tmp_path / MEASURED, SceneMeasures)


def test_tuned_networks_go_on_from_the_one_that_learnt_objects_and_scratch_does_not(made: tuple[Path, Results]) -> None:
    out, _ = made
    assert "start" not in recipe_of(job_of(out, BEFORE)).model
    assert "start" not in recipe_of(job_of(out, SCRATCH)).model
    for key in (AFTER, LONGER, ALL_LEVELS):
        recipe = recipe_of(job_of(out, key))
        assert str(recipe.model["start"]).endswith(f"{BEFORE}-0/model")
        assert recipe.train.steps == PLAN.scale.tuning


def test_the_control_that_learns_more_objects_learns_as_long_and_from_objects_alone(made: tuple[Path, Results]) -> None:
    longer, after = (recipe_of(job_of(made[0], key)) for key in (LONGER, AFTER))
    assert longer.train == after.train
    assert list(longer.data["levels"]) == [OBJECT]
    assert list(after.data["levels"]) == [SCENE]


def test_a_scene_is_named_right_or_not_and_several_places_are_none(made: tuple[Path, Results]) -> None:
    test = HeldOutScenes.of(made[0] / "data", MEASURE)
    right = {one: Written(f"the picture is taken {PLACES[test.places[one]].where}", -0.1, ()) for one in test.ids}
    assert scene_scores(right, test)[measures.ACCURACY.name] == 100
    wrong = {one: Written("in a kitchen or on a beach", -0.1, ()) for one in test.ids}
    assert scene_scores(wrong, test)[measures.ACCURACY.name] == 0


def test_naming_counts_what_is_there_and_what_people_tell(made: tuple[Path, Results]) -> None:
    test = HeldOutScenes.of(made[0] / "data", MEASURE)
    references = test.references(OBJECT)
    told = {one: Written(" and ".join(references[one]), -0.1, ()) for one in test.ids}
    perfect = object_scores(told, test)
    assert perfect[measures.RECALL.name] == 100
    assert perfect[measures.NAMING.name] == 100
    # What is there counts, even where the detector missed it.
    half = {one: Written(f"a {test.things[one][0]} and an airplane", -0.1, ()) for one in test.ids}
    with_planes = sum("airplane" in test.things[one] for one in test.ids)
    expected = 100 * (len(test.ids) + with_planes) / (2 * len(test.ids))
    assert object_scores(half, test)[measures.NAMING.name] == pytest.approx(expected, abs=1)


def test_rare_places_give_the_probe_few_images(made: tuple[Path, Results]) -> None:
    test = HeldOutScenes.of(made[0] / "data", MEASURE)
    assert len(test.rare) == 2
    for place in test.rare:
        assert test.probe_labels.count(place) <= MEASURE.rare_images
    common = {test.places[one] for one in test.ids} - set(test.rare)
    for place in common:
        assert test.probe_labels.count(place) == sum(test.places[one] == place for one in test.ids)


@pytest.mark.parametrize("place", sorted(PLACES))
def test_captions_of_objects_do_not_name_the_place(place: str) -> None:
    for index in range(12):
        scene = make_scene(3, index, 32, place)
        for caption in object_captions(scene, 3, 3):
            text = object_text(caption.text, place)
            assert text
            assert PLACES[place].where not in text
            if place not in ("sea", "snow"):  # Things to stand on, too.
                assert place not in text.replace("street lamp", "lamp").split()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("the picture is taken in the living room", "living room"),
        ("at a train station", "station"),
        ("this is at sea", "sea"),
        ("in the snow.", "snow"),
        ("a man with a parking ticket", None),
        ("in a kitchen or in a bedroom", None),
        ("", None),
    ],
)
def test_the_place_that_a_caption_names(text: str, place: str | None) -> None:
    assert named_place(text) == place


def test_regions_lie_near_their_tags_and_windows_cover_the_picture() -> None:
    scene = make_scene(5, 3, 64)
    certain = ScenesWorld(seed=5, missed=0, misnamed=0)
    image = tagged_regions(WorldRegionEye(8).eval(), scene, certain)
    things = len(image.tags)
    assert things == len(scene.objects)
    assert len(image.features) == things + 9
    assert image.tag_boxes_xyxy is not None
    np.testing.assert_allclose(image.boxes_xyxy[:things], image.tag_boxes_xyxy, atol=0.11)
    assert image.boxes_xyxy[things:].min() == 0
    assert image.boxes_xyxy[things:].max() == pytest.approx(1)
    areas = [scene_area(box) for box in image.tag_boxes_xyxy]
    assert all(math.isfinite(area) and area > 0 for area in areas)
    again = tagged_regions(WorldRegionEye(8).eval(), scene, certain)
    np.testing.assert_array_equal(again.boxes_xyxy, image.boxes_xyxy)


def test_tags_and_regions_are_missed_apart_and_tags_are_misnamed() -> None:
    eye, world = WorldRegionEye(8).eval(), ScenesWorld(seed=5, missed=0.3, misnamed=0.15)
    things = tags = regions = right = 0
    for scene in (make_scene(5, index, 32) for index in range(60)):
        image = tagged_regions(eye, scene, world)
        true = {scene.things[i].box_xyxy: scene.things[i].kind for i in scene.objects}
        things, tags, regions = things + len(true), tags + len(image.tags), regions + len(image) - 9
        assert image.tag_boxes_xyxy is not None
        placed = zip(image.tags, image.tag_boxes_xyxy, strict=True)
        right += sum(any(kind == tag and np.allclose(box, at) for at, kind in true.items()) for tag, box in placed)
    assert tags / things == pytest.approx(0.7, abs=0.08)
    assert regions / things == pytest.approx(0.7, abs=0.08)
    assert tags != regions
    assert right / tags == pytest.approx(0.85, abs=0.08)


def scene_area(box: np.ndarray) -> float:
    return float((box[2] - box[0]) * (box[3] - box[1]))


def test_the_data_hold_all_levels_of_every_image_with_people(made: tuple[Path, Results]) -> None:
    folder = LevelCaptions(made[0] / "data")
    assert set(folder.levels) == set(LEVELS)
    test = {one.image for one in folder.split("test", [SCENE]).captions}
    assert test == set(folder.image_names("test"))
    assert set(folder.about["places"]) >= test


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Three pine trees and a bike.", {"pine tree", "bicycle"}),
        ("two mugs on a table", {"cup", "table"}),
        ("a man at a train station", {"man"}),
        ("a train at a train station", {"train"}),
        ("nothing here", set()),
    ],
)
def test_kinds_are_known_by_all_their_names(text: str, kinds: set[str]) -> None:
    assert kinds_named(text) == kinds
