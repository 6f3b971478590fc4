"""POPE (Li et al., EMNLP 2023): yes/no questions about the objects in COCO photos, one JSON object a line.

    question_id  from 1 on; counts anew in each of the three files (random, popular, adversarial)
    image        "COCO_val2014_000000310196.jpg"
    text         "Is there a snowboard in the image?"
    label        "yes" or "no"

One value for each line, although the official files are called .json. Any other label, and empty text, is a bad record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from saywhere.core.errors import InvalidValue
from saywhere.formats._documents import Id, built, lines
from saywhere.formats._scan import keys_of
from saywhere.formats.record import InvalidRecord


@dataclass(frozen=True, slots=True)
class PopeQuestion:
    """Whether an object is in an image. label: the true answer."""

    question_id: int | str
    file_name: str
    text: str
    label: Literal["yes", "no"]

    def __post_init__(self) -> None:
        if not self.file_name or not self.text.strip():
            raise InvalidValue("the question", "names no image" if not self.file_name else "has no text")


class _Line(msgspec.Struct, frozen=True, gc=False):
    question_id: Id
    image: str
    text: str
    label: Literal["yes", "no"]


_LINE = msgspec.json.Decoder(_Line)


def sniff(path: Path, head: bytes) -> bool:  # noqa: ARG001 - the content tells
    """Whether the first line is a POPE question."""
    return keys_of(head.removeprefix(b"\xef\xbb\xbf")) >= {"question_id", "image", "text", "label"}


def read(path: str | Path) -> Iterator[PopeQuestion | InvalidRecord]:
    """One value for each line."""
    return built(lines(path, _LINE), lambda line: PopeQuestion(line.question_id, line.image, line.text, line.label))
