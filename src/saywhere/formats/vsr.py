"""Visual Spatial Reasoning (Liu et al., TACL 2023): whether sentences about two things are true, a JSON object a line.

    image     "000000397304.jpg", of COCO
    caption   "The bed is next to the bench."
    label     1 if it is true, 0 if not
    relation  "next to"

One value for each line. Any other label, and an empty caption, is a bad record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from saywhere.core.errors import InvalidValue
from saywhere.formats._documents import built, lines
from saywhere.formats._scan import keys_of
from saywhere.formats.record import InvalidRecord

_IS = re.compile(r"(?P<thing>.+?) (?P<verb>is|are) (?P<rest>.+)")
_DOES = re.compile(
    r"(?P<thing>.+?) (?P<verb>contain|consist|face|touch|enclose|surround|support|penetrate)s (?P<rest>.+)"
)


@dataclass(frozen=True, slots=True)
class SpatialSentence:
    """A sentence about an image. relation: between which two things stand, in its words. is_true: by people."""

    file_name: str
    sentence: str
    relation: str
    is_true: bool

    def __post_init__(self) -> None:
        if not self.file_name or not self.sentence.strip():
            raise InvalidValue("the line", "names no image" if not self.file_name else "has no caption")

    @property
    def question(self) -> str:
        """Whether it is so: "Is the bed next to the bench?".

        >>> SpatialSentence("1.jpg", "The truck contains the bench.", "contains", True).question
        'Does the truck contain the bench?'
        """
        said = self.sentence.strip().rstrip(".")
        said = said[:1].lower() + said[1:]
        if is_so := _IS.fullmatch(said):
            return f"{is_so['verb'].capitalize()} {is_so['thing']} {is_so['rest']}?"
        if does := _DOES.fullmatch(said):
            return f"Does {does['thing']} {does['verb']} {does['rest']}?"
        return f"Is it true that {said}?"


class _Line(msgspec.Struct, frozen=True, gc=False):
    image: str
    caption: str
    label: Literal[0, 1]
    relation: str = ""


_LINE = msgspec.json.Decoder(_Line)


def sniff(path: Path, head: bytes) -> bool:  # noqa: ARG001 - the content tells
    """Whether the first line is such a sentence."""
    return keys_of(head.removeprefix(b"\xef\xbb\xbf")) >= {"image", "caption", "label", "relation"}


def read(path: str | Path) -> Iterator[SpatialSentence | InvalidRecord]:
    """One value for each line."""
    return built(
        lines(path, _LINE), lambda line: SpatialSentence(line.image, line.caption, line.relation, line.label == 1)
    )
