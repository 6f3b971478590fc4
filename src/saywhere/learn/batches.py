"""Which items are learnt from in which step, by which process, and how they are loaded."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sized
from dataclasses import dataclass
from typing import Any, Self, cast

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from saywhere.core.errors import InvalidValue
from saywhere.learn.processes import Processes
from saywhere.learn.randomness import generator_for, seed_globals
from saywhere.learn.recipe import Train
from saywhere.learn.streams import StreamReader
from saywhere.learn.task import Items, ItemStream, Task


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Part of a step's batch.

    step: from 0. number: of the micro-batch, over all processes. indices: its items, or where they stand in the order
    of a stream's epoch. batch_items: of the whole batch.
    weight: its share of the batch; 0 for the stand-in of a process that got no items of a short batch.
    """

    step: int
    number: int
    indices: tuple[int, ...]
    batch_items: int
    weight: float


@dataclass(frozen=True, slots=True)
class LoadedMicroBatch:
    """A micro-batch with its collated batch."""

    micro_batch: MicroBatch
    batch: Any


@dataclass(frozen=True, slots=True)
class Plan:
    """The order of the whole run: a pure function of the seed and the sizes.

    batch_size: items per step over all processes. The last batch of an epoch holds what is left. buffer: of a stream,
    how many items wait to be drawn from; None for items that are found by their index.
    """

    items: int
    batch_size: int
    seed: int
    buffer: int | None = None

    def __post_init__(self) -> None:
        if self.items < 1:
            raise InvalidValue("the training data", "has no items")

    @classmethod
    def of(cls, items: Items | ItemStream, settings: Train, seed: int) -> Self:
        """The order in which a recipe's settings go through these items."""
        return cls(len(items), settings.batch_size, seed, None if isinstance(items, Items) else settings.shuffle_buffer)

    @property
    def steps_per_epoch(self) -> int:
        return -(-self.items // self.batch_size)

    def epoch_order(self, epoch: int) -> list[int]:
        """All items in this epoch's order, which depends on the seed and the epoch alone; a stream has its own."""
        if self.buffer is not None:
            return list(range(self.items))
        order = torch.randperm(self.items, generator=generator_for(self.seed, "order", epoch))
        return cast(list[int], order.tolist())

    def steps(self, first: int, end: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Every step from `first` to before `end` with the items of its whole batch."""
        epoch, order = -1, list[int]()
        for step in range(first, end):
            if step // self.steps_per_epoch != epoch:
                epoch = step // self.steps_per_epoch
                order = self.epoch_order(epoch)
            start = step % self.steps_per_epoch * self.batch_size
            yield step, tuple(order[start : start + self.batch_size])


def micro_batches_of(step: int, batch: tuple[int, ...], processes: Processes, accumulate: int) -> list[MicroBatch]:
    """The micro-batches of this process: neighbouring parts of the batch, as equal in size as can be."""
    total = processes.size * accumulate
    micro_batches = []
    for number in range(processes.rank * accumulate, (processes.rank + 1) * accumulate):
        indices = batch[len(batch) * number // total : len(batch) * (number + 1) // total]
        if indices:
            micro_batches.append(MicroBatch(step, number, indices, len(batch), len(indices) / len(batch)))
    # Every process must have terms to add to the others' sums, so one without items computes an item for nothing.
    return micro_batches or [MicroBatch(step, processes.rank * accumulate, batch[:1], len(batch), 0.0)]


class _MicroBatchSampler(Sampler[list[MicroBatch]]):
    def __init__(self, plan: Plan, first: int, end: int, processes: Processes, accumulate: int) -> None:
        self._steps = plan, first, end
        self._cut = processes, accumulate

    def __iter__(self) -> Iterator[list[MicroBatch]]:
        plan, first, end = self._steps
        for step, batch in plan.steps(first, end):
            yield micro_batches_of(step, batch, *self._cut)


class _MicroBatchDataset(Dataset[list[LoadedMicroBatch]], Sized):
    """Loads a step's micro-batches; runs in the trainer or in a worker, with the same result."""

    def __init__(self, task: Task, items: Items | ItemStream, plan: Plan) -> None:
        self._task, self._plan, self._seed = task, plan, plan.seed
        self._items = items if isinstance(items, Items) else StreamReader(items, plan.buffer or 1, plan.seed)

    def __len__(self) -> int:
        return self._plan.items

    def __getitem__(self, micro_batches: list[MicroBatch]) -> list[LoadedMicroBatch]:
        loaded = []
        for micro_batch in micro_batches:
            seed_globals(self._seed, "data", micro_batch.step, micro_batch.number)
            generator = generator_for(self._seed, "collate", micro_batch.step, micro_batch.number)
            items = [self._item(micro_batch.step, index) for index in micro_batch.indices]
            loaded.append(LoadedMicroBatch(micro_batch, self._task.collate(items, generator)))
        return loaded

    def _item(self, step: int, index: int) -> Any:
        if isinstance(self._items, StreamReader):
            return self._items.item(step // self._plan.steps_per_epoch, index)
        return self._items[index]


def _identity(loaded: list[LoadedMicroBatch]) -> list[LoadedMicroBatch]:
    return loaded


def _leave_signals_to_the_trainer(_worker: int) -> None:
    """A worker must not die of the Ctrl-C that the trainer answers with a checkpoint, but must die when told to."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def load_steps(
    task: Task,
    items: Items | ItemStream,
    plan: Plan,
    first: int,
    end: int,
    processes: Processes,
    accumulate: int,
    workers: int,
) -> Iterator[list[LoadedMicroBatch]]:
    """This process's micro-batches of every step from `first` to before `end`, loaded ahead if there are workers."""
    loader = DataLoader(
        _MicroBatchDataset(task, items, plan),
        sampler=_MicroBatchSampler(plan, first, end, processes, accumulate),
        batch_size=None,
        collate_fn=_identity,
        num_workers=workers,
        worker_init_fn=_leave_signals_to_the_trainer,
        generator=generator_for(plan.seed, "workers"),
    )
    return iter(loader)


def to_device(batch: Any, device: torch.device) -> Any:
    """A batch with all that has `.to` on the device: tensors and such objects, also inside dicts, lists and tuples."""
    if device.type == "cpu":
        return batch
    if hasattr(batch, "to"):
        return batch.to(device)
    if isinstance(batch, dict):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_device(value, device) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(to_device(value, device) for value in batch)
    return batch
