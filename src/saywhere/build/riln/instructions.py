"""Examples of RILN as TraceVLM learns from them: trajectories in the text become trajectories."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from saywhere.build.riln.example import DialogueTurn, RilnExample
from saywhere.core.trajectory import from_text
from saywhere.models.tracevlm.examples import Exchange, Instruction, Part, save_instructions
from saywhere.models.tracevlm.trajectory import Trajectory

FILES = ("train.jsonl", "validation.jsonl")
_TASKS = {"question": "reason", "dialogue": "dialogue"}
_VALIDATION = 0.05


def instruction_of(example: RilnExample, image: str) -> Instruction:
    """image: the name of its photo's file."""
    turns = tuple(Exchange(turn.role, tuple(_parts(turn))) for turn in example.turns)
    return Instruction(_TASKS[example.task], (image,), turns, id=example.id)


def write_instructions(
    examples: Iterable[RilnExample], folder: Path, photo: Callable[[str], Path | None]
) -> tuple[int, int]:
    """train.jsonl and validation.jsonl, as `recipes/tracevlm-stage2.toml` reads them, and how many went into each.
    All examples of an image are in one of them. photo: where an image's file is, if that is known."""
    train: list[Instruction] = []
    validation: list[Instruction] = []
    for one in examples:
        part = validation if _share(one.image) < _VALIDATION else train
        file = photo(one.image)
        part.append(instruction_of(one, one.image if file is None else file.name))
    folder.mkdir(parents=True, exist_ok=True)
    counts = [save_instructions(folder / name, some) for name, some in zip(FILES, (train, validation), strict=True)]
    return counts[0], counts[1]


def _parts(turn: DialogueTurn) -> Iterator[Part]:
    """The words and the trajectories of a turn, in their order."""
    start = 0
    for found in from_text(turn.text):
        if words := turn.text[start : found.span[0]]:
            yield words
        if len(found.points_xy):
            yield Trajectory(found.timed())
        start = found.span[1]
    if rest := turn.text[start:]:
        yield rest


def _share(image: str) -> float:
    """A number in [0, 1) that is always the same for an image."""
    return int.from_bytes(hashlib.sha256(image.encode()).digest()[:8], "big") / 2**64
