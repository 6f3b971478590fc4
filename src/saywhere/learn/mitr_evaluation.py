"""What a MITR or a baseline makes of held-out narratives, and how good that is: for `saywhere eval` and reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidFile
from saywhere.core.types import Progress
from saywhere.metrics import caption_scores, lbm_many
from saywhere.models.common.batches import padding_mask
from saywhere.models.mitr import MITR, Batch, baseline, collate, decode, trace_of
from saywhere.models.mitr.prepared import NarrativeItems, Prepared
from saywhere.models.mitr.task import MitrTask
from saywhere.models.search import GenerationConfig, Hypothesis

CAPTION_METRICS = ("bleu", "rouge_l", "cider")
_MOSTLY_HIDDEN = 0.9
_BATCH = 50


def quiet(doing: str, done: int, total: int) -> None:
    """Shows no progress."""


class MitrOutputs(msgspec.Struct, frozen=True):
    """What a row made of the test narratives: for each test, ids of words, boxes (x1, y1, x2, y2), and distances."""

    words: dict[str, list[tuple[int, ...]]]
    boxes: dict[str, list[list[list[float]]]]
    distances: dict[str, dict[str, float]]


def outputs_of(
    model: nn.Module,
    items: NarrativeItems,
    tests: Sequence[str],
    beams: int,
    hidden_rate: float,
    guided: int,
    progress: Progress = quiet,
) -> MitrOutputs:
    """Everything the row can do. hidden_rate: how many of the boxes before it Task 1 did not see while it learnt."""
    made = MitrOutputs({}, {}, {})
    longest = max(len(one.words) for one in items)
    how = replace(decode.BEAM, beams=beams, max_words=longest + 4)
    # A model that hardly ever saw the boxes before is asked in the way it learnt.
    hidden = hidden_rate >= _MOSTLY_HIDDEN
    far: dict[str, list[NDArray[np.float64]]] = {}
    model.eval()
    with torch.no_grad():
        for first in range(0, len(items), _BATCH):
            progress("narratives", first, len(items))
            batch = collate(list(items[first : first + _BATCH]))
            for test in tests:
                said, boxes = _outputs(model, batch, test, how, hidden, guided)
                if said is not None:
                    made.words.setdefault(test, []).extend(one.tokens for one in said)
                if boxes is not None:
                    made.boxes.setdefault(test, []).extend(one.tolist() for one in boxes)
                    far.setdefault(test, []).append(_distances(boxes, batch, paired=test == "trace"))
    progress("narratives", len(items), len(items))
    for test, found in far.items():
        means = np.concatenate(found, axis=1).mean(axis=1)
        made.distances[test] = {f"LBM (k={k})": float(mean) for k, mean in enumerate(means)}
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


def _distances(boxes: list[NDArray[np.float64]], batch: Batch, *, paired: bool) -> NDArray[np.float64]:
    """(2, B) LBM to the located words' boxes with k = 0 and 1, without narratives that have none.

    paired: boxes are for the same words, so only the located ones are compared. A narration that said nothing is
    compared as one box, the whole image.
    """
    truths, guesses = [], []
    for guess, true, located in zip(boxes, batch.boxes, batch.located, strict=True):
        if not located.any():
            continue
        known = located[: len(guess)].numpy() if paired else slice(None)
        truths.append(true[located][:, :4].double().numpy())
        guesses.append(guess[known] if len(guess) else np.array([[0.0, 0.0, 1.0, 1.0]]))
    return np.stack([lbm_many(guesses, truths, k) for k in (0, 1)])


def references_of(prepared: Prepared, items: NarrativeItems) -> dict[str, list[str]]:
    """What was said, by the narrative's number."""
    return {str(i): [prepared.vocabulary.text(items[i].words.tolist())] for i in range(len(items))}


def tests_of(task: MitrTask) -> tuple[str, ...]:
    """What a run learnt to do, and so can be tested at: "trace", "caption" (or "guided"), "joint"."""
    along = "guided" if task.settings.guided else "caption"
    if task.baseline:
        return {"trace": ("trace",), "caption": (along,), "describe": ("joint",)}[task.baseline]
    learnt = {"trace": task.settings.trace, along: task.settings.caption, "joint": task.settings.joint}
    return tuple(name for name, weight in learnt.items() if weight)


def items_of(prepared: Prepared, split: str | Callable[[str], bool], most: int | None = None) -> NarrativeItems:
    """The narratives of a split, or those whose image's name passes, whichever split they are in."""
    if isinstance(split, str):
        return prepared.split(split, most)
    chosen = [i for i in range(len(prepared)) if split(prepared.image_name(i))]
    if not chosen:
        raise InvalidFile(prepared.folder, "holds no narrative of the listed images")
    return NarrativeItems(prepared, chosen[:most])


@dataclass(frozen=True, slots=True)
class MitrEvaluation:
    """scores: test and measure, as in "trace LBM (k=0)" → value. predictions: one for each narrative and test.

    narratives: how many were tested. learnt_from: how many of them the run was trained on; their scores are no test.
    """

    scores: dict[str, float]
    predictions: list[dict[str, Any]]
    narratives: int
    learnt_from: int


def evaluate_mitr(
    model: nn.Module,
    task: MitrTask,
    items: NarrativeItems,
    beams: int = 5,
    metrics: Sequence[str] = CAPTION_METRICS,
    progress: Progress = quiet,
) -> MitrEvaluation:
    """LBM of traces with k = 0 and 1 and caption measures, for every test that the run learnt for."""
    tests, settings, prepared = tests_of(task), task.settings, task.prepared
    made = outputs_of(model, items, tests, beams, settings.trace_mask_rate, settings.guided, progress)
    scores: dict[str, float] = {}
    references = references_of(prepared, items)
    for test in tests:
        found = dict(made.distances.get(test, {}))
        if test in made.words:
            said = {str(i): prepared.vocabulary.text(ids) for i, ids in enumerate(made.words[test])}
            found |= caption_scores(said, references, metrics)["corpus"]
        scores |= {f"{test} {name}": float(value) for name, value in found.items()}
    learnt = set(task.train_items().indices)
    return MitrEvaluation(scores, _predictions(made, items), len(items), len(learnt & set(items.indices)))


def _predictions(made: MitrOutputs, items: NarrativeItems) -> list[dict[str, Any]]:
    vocabulary = items.folder.vocabulary
    rows = []
    for test in dict.fromkeys((*made.words, *made.boxes)):
        for i in range(len(items)):
            ids = made.words[test][i] if test in made.words else items[i].words.tolist()
            row = {"id": items[i].name, "image": items.image_name(i), "test": test, "caption": vocabulary.text(ids)}
            if test in made.boxes:
                row["boxes_xyxy"] = made.boxes[test][i]
            rows.append(row)
    return rows


def write_predictions(evaluation: MitrEvaluation, path: Path) -> None:
    """One JSON object a line: id, image, test, caption and, if the test points, a box for each word piece."""
    with write_atomic(path) as file:
        for row in evaluation.predictions:
            file.write(msgspec.json.encode(row) + b"\n")
