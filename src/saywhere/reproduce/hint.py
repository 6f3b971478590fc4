"""`saywhere reproduce hint`: HINT with its controls, in the world and on real photos, and a verdict for each claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from saywhere.build.coco_regions import CocoFolder
from saywhere.core.types import Progress
from saywhere.learn import StepDone, read_log
from saywhere.models.updown import Captions, Questions
from saywhere.reproduce.experiment import (
    TrainingJob,
    by_row,
)
from saywhere.reproduce.hint_data import HintPhotos, HintWorld, prepare_hint_photos, prepare_hint_world
from saywhere.reproduce.hint_examples import caption_examples, question_examples
from saywhere.reproduce.hint_measure import blind_measures
from saywhere.reproduce.hint_rows import (
    BASE,
    BLIND,
    CAPTIONING,
    HINT,
    MAIN,
    NONE,
    SWEPT,
    TITLES,
    HintRow,
    asked_for,
    section_claims,
    section_sweeps,
    section_tables,
)
from saywhere.reproduce.hint_tuning import CAPTION, VQA, HintScale, TuningExperiment, hinted_share
from saywhere.reproduce.results import Departure, HeatExample, Results
from saywhere.reproduce.tables import Scoreboard

WORLD, PHOTOS = "world", "photos"
SECTIONS = {WORLD: "the simulated world", PHOTOS: "real photos"}
_TIMED_STEPS = 100
"""From fewer steps a ratio of their times says nothing."""
_LIMITS = (
    "The world is drawn: it tests the reasoning of the paper and of its critique, not photographs. Its regions are "
    "the true boxes of all things, as from a detector that misses nothing.",
    "All rows but the base and the ceiling go on from the same base for as many steps, on the same questions; all "
    "kinds of hints are given to the same questions. Each row's weight, and its checkpoint, is the best on a "
    "development split: validation's images with changed priors. Nothing is chosen on the splits that are reported.",
    "“Primary” is accuracy over the question types whose priors change.",
    "Human importance of a region is its best IoU with a box of what a question is about, in steps of 0.05; the whole "
    "image has none. Rank correlations are means over questions about changed priors; ties share their mean rank, and "
    "questions where one side has no order are left out. ρ (occlusion, people) is the primary measure of grounding.",
    "Faithfulness: gradients and attention of the answer that the model gives, against blanking one region at a "
    "time. Areas are shares of the range of an item's own scores.",
    "Captioners learn for a few hundred steps, which is little: what their words rest on says little about good ones.",
    "“Drop” is how many points of accuracy are lost when the regions that matter to people (s > ½), or as many "
    "drawn by chance, are blanked.",
)
_OF_PHOTOS = (
    "Questions about photos are made from boxes and captions, not asked by people; photos of the tests were "
    "never seen by the eye. POPE has few questions about them."
)
_NO_PHOTOS = "Real photos are left out: none were given (--coco)."


_CAPTIONS = HintScale(base_steps=800, steps=80, batch=32, explained=150, faithful=40)
RUNS = {
    f"{WORLD} {VQA}": HintScale(),
    f"{WORLD} {CAPTION}": _CAPTIONS,
    f"{PHOTOS} {VQA}": HintScale(base_steps=1000, steps=200, dropout=0.2, explained=500),
    f"{PHOTOS} {CAPTION}": replace(_CAPTIONS, dropout=0.2),
}


@dataclass(frozen=True, kw_only=True)
class HintExperiment(TuningExperiment):
    """coco: real photos; without, the world alone. shown: examples of each section. caption_seeds: so many of the seeds
    are for captioners, too; the primary comparison is of answers.

    show_photos: whether photographs may stand in the report; their owners may not want them published.
    """

    world: HintWorld = field(default_factory=HintWorld)
    photos: HintPhotos = field(default_factory=HintPhotos)
    runs: dict[str, HintScale] = field(default_factory=lambda: dict(RUNS))
    coco: CocoFolder | None = None
    shown: int = 5
    caption_seeds: int = 5
    show_photos: bool = True

    @classmethod
    def quick(cls, **changes: Any) -> HintExperiment:
        """A few minutes: one seed, little of everything. It shows that everything runs, and decides nothing."""
        world = HintWorld(train=500, validation=60, test=120, eye_scenes=300, eye_steps=60)
        small = HintScale(base_steps=150, steps=40, weights=(0.1,), explained=80, faithful=40, trained=200)
        runs = dict.fromkeys(RUNS, small)
        few = HintPhotos(photos=60)
        return cls(seeds=(0,), world=world, photos=few, runs=runs, shown=4, is_quick=True, least_gain=-100.0, **changes)

    def settings(self) -> dict[str, Any]:
        chosen = {"seeds": self.seeds, "caption_seeds": self.caption_seeds, **self.changes}
        return {**chosen, "world": self.world, "photos": self.photos, "runs": self.runs}

    def unused(self) -> tuple[str, ...]:
        return () if self.coco is not None else ("saywhere.build.coco_regions",)

    def opened(self) -> tuple[str, ...]:
        return () if self.coco is None else ("saywhere.models.patchioner.seer",)

    @property
    def sections(self) -> list[str]:
        return [WORLD] if self.coco is None else [WORLD, PHOTOS]

    def jobs(self, out: Path, progress: Progress) -> list[TrainingJob[HintRow]]:
        prepare_hint_world(out / WORLD / "data", self.world, progress)
        if self.coco is not None:
            prepare_hint_photos(out / PHOTOS / "data", self.coco, self.photos, progress, self.workers)
        jobs = []
        for section in self.sections:
            folder, data = out / section, out / section / "data"
            splits = Questions(data / "questions").splits
            rows = [row for row in self.kept((*MAIN, *SWEPT)) if row.train_split in splits]
            self.check_base(folder, progress)
            weighed = self.with_weights(folder, rows, progress)
            jobs += self.jobs_of(weighed, data / "questions", folder / VQA, f"{section} {VQA}")
            chosen = {row.key: row.hint for row in weighed}
            told = [replace(row, hint=chosen[row.key]) for row in self.kept(CAPTIONING)]
            captioners = self.jobs_of(told, data / "captions", folder / CAPTION, f"{section} {CAPTION}")
            jobs += [job for job in captioners if job.seed in self.seeds[: self.caption_seeds]]
        return jobs

    def departures(self) -> list[Departure]:
        photos = "; questions of a program about COCO photos" if self.coco is not None else ""
        told = "; COCO's of few photos" if self.coco is not None else ""
        odds = f"; odds of {self.photos.odds:g} on photos" if self.coco is not None else ""
        return [
            Departure("questions", f"about drawn scenes{photos}", "VQA-CP v2 and VQA v2, asked by people"),
            Departure("human attention", "boxes of what a question is about", "VQA-HAT, drawn by people"),
            Departure("regions", "all things' true boxes, a small eye's features", "proposals of bottom-up attention"),
            Departure("captions", f"of drawn scenes{told}", "COCO's, on a robust split too"),
            Departure("attention of visual words", "boxes of what they name", "6 % of COCO's segmentation, 830 words"),
            *(
                departure
                for section in self.sections
                for kind in (VQA, CAPTION)
                for departure in self.runs[f"{section} {kind}"].departures(kind, SECTIONS[section])
            ),
            hinted_share(self.kept((*MAIN, *SWEPT))),
            Departure("change of priors", self.world.priors + odds, "VQA-CP's"),
            *self.runs[f"{WORLD} {VQA}"].weighing,
            Departure("seeds", f"{len(self.seeds)}, of captioners at most {self.caption_seeds}", "not stated"),
        ]

    def compare(
        self, out: Path, measured: Mapping[TrainingJob[HintRow], dict[str, float]], progress: Progress
    ) -> Results:
        tables, claims, sweeps, examples = [], [], [], []
        settings: dict[str, Any] = {"seeds": len(self.seeds)}
        made_by: dict[str, Any] = {}
        remarks = [*_LIMITS, _NO_PHOTOS if self.coco is None else _OF_PHOTOS]
        for number, section in enumerate(self.sections):
            progress("comparing", number, len(self.sections))
            title, data = SECTIONS[section], out / section / "data"
            blind = blind_measures(Questions(data / "questions"))
            asked = by_row(measured, f"{section} {VQA}") | {(BLIND, seed): blind for seed in self.seeds}
            answers = Scoreboard(TITLES, self.seeds, asked, title)
            told = by_row(measured, f"{section} {CAPTION}")
            captions = Scoreboard(TITLES, self.seeds[: self.caption_seeds], told, title)
            tables += section_tables(answers, captions)
            claims += section_claims(answers, captions)
            sweeps += section_sweeps(answers)
            settings |= {f"{title}: {name}": value for name, value in self._facts(section, data, measured).items()}
            made_by[f"data, {title}"] = Questions(data / "questions").fingerprint
            remarks += [self.about_base(answers), asked_for(answers)] if self.decides else []
            if section == WORLD or self.show_photos:
                examples += self._examples(out, section, data)
        progress("comparing", len(self.sections), len(self.sections))
        return Results(
            title="HINT, with its controls",
            paper="Taking a HINT: Leveraging Explanations to Make Vision and Language Models More Grounded (ICCV 2019)",
            settings=settings,
            made_by=made_by,
            tables=tuple(tables),
            claims=tuple(claims),
            remarks=tuple(remarks),
            sweeps=tuple(sweeps),
            heats=tuple(examples),
        )

    def _facts(self, section: str, data: Path, jobs: Mapping[TrainingJob[HintRow], Any]) -> dict[str, Any]:
        questions, scale = Questions(data / "questions"), self.runs[f"{section} {VQA}"]
        counts = {name: len(questions.split(name)) for name in ("train", "changed", "same")}
        captions = {name: len(Captions(data / "captions").split(name)) for name in ("train", "test")}
        # The fastest tenth: what other programs took from the machine meanwhile is not the steps' cost.
        tuned = [job for job in jobs if job.group == f"{section} {VQA}"]
        took = {
            key: np.percentile(_step_seconds(job for job in tuned if job.row.key == key), 10)
            for key in (NONE, HINT, "hint-100")
            if key not in self.left_out
        }
        shares = {HINT: "6", "hint-100": "100"}
        ratios = [
            f"{took[key] / took[NONE]:.2f} × with {share} % of hints" for key, share in shares.items() if key in took
        ]
        ratio = {"a HINT step against a plain one": ", ".join(ratios)}
        return {
            "questions": f"{counts['train']:,} to learn from, {counts['changed']:,} with changed priors, "
            f"{counts['same']:,} with the same",
            "answers known": len(questions.answers),
            "captions": f"{captions['train']:,} to learn from, {captions['test']:,} to test",
            "steps": f"{scale.base_steps:,} of the base, {scale.steps:,} of tuning, each with {scale.batch} questions",
            **(ratio if self.decides and scale.steps >= _TIMED_STEPS else {}),
        }

    def _examples(self, out: Path, section: str, data: Path) -> list[HeatExample]:
        photos = self.coco.photos if self.coco is not None and section == PHOTOS else data / "photos"
        title = SECTIONS[section]

        def models(kind: str) -> list[tuple[str, Path]]:
            runs = out / section / kind
            return [(name, runs / f"{key}-{self.seeds[0]}") for name, key in (("base", BASE), ("HINT", HINT))]

        asked = question_examples(out, data / "questions", photos, models(VQA), self.shown, title)
        most = max(1, self.shown // 2)
        return asked + caption_examples(out, data / "captions", photos, models(CAPTION), most, title)


def _step_seconds(jobs: Iterable[TrainingJob[HintRow]]) -> list[float]:
    """How long each step took."""
    logs = (read_log(job.folder / "log.jsonl") for job in jobs)
    return [one.seconds for log in logs for one in log if isinstance(one, StepDone)]
