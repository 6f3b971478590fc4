"""How the part of a model that tells photos apart is made: from what the eye's trunk gave, an eye, and captions.

    windows of hidden states, things found, second looks → a network trained by recipes/matching.toml → matching/

Every step goes on where it stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from saywhere.build.eye_seen import SeenStore, write_seen
from saywhere.build.parts import install_part
from saywhere.core.types import Progress
from saywhere.learn import train_to_end
from saywhere.learn.recipe import Recipe, parse_recipe
from saywhere.models.eye.features import AUXILIARY, CAPTIONS, CAPTIONS_KIND
from saywhere.models.patchioner.matching import Matcher, windows_of
from saywhere.models.patchioner.matching_task import WINDOWS_FIELDS, WINDOWS_KIND, MatchTraining
from saywhere.store import Store
from saywhere.vision.eye import Seen

WINDOWS, RUN, PART = "windows", "run", "matching"
"""What a build's folder holds: `PART` is for the model, the rest may be thrown away."""


@dataclass(frozen=True, slots=True)
class MatchingScale:
    """steps, batch: of the training. bf16: compute in it, which is three times faster on processors that have it."""

    steps: int = 2000
    batch: int = 256
    rate: float = 6e-4
    bf16: bool = True
    seed: int = 0


def build_matching(features: Path, eye: Path, out: Path, scale: MatchingScale, progress: Progress) -> Path:
    """Write out/matching, a part of a model. features: what `saywhere build eye` wrote. eye: a trained one's folder."""
    see_windows(features, eye, out / WINDOWS, progress, bf16=scale.bf16)
    progress("learning to tell photos apart", 0, 1)
    learnt = train_to_end(matching_recipe(features, out / WINDOWS, scale), out / RUN, MatchTraining)
    learnt.save_pretrained(out / PART)
    return out / PART


def see_windows(features: Path, eye: Path, out: Path, progress: Progress, *, bf16: bool = True) -> int:
    """Write windows of hidden states of all photos that people told of, or go on with it; how many were left out."""

    def row_of(_photo: str, seen: Seen) -> dict[str, Any]:
        windows, centres = windows_of(seen.states[0].float().numpy())
        contrast = seen.contrast[0].float().numpy()
        return {"windows": windows.astype(np.float16), "centres": centres, "contrast": contrast}

    photos = [row.key for row in Store(features / CAPTIONS, CAPTIONS_KIND)]
    target = SeenStore(out, WINDOWS_KIND, WINDOWS_FIELDS, "seeing windows")
    return write_seen(features, eye, photos, target, row_of, progress, bf16=bf16)


def install_matching(part: Path, model: Path) -> None:
    """Put a trained part into a model's folder, in place of one that was there, and name it in seer.json."""
    matcher = Matcher.from_pretrained(part)
    install_part(part, model, matching=part.name, auxiliary=matcher.reads_auxiliary)


def matching_recipe(features: Path, windows: Path, scale: MatchingScale) -> Recipe:
    """recipes/matching.toml for these folders."""
    often = max(1, scale.steps // 10)
    table: dict[str, Any] = {
        "name": "telling photos apart",
        "task": "patchioner-matching",
        "seed": scale.seed,
        "data": {"folder": str(features), "windows": str(windows), "auxiliary": (features / AUXILIARY).is_dir()},
        "train": {
            "steps": scale.steps,
            "batch_size": scale.batch,
            "lr": scale.rate,
            "optimizer": "adamw",
            "weight_decay": 0.05,
            "decay_norms_and_biases": False,
            "clip_norm": 2.0,
            "ema_decay": 0.997,
            "precision": "bf16" if scale.bf16 else "fp32",
        },
        "schedule": {"kind": "cosine", "warmup_steps": max(1, scale.steps // 30), "floor": 0.02},
        "validate": {"metric": "r1", "mode": "max", "every_steps": often},
        "checkpoint": {"every_steps": often},
    }
    return parse_recipe(table, "matching")
