"""An eye for the world that has learnt to name what each patch shows, then stays as it is.

It stands where the paper has a detector trained on Visual Genome: every row of a table reads the same frozen features,
so rows differ only in what they learnt about words and traces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from saywhere.models.mitr.image import GRID, PatchEncoder
from saywhere.world import KINDS, STUFF, Scene
from saywhere.world.colours import PALETTE

_LEAST_SHARE = 0.04
"""A thing is named in a patch of which it covers this much."""


def patch_names(scene: Scene, names: dict[str, int]) -> NDArray[np.float32]:
    """(64, names) 1 where a thing of that kind or colour covers enough of the patch."""
    side = scene.size // GRID
    blocks = scene.labels.reshape(GRID, side, GRID, side).swapaxes(1, 2).reshape(GRID * GRID, -1)
    found = np.zeros((GRID * GRID, len(names)), dtype=np.float32)
    for i, thing in enumerate(scene.things):
        there = (blocks == i + 1).mean(axis=1) >= _LEAST_SHARE
        for name in (thing.kind, f"{thing.colour} thing"):
            if name in names:
                found[there, names[name]] = 1
    return found


def all_names() -> dict[str, int]:
    """Every kind, stuff and colour, numbered."""
    return {name: i for i, name in enumerate([*KINDS, *STUFF, *(f"{colour} thing" for colour in PALETTE)])}


def train_eye(
    scenes: Sequence[Scene],
    steps: int,
    seed: int,
    size: int = 128,
    batch: int = 16,
    on_step: Callable[[int], None] | None = None,
) -> PatchEncoder:
    """Learn to name what patches show."""
    names = all_names()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        eye = PatchEncoder(size, scenes[0].size)
        head = nn.Linear(size, len(names))
    rng = np.random.default_rng(seed)
    optimizer = torch.optim.AdamW([*eye.parameters(), *head.parameters()], lr=2e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=steps, pct_start=0.1)
    for step in range(steps):
        chosen = [scenes[i] for i in rng.integers(len(scenes), size=batch)]
        photos = torch.from_numpy(np.stack([scene.photo for scene in chosen])).permute(0, 3, 1, 2) / 255
        wanted = torch.from_numpy(np.stack([patch_names(scene, names) for scene in chosen]))
        loss = functional.binary_cross_entropy_with_logits(head(functional.relu(eye(photos))), wanted) * len(names)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch declares no types for it
        optimizer.step()
        schedule.step()
        if on_step:
            on_step(step)
    return eye.eval()


@torch.no_grad()
def see(eye: PatchEncoder, scenes: Sequence[Scene], batch: int = 64) -> NDArray[np.float16]:
    """(n, 64, size) features of every patch."""
    seen = []
    for first in range(0, len(scenes), batch):
        photos = np.stack([scene.photo for scene in scenes[first : first + batch]])
        seen.append(functional.relu(eye(torch.from_numpy(photos).permute(0, 3, 1, 2) / 255)).numpy().astype(np.float16))
    return np.concatenate(seen)
