"""HL, high-level captions (Cafagna et al., 2023): one JSON object a line, one image each.

    file_name    "COCO_train2014_000000138878.jpg"
    captions     {"scene": [text, …], "action": […], "rationale": […], "object": […]}, the last from COCO
    confidence   {"scene": [1…5, …], …}, one number a caption, how sure its writer was; not for "object"
    purity       {"scene": [number, …], …}, one number a caption, how much it is like the others; not for "object"
    diversity    {"scene": number, …}

One value for each line. All but file_name and captions may be absent. Levels may have any names. Bad records are rows
without captions, empty levels and captions, and numbers that do not match the captions one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec

from saywhere.atomic import write_atomic
from saywhere.core.errors import InvalidValue
from saywhere.formats._documents import built, encoded, lines
from saywhere.formats._scan import keys_of
from saywhere.formats.record import InvalidRecord


@dataclass(frozen=True, slots=True)
class HLRow:
    """Captions of one image by level ("scene", "action", "rationale", "object"), with what is known of each.

    confidence, purity: one number for each caption of a level. diversity: one number a level.
    """

    file_name: str
    captions: dict[str, tuple[str, ...]]
    confidence: dict[str, tuple[float, ...]] = field(default_factory=dict)
    purity: dict[str, tuple[float, ...]] = field(default_factory=dict)
    diversity: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.file_name:
            raise InvalidValue("file_name", "is empty")
        if not self.captions:
            raise InvalidValue("the row", "has no captions")
        for level, captions in self.captions.items():
            if not captions or not all(caption.strip() for caption in captions):
                raise InvalidValue(f"level {level!r}", "has no captions" if not captions else "has an empty caption")
        for name, numbers in (("confidence", self.confidence), ("purity", self.purity)):
            for level, values in numbers.items():
                if len(values) != len(self.captions.get(level, ())):
                    n = len(self.captions.get(level, ()))
                    raise InvalidValue(f"{name} of level {level!r}", f"has {len(values)} numbers for {n} captions")
                _check_finite(f"{name} of level {level!r}", values)
        _check_finite("diversity", self.diversity.values())


def _check_finite(what: str, values: Iterable[float]) -> None:
    if not all(math.isfinite(value) for value in values):
        raise InvalidValue(what, "holds NaN or infinity")


class _Row(msgspec.Struct, frozen=True):
    file_name: str
    captions: dict[str, tuple[str, ...]]
    confidence: dict[str, tuple[float, ...]] = msgspec.field(default_factory=dict)
    purity: dict[str, tuple[float, ...]] = msgspec.field(default_factory=dict)
    diversity: dict[str, float] = msgspec.field(default_factory=dict)


_ROW = msgspec.json.Decoder(_Row)


def sniff(path: Path, head: bytes) -> bool:  # noqa: ARG001 - the content tells
    """Whether the first line is an HL row."""
    return keys_of(head.removeprefix(b"\xef\xbb\xbf")) >= {"file_name", "captions"}


def read(path: str | Path) -> Iterator[HLRow | InvalidRecord]:
    """One value for each line."""
    return built(
        lines(path, _ROW), lambda row: HLRow(row.file_name, row.captions, row.confidence, row.purity, row.diversity)
    )


def write(path: str | Path, values: Iterable[HLRow]) -> int:
    """Write the rows, atomically; how many there were."""
    n = 0
    with write_atomic(path) as file:
        for value in values:
            file.write(encoded(asdict(value)) + b"\n")
            n += 1
    return n
