"""`saywhere reproduce mitr`: the tables of MITR, trained anew in the world, and a verdict for each claim."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import saywhere
from saywhere.core import MissingDependency, Narrative
from saywhere.core.types import Progress
from saywhere.learn import Validated, read_log
from saywhere.metrics import caption_scores, meteor, scene_graph_f
from saywhere.metrics.captions import MeteorTool
from saywhere.models.mitr import Grounded
from saywhere.models.mitr.batch import GUIDED_BOXES
from saywhere.models.mitr.prepared import Prepared
from saywhere.models.mitr.skills import boxes_of_words
from saywhere.provenance import git_hash
from saywhere.reproduce.mitr_guided import is_world, prepare_guided
from saywhere.reproduce.mitr_rows import CLAIMS, ROWS, TABLES, RowPlan, TablePlan
from saywhere.reproduce.mitr_run import Job, Made, RunScale, read_made, run_job, training_minutes
from saywhere.reproduce.mitr_world import WorldScale, prepare_world
from saywhere.reproduce.plan_file import settle_plan
from saywhere.reproduce.pool import run_jobs
from saywhere.reproduce.report import write_report
from saywhere.reproduce.results import Column, Example, Results, Row, Table, judge, load_scores, save_scores
from saywhere.store import is_finished

"""What is being done, how much of it is done, and out of how much."""

_EXAMPLES = 4
_GUIDED = (
    "Guided captions are of the same scenes as the narratives; the boxes are those of the things that a caption tells "
    f"of, in its order, filled up to {GUIDED_BOXES} by the whole image whatever its length. Each is compared with the "
    "one caption that its boxes were taken from.",
    "The pre-trained row made as many steps as the others after its pre-training, so it learnt for twice as long.",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run. full: Tables 6, 7 and 8 too. workers: processes, each of one thread; 0 trains in this one."""

    seeds: tuple[int, ...] = (0, 1, 2)
    full: bool = False
    workers: int = 2
    world: WorldScale = field(default_factory=WorldScale)
    run: RunScale = field(default_factory=RunScale)

    @classmethod
    def quick(cls, workers: int = 2) -> Plan:
        """A few minutes: one seed, a small world, short runs. It shows that everything runs, and decides nothing."""
        world = WorldScale(train=300, validation=40, test=60, eye_scenes=200, eye_steps=40)
        return cls(seeds=(0,), workers=workers, world=world, run=RunScale(steps=60, test=60))

    def tables(self) -> tuple[TablePlan, ...]:
        return tuple(table for table in TABLES if self.full or not table.full)


def reproduce(out: Path, plan: Plan, progress: Progress, data: Path | None = None) -> Results:
    """Run everything that is not there yet, and write the report. data: prepared narratives to use, not the world."""
    settle_plan(out, {"seeds": plan.seeds, "world": plan.world, "run": plan.run})
    folder = data or out / "data"
    if data is None and not is_finished(folder):
        prepare_world(folder, plan.world, progress)
    prepared = Prepared(folder)
    tables = _tables(plan, prepared)
    keys = list(dict.fromkeys(key for table in tables for key in table.rows))
    guided = out / "guided"
    if any(ROWS[key].guided for key in keys):
        prepare_guided(guided, prepared, progress)
    jobs = {
        (key, seed): _job(ROWS[key], seed, guided if ROWS[key].guided else folder, out / "runs", plan.run)
        for key in keys
        for seed in plan.seeds
    }
    # A row that starts with another's weights comes after it.
    for follows in (False, True):
        _run_all([job for job in jobs.values() if bool(job.start) == follows], jobs.values(), plan, progress)
    made = {name: read_made(job.folder / "made.json") for name, job in jobs.items()}
    scores, remarks = _scores(made, jobs, plan, progress)
    if len(tables) < len(plan.tables()):
        remarks.append("Table 6 is left out: these narratives come without captions that are guided by boxes.")
    results = _results(out, plan, tables, prepared, made, scores, remarks, training_minutes(jobs.values()))
    write_report(results, out)
    return results


def _tables(plan: Plan, prepared: Prepared) -> tuple[TablePlan, ...]:
    """The tables that these narratives allow: captions with key boxes are known for scenes of the world alone."""
    return tuple(
        table for table in plan.tables() if is_world(prepared) or not any(ROWS[key].guided for key in table.rows)
    )


def _job(row: RowPlan, seed: int, data: Path, runs: Path, scale: RunScale) -> Job:
    start = runs / f"{row.start}-{seed}" if row.start else None
    return Job(row, seed, data, runs / f"{row.key}-{seed}", scale, start)


def _run_all(jobs: Sequence[Job], all_jobs: Collection[Job], plan: Plan, progress: Progress) -> None:
    """Train jobs, the longest first, and say how many steps of all jobs are done."""
    waiting = [job for job in jobs if not (job.folder / "made.json").exists()]
    waiting.sort(key=lambda job: -(job.row.model.get("cycle", 0) > 0) * job.row.model.get("layers", 1) - 0.1)
    total = plan.run.steps * len(all_jobs)
    run_jobs(
        waiting,
        run_job,
        plan.workers,
        lambda: progress("training", sum(_steps_done(one) for one in all_jobs), total),
    )


def _steps_done(job: Job) -> int:
    if (job.folder / "made.json").exists():
        return job.scale.steps
    log = job.folder / "log.jsonl"
    return min(job.scale.steps, log.read_bytes().count(b"\n")) if log.exists() else 0


Scores = dict[tuple[str, int], dict[str, dict[str, float]]]


def _scores(
    made: dict[tuple[str, int], Made], jobs: dict[tuple[str, int], Job], plan: Plan, progress: Progress
) -> tuple[Scores, list[str]]:
    """For each run and test: measure → value; and what could not be measured, for the report."""
    found: Scores = {}
    missing: dict[str, None] = {}
    for folder in dict.fromkeys(job.data for job in jobs.values()):
        prepared = Prepared(folder)
        test = prepared.split("test", plan.run.test)
        references = {str(i): [prepared.vocabulary.text(test[i].words.tolist())] for i in range(len(test))}
        with CaptionJudge(references) as judges:
            for name in [name for name in made if jobs[name].data == folder]:
                progress("scoring captions", len(found), len(made))
                found[name] = _scores_of(made[name], jobs[name], prepared, judges)
        missing |= dict.fromkeys(judges.missing)
    progress("scoring captions", len(made), len(made))
    return found, list(missing)


def _scores_of(made: Made, job: Job, prepared: Prepared, judges: CaptionJudge) -> dict[str, dict[str, float]]:
    """For each test of one run: measure → value, as read from its folder if it was worked out before."""
    found = {kind: dict(made.distances.get(kind, {})) for kind in job.row.tests}
    for kind, said in made.words.items():
        path = job.folder / f"scores-{kind}.json"
        if not path.exists():
            texts = {str(i): prepared.vocabulary.text(ids) for i, ids in enumerate(said)}
            save_scores(judges.scores(texts), path)
        found[kind] |= load_scores(path)
    return found


class CaptionJudge:
    """Every caption measure that can be had here; METEOR's Java program is started once for all captions.

    missing: for people, why a measure could not be had.
    """

    def __init__(self, references: dict[str, list[str]]) -> None:
        self._references = references
        self._meteor: MeteorTool | None = None
        self._metrics = ["bleu", "rouge_l", "cider"]
        self.missing: list[str] = []

    def __enter__(self) -> CaptionJudge:
        try:
            scene_graph_f({"": "a cup"}, {"": ["a cup"]})
            self._metrics.append("scene_graph_f")
        except MissingDependency as error:
            self.missing.append(f"Not measured: {error}")
        try:
            self._meteor = MeteorTool()
        except MissingDependency as error:
            self.missing.append(f"Not measured: {error}")
        return self

    def __exit__(self, *_: object) -> None:
        if self._meteor is not None:
            self._meteor.close()

    def scores(self, said: dict[str, str]) -> dict[str, float]:
        """Measure → value over all captions."""
        scores = dict(caption_scores(said, self._references, self._metrics)["corpus"])
        if self._meteor is not None:
            scores |= meteor(said, self._references, tool=self._meteor)["corpus"]
        return scores


def _results(
    out: Path,
    plan: Plan,
    tables: Sequence[TablePlan],
    prepared: Prepared,
    made: dict[tuple[str, int], Made],
    scores: Scores,
    remarks: list[str],
    minutes: float,
) -> Results:
    run = {key for key, _ in made}
    claims = tuple(
        judge(text, column, _row(plan, better, (test,), scores), _row(plan, worse, (test,), scores))
        for text, test, measure, better, worse in CLAIMS
        for column in [_column(measure)]
        if {better, worse} <= run
    )
    settings = {
        "data": "the simulated world" if is_world(prepared) else "narratives from files",
        "narratives": f"{len(prepared.split('train'))} to learn from, {plan.run.test} to test on",
        "words known": len(prepared.vocabulary),
        "steps": plan.run.steps,
        "narratives in a step": plan.run.batch,
        "width": plan.run.width,
        "seeds": len(plan.seeds),
        "minutes of training, all runs added": minutes,
        **{f"world, {name}": value for name, value in dict(prepared.about.get("world", {})).items()},
    }
    return Results(
        title="MITR in the world" if is_world(prepared) else "MITR",
        paper="Connecting What to Say With Where to Look by Modeling Human Attention Traces (CVPR 2021)",
        settings=settings,
        made_by={"saywhere": saywhere.__version__, "git": git_hash(), "data": prepared.fingerprint},
        seeds=plan.seeds,
        tables=tuple(_table(plan, table, scores) for table in tables),
        claims=claims,
        examples=_examples(out, prepared, made, plan),
        curves=_curves(out, plan),
        remarks=(*_limits(plan), *(_GUIDED if any(ROWS[key].guided for key in run) else ()), *remarks),
    )


def _column(measure: str) -> Column:
    return next(c for table in TABLES for c in table.columns if c.name == measure)


def _row(plan: Plan, key: str, tests: Sequence[str], scores: Scores, paper: dict[str, float] | None = None) -> Row:
    each = tuple({k: v for test in tests for k, v in scores[key, seed][test].items()} for seed in plan.seeds)
    return Row(ROWS[key].title, each, paper or {})


def _table(plan: Plan, table: TablePlan, scores: Scores) -> Table:
    rows = []
    for key, numbers in table.rows.items():
        paper = {c.name: n for c, n in zip(table.columns, numbers, strict=True) if n is not None}
        rows.append(_row(plan, key, table.tests, scores, paper))
    return Table(table.number, table.title, table.columns, tuple(rows))


def _curves(out: Path, plan: Plan) -> dict[str, list[tuple[int, float]]]:
    """Validation loss per word of the captions, for the rows of Table 2, first seed."""
    table = next(t for t in TABLES if t.number == 2)
    curves: dict[str, list[tuple[int, float]]] = {}
    for key in table.rows:
        logged = read_log(out / "runs" / f"{key}-{plan.seeds[0]}" / "log.jsonl")
        validated = [(one.step, one.metrics.get("caption")) for one in logged if isinstance(one, Validated)]
        curves[ROWS[key].title] = [(step, value) for step, value in validated if value is not None]
    return curves


def _examples(out: Path, prepared: Prepared, made: dict[tuple[str, int], Made], plan: Plan) -> tuple[Example, ...]:
    """The first test narratives: the truth, the trace that a model gives to its words, and what one says by itself."""
    test = prepared.split("test", plan.run.test)
    alone, paired = made["task123-mask", plan.seeds[0]], made["task12-cycle-b", plan.seeds[0]]
    examples = []
    for i in range(min(_EXAMPLES, len(test))):
        one, name = test[i], test.image_name(i)
        photo = prepared.folder / "photos" / f"{name}.png"
        if photo.exists():
            (out / "photos").mkdir(parents=True, exist_ok=True)
            shutil.copyfile(photo, out / "photos" / photo.name)
        truth = np.where(one.located[:, None], one.boxes[:, :4], np.nan)
        words = tuple(one.words.tolist())
        pictures = {
            "Task 1: MITR's trace for these words": (words, paired.boxes["trace"][i]),
            "Task 3: MITR's own words and trace": (alone.words["joint"][i], alone.boxes["joint"][i]),
        }
        examples.append(
            Example(
                f"photos/{name}.png",
                _narrative(prepared, words, truth, name, "the simulated narrator"),
                {
                    title: _narrative(prepared, said, np.array(boxes, dtype=np.float64).reshape(-1, 4), name, "MITR")
                    for title, (said, boxes) in pictures.items()
                },
            )
        )
    return tuple(examples)


def _narrative(prepared: Prepared, ids: Sequence[int], boxes: NDArray[np.float64], name: str, origin: str) -> Narrative:
    spelled = prepared.vocabulary.spell(ids)
    return Grounded(spelled.words, boxes_of_words(boxes, spelled.owners, len(spelled.words))).narrative(
        name, origin=origin
    )


def _limits(plan: Plan) -> tuple[str, ...]:
    remarks = [
        "The world is drawn and its narrators are simulated: this tests the paper's reasoning, not photographs.",
        "Regions are the true boxes of all things, as from a detector that misses nothing; their features come from a "
        "small eye that learnt to name patches and then stayed as it is.",
        "Traces in these pictures run smoothly through the predicted boxes with even timing; models predict boxes, not "
        "points.",
        "SPICE is not computed: its Java tool is not to be had everywhere. The scene-graph F-score is another measure.",
    ]
    if len(plan.seeds) < 3:
        remarks.insert(0, "A quick run: it shows that everything works, and decides nothing.")
    return tuple(remarks)
