"""One form for everything that the model learns and is asked: images, and turns made of words, trajectories, boxes
and masks. `asked` words every task's question, in training and afterwards."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import numpy as np

from saywhere.atomic import write_atomic
from saywhere.core import (
    Box,
    InvalidFile,
    InvalidValue,
    Mask,
    Narrative,
    Phrase,
    SaywhereError,
    Trace,
    UnknownName,
    Word,
)
from saywhere.core.run_lengths import mask_of_runs, runs_of
from saywhere.language.phrases import phrases_of
from saywhere.models.tracevlm.trajectory import Trajectory, key_points

TASKS: Final = {
    "caption": "Describe the image along this trajectory: ",
    "describe": "Describe the image.",
    "trajectory": "Draw the trajectory of somebody who says this: ",
    "narrate": "Describe the image, and draw the trajectory of each phrase.",
    "interpret": "What does this trajectory point at? ",
    "ground": "Point at this with a trajectory: ",
    "box": "Put a box around this: ",
    "mask": "Segment this: ",
    "segment": "Segment what this trajectory points at: ",
    "reason": "",
    "dialogue": "",
}
"""What is asked for, and how; what is pointed at, or talked about, follows."""
USER: Final = "user"
ASSISTANT: Final = "assistant"


@dataclass(frozen=True, slots=True)
class SegmentTarget:
    """Something cut out of an image: in a text, the six tokens of the codebook. mask: the truth, where it is known.
    image: which of the images it is in."""

    mask: Mask | None = None
    image: int = 0


Part = str | Trajectory | Box | SegmentTarget


@dataclass(frozen=True, slots=True)
class Exchange:
    """What one side says. role: USER or ASSISTANT."""

    role: Literal["user", "assistant"]
    parts: tuple[Part, ...]

    @property
    def trajectories(self) -> list[Trajectory]:
        return [part for part in self.parts if isinstance(part, Trajectory)]


@dataclass(frozen=True, slots=True)
class Instruction:
    """One example. images: names of files; the frames of a video, or several photos, in their order. turns: user and
    assistant in turn, the assistant last.

    >>> said = Trajectory(Trace([(0.1, 0.2, 0.0), (0.3, 0.2, 0.5)]))
    >>> one = Instruction("caption", ("139.jpg",), (asked("caption", said), answered("a cup")))
    >>> one.turns[0].parts[0]
    'Describe the image along this trajectory: '
    """

    task: str
    images: tuple[str, ...]
    turns: tuple[Exchange, ...]
    id: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise UnknownName("task of an instruction", self.task, TASKS)
        if not self.images:
            raise InvalidValue("instruction", "has no image")
        roles = [turn.role for turn in self.turns]
        if not roles or roles != [USER, ASSISTANT] * (len(roles) // 2):
            raise InvalidValue("instruction", f"has turns of {', '.join(roles) or 'nobody'}, not user and assistant")
        parts = [part for turn in self.turns for part in turn.parts]
        frames = [part.image for part in parts if isinstance(part, SegmentTarget)]
        frames += [frame for part in parts if isinstance(part, Trajectory) for frame in part.frames]
        if frames and max(frames) >= len(self.images):
            raise InvalidValue("instruction", f"names image {max(frames)}, but has {len(self.images)}, from 0")


def asked(task: str, *about: Part) -> Exchange:
    """A task's question. about: what is pointed at or talked about: a trajectory, the words of a question."""
    if task not in TASKS:
        raise UnknownName("task of an instruction", task, TASKS)
    return Exchange(USER, tuple(part for part in (TASKS[task], *about) if part != ""))


def answered(*parts: Part) -> Exchange:
    return Exchange(ASSISTANT, parts)


def of_narrative(narrative: Narrative, image: str, size_px: tuple[int, int]) -> list[Instruction]:
    """The three tasks of pretraining: the caption along the trajectory, the trajectory of the caption, and both."""
    words, trace = narrative.words, narrative.trace
    if not words or not len(trace):
        raise InvalidValue(f"narrative {narrative.id!r}", "lacks timed words or a trace")
    phrases = phrases_of(words)
    drawn = Trajectory(key_points(trace, size_px, phrases))
    questions = {
        "caption": (asked("caption", drawn), answered(narrative.caption)),
        "trajectory": (asked("trajectory", narrative.caption), answered(drawn)),
        "narrate": (asked("narrate"), answered(*_phrase_by_phrase(words, phrases, drawn.trace))),
    }
    return [Instruction(task, (image,), turns, id=f"{narrative.id}#{task}") for task, turns in questions.items()]


def _phrase_by_phrase(words: Sequence[Word], phrases: Sequence[Phrase], trace: Trace) -> list[Part]:
    """What was said, each phrase with the trajectory that belongs to it."""
    starts = [phrase.start_s for phrase in phrases]
    parts: list[Part] = []
    for number, (start_s, end_s) in enumerate(pairwise([*starts, np.inf])):
        said = " ".join(word.text for word in words if bisect_right(starts, word.start_s) - 1 == number)
        piece = trace.between(start_s, end_s)
        parts += [f"{said} ", Trajectory(piece), " "] if _on_photo(piece) else [f"{said} "]
    return parts


def _on_photo(trace: Trace) -> bool:
    return bool(((trace.xy >= 0) & (trace.xy <= 1)).all(axis=1).any())


class _Runs(msgspec.Struct, forbid_unknown_fields=True):
    """A mask as COCO's plain run lengths; see `saywhere.core.run_lengths`."""

    size: tuple[int, int]
    counts: list[int]


class _Part(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    text: str | None = None
    trajectory: list[tuple[float, float, float]] | None = None
    frames: list[int] = []
    box: tuple[float, float, float, float] | None = None
    mask: _Runs | None = None
    image: int = 0


class _Turn(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["user", "assistant"]
    parts: list[_Part]


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    task: str
    images: list[str]
    turns: list[_Turn]
    id: str = ""


def save_instructions(path: str | Path, instructions: Iterable[Instruction]) -> int:
    """Write one JSON object a line; the file appears whole or not at all. Masks are COCO's plain run lengths."""
    count = 0
    with write_atomic(Path(path)) as file:
        for one in instructions:
            file.write(instruction_line(one))
            count += 1
    return count


def instruction_line(one: Instruction) -> bytes:
    """An instruction as a line of a file, with its end."""
    turns = [_Turn(turn.role, [_written(part) for part in turn.parts]) for turn in one.turns]
    return msgspec.json.encode(_Line(one.task, list(one.images), turns, one.id)) + b"\n"


class InstructionFile(Sequence[Instruction]):
    """The instructions of a file, read one by one when they are asked for."""

    def __init__(self, path: str | Path, most: int | None = None) -> None:
        self.path = Path(path)
        try:
            with self.path.open("rb") as file:
                self._starts = list(_line_starts(file))[:most]
        except OSError as error:
            raise InvalidFile(path, f"cannot be opened: {error.strerror or error}") from error

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        with self.path.open("rb") as file:
            file.seek(self._starts[index])
            line = file.readline()
        try:
            return _read(line)
        except (msgspec.MsgspecError, SaywhereError) as error:
            raise InvalidFile(self.path, f"instruction {range(len(self))[index] + 1}: {error}") from error


def _line_starts(file: Any) -> Iterator[int]:
    start = 0
    for line in file:
        if line.strip():
            yield start
        start += len(line)


def _read(line: bytes) -> Instruction:
    read = msgspec.json.decode(line, type=_Line)
    turns = tuple(Exchange(turn.role, tuple(map(_part, turn.parts))) for turn in read.turns)
    return Instruction(read.task, tuple(read.images), turns, id=read.id)


def _part(part: _Part) -> Part:
    given = [part.text is not None, part.trajectory is not None, part.box is not None, part.mask is not None]
    if sum(given) != 1:
        raise InvalidValue("part of a turn", "must be one of text, trajectory, box and mask")
    if part.text is not None:
        return part.text
    if part.trajectory is not None:
        return Trajectory(Trace(part.trajectory), tuple(part.frames))
    if part.mask is None:
        return Box(*(part.box or ()))
    return SegmentTarget(Mask(mask_of_runs(part.mask.counts, *part.mask.size)), part.image)


def _written(part: Part) -> _Part:
    if isinstance(part, str):
        return _Part(text=part)
    if isinstance(part, Trajectory):
        return _Part(trajectory=[(x, y, t) for x, y, t in part.trace.points.tolist()], frames=list(part.frames))
    if isinstance(part, Box):
        return _Part(box=part.xyxy)
    if part.mask is None:
        raise InvalidValue("mask", "is not known, so there is nothing to learn from it")
    inside = part.mask.values > 0
    return _Part(mask=_Runs((inside.shape[0], inside.shape[1]), runs_of(inside)), image=part.image)
