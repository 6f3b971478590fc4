"""The three stages of training, by name: what each trains, and with which settings the paper does it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from saywhere.core.errors import UnknownName


@dataclass(frozen=True, slots=True)
class TrainingStage:
    """trained: parts of the network, see `network.PARTS`. lr, batch_size, epochs: the paper's."""

    trained: tuple[str, ...]
    lr: float
    batch_size: int
    epochs: int


STAGES: Final = {
    "1": TrainingStage(("trajectory", "perception", "tokens"), 4e-5, 256, 1),
    "1.5": TrainingStage(("trajectory", "perception", "tokens", "language", "vision", "segmentation"), 4e-5, 128, 3),
    "2": TrainingStage(("tokens", "language"), 2e-5, 128, 1),
}


def stage(name: str, *, train_perception: bool = False) -> TrainingStage:
    """A stage. train_perception: also in stage 2, as the paper's §3.4 says; §4.1 freezes it there, and so do we."""
    if name not in STAGES:
        raise UnknownName("stage", name, STAGES)
    found = STAGES[name]
    more = ("trajectory", "perception") if train_perception else ()
    return replace(found, trained=(*found.trained, *(part for part in more if part not in found.trained)))
