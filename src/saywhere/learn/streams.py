"""Items that come one after another: their order in an epoch, and how a process finds its own among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import torch

from saywhere.core.errors import InvalidValue
from saywhere.learn.randomness import generator_for
from saywhere.learn.task import ItemStream

_END = object()


def shuffled(items: Iterable[Any], buffer: int, generator: torch.Generator) -> Iterator[Any]:
    """Each time one of the next `buffer` items that were not given yet, drawn at random; with 1, as they come."""
    waiting: list[Any] = []
    for item in items:
        waiting.append(item)
        if len(waiting) == buffer:
            yield _drawn(waiting, generator)
    while waiting:
        yield _drawn(waiting, generator)


def _drawn(waiting: list[Any], generator: torch.Generator) -> Any:
    chosen = int(torch.randint(len(waiting), (), generator=generator))
    waiting[chosen], waiting[-1] = waiting[-1], waiting[chosen]
    return waiting.pop()


class StreamReader:
    """A stream's items by epoch and by place in that epoch's order, which depends on the seed and the epoch alone.

    Steps ask for later and later places, so that each epoch is read once; what lies between is passed over.
    """

    def __init__(self, stream: ItemStream, buffer: int, seed: int) -> None:
        self._stream, self._buffer, self._seed = stream, buffer, seed
        self._epoch, self._next = -1, 0
        self._order: Iterator[Any] = iter(())

    def item(self, epoch: int, place: int) -> Any:
        """InvalidValue if the stream does not have as many items as it says."""
        if epoch != self._epoch or place < self._next:
            generator = generator_for(self._seed, "order", epoch)
            self._epoch, self._next = epoch, 0
            self._order = shuffled(self._stream, self._buffer, generator)
        item = next(islice(self._order, place - self._next, None), _END)
        self._next = place + 1
        is_last = self._next == len(self._stream)
        if item is _END or (is_last and next(self._order, _END) is not _END):
            than = "fewer" if item is _END else "more"
            raise InvalidValue("the training stream", f"gives {than} items than the {len(self._stream):,} that it says")
        return item
