"""Train MITRs and their baselines, and measure what they make of the test narratives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from saywhere.core import Narrative
from saywhere.core.types import Progress
from saywhere.learn import load_run
from saywhere.learn.mitr_evaluation import MitrOutputs, outputs_of, references_of
from saywhere.models.mitr import Grounded
from saywhere.models.mitr.prepared import Prepared
from saywhere.models.mitr.skills import boxes_of_words
from saywhere.models.mitr.task import MitrModelSection
from saywhere.reproduce.caption_metrics import CaptionMetrics
from saywhere.reproduce.experiment import RowPlan, TrainedExperiment, TrainingJob, load_measured, save_measured
from saywhere.reproduce.results import Departure
from saywhere.reproduce.tables import MeasureColumn

LBM = (MeasureColumn("LBM (k=0)", lower_is_better=True), MeasureColumn("LBM (k=1)", lower_is_better=True))


PAPER_MODEL = MitrModelSection()
"""The defaults of a recipe's [model] are the paper's."""
_CLIP_NORM = 1.0


@dataclass(frozen=True, kw_only=True)
class MitrRow(RowPlan):
    """One model. model: keys of the recipe's [model]. tests: what it can do. paper: measure → what the paper reports.

    guided: whether it learns from captions with key boxes, not from narratives.
    """

    model: dict[str, Any]
    tests: tuple[str, ...]
    paper: dict[str, float] = field(default_factory=dict)
    guided: bool = False

    def title_with(self, hidden: float) -> str:
        """Its title, and whether Task 1 saw the boxes before. hidden: the share that rows do not see by default."""
        share = self.model.get("trace_mask_rate", hidden)
        seen = "seen" if share == 0 else "hidden" if share == 1 else f"{100 * share:.0f} % hidden"
        return f"{self.title} (boxes before: {seen})" if "trace" in self.tests else self.title


@dataclass(frozen=True, slots=True)
class MitrScale:
    """How long each row learns, and how large it is.

    hidden: how many of the boxes before it Task 1, and the cycle, do not see while they learn. With all of them in
    view, as published, it learnt to copy the box before and pointed nowhere by itself; docs/log.md has the figures.
    """

    steps: int = 600
    batch: int = 20
    width: int = 64
    heads: int = 4
    lr: float = 3e-3
    beams: int = 3
    test: int = 300
    hidden: float = 1.0

    @property
    def model(self) -> dict[str, Any]:
        """Keys of every recipe's [model]; a row may have others."""
        shape = {"width": self.width, "heads": self.heads, "feed_forward": 4 * self.width}
        return {**shape, "attention_dropout": 0.0, "input_dropout": 0.1, "trace_mask_rate": self.hidden}

    @property
    def train(self) -> dict[str, Any]:
        """Keys of every recipe's [train]."""
        learning = {"steps": self.steps, "batch_size": self.batch, "lr": self.lr}
        return {**learning, "optimizer": "adam", "clip_norm": _CLIP_NORM}

    def departures(self, row: Mapping[str, Any] | None = None) -> list[Departure]:
        """From the paper's recipe, which is also that of the released code. row: [model] of the one row, if there is no
        other."""
        here, paper = {**msgspec.structs.asdict(PAPER_MODEL), **self.model, **(row or {})}, PAPER_MODEL
        hidden = here["trace_mask_rate"]
        cycle = " and the cycle" if row is None or here["cycle"] else ""
        every = [
            Departure(
                "width, heads, feed-forward",
                f"{here['width']}, {here['heads']}, {here['feed_forward']}",
                f"{paper.width}, {paper.heads}, {paper.feed_forward}",
            ),
            Departure("optimiser steps", f"{self.steps:,} of {self.batch} narratives", "30 epochs of 30 narratives"),
            Departure("learning rate", f"{self.lr:g}, warmed up, then cosine", "5e-4 × 0.8 every 3 epochs"),
            Departure("gradients", f"clipped to a norm of {_CLIP_NORM:g}", "each number clipped to 0.1"),
            Departure(
                "dropout of attention, of inputs",
                f"{here['attention_dropout']:g}, {here['input_dropout']:g}",
                f"{paper.attention_dropout:g}, {paper.input_dropout:g}",
            ),
            Departure(
                f"previous boxes in Task 1{cycle}",
                "all seen" if hidden == 0 else f"{100 * hidden:.0f} % hidden",
                "all seen",
            ),
            *(
                Departure(f"weight of the {name}", f"{here[name]:g}", f"{getattr(paper, name):g}")
                for name in ("trace", "caption", "cycle", "joint")
                if row is not None
            ),
            Departure("beams", str(self.beams), "5"),
        ]
        return [one for one in every if one.here != one.paper]


def narrative_of(
    prepared: Prepared, ids: Sequence[int], boxes: NDArray[np.float64], image_id: str, origin: str
) -> Narrative:
    """Words with their boxes, as people see them. boxes: (T, 4), NaN where a word has no place."""
    spelled = prepared.vocabulary.spell(ids)
    placed = boxes_of_words(boxes, spelled.owners, len(spelled.words))
    return Grounded(spelled.words, placed).narrative(image_id, origin=origin)


Scores = dict[tuple[str, int], dict[str, dict[str, float]]]
"""Row and seed → test → measure → value."""


@dataclass(frozen=True, kw_only=True)
class MitrTraining(TrainedExperiment[MitrRow, MitrOutputs]):
    """Any experiment whose rows are MITRs. scale: how long they learn."""

    scale: MitrScale = field(default_factory=MitrScale)
    measured_as: ClassVar[Any] = MitrOutputs
    checks: ClassVar[int] = 7

    def recipe(self, job: TrainingJob[MitrRow]) -> dict[str, Any]:
        return {
            "task": "mitr",
            "model": {**self.scale.model, **job.row.model},
            "data": {"folder": str(job.data)},
            "train": {**self.scale.train, **job.init_from},
        }

    def measure(self, job: TrainingJob[MitrRow]) -> MitrOutputs:
        model, row = load_run(job.folder, "best").model, job.row
        items = Prepared(job.data).split("test", self.scale.test)
        hidden = row.model.get("trace_mask_rate", self.scale.hidden)
        return outputs_of(model, items, row.tests, self.scale.beams, hidden, row.model.get("guided", 0))

    def bounds(self, prepared: Prepared, metrics: CaptionMetrics) -> dict[str, dict[str, dict[str, float]]]:  # noqa: ARG002
        """Rows that bound what could be gained, which need no training: key → test → measure → value."""
        return {}

    def scores(
        self, outputs: Mapping[TrainingJob[MitrRow], MitrOutputs], progress: Progress
    ) -> tuple[Scores, list[str]]:
        """For each run and test: measure → value; and what could not be measured, for the report."""
        found: Scores = {}
        missing: dict[str, None] = {}
        for folder in dict.fromkeys(job.data for job in outputs):
            prepared = Prepared(folder)
            references = references_of(prepared, prepared.split("test", self.scale.test))
            with CaptionMetrics(references) as metrics:
                for job in [job for job in outputs if job.data == folder]:
                    progress("scoring captions", min(len(found), len(outputs)), len(outputs))
                    found[job.row.key, job.seed] = _scores_of(outputs[job], job, prepared, metrics)
                for key, scores in self.bounds(prepared, metrics).items():
                    found |= {(key, seed): scores for seed in self.seeds}
            missing |= dict.fromkeys(metrics.missing)
        progress("scoring captions", len(outputs), len(outputs))
        return found, list(missing)


def _scores_of(
    made: MitrOutputs, job: TrainingJob[MitrRow], prepared: Prepared, metrics: CaptionMetrics
) -> dict[str, dict[str, float]]:
    """For each test of one run: measure → value, as read from its folder if it was worked out before."""
    found = {kind: dict(made.distances.get(kind, {})) for kind in job.row.tests}
    for kind, said in made.words.items():
        path = job.folder / f"scores-{kind}.json"
        if not path.exists():
            texts = {str(i): prepared.vocabulary.text(ids) for i, ids in enumerate(said)}
            save_measured(metrics.scores(texts), path)
        found[kind] |= load_measured(path, dict[str, float])
    return found
