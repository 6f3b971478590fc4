"""Train MITRs and their baselines, and measure what they make of the test narratives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from saywhere.core import Narrative
from saywhere.core.types import Progress
from saywhere.learn import load_run
from saywhere.metrics import lbm_many
from saywhere.models.common.batches import padding_mask
from saywhere.models.mitr import MITR, Batch, Grounded, baseline, collate, decode, trace_of
from saywhere.models.mitr.prepared import NarrativeItems, Prepared
from saywhere.models.mitr.skills import boxes_of_words
from saywhere.models.search import GenerationConfig, Hypothesis
from saywhere.reproduce.caption_metrics import CaptionMetrics
from saywhere.reproduce.experiment import RowPlan, TrainedExperiment, TrainingJob, load_measured, save_measured
from saywhere.reproduce.tables import MeasureColumn

LBM = (MeasureColumn("LBM (k=0)", lower_is_better=True), MeasureColumn("LBM (k=1)", lower_is_better=True))
_MOSTLY_HIDDEN = 0.9


@dataclass(frozen=True, kw_only=True)
class MitrRow(RowPlan):
    """One model. model: keys of the recipe's [model]. tests: what it can do. paper: measure → what the paper reports.

    guided: whether it learns from captions with key boxes, not from narratives.
    """

    model: dict[str, Any]
    tests: tuple[str, ...]
    paper: dict[str, float] = field(default_factory=dict)
    guided: bool = False


@dataclass(frozen=True, slots=True)
class MitrScale:
    """How long each row learns, and how large it is.

    hidden: how many of the boxes before it Task 1 does not see while it learns. With all of them in view, as published,
    it learnt to copy the box before and pointed nowhere by itself; docs/log.md has the figures.
    """

    steps: int = 600
    batch: int = 20
    width: int = 64
    heads: int = 4
    lr: float = 3e-3
    beams: int = 3
    test: int = 300
    hidden: float = 1.0


class MitrOutputs(msgspec.Struct, frozen=True):
    """What a row made of the test narratives: for each test, ids of words, boxes (x1, y1, x2, y2), and distances."""

    words: dict[str, list[tuple[int, ...]]]
    boxes: dict[str, list[list[list[float]]]]
    distances: dict[str, dict[str, float]]


def outputs_of(
    model: nn.Module, items: NarrativeItems, tests: Sequence[str], beams: int, hidden_rate: float, guided: int
) -> MitrOutputs:
    """Everything the row can do. hidden_rate: how many of the boxes before it Task 1 did not see while it learnt."""
    made = MitrOutputs({}, {}, {})
    batch = collate(list(items))
    how = replace(decode.BEAM, beams=beams, max_words=int(batch.lengths.max()) + 4)
    # A model that hardly ever saw the boxes before is asked in the way it learnt.
    hidden = hidden_rate >= _MOSTLY_HIDDEN
    model.eval()
    with torch.no_grad():
        for test in tests:
            said, boxes = _outputs(model, batch, test, how, hidden, guided)
            if said is not None:
                made.words[test] = [one.tokens for one in said]
            if boxes is not None:
                made.boxes[test] = [one.tolist() for one in boxes]
                made.distances[test] = _distances(boxes, batch, paired=test == "trace")
    return made


def _outputs(
    model: nn.Module, batch: Batch, test: str, how: GenerationConfig, hidden: bool, guided: int
) -> tuple[list[Hypothesis] | None, list[NDArray[np.float64]] | None]:
    if isinstance(model, baseline.Baseline):
        source = model.encode(batch.images, batch.words, *trace_of(batch, guided))
        if test == "trace":
            return None, _cut(baseline.trace(model, source, batch.lengths, hidden=hidden), batch)
        return baseline.caption(model, source, how), None
    if not isinstance(model, MITR):
        raise TypeError(f"a row's model is a MITR or a baseline, not {type(model).__name__}")
    memory = model.encode_images(batch.images)
    if test == "trace":
        return None, _cut(decode.trace(model, memory, batch.words, batch.lengths, hidden=hidden), batch)
    if test in ("caption", "guided"):
        along, count = trace_of(batch, guided)
        return decode.caption(model, memory, along, padding_mask(count, along.shape[1]), how), None
    said = decode.joint(model, memory, how)
    boxes = [np.empty((0, 4)) if one.outputs is None else one.outputs[:, :4].double().numpy() for one in said]
    return said, boxes


def _cut(boxes: torch.Tensor, batch: Batch) -> list[NDArray[np.float64]]:
    return [one[:length, :4].double().numpy() for one, length in zip(boxes, batch.lengths.tolist(), strict=True)]


def _distances(boxes: list[NDArray[np.float64]], batch: Batch, *, paired: bool) -> dict[str, float]:
    """LBM to the located words' boxes. paired: boxes are for the same words, so only the located ones are compared.

    A narration that said nothing is compared as one box, the whole image.
    """
    truths, guesses = [], []
    for guess, true, located in zip(boxes, batch.boxes, batch.located, strict=True):
        known = located[: len(guess)].numpy() if paired else slice(None)
        truths.append(true[located][:, :4].double().numpy())
        guesses.append(guess[known] if len(guess) else np.array([[0.0, 0.0, 1.0, 1.0]]))
    return {f"LBM (k={k})": float(lbm_many(guesses, truths, k).mean()) for k in (0, 1)}


def references_of(prepared: Prepared, items: NarrativeItems) -> dict[str, list[str]]:
    """What was said, by the narrative's number."""
    return {str(i): [prepared.vocabulary.text(items[i].words.tolist())] for i in range(len(items))}


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
        scale = self.scale
        shape = {"width": scale.width, "heads": scale.heads, "feed_forward": 4 * scale.width}
        noise = {"attention_dropout": 0.0, "input_dropout": 0.1, "trace_mask_rate": scale.hidden}
        train = {"steps": scale.steps, "batch_size": scale.batch, "lr": scale.lr, "optimizer": "adam", "clip_norm": 1.0}
        return {
            "task": "mitr",
            "model": {**shape, **noise, **job.row.model},
            "data": {"folder": str(job.data)},
            "train": {**train, **job.init_from},
        }

    def measure(self, job: TrainingJob[MitrRow]) -> MitrOutputs:
        model, row = load_run(job.folder, "best").model, job.row
        items = Prepared(job.data).split("test", self.scale.test)
        hidden = row.model.get("trace_mask_rate", self.scale.hidden)
        return outputs_of(model, items, row.tests, self.scale.beams, hidden, row.model.get("guided", 0))

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
                    progress("scoring captions", len(found), len(outputs))
                    found[job.row.key, job.seed] = _scores_of(outputs[job], job, prepared, metrics)
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
