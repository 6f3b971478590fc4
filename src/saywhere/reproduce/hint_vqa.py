"""`saywhere reproduce hint-vqa`: HINT on people's questions (VQA v2), with looks without a question as a control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from saywhere.build.coco import KIND
from saywhere.core.types import Progress
from saywhere.models.updown import Questions
from saywhere.reproduce.experiment import TrainingJob, by_row, load_measured
from saywhere.reproduce.hint_examples import question_examples
from saywhere.reproduce.hint_measure import blind_measures
from saywhere.reproduce.hint_rows import (
    BASE,
    BASE_ROW,
    BLIND,
    CEILING_ROW,
    FREE_VIEW_ROW,
    HINT,
    TITLES,
    TUNED,
    HintRow,
    answer_claims,
    answer_tables,
)
from saywhere.reproduce.hint_tuning import VQA, HintScale, TuningExperiment, hinted_share
from saywhere.reproduce.hint_vqa_data import VqaPhotos, prepare_vqa_photos
from saywhere.reproduce.results import Departure, HeatExample, Results
from saywhere.reproduce.tables import Scoreboard
from saywhere.store import Store

SECTION = "questions"
_TITLE = "people's questions about photos"
_LIMITS = (
    "All rows but the base and the ceiling go on from the same base for as many steps, on the same questions; all "
    "kinds of hints are given to the same questions, about photos that SALICON has maps of. Each row's weight and "
    "checkpoint is the best on a development split: other photos with changed priors. Nothing is chosen on the splits "
    "that are reported. No photo is on two sides.",
    "“Primary” is accuracy over the question types whose priors change. Seeds differ in the weights that the networks "
    "begin with, the order of questions and which questions are hinted; the split is one.",
    "Human importance of a region is its best IoU with a box of what the question or its answer names, in steps of "
    "0.05; of looks without a question, SALICON's map inside the region against outside. The whole photo has none.",
    "The eye learnt from captions and boxes of photos, those of the tests among them, and from no question.",
    "Faithfulness: gradients and attention of the answer that the model gives, against blanking one region at a time. "
    "“Drop” is how many points of accuracy are lost when the regions that matter to people (s > ½), or as many drawn "
    "by chance, are blanked.",
)


@dataclass(frozen=True, kw_only=True)
class HintVqaExperiment(TuningExperiment):
    """coco: what `saywhere build coco` wrote. places: data/places of what `saywhere build answers` wrote.

    shown: examples; none if photographs must not stand in the report.
    """

    coco: Path
    places: Path
    seeds: tuple[int, ...] = tuple(range(5))
    # Ten would be better, but no base of this size reached them; docs/log.md has the figures.
    least_gain: float = 5.0
    photos: VqaPhotos = field(default_factory=VqaPhotos)
    runs: dict[str, HintScale] = field(
        default_factory=lambda: {
            f"{SECTION} {VQA}": HintScale(
                *(1200, 2e-3, 100, 1e-3, 128, 128, 64, 0.5, (0.1, 0.01)), explained=300, faithful=100, trained=1000
            )
        }
    )
    shown: int = 5
    checks: ClassVar[int] = 2
    tuned: ClassVar[Sequence[HintRow]] = (*TUNED, FREE_VIEW_ROW)

    @classmethod
    def quick(cls, **changes: Any) -> HintVqaExperiment:
        """A few minutes: one seed, few photos. It shows that everything runs, and decides nothing."""
        small = HintScale(base_steps=100, steps=30, weights=(0.1,), explained=60, faithful=30, trained=200)
        few = VqaPhotos(photos=2000)
        runs = {f"{SECTION} {VQA}": small}
        return cls(seeds=(0,), photos=few, runs=runs, is_quick=True, least_gain=-100.0, **changes)

    def settings(self) -> dict[str, Any]:
        return {
            "seeds": self.seeds,
            "photos": self.photos,
            "runs": self.runs,
            "least_gain": self.least_gain,
        } | self.changes

    def unused(self) -> tuple[str, ...]:
        # `hint_data` needs it for other photos.
        return ("saywhere.build.coco_regions",)

    def departures(self) -> list[Departure]:
        scale, kinds = self.runs[f"{SECTION} {VQA}"], " and ".join(self.photos.answer_types)
        return [
            Departure("questions", f"a part of VQA v2 ({kinds}), split so that priors change", "VQA-CP v2 and VQA v2"),
            Departure("human attention", "boxes of what a question or its answer names", "VQA-HAT, drawn by people"),
            Departure("regions", "things and windows of a small eye of our own", "proposals of bottom-up attention"),
            *scale.departures(VQA, "people's questions"),
            hinted_share(self.kept(self.tuned)),
            Departure("change of priors", f"odds of {self.photos.odds:g} turned round", "VQA-CP's"),
            *scale.weighing,
            Departure("seeds", str(len(self.seeds)), "not stated"),
        ]

    def jobs(self, out: Path, progress: Progress) -> list[TrainingJob[HintRow]]:
        folder = out / SECTION
        prepare_vqa_photos(folder / "data", self.coco, self.places, self.photos, progress)
        self.check_base(folder, progress)
        rows = self.with_weights(folder, self.kept((CEILING_ROW, BASE_ROW, *self.tuned)), progress)
        return self.jobs_of(rows, folder / "data" / "questions", folder / VQA, f"{SECTION} {VQA}")

    def compare(
        self, out: Path, measured: Mapping[TrainingJob[HintRow], dict[str, float]], progress: Progress
    ) -> Results:
        progress("comparing", 0, 1)
        data = out / SECTION / "data" / "questions"
        questions = Questions(data)
        blind = blind_measures(questions)
        scores = by_row(measured, f"{SECTION} {VQA}") | {(BLIND, seed): blind for seed in self.seeds}
        answers = Scoreboard(TITLES, self.seeds, scores, _TITLE)
        rows = [row.key for row in self.kept((CEILING_ROW, BASE_ROW, *self.tuned))]
        examples = self._examples(out, data) if self.shown else []
        progress("comparing", 1, 1)
        return Results(
            title="HINT on people's questions",
            paper="Taking a HINT: Leveraging Explanations to Make Vision and Language Models More Grounded (ICCV 2019)",
            settings=self._facts(out, questions),
            made_by={"data": questions.fingerprint},
            tables=tuple(answer_tables(answers, rows)),
            claims=tuple(answer_claims(answers, "people's questions")),
            remarks=(self.about_base(answers), *_LIMITS) if self.decides else _LIMITS,
            heats=tuple(examples),
        )

    def _facts(self, out: Path, questions: Questions) -> dict[str, Any]:
        scale, counts = self.runs[f"{SECTION} {VQA}"], questions.splits
        hintable = sum(one.importance is not None for one in map(questions.question, questions.indices("train")))
        found: dict[str, Any] = {
            "seeds": len(self.seeds),
            "questions": f"{counts['train']:,} to learn from, {counts['changed']:,} with changed priors, "
            f"{counts['same']:,} with the same",
            "answers known": len(questions.answers),
            "questions that can be hinted": hintable,
            "steps": f"{scale.base_steps:,} of the base, {scale.steps:,} of tuning, each with {scale.batch} questions",
        }
        if len(scale.weights) > 1:
            found["weights chosen"] = load_measured(out / SECTION / "weights.json", dict[str, Any])["weights"]
        return found

    def _examples(self, out: Path, data: Path) -> list[HeatExample]:
        runs, seed = out / SECTION / VQA, self.seeds[0]
        models = [(name, runs / f"{key}-{seed}") for name, key in (("base", BASE), ("HINT", HINT))]
        return question_examples(out, data, Store(self.coco, KIND), models, self.shown, _TITLE)
