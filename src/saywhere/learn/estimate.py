"""What a recipe costs before it is run: computing, memory and GPU hours, from one small step of the real network.

FLOPs are counted by torch as the step runs, forward and backward: matrix products, convolutions and attention. What the
backward pass needs is counted as the network puts it aside. Both are measured on a few items and scaled to the
micro-batch. Hours follow from a GPU's peak and the share of it that trainings usually reach: no more than an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from saywhere.learn.batches import micro_batches_of
from saywhere.learn.processes import Processes
from saywhere.learn.randomness import generator_for, preserved_global_rng, seed_globals
from saywhere.learn.recipe import Recipe
from saywhere.learn.registry import load_recipe, make_task
from saywhere.learn.task import Items, ItemStream, Task

_MOST_MEASURED = 4
_SPARE = 0.9
"""Of a GPU's memory that can be used."""
_BYTES = 4
_MOMENTS = 2
"""Of Adam, for each number that learns."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """By its maker's data sheet, dense. fp32, half: operations a second. gib: memory."""

    fp32: float
    half: float
    gib: float


GPUS = {
    "A100 80 GB": Gpu(19.5e12, 312e12, 80),
    "H100 SXM": Gpu(67e12, 989e12, 80),
    "L4": Gpu(30.3e12, 121e12, 24),
}


@dataclass(frozen=True, slots=True)
class TrainingCost:
    """What a recipe costs. items: of an epoch. batch_size: items of a step. micro_batch: items at a time on each GPU.

    flops_per_item: forward and backward. state_bytes: weights, gradients, moments and moving average, on each GPU; a
        part of them if they are spread over the GPUs, where the layers that compute are whole for a moment.
    activation_bytes: kept for the backward pass of a micro-batch. share: of a GPU's peak that is taken to be reached.
    half: whether it computes in half precision. measured: items that were tried.
    """

    items: int
    batch_size: int
    steps: int
    micro_batch: int
    parameters: int
    trainable: int
    flops_per_item: float
    state_bytes: int
    activation_bytes: float
    half: bool
    measured: int
    share: float = 0.35

    @property
    def flops(self) -> float:
        """Of the whole run."""
        return self.flops_per_item * self.steps * min(self.batch_size, self.items)

    def gpu_hours(self, gpu: Gpu) -> float:
        """Of the whole run, over all GPUs."""
        return self.flops / ((gpu.half if self.half else gpu.fp32) * self.share) / 3600

    def fits(self, gpu: Gpu) -> bool:
        """Whether a micro-batch fits into a GPU's memory."""
        return self.state_bytes + self.activation_bytes <= _SPARE * gpu.gib * 2**30


def estimate(
    recipe: Recipe | str | Path, overrides: Sequence[str] = (), processes: int = 1, items_per_epoch: int | None = None
) -> TrainingCost:
    """What a recipe costs on so many processes. Its data must be there, or a sample of them: items_per_epoch says how
    many there will be. Nothing is written."""
    recipe = recipe.with_overrides(overrides) if isinstance(recipe, Recipe) else load_recipe(recipe, overrides)
    task = make_task(recipe)
    items, settings = task.train_items(), recipe.train
    count = items_per_epoch or len(items)
    steps_per_epoch = math.ceil(count / min(settings.batch_size, count))
    whole = tuple(range(min(settings.batch_size, count)))
    first = micro_batches_of(0, whole, Processes(0, processes), settings.accumulate)[0]
    tried = _first(items, min(len(first.indices), _MOST_MEASURED))
    with preserved_global_rng():
        seed_globals(recipe.seed, "build")
        model = task.build(generator_for(recipe.seed, "build")).train()
        flops, kept = _one_step(task, model, tried, recipe.seed)
    sizes = [(parameter.numel(), parameter.requires_grad) for parameter in model.parameters()]
    learnt = sum(count for count, learns in sizes if learns)
    averages = 1 if settings.ema_decay is not None else 0
    half = settings.precision != "fp32"
    spread = processes if settings.shard else 1
    return TrainingCost(
        items=count,
        batch_size=settings.batch_size,
        steps=recipe.total_steps(steps_per_epoch),
        micro_batch=len(first.indices),
        parameters=sum(count for count, _ in sizes),
        trainable=learnt,
        flops_per_item=flops / len(tried),
        state_bytes=_BYTES * (sum(count for count, _ in sizes) + (1 + _MOMENTS + averages) * learnt) // spread,
        # Half precision keeps half as much, about: norms and losses stay as they are.
        activation_bytes=kept / len(tried) * len(first.indices) * (0.5 if half else 1),
        half=half,
        measured=len(tried),
    )


def _first(items: Items | ItemStream, count: int) -> list[Any]:
    return [items[i] for i in range(count)] if isinstance(items, Items) else list(islice(iter(items), count))


def _one_step(task: Task, model: torch.nn.Module, items: list[Any], seed: int) -> tuple[float, float]:
    """FLOPs of a forward and backward pass, and the bytes that were kept in between, each storage once."""
    batch = task.collate(items, generator_for(seed, "collate"))
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    counter = FlopCounterMode(display=False)
    with counter:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            loss = task.losses(model, batch, generator_for(seed, "losses"))["loss"]
        loss.backward()  # type: ignore[no-untyped-call]  # torch gives it no types
    return float(counter.get_total_flops()), float(sum(kept.values()))
