"""`saywhere reproduce hint`: HINT with its controls, in the world and on real photos, and a verdict for each claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from saywhere.build.coco_regions import CocoFolder
from saywhere.core.errors import InvalidValue
from saywhere.core.types import Progress
from saywhere.learn import StepDone, load_run, read_log
from saywhere.models.updown import Captions, Questions
from saywhere.models.updown.task import as_vqa
from saywhere.reproduce import hint_measure as measures
from saywhere.reproduce.experiment import (
    MEASURED,
    TrainedExperiment,
    TrainingJob,
    by_row,
    load_measured,
    run_job,
    save_measured,
)
from saywhere.reproduce.hint_data import DEVELOPMENT, HintPhotos, HintWorld, prepare_hint_photos, prepare_hint_world
from saywhere.reproduce.hint_examples import caption_examples, question_examples
from saywhere.reproduce.hint_measure import PRIMARY, blind_measures
from saywhere.reproduce.hint_rows import (
    BASE,
    BASE_ROW,
    BLIND,
    CAPTIONING,
    HINT,
    MAIN,
    NONE,
    SWEPT,
    TITLES,
    TUNED,
    HintRow,
    asked_for,
    section_claims,
    section_sweeps,
    section_tables,
)
from saywhere.reproduce.pool import run_jobs, steps_done
from saywhere.reproduce.results import Departure, HeatExample, Results
from saywhere.reproduce.tables import Scoreboard

VQA, CAPTION = "vqa", "caption"
WORLD, PHOTOS = "world", "photos"
SECTIONS = {WORLD: "the simulated world", PHOTOS: "real photos"}
_CHOOSING = "weights"
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
    "Captioners learn for a few hundred steps, which is little, and write poorly: what their words rest on says "
    "little about good ones.",
    "“Drop” is how many points of accuracy are lost when the regions that matter to people (s > ½), or as many "
    "drawn by chance, are blanked.",
)
_OF_PHOTOS = (
    "Questions about photos are made from boxes and captions, not asked by people; photos of the tests were "
    "never seen by the eye. POPE has few questions about them."
)
_NO_PHOTOS = "Real photos are left out: none were given (--coco)."


@dataclass(frozen=True, slots=True)
class HintScale:
    """How long the base learns and rows tune, how large the network is, and how much is measured.

    weights: those of HINT beside λ = 10 times the task from which one is chosen for each row, on the development split;
    the first if there is nothing to choose by. attention_factor: attention alignment's are so many times larger.
    explained: questions whose regions are compared with people's. faithful: of these, how many with occlusion, too.
    trained: training questions to measure accuracy on.
    """

    base_steps: int = 2500
    base_lr: float = 2e-3
    steps: int = 400
    lr: float = 1e-3
    batch: int = 64
    width: int = 128
    embedding: int = 64
    dropout: float = 0.0
    weights: tuple[float, ...] = (0.1, 0.03, 0.3)
    attention_factor: float = 30.0
    explained: int = 800
    faithful: int = 200
    trained: int = 2000
    beams: int = 3


_CAPTIONS = HintScale(base_steps=400, steps=80, batch=16, explained=150, faithful=40)
RUNS = {
    f"{WORLD} {VQA}": HintScale(),
    f"{WORLD} {CAPTION}": _CAPTIONS,
    f"{PHOTOS} {VQA}": HintScale(base_steps=1000, steps=200, dropout=0.2, explained=500),
    f"{PHOTOS} {CAPTION}": replace(_CAPTIONS, dropout=0.2),
}


@dataclass(frozen=True, kw_only=True)
class HintExperiment(TrainedExperiment[HintRow, dict[str, float]]):
    """coco: real photos; without, the world alone. shown: examples of each section.

    show_photos: whether photographs may stand in the report; their owners may not want them published.
    least_gain: by how many points the base must beat a table of question texts where priors stay, before it is tuned:
    what does not look cannot be taught where to.
    """

    seeds: tuple[int, ...] = tuple(range(10))
    least_gain: float = 10.0
    world: HintWorld = field(default_factory=HintWorld)
    photos: HintPhotos = field(default_factory=HintPhotos)
    runs: dict[str, HintScale] = field(default_factory=lambda: dict(RUNS))
    coco: CocoFolder | None = None
    shown: int = 5
    show_photos: bool = True
    decides_from: ClassVar[int] = 5
    checks: ClassVar[int] = 3

    @classmethod
    def quick(cls, **changes: Any) -> HintExperiment:
        """A few minutes: one seed, little of everything. It shows that everything runs, and decides nothing."""
        world = HintWorld(train=500, validation=60, test=120, eye_scenes=300, eye_steps=60)
        small = HintScale(base_steps=150, steps=40, weights=(0.1,), explained=80, faithful=40, trained=200)
        runs = dict.fromkeys(RUNS, small)
        few = HintPhotos(photos=60)
        return cls(seeds=(0,), world=world, photos=few, runs=runs, shown=4, is_quick=True, least_gain=-100.0, **changes)

    def settings(self) -> dict[str, Any]:
        return {"seeds": self.seeds, "world": self.world, "photos": self.photos, "runs": self.runs}

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
            rows = [row for row in (*MAIN, *SWEPT) if row.train_split in splits]
            self._check_base(folder, progress)
            weighed = self._with_weights(folder, rows, progress)
            jobs += self.jobs_of(weighed, data / "questions", folder / VQA, f"{section} {VQA}")
            chosen = {row.key: row.hint for row in weighed}
            told = [replace(row, hint=chosen[row.key]) for row in CAPTIONING]
            jobs += self.jobs_of(told, data / "captions", folder / CAPTION, f"{section} {CAPTION}")
        return jobs

    def departures(self) -> list[Departure]:
        scale = self.runs[f"{WORLD} {VQA}"]
        photos = "; questions of a program about COCO photos" if self.coco is not None else ""
        return [
            Departure("questions", f"about drawn scenes{photos}", "VQA-CP v2 and VQA v2, asked by people"),
            Departure("human attention", "boxes of what a question is about", "VQA-HAT, drawn by people"),
            Departure("regions", "all things' true boxes, a small eye's features", "proposals of bottom-up attention"),
            Departure("network", f"UpDn of width {scale.width}, GELU", "UpDn as published"),
            Departure("change of priors", f"{self.world.priors}; odds of {self.photos.odds:g} on photos", "VQA-CP's"),
            Departure("weight of HINT", f"one of {', '.join(f'{w:g}' for w in scale.weights)}, for each row", "1"),
            Departure("seeds", str(len(self.seeds)), "not stated"),
        ]

    def _check_base(self, folder: Path, progress: Progress) -> None:
        """Let the first seed's base learn, and refuse to tune it if it hardly looks."""
        [job] = self._first([BASE_ROW], folder, VQA)
        run_jobs([job], run_job, self.workers, lambda: progress("training the base", *steps_done([job])))
        base = load_measured(job.folder / MEASURED, dict[str, float])
        blind = blind_measures(Questions(job.data))
        gain = base["same all"] - blind["same all"]
        if gain < self.least_gain:
            reason = f"is {gain:.1f} points better than a table of question texts where priors stay"
            raise InvalidValue(
                "base", reason, f"{self.least_gain:g} are needed before it is tuned: let it learn longer"
            )

    def _with_weights(self, folder: Path, rows: Iterable[HintRow], progress: Progress) -> list[HintRow]:
        """The rows with the weight of their hints that is best on the development split, tried with the first seed."""
        scale = self.runs[f"{folder.name} {VQA}"]
        factor = {row.key: scale.attention_factor if row.hint.get("on") == "attention" else 1.0 for row in TUNED}
        tried = [
            replace(row, key=f"{row.key}-{weight:g}", hint={**row.hint, "weight": weight * factor[row.key]})
            for row in TUNED
            if row.key != NONE
            for weight in scale.weights
        ]
        best = {row.key: scale.weights[0] * factor[row.key] for row in TUNED}
        if len(scale.weights) > 1:
            jobs = self._first(tried, folder, _CHOOSING)
            run_jobs(jobs, run_job, self.workers, lambda: progress("choosing weights", *steps_done(jobs)))
            scores = {job.row.key: load_measured(job.folder / MEASURED, dict[str, float])[PRIMARY.name] for job in jobs}
            for row in TUNED:
                if row.key != NONE:
                    weight = max(scale.weights, key=lambda w, key=row.key: scores[f"{key}-{w:g}"])  # type: ignore[misc]
                    best[row.key] = weight * factor[row.key]
            save_measured({"development": scores, "weights": best}, folder / "weights.json")
        return [
            row if not row.hint else replace(row, hint={"weight": best.get(row.key, best[HINT]), **row.hint})
            for row in rows
        ]

    def _first(self, rows: Iterable[HintRow], folder: Path, kind: str) -> list[TrainingJob[HintRow]]:
        """Jobs of the first seed alone, all of which go on from its base."""
        seed, data = self.seeds[0], folder / "data" / "questions"
        return [
            TrainingJob(
                *(self, row, seed, data, folder / kind / f"{row.key}-{seed}"),
                start=folder / VQA / f"{BASE}-{seed}" if row.start else None,
                group=f"{folder.name} {kind}",
            )
            for row in rows
        ]

    def recipe(self, job: TrainingJob[HintRow]) -> dict[str, Any]:
        section, kind = job.group.split()
        kind, begins = CAPTION if kind == CAPTION else VQA, not job.row.start
        scale = self.runs[f"{section} {kind}"]
        model: dict[str, Any] = {"width": scale.width, "embedding": scale.embedding, "dropout": scale.dropout}
        model |= {"answer_dropout": scale.dropout, "activation": "gelu"} if kind == VQA else {"attention": scale.width}
        model["use_boxes"] = True
        if not begins:
            model["hint"] = {"seed": job.seed, **job.row.hint}
        data: dict[str, Any] = {"folder": str(job.data), "train_split": job.row.train_split}
        if kind == VQA and not begins:
            data["validation_split"] = DEVELOPMENT
        return {
            "task": f"{'updown' if begins else 'hint'}-{kind}",
            "model": model,
            "data": data,
            "train": {
                "steps": scale.base_steps if begins else scale.steps,
                "batch_size": scale.batch,
                "lr": scale.base_lr if begins else scale.lr,
                "optimizer": "adam",
                "clip_norm": 10.0,
                **job.init_from,
            },
            "validate": {"metric": "accuracy", "mode": "max"} if kind == VQA else {"metric": "loss", "mode": "min"},
        }

    def measure(self, job: TrainingJob[HintRow]) -> dict[str, float]:
        if job.group.endswith(_CHOOSING):
            questions = Questions(job.data)
            model = as_vqa(load_run(job.folder, "best").model).eval()
            return measures.primary_accuracy(model, questions, questions.split(DEVELOPMENT))
        scale = self.runs[job.group]
        if job.group.endswith(VQA):
            asked = (scale.trained, scale.explained, scale.faithful)
            return measures.answer_measures(job.folder, job.data, *asked, job.seed)
        return measures.caption_measures(job.folder, job.data, scale.beams, scale.explained, scale.faithful)

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
            answers, captions = (
                Scoreboard(TITLES, self.seeds, by_row(measured, f"{section} {kind}") | always, title)
                for kind, always in ((VQA, {(BLIND, seed): blind for seed in self.seeds}), (CAPTION, {}))
            )
            tables += section_tables(answers, captions)
            claims += section_claims(answers, captions)
            sweeps += section_sweeps(answers)
            settings |= {f"{title}: {name}": value for name, value in self._facts(section, data, measured).items()}
            made_by[f"data, {title}"] = Questions(data / "questions").fingerprint
            remarks += [asked_for(answers)] if self.decides else []
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
        }
        ratio = {
            "a HINT step against a plain one": f"{took[HINT] / took[NONE]:.2f} × with 6 % of hints, "
            f"{took['hint-100'] / took[NONE]:.2f} × with 100 %"
        }
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
