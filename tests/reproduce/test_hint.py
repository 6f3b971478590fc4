"""The HINT experiment, small: that it runs, goes on where it was, and measures what it says."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from saywhere.build.coco_regions import CocoFolder
from saywhere.core import InvalidFile, InvalidValue
from saywhere.models.updown import QuestionBatch, Questions, UpDnVqa
from saywhere.reproduce import hint_measure as measures
from saywhere.reproduce import hint_rows as rows
from saywhere.reproduce.experiment import TrainingJob, recipe_of
from saywhere.reproduce.eyes import WorldRegionEye, crops_of, region_boxes, region_features, train_region_eye
from saywhere.reproduce.hint import HintExperiment
from saywhere.reproduce.hint_data import HintWorld, prepare_hint_world
from saywhere.reproduce.hint_measure import _faithfulness, _removal
from saywhere.reproduce.hint_rows import HintRow, section_claims, section_sweeps, section_tables
from saywhere.reproduce.hint_tuning import CAPTION, VQA, HintScale
from saywhere.reproduce.results import Results
from saywhere.reproduce.tables import Scoreboard
from saywhere.world import make_scene

WORLD = HintWorld(train=160, validation=30, test=60, questions=4, captions=1, eye_scenes=12, eye_steps=3, eye_size=16)
SMALL = HintScale(*(6, 2e-3, 3, 1e-3, 8, 12, 8, 0.0, (0.1, 0.3)), explained=20, faithful=10, trained=30, beams=1)
PLAN = HintExperiment(
    seeds=(0,),
    workers=0,
    world=WORLD,
    runs={f"world {kind}": SMALL for kind in (VQA, CAPTION)},
    shown=2,
    least_gain=-100.0,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    out = tmp_path_factory.mktemp("hint")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HintExperiment, "decides_from", 1)
        return out, PLAN.run(out, lambda what, done, total: None)


def test_every_row_is_in_the_report_with_every_measure(made: tuple[Path, Results]) -> None:
    _, results = made
    accuracy, grounding, amounts, captions = results.tables
    assert [row.name for row in accuracy.rows] == [rows.TITLES[rows.BLIND], *(row.title for row in rows.MAIN)]
    assert [row.name for row in captions.rows] == [row.title for row in rows.CAPTIONING]
    assert len(amounts.rows) == 1 + len(rows.SWEEP_PERCENT)
    for table in results.tables:
        for row in table.rows:
            assert {column.name for column in table.columns} <= row.scores[0].keys(), row.name
    assert all(0 <= row.scores[0]["changed all"] <= 100 for row in accuracy.rows)
    assert all(-1 <= row.scores[0][measures.RANKED.name] <= 1 for row in grounding.rows)


def test_the_report_shows_base_hint_and_people_side_by_side(made: tuple[Path, Results]) -> None:
    out, results = made
    assert len(results.heats) == 3
    assert all([panel.title for panel in one.panels] == ["base", "HINT", "people"] for one in results.heats)
    assert all((out / one.photo).is_file() for one in results.heats)
    text = (out / "report.md").read_text(encoding="utf-8")
    assert "Claims of its critique" in text
    assert "asked: +5" in text


def test_what_is_done_is_not_done_again(made: tuple[Path, Results]) -> None:
    out, results = made
    before = {path: path.stat().st_mtime_ns for path in out.rglob("measured.json")}
    again = PLAN.run(out, lambda what, done, total: None)
    assert {path: path.stat().st_mtime_ns for path in out.rglob("measured.json")} == before
    tried = len(SMALL.weights) * (len(rows.TUNED) - 1)
    assert len(before) == len(rows.MAIN) + len(rows.SWEPT) + len(rows.CAPTIONING) + tried
    assert again.tables == results.tables


def test_a_run_with_other_settings_does_not_go_on_from_these_results(made: tuple[Path, Results]) -> None:
    with pytest.raises(InvalidFile, match="other settings"):
        replace(PLAN, seeds=(0, 1)).run(made[0], lambda what, done, total: None)


def test_rows_are_left_out_and_captioners_learn_with_fewer_seeds(made: tuple[Path, Results]) -> None:
    smaller = replace(PLAN, seeds=(0, 1), caption_seeds=1, left_out=("hint-3",))
    jobs = smaller.jobs(made[0], lambda what, done, total: None)
    assert {job.seed for job in jobs if job.group.endswith(VQA)} == {0, 1}
    assert {job.seed for job in jobs if job.group.endswith(CAPTION)} == {0}
    assert {row.key for row in (*rows.MAIN, *rows.SWEPT)} - {job.row.key for job in jobs} == {"hint-3"}


def test_the_two_tests_ask_about_the_same_scenes_with_other_priors(made: tuple[Path, Results]) -> None:
    questions = Questions(made[0] / "world" / "data" / "questions")
    said = {}
    for split in ("train", "same", "changed", "development", "balanced"):
        items = questions.split(split)
        asked = [items.question(i) for i in range(len(items))]
        presence = [one.answers[0] for one in asked if one.question_type == "is there a"]
        said[split] = presence.count("yes") / len(presence)
    assert said["train"] == pytest.approx(0.65, abs=0.06)
    assert said["same"] == pytest.approx(0.65, abs=0.06)
    assert said["changed"] == pytest.approx(0.35, abs=0.06)
    assert said["development"] == pytest.approx(0.35, abs=0.1)
    assert said["balanced"] == pytest.approx(0.5, abs=0.06)
    assert measures.changed_types(questions) >= {"is there a", "is the"}
    assert "where is the" not in measures.changed_types(questions)


def test_each_rows_weight_is_chosen_where_priors_change_and_kept(made: tuple[Path, Results]) -> None:
    chosen = json.loads((made[0] / "world" / "weights.json").read_text())
    for row in rows.TUNED:
        if row.key != rows.NONE:
            scores = {weight: chosen["development"][f"{row.key}-{weight:g}"] for weight in SMALL.weights}
            factor = SMALL.attention_factor if row.key == rows.ALIGNED else 1.0
            assert chosen["weights"][row.key] == pytest.approx(factor * max(scores, key=scores.__getitem__))
    run = made[0] / "world" / VQA / "hint-0"
    recipe = json.loads((run / "result.json").read_text())["recipe"]
    assert recipe["model"]["hint"]["weight"] == chosen["weights"]["hint"]
    assert recipe["data"]["validation_split"] == "development"


def test_a_base_that_hardly_looks_is_not_tuned(made: tuple[Path, Results]) -> None:
    with pytest.raises(InvalidValue, match="better than a table of question texts where priors stay"):
        replace(PLAN, least_gain=200.0).run(made[0], lambda what, done, total: None)


def test_a_table_of_texts_knows_priors_and_nothing_else(made: tuple[Path, Results]) -> None:
    blind = measures.blind_measures(Questions(made[0] / "world" / "data" / "questions"))
    assert blind["same yes/no"] > blind["changed yes/no"] + 5
    assert blind["same number"] > blind["changed number"]
    assert 0 < blind[measures.PRIMARY.name] < 100


def test_the_thing_asked_about_counts_more_than_what_holds_it(made: tuple[Path, Results]) -> None:
    items = Questions(made[0] / "world" / "data" / "questions").split("train")
    seen = 0
    for i in range(len(items)):
        one, item = items.question(i), items[i]
        if one.importance is None or one.question_type != "what color is the":
            continue
        assert np.allclose(item.boxes[np.isnan(one.importance)], [0, 0, 1, 1], atol=0.01)
        best = int(np.nanargmax(one.importance))
        assert one.importance[best] == 1
        low, high = item.boxes[best, :2], item.boxes[best, 2:]
        holds = (item.boxes[:, :2] <= low).all(axis=1) & (item.boxes[:, 2:] >= high).all(axis=1)
        area = (item.boxes[:, 2:] - item.boxes[:, :2]).prod(axis=1)
        larger = holds & (area > 2 * area[best])
        assert not (one.importance[larger] > 0.5).any()
        seen += int(larger.sum() > 1)
    assert seen > 5


def test_a_world_that_is_there_is_not_drawn_again(made: tuple[Path, Results]) -> None:
    def refuse(what: str, done: int, total: int) -> None:
        raise AssertionError(what)

    folder = made[0] / "world" / "data"
    before = (folder / "questions" / "index.json").stat().st_mtime_ns
    prepare_hint_world(folder, WORLD, refuse)
    assert (folder / "questions" / "index.json").stat().st_mtime_ns == before


@pytest.mark.parametrize("row", [*rows.MAIN, *rows.SWEPT], ids=lambda row: row.key)
def test_every_row_has_the_same_budget_and_start(row: HintRow, tmp_path: Path) -> None:
    start = tmp_path if row.start else None
    recipe = recipe_of(TrainingJob(PLAN, row, 3, tmp_path, tmp_path / "run", start, f"world {VQA}"))
    hint = recipe.model.get("hint", {})
    assert recipe.seed == 3
    begins = row in (rows.BASE_ROW, rows.CEILING_ROW)
    assert recipe.train.steps == (SMALL.base_steps if begins else SMALL.steps)
    assert (recipe.task == "updown-vqa") == begins
    # Kinds of hints are compared on the same questions.
    assert hint.get("seed", 3) == 3
    assert begins or row.key == rows.NONE or row in rows.SWEPT or hint["share"] == pytest.approx(0.06)


class _CountsBlank(UpDnVqa):
    """Gives answer 0 while region 0 is not blank, else answer 1."""

    def __init__(self) -> None:
        torch.nn.Module.__init__(self)

    def forward(self, regions: torch.Tensor, present: torch.Tensor, *_: object, **__: object):  # type: ignore[no-untyped-def,override]
        from saywhere.models.updown import VqaOutput

        seen = regions[:, 0, 0]
        return VqaOutput(torch.stack([seen, 0.5 - seen], dim=1), present / present.sum(dim=1, keepdim=True))


def _batch() -> QuestionBatch:
    regions = torch.zeros(1, 4, 1)
    regions[0, 0] = 1
    importance = torch.tensor([[0.9, 0.1, 0.0, 0.0]])
    return QuestionBatch(
        *(regions, torch.zeros(1, 4, 4), torch.ones(1, 4, dtype=torch.bool), torch.ones(1, 1, dtype=torch.int64)),
        *(torch.tensor([[1.0, 0.0]]), importance, torch.ones(1, 4), torch.tensor([True]), torch.tensor([0])),
    )


def test_taking_away_what_matters_to_people_costs_the_answer() -> None:
    found = _removal(_CountsBlank(), _batch(), torch.Generator().manual_seed(0))
    assert found[measures.DROP.name].tolist() == [100.0]


def test_taking_away_as_much_by_chance_costs_a_quarter_of_the_answers() -> None:
    generator = torch.Generator().manual_seed(0)
    drops = [_removal(_CountsBlank(), _batch(), generator)[measures.DROP_RANDOM.name][0] for _ in range(400)]
    assert np.mean(drops) == pytest.approx(25, abs=6)


def test_an_explanation_that_is_the_model_itself_is_faithful() -> None:
    from saywhere.explain.scores import CorrectAnswerScore

    batch = _batch()
    score = CorrectAnswerScore(_CountsBlank(), batch.questions, batch.targets)
    found = _faithfulness(score, batch.regions, batch.present)
    assert found[measures.TRUE_GRADIENTS.name].tolist() == pytest.approx([1.0])
    # Attention is even, so it has no order to compare.
    assert math.isnan(found[measures.TRUE_ATTENTION.name][0])
    assert found[measures.DELETION.name][0] < 0.2 < 0.8 < found[measures.INSERTION.name][0]


def _scores(gain: float) -> Scoreboard:
    """Rows of which only HINT is better than the others, by about as much in every measure."""
    names = {c.name for c in (measures.PRIMARY, *measures.ACCURACY, *measures.GROUNDING, *measures.CAPTION_MEASURES)}
    scores = {
        (key, seed): dict.fromkeys(names, 10 + 0.01 * seed + (gain + 0.01 * seed if key == rows.HINT else 0))
        for key in (rows.BLIND, *rows.ROWS)
        for seed in range(5)
    }
    return Scoreboard(rows.TITLES, range(5), scores, "the world")


def test_claims_follow_the_numbers() -> None:
    scores = _scores(2.0)
    claims = section_claims(scores, scores)
    verdicts = {claim.text: claim.verdict for claim in claims}
    assert verdicts["world: HINT reduces language bias: it is better where priors change"] == "held"
    assert verdicts["world: Human hints are as good as random ones where priors change"] == "not held"
    assert verdicts["world: … those shuffled over regions"] == "undecided"
    same = section_claims(_scores(0.2), _scores(0.02))
    assert next(one for one in same if "as good as random" in one.text).verdict == "held"
    assert {claim.source for claim in claims} == {"paper", rows.CRITIQUE, rows.OURS}


def test_the_sweep_begins_with_the_run_without_hints() -> None:
    [accuracy, ranked] = section_sweeps(_scores(2.0))
    assert [point[0] for point in accuracy.series["HINT"]] == [0, 1.5, 3, 6, 12]
    assert accuracy.series["HINT"][3][1] == pytest.approx(12.04)
    assert ranked.paper == ()


def test_the_papers_numbers_stand_beside_their_measures() -> None:
    first = section_tables(_scores(1.0), _scores(1.0))[0]
    hint = next(row for row in first.rows if row.name == "HINT")
    assert hint.paper["changed all"] == 46.73
    assert hint.paper["same other"] == 55.56
    assert "train all" not in hint.paper


def test_an_eye_sees_every_thing_and_the_whole() -> None:
    scene = make_scene(3, 0, 64)
    eye = train_region_eye(
        [make_scene(3, i, 64) for i in range(6)], steps=2, seed=0, progress=lambda *_: None, size=8, batch=8
    )
    seen = region_features(eye, scene)
    assert len(seen) == len(scene.things) + 1
    np.testing.assert_allclose(np.linalg.norm(seen.features, axis=1), 3, rtol=1e-4)
    assert crops_of(scene, region_boxes(scene)).shape == (len(seen), 3, 32, 32)


def test_the_same_seed_gives_the_same_eye() -> None:
    scenes = [make_scene(3, i, 64) for i in range(4)]
    one, two = (train_region_eye(scenes, steps=2, seed=5, progress=lambda *_: None, size=8, batch=8) for _ in range(2))
    crops = crops_of(scenes[0], region_boxes(scenes[0]))
    assert isinstance(one, WorldRegionEye)
    torch.testing.assert_close(one(crops), two(crops))


def test_every_setting_that_departs_from_the_paper_is_listed() -> None:
    told = {one.setting: one.here for one in HintExperiment(coco=CocoFolder(*[Path()] * 3)).departures()}
    world, photos = "the simulated world", "real photos"
    assert told[f"network, {world}"] == "UpDn of width 128, words of 64, dropout 0, GELU"
    steps = told[f"steps of the network, {photos}"]
    assert steps == "1,000 of the base, 200 of tuning, each with 64 questions"
    assert told[f"captioner, {photos}"] == "UpDn of width 128, words of 64, dropout 0.2, 3 beams"
    assert told[f"steps of the captioner, {world}"] == "800 of the base, 80 of tuning, each with 32 captions"
    assert told["share of hints, in %"] == "1.5, 3, 6, 12, 100"
    assert told["weight of attention alignment"] == "30 times as much"
    assert not any(photos in setting for setting in (one.setting for one in HintExperiment().departures()))


def test_a_quick_plan_decides_nothing() -> None:
    assert HintExperiment.quick(workers=0).seeds == (0,)
    assert not HintExperiment.quick(workers=0).decides
