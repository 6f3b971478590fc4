"""Train one network of the scenes experiment with one seed, and measure it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from saywhere.learn import load_run, train
from saywhere.learn.recipe import Recipe, parse_recipe
from saywhere.models.oscar import LevelCaptions
from saywhere.models.oscar.task import as_oscar
from saywhere.reproduce.scenes_measure import Found, HeldOutScenes, MeasureScale, load_found, measure_all, save_found
from saywhere.reproduce.scenes_rows import SceneRow

FOUND, MODEL = "found.json", "model"


@dataclass(frozen=True, slots=True)
class ScenesScale:
    """How long networks learn, and their shape. steps: of captions of objects. tuning: of what comes after, or of
    captions of scenes alone. every_word: learn from every word of a caption at once, not from at most 3 hidden ones."""

    steps: int = 1200
    tuning: int = 400
    batch: int = 48
    lr: float = 1e-3
    tuning_lr: float = 5e-4
    width: int = 128
    layers: int = 3
    heads: int = 4
    dropout: float = 0.1
    every_word: bool = True
    measure: MeasureScale = field(default_factory=MeasureScale)


@dataclass(frozen=True, slots=True)
class ScenesJob:
    """One row with one seed. start: the job whose network it goes on from, if there is one."""

    row: SceneRow
    seed: int
    data: Path
    folder: Path
    scale: ScenesScale
    start: Path | None = None

    @property
    def steps(self) -> int:
        return self.scale.steps if self.row.is_first else self.scale.tuning

    @property
    def is_done(self) -> bool:
        return (self.folder / FOUND).exists()


def recipe_of(job: ScenesJob) -> Recipe:
    """The recipe that a person could run with `saywhere train` to get the same weights."""
    scale, steps, levels = job.scale, job.steps, list(job.row.taught)
    model: dict[str, Any] = {"levels": levels, "every_word": scale.every_word}
    model |= {"dropout": scale.dropout, "attention_dropout": 0.0}
    if job.start is None:
        sizes = {"width": scale.width, "layers": scale.layers, "heads": scale.heads}
        model |= {**sizes, "feed_forward": 4 * scale.width}
    else:
        model["start"] = str(job.start / MODEL)
    table: dict[str, Any] = {
        "name": f"{job.row.key}, seed {job.seed}",
        "task": "oscar",
        "seed": job.seed,
        "model": model,
        "data": {"folder": str(job.data), "levels": levels},
        "train": {
            "steps": steps,
            "batch_size": scale.batch,
            "lr": scale.lr if job.start is None else scale.tuning_lr,
            "weight_decay": 0.05,
            "clip_norm": 1.0,
            "num_threads": 1,
            "device": "cpu",
        },
        "schedule": {"kind": "cosine", "warmup_steps": max(1, steps // 10)},
        "validate": {"every_steps": max(1, steps // 5), "metric": "loss", "mode": "min", "at_start": False},
        "checkpoint": {"every_steps": max(1, steps // 5), "keep": 1},
        "log": {"plot": False},
    }
    return parse_recipe(table, f"row {job.row.key}")


def run_scenes_job(job: ScenesJob) -> Path:
    """Train, keep the network in the job's folder, measure it. What is there already is not done again."""
    torch.set_num_threads(1)
    if not job.is_done:
        if train(recipe_of(job), job.folder).status == "interrupted":
            # What half a run made must never be taken for what the whole run makes.
            raise KeyboardInterrupt
        model = as_oscar(load_run(job.folder, "best").model).eval()
        model.save_pretrained(job.folder / MODEL)
        test = held_out_scenes(job.data, job.scale.measure)
        save_found(measure_all(model, test, job.row.taught, job.row.asked, job.seed), job.folder / FOUND)
    return job.folder / FOUND


def held_out_scenes(data: Path, scale: MeasureScale) -> HeldOutScenes:
    """The test images of a prepared folder, with their places."""
    folder = LevelCaptions(data)
    return HeldOutScenes(folder, folder.about["places"], scale)


def found_of(job: ScenesJob) -> Found:
    """What a finished job was measured at."""
    return load_found(job.folder / FOUND)
