"""Where a model finds what expressions mean: one JSON object a line, for `saywhere score referring`.

    {"expression_id": 8, "box_xyxy": [0.1, 0.2, 0.4, 0.6], "mask": {"size": [height, width], "counts": […]}, "by": "me"}

expression_id names a sentence of RefCOCO's refs (sent_id), or a line of the compact form. box_xyxy is in fractions of
the photo; mask, of any resolution, has COCO's run lengths, plain or packed. Either may be null or absent where nothing
was found. by, which may be absent, names who found it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from saywhere.atomic import write_atomic
from saywhere.formats._boxes import BoxXyxy, check_box
from saywhere.formats._documents import Id, built, encoded, lines
from saywhere.formats._masks import RunLengths, RunLengthsEntry
from saywhere.formats._scan import keys_of
from saywhere.formats.record import InvalidRecord

__all__ = ["ReferringResult", "RunLengths", "read", "sniff", "write"]


@dataclass(frozen=True, slots=True)
class ReferringResult:
    """What a model finds for one expression. box_xyxy: fractions of the photo. None: nothing. by: the model."""

    expression_id: int | str
    box_xyxy: BoxXyxy | None = None
    mask: RunLengths | None = None
    by: str = ""

    def __post_init__(self) -> None:
        if self.box_xyxy is not None:
            check_box(self.box_xyxy, (1, 1))


class _Line(msgspec.Struct, frozen=True, gc=False):
    expression_id: Id
    box_xyxy: tuple[float, float, float, float] | None = None
    mask: RunLengthsEntry | None = None
    by: str = ""


_LINE = msgspec.json.Decoder(_Line)


def sniff(path: Path, head: bytes) -> bool:  # noqa: ARG001 - the content tells
    """Whether the first line is such a result."""
    return "expression_id" in keys_of(head.removeprefix(b"\xef\xbb\xbf"))


def read(path: str | Path) -> Iterator[ReferringResult | InvalidRecord]:
    """One value for each line."""
    return built(lines(path, _LINE), _result)


def write(path: str | Path, values: Iterable[ReferringResult]) -> int:
    """Write one line for each, atomically; how many there were."""
    count = 0
    with write_atomic(path) as file:
        for one in values:
            mask = None if one.mask is None else {"size": one.mask.size_hw, "counts": one.mask.counts}
            line = {"expression_id": one.expression_id, "box_xyxy": one.box_xyxy, "mask": mask}
            line |= {"by": one.by} if one.by else {}
            file.write(encoded(line) + b"\n")
            count += 1
    return count


def _result(line: _Line) -> ReferringResult:
    mask = None if line.mask is None else line.mask.value()
    return ReferringResult(line.expression_id, line.box_xyxy, mask, line.by)
