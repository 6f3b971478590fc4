"""Examples of RILN as TraceVLM learns from them: trajectories in the text become trajectories."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from saywhere.atomic import write_atomic
from saywhere.build.riln.example import RilnExample, Thought
from saywhere.core.trajectory import from_text
from saywhere.core.types import Progress
from saywhere.models.tracevlm.examples import Exchange, Instruction, Part, instruction_line
from saywhere.models.tracevlm.trajectory import Trajectory

FILES = ("train.jsonl", "validation.jsonl")
_TASKS = {"interpretation": "interpret", "grounding": "ground", "reasoning": "reason", "synthesis": "dialogue"}
"""What TraceVLM calls an example's kind: a path is put into words, words are pointed at, something is inferred."""
_VALIDATION = 0.05


def instruction_of(example: RilnExample, image: str) -> Instruction:
    """image: the name of its photo's file. The last answer begins with the claims that it rests on."""
    *before, last = example.turns
    said = [*((turn.role, turn.text) for turn in before), (last.role, _reasoned(last.text, example.reasoning))]
    turns = tuple(Exchange(role, tuple(_parts(text))) for role, text in said)
    return Instruction(_TASKS[example.kind], (image,), turns, id=example.id)


@dataclass(frozen=True, slots=True)
class WrittenInstructions:
    """How many went into each file. absent: images whose photo is not there; they are named without an ending."""

    train: int
    validation: int
    absent: tuple[str, ...]


def write_instructions(
    examples: Iterable[RilnExample],
    folder: Path,
    photos: Path | None,
    photo: Callable[[str], Path | None],
    progress: Progress | None = None,
    expected: int = 0,
) -> WrittenInstructions:
    """train.jsonl and validation.jsonl, as `recipes/tracevlm-stage2.toml` reads them. All examples of an image are in
    one of them. photos: the folder that names start from, as `data.photos` of the recipe; photo: where in it an image's
    file is, if it is there. expected: how many will come, to show how far it is."""
    counts = [0, 0]
    files_of: dict[str, Path | None] = {}
    with ExitStack() as stack:
        files = [stack.enter_context(write_atomic(folder / name)) for name in FILES]
        for number, one in enumerate(examples, 1):
            if one.image not in files_of:
                files_of[one.image] = photo(one.image)
            part = int(_share(one.image) < _VALIDATION)
            name = _name(one.image, files_of[one.image], photos)
            files[part].write(instruction_line(instruction_of(one, name)))
            counts[part] += 1
            if progress is not None:
                progress("instructions", number, max(number, expected))
    absent = tuple(image for image, file in files_of.items() if file is None)
    return WrittenInstructions(counts[0], counts[1], absent)


def _name(image: str, file: Path | None, photos: Path | None) -> str:
    """A video's frames lie in a folder of the video's name: the name of the file alone would be that of others, too."""
    return image if file is None or photos is None else file.relative_to(photos).as_posix()


def _reasoned(answer: str, tree: Thought | None) -> str:
    """The claims of a tree, from what is seen to what follows, then the answer. None that the answer makes itself, and
    none twice."""
    told = _plain(answer)
    steps: list[str] = []
    for claim in _claims(tree) if tree is not None else ():
        if _plain(claim) not in told and claim not in steps:
            steps.append(claim)
    return " ".join([*steps, answer])


def _claims(tree: Thought) -> Iterator[str]:
    for one in tree.because:
        yield from _claims(one)
    yield tree.claim


def _plain(text: str) -> str:
    """To compare: small letters, and no sign at the end."""
    return " ".join(text.casefold().split()).rstrip(".!")


def _parts(text: str) -> Iterator[Part]:
    """The words and the trajectories of a text, in their order."""
    start = 0
    for found in from_text(text):
        if words := text[start : found.span[0]]:
            yield words
        if len(found.points_xy):
            yield Trajectory(found.timed())
        start = found.span[1]
    if rest := text[start:]:
        yield rest


def _share(image: str) -> float:
    """A number in [0, 1) that is always the same for an image."""
    return int.from_bytes(hashlib.sha256(image.encode()).digest()[:8], "big") / 2**64
