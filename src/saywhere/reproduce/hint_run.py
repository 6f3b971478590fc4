"""Train one row of the HINT experiment with one seed, and measure it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from saywhere.learn import StepDone, load_run, read_log, train
from saywhere.learn.recipe import Recipe, parse_recipe
from saywhere.metrics import caption_scores
from saywhere.models.updown.prepared import Captions, Questions
from saywhere.models.updown.task import as_captioner, as_vqa
from saywhere.reproduce.hint_measure import accuracies, captioning, grounding, with_attention, written
from saywhere.reproduce.hint_photos import POPE
from saywhere.reproduce.hint_rows import BASE, HintRow
from saywhere.reproduce.results import load_scores, save_scores

SCORES = "scores.json"
VQA, CAPTION = "vqa", "caption"


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


@dataclass(frozen=True, slots=True)
class HintJob:
    """One row with one seed. kind: `VQA` or `CAPTION`. start: the base that it goes on from, if it is not the base."""

    kind: str
    row: HintRow
    seed: int
    data: Path
    folder: Path
    scale: HintScale
    start: Path | None = None

    @property
    def steps(self) -> int:
        return self.scale.base_steps if self.start is None else self.scale.steps

    @property
    def is_done(self) -> bool:
        return (self.folder / SCORES).exists()


def recipe_of(job: HintJob) -> Recipe:
    """The recipe that a person could run with `saywhere train` to get the same weights."""
    scale, steps = job.scale, job.steps
    model: dict[str, Any] = {"width": scale.width, "embedding": scale.embedding, "dropout": scale.dropout}
    model |= {"answer_dropout": scale.dropout, "activation": "gelu"} if job.kind == VQA else {"attention": scale.width}
    model["use_boxes"] = True
    if job.row.key != BASE:
        weight = scale.attention_weight if job.row.hint.get("on") == "attention" else scale.weight
        model["hint"] = {"weight": weight, "seed": job.seed, **job.row.hint}
    table: dict[str, Any] = {
        "name": f"{job.kind}, {job.row.key}, seed {job.seed}",
        "task": f"{'updown' if job.row.key == BASE else 'hint'}-{job.kind}",
        "seed": job.seed,
        "model": model,
        "data": {"folder": str(job.data)},
        "train": {
            "steps": steps,
            "batch_size": scale.batch,
            "lr": scale.base_lr if job.start is None else scale.lr,
            "optimizer": "adam",
            "clip_norm": 10.0,
            "num_threads": 1,
            "device": "cpu",
            **({} if job.start is None else {"init_from": str(job.start)}),
        },
        "schedule": {"kind": "cosine", "warmup_steps": max(1, steps // 10)},
        "validate": {
            "every_steps": max(1, steps // 3),
            "metric": "accuracy" if job.kind == VQA else "loss",
            "mode": "max" if job.kind == VQA else "min",
            "at_start": False,
        },
        "checkpoint": {"every_steps": max(1, steps // 3), "keep": 1},
        "log": {"plot": False},
    }
    return parse_recipe(table, f"row {job.row.key}")


def run_hint_job(job: HintJob) -> Path:
    """Train, measure, and leave scores.json in the job's folder. What is there already is not done again."""
    torch.set_num_threads(1)
    if not job.is_done:
        if train(recipe_of(job), job.folder).status == "interrupted":
            # What half a run made must never be taken for what the whole run makes.
            raise KeyboardInterrupt
        save_scores(_measured_answers(job) if job.kind == VQA else _measured_captions(job), job.folder / SCORES)
    return job.folder / SCORES


def scores_of(job: HintJob) -> dict[str, float]:
    """What a finished job was measured at."""
    return load_scores(job.folder / SCORES)


def _measured_answers(job: HintJob) -> dict[str, float]:
    model, questions, scale = as_vqa(load_run(job.folder, "best").model).eval(), Questions(job.data), job.scale
    changed = questions.split("changed")
    splits = {"changed": changed, "same": questions.split("same"), "train": questions.split("train", scale.trained)}
    if POPE in questions.splits:
        splits[POPE] = questions.split(POPE)
    found = accuracies(model, splits)
    return found | grounding(model, with_attention(changed, scale.explained), scale.faithful, job.seed)


def _measured_captions(job: HintJob) -> dict[str, float]:
    model, test = as_captioner(load_run(job.folder, "best").model).eval(), Captions(job.data).split("test")
    references: dict[str, list[str]] = {}
    for i in range(len(test)):
        one = test.caption(i)
        references.setdefault(one.image, []).append(one.text)
    said = caption_scores(written(model, test, job.scale.beams), references, ["bleu", "cider"])["corpus"]
    return {**said, **captioning(model, test, job.scale.explained, job.scale.faithful)}


def step_seconds(job: HintJob) -> list[float]:
    """How long each step took."""
    return [one.seconds for one in read_log(job.folder / "log.jsonl") if isinstance(one, StepDone)]
