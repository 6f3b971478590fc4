"""`saywhere reproduce hint`: HINT with its controls, in the world and on real photos, and a verdict for each claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from saywhere.build.coco_regions import CocoFolder
from saywhere.core.types import Progress
from saywhere.learn import StepDone, read_log
from saywhere.models.updown import Captions, Questions
from saywhere.reproduce import hint_measure as measures
from saywhere.reproduce.claims import Claim, ClaimPlan, judge_measures, judge_plan, mean_interval
from saywhere.reproduce.experiment import RowPlan, TrainedExperiment, TrainingJob, by_row, titles_of
from saywhere.reproduce.hint_data import HintPhotos, HintWorld, prepare_hint_photos, prepare_hint_world
from saywhere.reproduce.hint_measure import ACCURACY, RANKED, TOP_ATTENTION, caption_examples, question_examples
from saywhere.reproduce.results import HeatExample, Results, Sweep
from saywhere.reproduce.tables import MeasureColumn, Scoreboard, Table

CRITIQUE = "its critique (Shrestha, Kafle and Kanan, ACL 2020)"
BASE, NONE, ALIGNED, HINT = "base", "none", "aligned", "hint"
HINT_PERCENT = 6.0
SWEEP_PERCENT = (1.5, 3.0, HINT_PERCENT, 12.0, 100.0)
"""How much of the training set is hinted, beside 0 %, which is `NONE`. The paper goes to 6 %."""
_PLOTTED_PERCENT = 12.0
VQA, CAPTION = "vqa", "caption"
WORLD, PHOTOS = "world", "photos"
SECTIONS = {WORLD: "the simulated world", PHOTOS: "real photos"}


@dataclass(frozen=True, kw_only=True)
class HintRow(RowPlan):
    """One way to go on from the base model. hint: as in a recipe's [model.hint]; empty for the base itself."""

    hint: dict[str, Any] = field(default_factory=dict)
    start: str = BASE


def _hinted(key: str, title: str, percent: float = HINT_PERCENT, **hint: Any) -> HintRow:
    return HintRow(key=key, title=title, hint={"share": percent / 100, **hint})


MAIN = (
    HintRow(key=BASE, title="UpDn, before tuning", start=""),
    HintRow(key=NONE, title="UpDn, tuned without hints", hint={"hints": "none"}),
    _hinted(ALIGNED, "attention alignment", on="attention"),
    _hinted(HINT, "HINT"),
    _hinted("inverse", "inverse hints (1 − s)", hints="inverse"),
    _hinted("random", "random hints, fixed", hints="random"),
    _hinted("redrawn", "random hints, redrawn", hints="redrawn"),
    _hinted("permuted", "hints of other questions", hints="permuted"),
)
SWEPT = tuple(
    _hinted(f"hint-{percent:g}", f"HINT with {percent:g} %", percent)
    for percent in SWEEP_PERCENT
    if percent != HINT_PERCENT
)
CAPTIONING = tuple(row for row in MAIN if row.key in (BASE, NONE, ALIGNED, HINT, "random"))
ROWS = {row.key: row for row in (*MAIN, *SWEPT)}

# Table 1 of the paper: VQA-CP test stands beside "changed", VQA v2 val beside "same"; in the order of `ACCURACY`.
_PAPER_ACCURACY = {
    BASE: (39.49, 45.21, 11.96, 42.98, 62.85, 80.89, 42.78, 54.44),
    ALIGNED: (39.37, 43.02, 11.89, 45.00, 63.24, 80.99, 42.55, 55.22),
    HINT: (46.73, 67.27, 10.61, 45.88, 63.38, 81.18, 42.99, 55.56),
}
_PAPER_GROUNDING = {
    BASE: {RANKED.name: -0.09, TOP_ATTENTION.name: 0.57},
    HINT: {RANKED.name: 0.18, TOP_ATTENTION.name: 0.63},
}
_PAPER_CAPTIONS = {BASE: {RANKED.name: 0.008}, HINT: {RANKED.name: 0.17}}
_PAPER_SWEEP = ((0.0, 39.49), (6.0, 46.73))
"""Of the paper's plot only the ends are given in numbers."""

_CHANGED, _SAME, _TRAINED = (next(c for c in ACCURACY if c.name == f"{s} all") for s in ("changed", "same", "train"))
_POPE = MeasureColumn("pope all", digits=1)
_TRUTH = MeasureColumn("ρ with occlusion")
CLAIMS = (
    ClaimPlan("HINT reduces language bias: it is better where priors change", _CHANGED, HINT, BASE),
    ClaimPlan("… also than as many steps without hints", _CHANGED, HINT, NONE),
    ClaimPlan("HINT does not cost accuracy where priors stay, it adds some", _SAME, HINT, BASE),
    ClaimPlan("HINT is better than attention alignment where priors change", _CHANGED, HINT, ALIGNED),
    ClaimPlan("1.5 % of hints are enough to be better where priors change", _CHANGED, "hint-1.5", NONE),
    ClaimPlan("HINT brings gradients nearer to people", RANKED, HINT, BASE),
    ClaimPlan("… also than as many steps without hints", RANKED, HINT, NONE),
    ClaimPlan("HINT also brings attention nearer to people", TOP_ATTENTION, HINT, BASE),
    ClaimPlan("Without hinted regions a hinted model loses more than a base model", measures.DROP, HINT, BASE),
    ClaimPlan("Hints that mean nothing help as much: random ones, fixed", _CHANGED, "random", NONE, CRITIQUE),
    ClaimPlan("… random ones, redrawn", _CHANGED, "redrawn", NONE, CRITIQUE),
    ClaimPlan("… those of other questions", _CHANGED, "permuted", NONE, CRITIQUE),
    ClaimPlan("… and wrong ones, the inverse", _CHANGED, "inverse", NONE, CRITIQUE),
    ClaimPlan("Human hints are no better than random ones where priors change", _CHANGED, "random", HINT, CRITIQUE),
    ClaimPlan("The loss regularises: training accuracy falls", _TRAINED, NONE, HINT, CRITIQUE),
)
CAPTION_CLAIMS = (
    ClaimPlan("HINT brings the gradients of visual words nearer to the things they name", RANKED, HINT, BASE),
    ClaimPlan("… also than as many steps without hints", RANKED, HINT, NONE),
    ClaimPlan("Captions stay as good", MeasureColumn("CIDEr"), HINT, NONE),
)
_LIMITS = (
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
)
_OF_PHOTOS = (
    "Questions about photos are made from boxes and captions, not asked by people; photos of the tests were "
    "never seen by the eye. POPE has few questions about them."
)
_NO_PHOTOS = "Real photos are left out: none were given (--coco)."


@dataclass(frozen=True, slots=True)
class HintScale:
    """How long the base learns and rows tune, how large the network is, and how much is measured.

    weight, attention_weight: of HINT and of attention alignment beside λ = 10 times the task; larger ones brought no
    more agreement with people on validation questions, but cost accuracy. explained: questions whose regions are
    compared with people's. faithful: of these, how many with occlusion, too. trained: training questions to measure
    accuracy on.
    """

    base_steps: int = 2500
    base_lr: float = 2e-3
    steps: int = 400
    lr: float = 1e-3
    batch: int = 64
    width: int = 128
    embedding: int = 64
    dropout: float = 0.0
    weight: float = 0.1
    attention_weight: float = 3.0
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
    """

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
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
        small = HintScale(base_steps=150, steps=40, explained=80, faithful=40, trained=200)
        runs = dict.fromkeys(RUNS, small)
        return cls(seeds=(0,), world=world, photos=HintPhotos(photos=60), runs=runs, shown=4, **changes)

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
            for kind, rows, data in ((VQA, (*MAIN, *SWEPT), "questions"), (CAPTION, CAPTIONING, "captions")):
                folder = out / section
                jobs += self.jobs_of(rows, folder / "data" / data, folder / kind, f"{section} {kind}")
        return jobs

    def recipe(self, job: TrainingJob[HintRow]) -> dict[str, Any]:
        scale, kind, begins = self.runs[job.group], job.group.split()[1], not job.row.start
        model: dict[str, Any] = {"width": scale.width, "embedding": scale.embedding, "dropout": scale.dropout}
        model |= {"answer_dropout": scale.dropout, "activation": "gelu"} if kind == VQA else {"attention": scale.width}
        model["use_boxes"] = True
        if not begins:
            weight = scale.attention_weight if job.row.hint.get("on") == "attention" else scale.weight
            model["hint"] = {"weight": weight, "seed": job.seed, **job.row.hint}
        return {
            "task": f"{'updown' if begins else 'hint'}-{kind}",
            "model": model,
            "data": {"folder": str(job.data)},
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
            answers, captions = (
                Scoreboard(titles_of(ROWS.values()), self.seeds, by_row(measured, f"{section} {kind}"), title)
                for kind in (VQA, CAPTION)
            )
            tables += section_tables(answers, captions)
            claims += section_claims(answers, captions)
            sweeps += section_sweeps(answers)
            settings |= {f"{title}: {name}": value for name, value in self._facts(section, data, measured).items()}
            made_by[f"data, {title}"] = Questions(data / "questions").fingerprint
            remarks.append(_asked(answers))
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
        return {
            "questions": f"{counts['train']:,} to learn from, {counts['changed']:,} with changed priors, "
            f"{counts['same']:,} with the same",
            "answers known": len(questions.answers),
            "captions": f"{captions['train']:,} to learn from, {captions['test']:,} to test",
            "steps": f"{scale.base_steps:,} of the base, {scale.steps:,} of tuning, each with {scale.batch} questions",
            "a HINT step against a plain one": f"{took[HINT] / took[NONE]:.2f} × with 6 % of hints, "
            f"{took['hint-100'] / took[NONE]:.2f} × with 100 %",
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


def section_tables(answers: Scoreboard, captions: Scoreboard) -> list[Table]:
    """Accuracy, grounding and, apart, the amount of hints; then captions."""
    section = answers.section
    has_pope = all(_POPE.name in one for one in answers.scores.values())
    accuracy = (*ACCURACY, *([_POPE] if has_pope else []))
    first = {
        key: {column.name: value for column, value in zip(ACCURACY, values, strict=False)}
        for key, values in _PAPER_ACCURACY.items()
    }
    main = [row.key for row in MAIN]
    swept = [NONE, *sorted((HINT, *(row.key for row in SWEPT)), key=lambda key: float(ROWS[key].hint["share"]))]
    amounts = (_CHANGED, *(c for c in accuracy if c in (_SAME, _TRAINED)), RANKED)
    return [
        answers.table(1, f"accuracy, in percent, in {section}", accuracy, main, first),
        answers.table(0, f"what answers rest on, in {section}", measures.GROUNDING, main, _PAPER_GROUNDING),
        answers.table(0, f"more or fewer hints, in {section}", amounts, swept),
        captions.table(
            *(0, f"captions and their visual words, in {section}", measures.CAPTION_MEASURES),
            *([row.key for row in CAPTIONING], _PAPER_CAPTIONS),
        ),
    ]


def section_sweeps(answers: Scoreboard) -> list[Sweep]:
    """Accuracy on changed priors and agreement with people over the share of training questions with hints."""
    amounts = {0.0: NONE, HINT_PERCENT: HINT} | {100 * float(row.hint["share"]): row.key for row in SWEPT}
    sweeps = []
    for measure, title, paper in (
        (_CHANGED, "accuracy where priors change", _PAPER_SWEEP),
        (RANKED, "rank correlation of gradients with people", ()),
    ):
        points = [
            (percent, *mean_interval(answers.values(key, measure.name)))
            for percent, key in sorted(amounts.items())
            if percent <= _PLOTTED_PERCENT
        ]
        name, across = f"{title}, {answers.section}", "training questions with hints, %"
        sweeps.append(Sweep(name, across, measure.name, {"HINT": points}, paper, answers.section))
    return sweeps


def section_claims(answers: Scoreboard, captions: Scoreboard) -> list[Claim]:
    """The paper's claims and its critique's, judged over seeds."""
    place = answers.section.removeprefix("the ").removeprefix("simulated ").removeprefix("real ")
    sides = {f"{place}: gradients": measures.TRUE_GRADIENTS, "attention": measures.TRUE_ATTENTION}
    truer = f"{place}: gradients are truer to the model than attention"
    return [
        *(judge_plan(plan, answers, place) for plan in CLAIMS),
        judge_measures(truer, _TRUTH, sides, BASE, answers),
        *(judge_plan(plan, captions, f"{place}, captions") for plan in CAPTION_CLAIMS),
    ]


def _asked(answers: Scoreboard) -> str:
    """The two numbers that this experiment was asked for."""

    def gain(measure: str) -> float:
        return answers.mean(HINT, measure) - answers.mean(BASE, measure)

    return (
        f"In {answers.section}, HINT changes accuracy on changed priors by {gain(_CHANGED.name):+.1f} points (asked: "
        f"+5) and the rank correlation with people by {gain(RANKED.name):+.2f} (asked: +0.2), against the base."
    )
