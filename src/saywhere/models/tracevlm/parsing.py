"""What an answer holds, whatever a model may write: words, trajectories, boxes, masks, in their order."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from saywhere.core import Box, Trace
from saywhere.core.trajectory import from_text
from saywhere.models.tracevlm.examples import Part, SegmentTarget
from saywhere.models.tracevlm.qwen import SEGMENT_TOKENS
from saywhere.models.tracevlm.trajectory import Trajectory

# A box that is not closed ends where something else begins.
_BOX = re.compile(r"<\|box_start\|>(.*?)(?:<\|box_end\|>|(?=<\|box_start\|>|<\s*traj\s*>|<seg_\d_\d>)|\Z)", re.DOTALL)
_SEGMENT = re.compile("|".join(map(re.escape, SEGMENT_TOKENS)))
_SEGMENTS = re.compile(f"(?:{_SEGMENT.pattern})+")
_WHOLE = list(SEGMENT_TOKENS)
_SPECIAL = re.compile(r"<\|[a-z_]+\|>|<seg_\d_\d>|<\s*/?\s*traj\s*>")
# Of an image, from 1, right before what is on it, as `PromptReader` writes it.
_NUMBER = re.compile(r"(?<![0-9])([0-9]{1,4}):\Z")


@dataclass(frozen=True, slots=True)
class AnswerPiece:
    """Some words, and the trajectory after them if there is one."""

    words: str
    trace: Trace | None


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """What an answer says. parts: words, trajectories with their frames, boxes in the photo and things that are cut
    out, in their order. lost: what was malformed, and what became of it."""

    parts: tuple[Part, ...]
    lost: tuple[str, ...]

    @property
    def text(self) -> str:
        """The words alone."""
        return " ".join(part for part in self.parts if isinstance(part, str))

    @property
    def pieces(self) -> tuple[AnswerPiece, ...]:
        """Words with the trajectories after them; one that goes over several frames comes frame by frame."""
        pieces, words = list[AnswerPiece](), list[str]()
        for part in self.parts:
            if isinstance(part, str):
                words.append(part)
            for _, trace in part.runs() if isinstance(part, Trajectory) else ():
                pieces.append(AnswerPiece(" ".join(words), trace))
                words = []
        rest = [AnswerPiece(" ".join(words), None)] if words or not pieces else []
        return (*pieces, *rest)

    @property
    def boxes(self) -> tuple[Box, ...]:
        return tuple(part for part in self.parts if isinstance(part, Box))

    @property
    def segments(self) -> tuple[int, ...]:
        """Of each thing that it cuts out, which of the images it is in."""
        return tuple(part.image for part in self.parts if isinstance(part, SegmentTarget))


@dataclass(frozen=True, slots=True)
class _Mark:
    """What stands at [start, stop) of a text and is no word. numbered: whether an image's number may be before it."""

    start: int
    stop: int
    parts: tuple[Part, ...]
    numbered: bool = True


def parse(text: str, images: int = 1) -> ParsedAnswer:
    """What an answer holds. Never fails: what is malformed is mended or left out, and named. images: that it is about;
    of several, a number such as `2:` right before a trajectory or a mask says which one that is on.

    >>> parse("it goes 1:<traj>(100,200)</traj>2:<traj>(300,200)</traj> away", images=2).parts
    ('it goes', Trajectory(trace=<Trace of 2 points, 0.00 s>, frames=(0, 1)), 'away')
    """
    parts = list[Part]()
    (traces, lost_traces), (masks, lost_masks), (boxes, lost_boxes) = _traces(text), _masks(text), _boxes(text)
    lost = [*lost_traces, *lost_masks, *lost_boxes]
    stop, goes_on = 0, False
    for mark in sorted((*traces, *masks, *boxes), key=lambda mark: mark.start):
        before = text[stop : mark.start]
        number = _NUMBER.search(before) if images > 1 and mark.numbered else None
        words, image = (before[: number.start()], int(number[1])) if number else (before, 0)
        if image > images:
            lost.append(f"image {image}: there are {images}")
        parts += [plain] if (plain := _plain(words)) else []
        new = _on_image(mark.parts, image - 1 if 0 < image <= images else 0)
        parts = _joined(parts, new) if goes_on and number and not words else [*parts, *new]
        stop, goes_on = max(stop, mark.stop), number is not None
    rest = _plain(text[stop:])
    return ParsedAnswer((*parts, *([rest] if rest else [])), tuple(lost))


def _traces(text: str) -> tuple[list[_Mark], list[str]]:
    found = from_text(text)
    lost = [f"trajectory {number}: {problem}" for number, one in enumerate(found, 1) for problem in one.problems]
    return [_Mark(*one.span, (Trajectory(one.timed()),) if len(one.points_xy) else ()) for one in found], lost


def _masks(text: str) -> tuple[list[_Mark], list[str]]:
    """Each begins with a token that does not go on from the one before."""
    marks, broken = list[_Mark](), 0
    for run in _SEGMENTS.finditer(text):
        said = _SEGMENT.findall(run.group())
        starts = [0, *(i for i in range(1, len(said)) if said[i] <= said[i - 1]), len(said)]
        cut = [said[a:b] for a, b in pairwise(starts)]
        broken += len(cut) - cut.count(_WHOLE)
        marks.append(_Mark(*run.span(), (SegmentTarget(),) * cut.count(_WHOLE)))
    told = "mask without all of its" if broken == 1 else "masks without all of their"
    return marks, [f"{broken} {told} {len(SEGMENT_TOKENS)} tokens"] if broken else []


def _boxes(text: str) -> tuple[list[_Mark], list[str]]:
    marks, lost = list[_Mark](), list[str]()
    for number, found in enumerate(_BOX.finditer(text), 1):
        corners = from_text(f"<traj>{found[1]}</traj>")[0].points_xy
        low, high = (corners.min(axis=0), corners.max(axis=0)) if len(corners) == 2 else (np.ones(2), np.zeros(2))
        right = bool((low < high).all())
        drawn = (Box(float(low[0]), float(low[1]), float(high[0]), float(high[1])),) if right else ()
        lost += [] if right else [f"box {number}: no two corners"]
        marks.append(_Mark(*found.span(), drawn, numbered=False))
    return marks, lost


def _on_image(parts: Sequence[Part], image: int) -> list[Part]:
    """A number is that of the first alone: each mask has its own."""
    first, rest = list(parts[:1]), parts[1:]
    if first and isinstance(first[0], Trajectory):
        trace = first[0].trace
        first = [Trajectory(trace, (image,) * len(trace))]
    elif first and isinstance(first[0], SegmentTarget):
        first = [SegmentTarget(image=image)]
    return [*first, *rest]


def _joined(parts: Sequence[Part], new: Sequence[Part]) -> list[Part]:
    """Numbered trajectories that follow each other without a word are one that goes on in another frame."""
    one, other = (some[place] if some else None for some, place in ((parts, -1), (new, 0)))
    if not isinstance(one, Trajectory) or not isinstance(other, Trajectory) or one.frames[-1] == other.frames[0]:
        return [*parts, *new]
    points = np.concatenate([one.trace.points, np.add(other.trace.points, (0, 0, one.trace.end_s))])
    return [*parts[:-1], Trajectory(Trace(points), (*one.frames, *other.frames)), *new[1:]]


def _plain(text: str) -> str:
    return " ".join(_SPECIAL.sub(" ", text).split())


class AnswerText:
    """The words of an answer that is still being written. hear: called with further words as soon as they are sure.
    images: that it is about."""

    def __init__(self, hear: Callable[[str], None], images: int = 1) -> None:
        self._hear, self._images, self._heard = hear, images, 0

    def write(self, raw: str) -> None:
        """raw: all that was written so far. Its last word may go on, and a tag that is not closed may become one."""
        tag = raw.rfind("<")
        sure = raw[:tag] if tag >= 0 and ">" not in raw[tag:] else raw
        # Nor is the space before that word: nothing may come of it.
        if words := parse(sure, self._images).text.rpartition(" ")[0].rstrip():
            self._say(words)

    def end(self, text: str) -> None:
        """text: the words of the whole answer."""
        self._say(text)

    def _say(self, text: str) -> None:
        if len(text) > self._heard:
            self._hear(text[self._heard :])
            self._heard = len(text)
