"""Examples of RILN as TraceVLM learns from them: trajectories in the text become trajectories."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from saywhere.atomic import write_atomic
from saywhere.build.riln.example import DialogueTurn, RilnExample
from saywhere.core.trajectory import from_text
from saywhere.core.types import Progress
from saywhere.models.tracevlm.examples import Exchange, Instruction, Part, instruction_line
from saywhere.models.tracevlm.trajectory import Trajectory

FILES = ("train.jsonl", "validation.jsonl")
_TASKS = {"question": "reason", "dialogue": "dialogue"}
_VALIDATION = 0.05


def instruction_of(example: RilnExample, image: str) -> Instruction:
    """image: the name of its photo's file."""
    turns = tuple(Exchange(turn.role, tuple(_parts(turn))) for turn in example.turns)
    return Instruction(_TASKS[example.task], (image,), turns, id=example.id)


def write_instructions(
    examples: Iterable[RilnExample],
    folder: Path,
    photo: Callable[[str], Path | None],
    progress: Progress | None = None,
    expected: int = 0,
) -> tuple[int, int]:
    """train.jsonl and validation.jsonl, as `recipes/tracevlm-stage2.toml` reads them, and how many went into each.
    All examples of an image are in one of them. photo: where an image's file is, if that is known. expected: how many
    will come, to show how far it is."""
    counts = [0, 0]
    names: dict[str, str] = {}
    with ExitStack() as stack:
        files = [stack.enter_context(write_atomic(folder / name)) for name in FILES]
        for number, one in enumerate(examples, 1):
            if one.image not in names:
                file = photo(one.image)
                names[one.image] = one.image if file is None else file.name
            part = int(_share(one.image) < _VALIDATION)
            files[part].write(instruction_line(instruction_of(one, names[one.image])))
            counts[part] += 1
            if progress is not None:
                progress("instructions", number, max(number, expected))
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
