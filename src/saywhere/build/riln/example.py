"""The one type of example that RILN consists of; a JSON object a line.

id           "139-1f0c22ab-object-grounding-0"; unique in a data set
image        "139", as the narrative names it
task         "question" or "dialogue"
level        "global", "object", "paragraph", "local"; null for a dialogue, which moves between them
kind         "interpretation" (path → words), "grounding" (words → path), "reasoning"; "synthesis" for a dialogue
turns        [{"role": "user" or "assistant", "text"}], in turn; paths as <traj>(x,y),…</traj>, integers 0 … 999
trajectory   [[x, y, t]]: the part of the thinned trace that the example is about; integers 0 … 999, seconds
phrases      [{"text", "importance" 1 … 5, "start_s", "end_s", "points" [first, stop), "words", "noun"}]: what was
             said there; "words" are [text, first, stop), and all indices count points of this trajectory
reasoning    {"claim", "level", "because": [the same]}: the tree that the answer rests on; null where there is none
narrative    {"dataset_id", "image_id", "annotator_id", "origin", "digest"}: where it comes from
generator    "templates", or the models by role
checks       {"coordinates", "boxes", "split", "overlap", "review"}: what was checked, and with which result
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from saywhere.core.trajectory import BINS, LEAST, MOST
from saywhere.formats.files import read_lines
from saywhere.formats.record import InvalidRecord, excerpt

LEVELS = ("global", "object", "paragraph", "local")
KINDS = ("interpretation", "grounding", "reasoning")
FEWEST_TURNS, MOST_TURNS = 4, 8
FEWEST_DIALOGUES, MOST_DIALOGUES = 3, 5
DEEPEST = 6
"""Of a reasoning tree."""
NOT_REVIEWED = "not reviewed"
"""What `Checks` say of an example that nobody decided about."""

Level = Literal["global", "object", "paragraph", "local"]
Kind = Literal["interpretation", "grounding", "reasoning"]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=20_000)]
_Bin = Annotated[int, msgspec.Meta(ge=0, le=BINS - 1)]
_Index = Annotated[int, msgspec.Meta(ge=0)]


class AlignedWord(msgspec.Struct, frozen=True, array_like=True):
    """A word and the points [first, stop) that were passed while it was said."""

    text: str
    first: _Index
    stop: _Index


class PointedPhrase(msgspec.Struct, frozen=True):
    """What was said while pointing at points [first, stop). noun: the thing that it names; empty if none."""

    text: str
    importance: Annotated[int, msgspec.Meta(ge=LEAST, le=MOST)]
    start_s: float
    end_s: float
    points: tuple[_Index, _Index]
    words: tuple[AlignedWord, ...]
    noun: str = ""


class DialogueTurn(msgspec.Struct, frozen=True):
    """One message."""

    role: Literal["user", "assistant"]
    text: Text


class Thought(msgspec.Struct, frozen=True):
    """A claim and what it rests on."""

    claim: Text
    level: Level
    because: tuple[Thought, ...] = ()

    @property
    def depth(self) -> int:
        return 1 + max((one.depth for one in self.because), default=0)


class SourceNarrative(msgspec.Struct, frozen=True):
    """Which narrative an example comes from. digest: of all that it holds."""

    dataset_id: str
    image_id: str
    annotator_id: str
    origin: str
    digest: str


class Checks(msgspec.Struct, frozen=True):
    """overlap: share of the example's 5-grams that evaluation text has, −1 if there was none to compare with."""

    coordinates: str = "inside what was pointed at"
    boxes: str = "no boxes"
    split: str = "training"
    overlap: float = -1.0
    review: str = NOT_REVIEWED


class RilnExample(msgspec.Struct, frozen=True, kw_only=True):
    """One question with its answer, or one dialogue; see the module."""

    id: Text
    image: Text
    task: Literal["question", "dialogue"]
    level: Level | None
    kind: Literal["interpretation", "grounding", "reasoning", "synthesis"]
    turns: Annotated[tuple[DialogueTurn, ...], msgspec.Meta(min_length=2, max_length=MOST_TURNS)]
    trajectory: Annotated[tuple[tuple[_Bin, _Bin, float], ...], msgspec.Meta(min_length=1)]
    phrases: tuple[PointedPhrase, ...]
    reasoning: Thought | None
    narrative: SourceNarrative
    generator: str
    checks: Checks = Checks()


_DECODER = msgspec.json.Decoder(RilnExample)
_ENCODER = msgspec.json.Encoder()


def encoded(example: RilnExample) -> bytes:
    """The example as one line of a file, without its end."""
    return _ENCODER.encode(example)


def content_digest(example: RilnExample) -> str:
    """Sixteen hexadecimal digits that differ where anything does that people judge; what was checked is no part."""
    return hashlib.sha256(encoded(msgspec.structs.replace(example, checks=Checks()))).hexdigest()[:16]


def decoded(line: bytes) -> RilnExample:
    """The example of a line; msgspec.ValidationError says what is wrong with it."""
    return _DECODER.decode(line)


def read_riln(path: str | Path) -> Iterator[RilnExample | InvalidRecord]:
    """Every example of one file of a data set, or of all its files if a folder is named; bad lines in their place."""
    path = Path(path)
    for file in sorted(path.glob("examples-*.jsonl")) if path.is_dir() else [path]:
        for item in read_lines(file):
            if isinstance(item, InvalidRecord):
                yield item
                continue
            number, line = item
            try:
                yield decoded(line)
            except msgspec.DecodeError as error:
                yield InvalidRecord(str(file), number, str(error), excerpt=excerpt(line))
