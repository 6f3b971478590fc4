"""Items that can only be read one after another: their order, who learns from which, and going on in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core.errors import InvalidValue
from saywhere.learn import Recipe, train
from saywhere.learn.batches import Plan, load_steps
from saywhere.learn.processes import Processes
from saywhere.learn.streams import StreamReader, shuffled
from tests.learn.conftest import same_end, stop_at

Tiny = Callable[..., Recipe]
STREAM = ("task=tiny-stream", "train.shuffle_buffer=6")


class _Numbers:
    """A stream of numbers that counts how many were read."""

    def __init__(self, count: int) -> None:
        self._count, self.read = count, 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        for number in range(self._count):
            self.read += 1
            yield number


class _AsTheyAre:
    """A task whose batches are its items."""

    def collate(self, items: list[int], _generator: torch.Generator) -> list[int]:
        return items


def _learnt(plan: Plan, first: int, end: int, processes: Processes, accumulate: int = 1) -> list[list[int]]:
    """The items that a process learns from in each step."""
    task: Any = _AsTheyAre()
    steps = load_steps(task, _Numbers(plan.items), plan, first, end, processes, accumulate, 0)
    return [[item for part in step if part.micro_batch.weight for item in part.batch] for step in steps]


@given(
    items=st.integers(1, 30),
    batch_size=st.integers(1, 12),
    buffer=st.integers(1, 40),
    size=st.integers(1, 3),
    accumulate=st.integers(1, 3),
    first=st.integers(0, 20),
)
def test_each_item_is_learnt_from_once_an_epoch_by_one_process_and_a_late_start_changes_nothing(
    items: int, batch_size: int, buffer: int, size: int, accumulate: int, first: int
) -> None:
    plan = Plan(items, batch_size, 4, buffer)
    end = 2 * plan.steps_per_epoch
    alone = _learnt(plan, 0, end, Processes())
    shared = [_learnt(plan, 0, end, Processes(rank, size), accumulate) for rank in range(size)]
    assert [[item for part in step for item in part] for step in zip(*shared, strict=True)] == alone
    for epoch in (alone[: plan.steps_per_epoch], alone[plan.steps_per_epoch :]):
        assert sorted(item for step in epoch for item in step) == list(range(items))
    assert _learnt(plan, first, end, Processes()) == alone[first:]


def test_epochs_have_different_orders_and_a_buffer_of_one_keeps_the_streams() -> None:
    drawn, kept = (_learnt(Plan(20, 5, 4, buffer), 0, 8, Processes()) for buffer in (8, 1))
    assert drawn[:4] != drawn[4:]
    assert kept[:4] == kept[4:] == [list(range(first, first + 5)) for first in range(0, 20, 5)]


@given(count=st.integers(0, 40), buffer=st.integers(1, 12), seed=st.integers(0, 5))
def test_a_buffer_gives_every_item_once_and_none_before_it_can_be_there(count: int, buffer: int, seed: int) -> None:
    given_ = list(shuffled(range(count), buffer, torch.Generator().manual_seed(seed)))
    assert sorted(given_) == list(range(count))
    assert all(item < place + buffer for place, item in enumerate(given_))


def test_an_epoch_is_read_once_and_not_further_than_the_buffer() -> None:
    stream = _Numbers(30)
    reader = StreamReader(stream, 5, 0)
    for place in range(10):
        reader.item(0, place)
    assert stream.read <= 10 + 5
    for place in range(10, 30):
        reader.item(0, place)
    assert stream.read == 30


def test_asking_for_an_earlier_item_gives_what_it_gave_before() -> None:
    reader = StreamReader(_Numbers(12), 4, 0)
    forwards = [reader.item(1, place) for place in range(12)]
    assert [reader.item(1, place) for place in (9, 3, 4)] == [forwards[place] for place in (9, 3, 4)]


@pytest.mark.parametrize("stop", [1, 4, 17])
def test_a_run_on_a_stream_that_was_stopped_ends_as_if_it_had_not_been(tiny: Tiny, tmp_path: Path, stop: int) -> None:
    train(tiny(*STREAM), tmp_path / "whole")
    assert train(tiny(*STREAM), tmp_path / "run", on_event=stop_at(stop)).status == "interrupted"
    assert train(tiny(*STREAM), tmp_path / "run").status == "finished"
    assert same_end(tmp_path / "run", tmp_path / "whole")


def test_workers_read_what_the_trainer_would_have_read(tiny: Tiny, tmp_path: Path) -> None:
    train(tiny(*STREAM), tmp_path / "alone")
    train(tiny(*STREAM, "train.workers=2"), tmp_path / "helped")
    assert same_end(tmp_path / "alone", tmp_path / "helped")


def test_another_buffer_is_another_run(tiny: Tiny, tmp_path: Path) -> None:
    train(tiny(*STREAM), tmp_path, on_event=stop_at(2))
    with pytest.raises(InvalidValue, match=r"train\.shuffle_buffer was 6, is 7"):
        train(tiny(*STREAM, "train.shuffle_buffer=7"), tmp_path)


@pytest.mark.parametrize(("claimed", "than"), [(2, "fewer items than the 22"), (-2, "more items than the 18")])
def test_a_stream_that_does_not_have_what_it_says_is_refused(
    tiny: Tiny, tmp_path: Path, claimed: int, than: str
) -> None:
    with pytest.raises(InvalidValue, match=f"the training stream: gives {than} that it says"):
        train(tiny(*STREAM, f"data.claimed={claimed}"), tmp_path)


def test_what_has_items_by_index_is_no_stream(tiny: Tiny) -> None:
    settings = tiny().train
    plans = [Plan.of(items, settings, 0) for items in ([1, 2], range(2), _Numbers(2))]
    assert [plan.buffer for plan in plans] == [None, None, settings.shuffle_buffer]
