"""The order of items, and how a batch is shared out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core.errors import InvalidValue
from saywhere.learn import Recipe, make_task
from saywhere.learn.batches import LoadedMicroBatch, Plan, load_steps, micro_batches_of, to_device
from saywhere.learn.processes import Processes
from saywhere.learn.randomness import derived_seed


@given(items=st.integers(1, 40), batch_size=st.integers(1, 50), seed=st.integers(0, 5), first=st.integers(0, 30))
def test_every_epoch_has_each_item_once_and_a_late_start_changes_nothing(
    items: int, batch_size: int, seed: int, first: int
) -> None:
    plan = Plan(items, batch_size, seed)
    end = 3 * plan.steps_per_epoch
    steps = list(plan.steps(0, end))
    for epoch in range(3):
        epoch_steps = steps[epoch * plan.steps_per_epoch : (epoch + 1) * plan.steps_per_epoch]
        assert sorted(i for _, batch in epoch_steps for i in batch) == list(range(items))
    assert list(plan.steps(first, end)) == steps[first:]


def test_epochs_and_seeds_have_different_orders() -> None:
    orders = {tuple(Plan(30, 4, seed).epoch_order(epoch)) for seed in range(3) for epoch in range(3)}
    assert len(orders) == 9


@given(batch=st.lists(st.integers(), min_size=1, max_size=20), size=st.integers(1, 4), accumulate=st.integers(1, 4))
def test_processes_and_pieces_share_a_batch_out_whole(batch: list[int], size: int, accumulate: int) -> None:
    micro_batches = [
        p for rank in range(size) for p in micro_batches_of(7, tuple(batch), Processes(rank, size), accumulate)
    ]
    real = [micro_batch for micro_batch in micro_batches if micro_batch.weight]
    assert [index for micro_batch in real for index in micro_batch.indices] == batch
    assert sum(micro_batch.weight for micro_batch in micro_batches) == pytest.approx(1)
    assert all(any(micro_batches_of(7, tuple(batch), Processes(rank, size), accumulate)) for rank in range(size))
    assert max(len(p.indices) for p in real) - min(len(p.indices) for p in real) <= 1 or len(batch) < size * accumulate


def test_data_without_items_is_refused() -> None:
    with pytest.raises(InvalidValue, match="the training data: has no items"):
        Plan(0, 4, 0)


def _load(recipe: Recipe, workers: int) -> list[list[LoadedMicroBatch]]:
    task = make_task(recipe)
    return list(load_steps(task, task.train_items(), Plan(20, 8, 1), 2, 6, Processes(), 2, workers))


def test_workers_load_what_the_trainer_would_have_loaded(tiny: Callable[..., Recipe]) -> None:
    alone, helped = _load(tiny(), 0), _load(tiny(), 1)
    assert [micro_batch.micro_batch for step in alone for micro_batch in step] == [
        micro_batch.micro_batch for step in helped for micro_batch in step
    ]
    for one, other in zip(alone, helped, strict=True):
        for a, b in zip(one, other, strict=True):
            assert torch.equal(a.batch["x"], b.batch["x"])
            assert torch.equal(a.batch["y"], b.batch["y"])


def test_augmentation_differs_from_step_to_step(tiny: Callable[..., Recipe]) -> None:
    noisy, clean = _load(tiny(), 0), _load(tiny("data.jitter=0.0"), 0)
    noise = [a.batch["x"] - b.batch["x"] for x, y in zip(noisy, clean, strict=True) for a, b in zip(x, y, strict=True)]
    assert all(float(n.abs().max()) > 0 for n in noise)
    assert len({round(float(n.flatten()[0]), 6) for n in noise}) == len(noise)


def test_batches_move_to_the_device_with_all_they_hold() -> None:
    meta = torch.device("meta")
    moved = to_device({"a": torch.zeros(2), "b": [torch.zeros(1), (torch.zeros(1), "text")], "c": 3}, meta)
    assert moved["a"].device == moved["b"][0].device == moved["b"][1][0].device == meta
    assert (moved["b"][1][1], moved["c"]) == ("text", 3)


@given(st.integers(0, 2**40), st.integers(0, 1000), st.integers(0, 1000))
def test_seeds_of_different_purposes_and_numbers_differ(seed: int, a: int, b: int) -> None:
    seeds = [
        derived_seed(seed, "noise", a, b),
        derived_seed(seed, "data", a, b),
        derived_seed(seed, "noise", a, b + 1),
        derived_seed(seed + 1, "noise", a, b),
        derived_seed(seed, "noise", a),
    ]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= s < 2**63 for s in seeds)
