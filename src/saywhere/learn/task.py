"""What a model's training needs from outside the trainer, and nothing else.

A task holds data and settings, never state: the trainer may ask for the same thing twice and must get the same answer.
All randomness comes from the generators it is handed, so that a resumed run sees what an uninterrupted one would have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

import msgspec
import torch
from torch import Tensor, nn


@runtime_checkable
class Items(Protocol):
    """A map-style data set: `items[i]` for 0 <= i < len(items), the same each time."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


class ItemStream(Protocol):
    """Items that can only be read one after another: `iter(stream)` gives all len(stream) of them anew, in the same
    order each time. Whatever has no `__getitem__` is taken for one.

    Every process and every worker reads the whole stream and collates its own items, and a resumed run reads again
    what was read in its epoch before: items should be cheap to pass over, and what is costly belongs into `collate`.
    """

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...


class Task(Protocol):
    """One thing to learn: a model, its data, its losses and its measure of success."""

    def build(self, generator: torch.Generator) -> nn.Module:
        """A new model on the CPU. torch's global generator is seeded too, because modules initialise from it."""
        ...

    def train_items(self) -> Items | ItemStream:
        """What is learnt from. The trainer decides the order: of a stream, within what its buffer holds."""
        ...

    def collate(self, items: Sequence[Any], generator: torch.Generator) -> Any:
        """Some items as one batch: tensors, containers of them, or anything with `.to(device)`. May run in a worker."""
        ...

    def losses(self, model: nn.Module, batch: Any, generator: torch.Generator) -> Mapping[str, Tensor]:
        """Scalars: "loss" is minimised, the rest are only logged. Each is a mean over something in the batch."""
        ...

    def counts(self, batch: Any) -> Mapping[str, float]:
        """For each term of "loss", which is their sum: over how many items, words, boxes … of the batch it averages.

        With it a batch that is cut into micro-batches (accumulation, several processes) has exactly the loss and the
        gradient of the whole. A loss that is itself one mean says {"loss": …}. Empty, if the loss compares the items
        of a batch with each other: such a batch is never cut.
        """
        ...

    def validate(self, model: nn.Module) -> Mapping[str, float]:
        """How good the model is on held-out data. It is called in eval mode, without gradients, in full precision."""
        ...

    def fingerprint(self) -> str:
        """Tells the data apart from other data: changes when any item or its order does."""
        ...


@runtime_checkable
class SharedValidation(Protocol):
    """A task whose measures are all means over held-out things, so that processes can validate a part each.

    A task that does not offer this is validated by the first process alone.
    """

    def validation_sums(self, model: nn.Module, part: int = 0, parts: int = 1) -> Mapping[str, tuple[float, float]]:
        """For each measure its sum and over how many things, of one of some parts; added over all parts they give what
        `validate` gives. A part may be empty, and lack measures that others have. Called as `validate` is."""
        ...


class TaskClass(Protocol):
    """How a task is made from a recipe: two msgspec Structs describe its tables, and it is built from their values.

    A field of type `pathlib.Path` names an input file or folder: it must exist before work starts.
    """

    model_section: ClassVar[type[msgspec.Struct]]
    data_section: ClassVar[type[msgspec.Struct]]

    def __call__(self, model: Any, data: Any) -> Task: ...
