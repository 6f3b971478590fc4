"""Referring expressions of COCO's photos, one a line, without their masks: columns separated by tabs.

    split   photo   class   x   y   width   height   expression

photo is COCO's number; class one of 0 … 79, in COCO's usual order; the box its left and top edge and its size, in
fractions of the photo. This is the compact form of RefCOCO, RefCOCO+ and RefCOCOg that docs/data.md describes.

One value for each line; its number in the file, from 1, is the id that predictions name. Bad records are lines with
another number of columns, text where numbers should be, another class, a box without area or outside the photo, and
empty expressions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.core.errors import InvalidValue
from saywhere.formats._boxes import BoxXyxy, check_box, xyxy
from saywhere.formats.files import read_lines
from saywhere.formats.record import InvalidRecord, excerpt

_COLUMNS = 8


@dataclass(frozen=True, slots=True)
class ReferringLine:
    """An expression and what it means. line: its number in the file. category: a class. box_xyxy: fractions."""

    line: int
    split: str
    image_id: int
    category: str
    box_xyxy: BoxXyxy
    text: str

    def __post_init__(self) -> None:
        check_box(self.box_xyxy, (1, 1))
        if not self.text.strip():
            raise InvalidValue("the expression", "is empty")


def sniff(path: Path, head: bytes) -> bool:
    """Whether the first line has these columns."""
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode("utf-8", "replace")
    return not isinstance(_read_line(str(path), 1, first), InvalidRecord)


def read(path: str | Path) -> Iterator[ReferringLine | InvalidRecord]:
    """One value for each line."""
    for item in read_lines(path):
        if isinstance(item, InvalidRecord):
            yield item
            continue
        number, line = item
        try:
            yield _read_line(str(path), number, line.decode())
        except UnicodeDecodeError:
            yield InvalidRecord(str(path), number, "is not UTF-8 text")


def _read_line(path: str, number: int, line: str) -> ReferringLine | InvalidRecord:
    cells = line.rstrip("\r\n").split("\t")
    if len(cells) != _COLUMNS:
        return InvalidRecord(path, number, f"has {len(cells)} columns, not {_COLUMNS}", excerpt=excerpt(line))
    try:
        kind, (x, y, width, height) = int(cells[2]), map(float, cells[3:7])
        if not 0 <= kind < len(COCO_CLASSES):
            raise InvalidValue("the class", f"is {kind}, not one of 0 … {len(COCO_CLASSES) - 1}")
        box = xyxy((x, y, width, height))
        return ReferringLine(number, cells[0], int(cells[1]), COCO_CLASSES[kind], box, cells[7].strip())
    except InvalidValue as error:
        return InvalidRecord(path, number, str(error), excerpt=excerpt(line))
    except ValueError:
        return InvalidRecord(path, number, "has text where a number should be", excerpt=excerpt(line))
