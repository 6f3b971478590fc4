"""`saywhere reproduce hint`: HINT with its controls, in the world and on real photos, and a verdict for each claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import saywhere
from saywhere.build.coco_regions import CocoFolder
from saywhere.core.types import Progress
from saywhere.models.updown import Captions, Questions
from saywhere.provenance import git_hash
from saywhere.reproduce.hint_examples import caption_examples, question_examples
from saywhere.reproduce.hint_photos import HintPhotoScale, prepare_hint_photos
from saywhere.reproduce.hint_rows import BASE, CAPTIONING, HINT, MAIN, NONE, SWEPT, HintRow
from saywhere.reproduce.hint_run import CAPTION, VQA, HintJob, HintScale, run_hint_job, scores_of, step_seconds
from saywhere.reproduce.hint_tables import Scores, section_claims, section_sweeps, section_tables
from saywhere.reproduce.hint_world import HintWorldScale, prepare_hint_world
from saywhere.reproduce.plan_file import settle_plan
from saywhere.reproduce.pool import run_jobs, steps_done
from saywhere.reproduce.report import write_report
from saywhere.reproduce.results import HeatExample, Results

"""What is being done, how much of it is done, and out of how much."""

WORLD, PHOTOS = "world", "photos"
SECTIONS = {WORLD: "the simulated world", PHOTOS: "real photos"}


_CAPTIONS = HintScale(base_steps=400, steps=80, batch=16, explained=150, faithful=40)
RUNS = {
    f"{WORLD} {VQA}": HintScale(),
    f"{WORLD} {CAPTION}": _CAPTIONS,
    f"{PHOTOS} {VQA}": HintScale(base_steps=1000, steps=200, dropout=0.2, explained=500),
    f"{PHOTOS} {CAPTION}": replace(_CAPTIONS, dropout=0.2),
}


@dataclass(frozen=True, slots=True)
class HintPlan:
    """What to run. workers: processes, each of one thread; 0 trains in this one. shown: examples of each section.

    show_photos: whether photographs may stand in the report; their owners may not want them published.
    """

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    workers: int = 2
    world: HintWorldScale = field(default_factory=HintWorldScale)
    photos: HintPhotoScale = field(default_factory=HintPhotoScale)
    runs: dict[str, HintScale] = field(default_factory=lambda: dict(RUNS))
    shown: int = 5
    show_photos: bool = True

    @classmethod
    def quick(cls, workers: int = 2) -> HintPlan:
        """A few minutes: one seed, little of everything. It shows that everything runs, and decides nothing."""
        world = HintWorldScale(train=500, validation=60, test=120, eye_scenes=300, eye_steps=60)
        small = HintScale(base_steps=150, steps=40, explained=80, faithful=40, trained=200)
        runs = {f"{section} {kind}": small for section in SECTIONS for kind in (VQA, CAPTION)}
        return cls((0,), workers, world, HintPhotoScale(photos=60), runs, shown=4)


@dataclass(frozen=True, slots=True)
class Section:
    """A set of data with the jobs on it. jobs: of questions; captioning: of captions; both by row and seed."""

    name: str
    data: Path
    jobs: dict[tuple[str, int], HintJob]
    captioning: dict[tuple[str, int], HintJob]

    @property
    def all_jobs(self) -> list[HintJob]:
        return [*self.jobs.values(), *self.captioning.values()]


def reproduce_hint(out: Path, plan: HintPlan, progress: Progress, coco: CocoFolder | None = None) -> Results:
    """Run everything that is not there yet, and write the report. coco: real photos; without, the world alone."""
    settle_plan(out, {"seeds": plan.seeds, "world": plan.world, "photos": plan.photos, "runs": plan.runs})
    prepare_hint_world(out / WORLD / "data", plan.world, progress)
    sections = [_section(WORLD, out, plan)]
    if coco is not None:
        prepare_hint_photos(out / PHOTOS / "data", coco, plan.photos, progress, plan.workers)
        sections.append(_section(PHOTOS, out, plan))
    jobs = [job for section in sections for job in section.all_jobs]
    # Every row goes on from a base.
    for begins in (True, False):
        waiting = [job for job in jobs if (job.start is None) == begins and not job.is_done]
        run_jobs(waiting, run_hint_job, plan.workers, lambda: progress("training", *steps_done(jobs)))
    results = _results(out, plan, sections, coco)
    write_report(results, out)
    return results


def _section(name: str, out: Path, plan: HintPlan) -> Section:
    folder = out / name
    jobs = _jobs(VQA, (*MAIN, *SWEPT), folder, folder / "data" / "questions", plan, name)
    return Section(
        name, folder / "data", jobs, _jobs(CAPTION, CAPTIONING, folder, folder / "data/captions", plan, name)
    )


def _jobs(
    kind: str, rows: Sequence[HintRow], folder: Path, data: Path, plan: HintPlan, section: str
) -> dict[tuple[str, int], HintJob]:
    scale, runs = plan.runs[f"{section} {kind}"], folder / kind
    return {
        (row.key, seed): HintJob(
            *(kind, row, seed, data, runs / f"{row.key}-{seed}", scale),
            start=None if row.key == BASE else runs / f"{BASE}-{seed}",
        )
        for row in rows
        for seed in plan.seeds
    }


def _results(out: Path, plan: HintPlan, sections: Sequence[Section], coco: CocoFolder | None) -> Results:
    tables, claims, sweeps, examples = [], [], [], []
    settings: dict[str, Any] = {"seeds": len(plan.seeds)}
    made_by: dict[str, Any] = {"saywhere": saywhere.__version__, "git": git_hash()}
    remarks = _limits(plan, coco)
    for section in sections:
        title = SECTIONS[section.name]
        answers, captions = (
            {name: scores_of(job) for name, job in jobs.items()} for jobs in (section.jobs, section.captioning)
        )
        tables += section_tables(title, plan.seeds, answers, captions)
        claims += section_claims(title, plan.seeds, answers, captions)
        sweeps += section_sweeps(title, plan.seeds, answers)
        settings |= _facts(section, plan)
        made_by[f"data, {title}"] = Questions(section.data / "questions").fingerprint
        remarks.append(_asked(title, plan.seeds, answers))
        if section.name == WORLD or plan.show_photos:
            examples += _examples(out, section, plan, coco)
    return Results(
        title="HINT, with its controls",
        paper="Taking a HINT: Leveraging Explanations to Make Vision and Language Models More Grounded (ICCV 2019)",
        settings=settings,
        made_by=made_by,
        seeds=plan.seeds,
        tables=tuple(tables),
        claims=tuple(claims),
        remarks=tuple(remarks),
        sweeps=tuple(sweeps),
        heats=tuple(examples),
    )


def _facts(section: Section, plan: HintPlan) -> dict[str, Any]:
    title, questions = SECTIONS[section.name], Questions(section.data / "questions")
    scale = plan.runs[f"{section.name} {VQA}"]
    counts = {name: len(questions.split(name)) for name in ("train", "changed", "same")}
    # The fastest tenth: what other programs took from the machine meanwhile is not the steps' cost.
    steps = {
        key: np.percentile([t for seed in plan.seeds for t in step_seconds(section.jobs[key, seed])], 10)
        for key in (NONE, HINT, "hint-100")
    }
    captions = {name: len(Captions(section.data / "captions").split(name)) for name in ("train", "test")}
    facts = {
        "questions": f"{counts['train']:,} to learn from, {counts['changed']:,} with changed priors, "
        f"{counts['same']:,} with the same",
        "answers known": len(questions.answers),
        "captions": f"{captions['train']:,} to learn from, {captions['test']:,} to test",
        "steps": f"{scale.base_steps:,} of the base, {scale.steps:,} of tuning, each with {scale.batch} questions",
        "a HINT step against a plain one": f"{steps[HINT] / steps[NONE]:.2f} × with 6 % of hints, "
        f"{steps['hint-100'] / steps[NONE]:.2f} × with 100 %",
    }
    return {f"{title}: {name}": value for name, value in facts.items()}


def _asked(title: str, seeds: Sequence[int], answers: Scores) -> str:
    """The two numbers that this experiment was asked for."""

    def gain(measure: str) -> float:
        return float(np.mean([answers[HINT, seed][measure] - answers[BASE, seed][measure] for seed in seeds]))

    return (
        f"In {title}, HINT changes accuracy on changed priors by {gain('changed all'):+.1f} points (asked: +5) and the "
        f"rank correlation with people by {gain('ρ gradients, people'):+.2f} (asked: +0.2), against the base."
    )


def _examples(out: Path, section: Section, plan: HintPlan, coco: CocoFolder | None) -> list[HeatExample]:
    photos = section.data / "photos" if coco is None or section.name == WORLD else coco.photos
    seed, title = plan.seeds[0], SECTIONS[section.name]
    models = [(key, section.jobs[key, seed].folder) for key in (BASE, HINT)]
    found = question_examples(out, section.data / "questions", photos, models, plan.shown, title)
    models = [(key, section.captioning[key, seed].folder) for key in (BASE, HINT)]
    return found + caption_examples(out, section.data / "captions", photos, models, max(1, plan.shown // 2), title)


def _limits(plan: HintPlan, coco: CocoFolder | None) -> list[str]:
    remarks = [
        "The world is drawn: it tests the reasoning of the paper and of its critique, not photographs. Its regions are "
        "the true boxes of all things, as from a detector that misses nothing.",
        "All rows but the base go on from the same base for as many steps, on the same questions; all kinds of hints "
        "are given to the same questions. Checkpoints are the best on validation questions, with training's priors.",
        "Human importance comes from the boxes of what a question is about. Rank correlations are means over questions "
        "about changed priors; ties share their mean rank, and questions where one side has no order are left out.",
        "Faithfulness: gradients and attention of the answer that the model gives, against blanking one region at a "
        "time. Areas are shares of the range of an item's own scores.",
        "Captioners learn for a few hundred steps, which is little, and write poorly: what their words rest on says "
        "little about good ones.",
        "“Drop” is how many points of accuracy are lost when the regions that matter to people (s > ½), or as many "
        "drawn by chance, are blanked.",
    ]
    if coco is not None:
        remarks.append(
            "Questions about photos are made from boxes and captions, not asked by people; photos of the tests were "
            "never seen by the eye. POPE has few questions about them."
        )
    else:
        remarks.append("Real photos are left out: none were given (--coco).")
    if len(plan.seeds) < 5:
        remarks.insert(0, "A quick run: it shows that everything works, and decides nothing.")
    return remarks
