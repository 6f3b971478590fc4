"""An UpDn that learns, and rows that go on from it with hints of different kinds: what all HINT experiments share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.core.types import Progress
from saywhere.learn import load_run
from saywhere.models.updown import Questions
from saywhere.models.updown.task import as_vqa
from saywhere.reproduce import hint_measure as measures
from saywhere.reproduce.experiment import (
    MEASURED,
    TrainedExperiment,
    TrainingJob,
    load_measured,
    run_job,
    save_measured,
)
from saywhere.reproduce.hint_data import DEVELOPMENT
from saywhere.reproduce.hint_measure import PRIMARY, blind_measures
from saywhere.reproduce.hint_rows import (
    BASE,
    BASE_ROW,
    BLIND,
    BY_INPUT,
    FREE_VIEW_ROW,
    HINT,
    NONE,
    ROWS,
    TUNED,
    HintRow,
)
from saywhere.reproduce.pool import run_jobs, steps_done
from saywhere.reproduce.results import Departure
from saywhere.reproduce.tables import Scoreboard

VQA, CAPTION = "vqa", "caption"
_CHOOSING, _SAME = "weights", "same all"
_MAY_BE_LEFT_OUT = sorted({*ROWS, FREE_VIEW_ROW.key} - {BASE, NONE, HINT, BY_INPUT})


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

    def departures(self, kind: str, where: str) -> list[Departure]:
        """kind: what learns; where: from what, for people."""
        network, told = {VQA: ("network", "questions"), CAPTION: ("captioner", "captions")}[kind]
        shape = [f"UpDn of width {self.width}", f"words of {self.embedding}", f"dropout {self.dropout:g}"]
        shape += ["GELU"] if kind == VQA else [f"{self.beams} beams"]
        steps = f"{self.base_steps:,} of the base, {self.steps:,} of tuning, each with {self.batch} {told}"
        return [
            Departure(f"{network}, {where}", ", ".join(shape), "UpDn as published"),
            Departure(f"steps of the {network}, {where}", steps, "not stated"),
            Departure(f"learning rates of the {network}, {where}", f"{self.base_lr:g}, then {self.lr:g}", "not stated"),
        ]

    @property
    def weighing(self) -> list[Departure]:
        """What is weighed how, beside λ."""
        weights = f"one of {', '.join(f'{w:g}' for w in self.weights)}, for each row, by its answers"
        return [
            Departure("weight of HINT", weights, "1"),
            Departure("weight of attention alignment", f"{self.attention_factor:g} times as much", "not stated"),
        ]


def hinted_share(rows: Iterable[HintRow]) -> Departure:
    """How many of the questions to learn from come with hints."""
    shares = sorted({100 * float(row.hint["share"]) for row in rows if "share" in row.hint})
    here = ", ".join(f"{share:g}" for share in shares)
    return Departure("share of hints, in %", here, "6; of a plot, up to 6")


@dataclass(frozen=True, kw_only=True)
class TuningExperiment(TrainedExperiment[HintRow, dict[str, float]]):
    """A base for each seed, and rows that go on from it; of each section of data apart.

    least_gain: by how many points the base must beat a table of question texts where priors stay, before it is tuned:
    what does not look cannot be taught where to. runs: "section kind" → how long and how large. left_out: keys of rows
    that are not trained.
    """

    seeds: tuple[int, ...] = tuple(range(10))
    least_gain: float = 10.0
    runs: dict[str, HintScale] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    decides_from: ClassVar[int] = 5
    checks: ClassVar[int] = 3
    tuned: ClassVar[Sequence[HintRow]] = TUNED

    def __post_init__(self) -> None:
        for key in self.left_out:
            if key not in _MAY_BE_LEFT_OUT:
                raise UnknownName("row to leave out", key, _MAY_BE_LEFT_OUT)

    @property
    def changes(self) -> dict[str, Any]:
        """Settings that are not always there."""
        return {"left_out": self.left_out} if self.left_out else {}

    def kept(self, rows: Iterable[HintRow]) -> list[HintRow]:
        """Those that are not left out."""
        return [row for row in rows if row.key not in self.left_out]

    def check_base(self, folder: Path, progress: Progress) -> None:
        """Let the first seed's base learn, and refuse to tune it if it hardly looks."""
        [job] = self._first([BASE_ROW], folder, VQA)
        run_jobs([job], run_job, self.workers, lambda: progress("training the base", *steps_done([job])))
        base = load_measured(job.folder / MEASURED, dict[str, float])
        gain = base[_SAME] - blind_measures(Questions(job.data))[_SAME]
        if gain < self.least_gain:
            reason = f"is {gain:.1f} points better than a table of question texts where priors stay"
            raise InvalidValue(
                "base", reason, f"{self.least_gain:g} are needed before it is tuned: let it learn longer"
            )

    def about_base(self, answers: Scoreboard) -> str:
        """How far the bases beat the table of question texts, and what was needed."""
        gain = answers.mean(BASE, _SAME) - answers.mean(BLIND, _SAME)
        return (
            f"The base must see before it can be tuned. In {answers.section} it is {gain:+.1f} points better than a "
            f"table of question texts where priors stay (mean of all seeds). Tuning began because the first seed's "
            f"passed the gate of {self.least_gain:g} points."
        )

    def with_weights(self, folder: Path, rows: Iterable[HintRow], progress: Progress) -> list[HintRow]:
        """The rows with the weight of their hints that is best on the development split, tried with the first seed."""
        scale, tuned = self.runs[f"{folder.name} {VQA}"], self.kept(self.tuned)
        factor = {row.key: scale.attention_factor if row.hint.get("on") == "attention" else 1.0 for row in tuned}
        tried = [
            replace(row, key=f"{row.key}-{weight:g}", hint={**row.hint, "weight": weight * factor[row.key]})
            for row in tuned
            if row.key != NONE
            for weight in scale.weights
        ]
        best = {row.key: scale.weights[0] * factor[row.key] for row in tuned}
        if len(scale.weights) > 1:
            jobs = self._first(tried, folder, _CHOOSING)
            run_jobs(jobs, run_job, self.workers, lambda: progress("choosing weights", *steps_done(jobs)))
            scores = {job.row.key: load_measured(job.folder / MEASURED, dict[str, float])[PRIMARY.name] for job in jobs}
            for row in tuned:
                if row.key != NONE:
                    weight = max(scale.weights, key=lambda w, key=row.key: scores[f"{key}-{w:g}"])  # type: ignore[misc]
                    best[row.key] = weight * factor[row.key]
            chosen = {key: weight for key, weight in best.items() if key != NONE}
            save_measured({"development": scores, "weights": chosen}, folder / "weights.json")
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
