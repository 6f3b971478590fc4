"""Train one row of MITR's tables with one seed, and measure it on the test narratives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from saywhere.atomic import write_atomic
from saywhere.learn import load_run, train
from saywhere.learn.recipe import Recipe, parse_recipe
from saywhere.metrics import lbm_many
from saywhere.models.common.batches import padding_mask
from saywhere.models.mitr import MITR, Batch, baseline, collate, decode, trace_of
from saywhere.models.mitr.prepared import Prepared
from saywhere.models.search import GenerationConfig, Hypothesis
from saywhere.reproduce.mitr_rows import RowPlan

_MOSTLY_HIDDEN = 0.9


@dataclass(frozen=True, slots=True)
class RunScale:
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


@dataclass(frozen=True, slots=True)
class Job:
    """One row with one seed. start: the run whose weights it starts with, if not with random ones."""

    row: RowPlan
    seed: int
    data: Path
    folder: Path
    scale: RunScale
    start: Path | None = None


class Made(msgspec.Struct, frozen=True):
    """What a trained row made of the test narratives: for each test, ids of words, and boxes (x1, y1, x2, y2)."""

    words: dict[str, list[tuple[int, ...]]]
    boxes: dict[str, list[list[list[float]]]]
    distances: dict[str, dict[str, float]]


def recipe_of(job: Job) -> Recipe:
    """The recipe that a person could run with `saywhere train` to get the same weights."""
    scale = job.scale
    shape = {"width": scale.width, "heads": scale.heads, "feed_forward": 4 * scale.width}
    table: dict[str, Any] = {
        "name": f"{job.row.key}, seed {job.seed}",
        "task": "mitr",
        "seed": job.seed,
        "model": {
            **shape,
            "attention_dropout": 0.0,
            "input_dropout": 0.1,
            "trace_mask_rate": scale.hidden,
            **job.row.model,
        },
        "data": {"folder": str(job.data)},
        "train": {
            "steps": scale.steps,
            "batch_size": scale.batch,
            "lr": scale.lr,
            "optimizer": "adam",
            "clip_norm": 1.0,
            "num_threads": 1,
            "device": "cpu",
            **({} if job.start is None else {"init_from": str(job.start)}),
        },
        "schedule": {"kind": "cosine", "warmup_steps": max(1, scale.steps // 10)},
        "validate": {"every_steps": max(1, scale.steps // 7), "metric": "loss", "at_start": False},
        "checkpoint": {"every_steps": max(1, scale.steps // 7), "keep": 1},
        "log": {"plot": False},
    }
    return parse_recipe(table, f"row {job.row.key}")


def run_job(job: Job) -> Path:
    """Train, measure, and leave made.json in the job's folder. What is there already is not done again."""
    torch.set_num_threads(1)
    path = job.folder / "made.json"
    if not path.exists():
        if train(recipe_of(job), job.folder).status == "interrupted":
            # What half a run made must never be taken for what the whole run makes.
            raise KeyboardInterrupt
        made = measure(load_run(job.folder, "best").model, Prepared(job.data), job)
        with write_atomic(path) as file:
            file.write(msgspec.json.encode(made))
    return path


def training_minutes(jobs: Iterable[Job]) -> float:
    """How long the jobs took to train, added up, whenever that was."""
    ended = [msgspec.json.decode((job.folder / "result.json").read_bytes())["result"] for job in jobs]
    return round(float(sum(one["seconds"] for one in ended)) / 60, 1)


def read_made(path: Path) -> Made:
    return msgspec.json.decode(path.read_bytes(), type=Made)


def measure(model: nn.Module, prepared: Prepared, job: Job) -> Made:
    """Everything the row can do, on the test narratives."""
    made = Made({}, {}, {})
    batch = collate(list(prepared.split("test", job.scale.test)))
    how = replace(decode.BEAM, beams=job.scale.beams, max_words=int(batch.lengths.max()) + 4)
    # A model that hardly ever saw the boxes before is asked in the way it learnt.
    hidden = job.row.model.get("trace_mask_rate", job.scale.hidden) >= _MOSTLY_HIDDEN
    model.eval()
    with torch.no_grad():
        for test in job.row.tests:
            said, boxes = _done(model, batch, test, how, hidden, job.row.model.get("guided", 0))
            if said is not None:
                made.words[test] = [one.tokens for one in said]
            if boxes is not None:
                made.boxes[test] = [one.tolist() for one in boxes]
                made.distances[test] = _distances(boxes, batch, paired=test == "trace")
    return made


def _done(
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
