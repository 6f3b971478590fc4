"""Which formats there are. A format is a module with `read`, `sniff` and perhaps `write`, imported when asked for."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, cast

from saywhere.core.errors import InvalidFile, UnknownName
from saywhere.formats.files import open_bytes

_HEAD_BYTES = 2**16


class FormatModule(Protocol):
    """What a format's module offers."""

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether a file with this name and these first (unpacked) bytes looks like the format."""
        ...

    def read(self, path: str | Path) -> Iterator[Any]:
        """Values and InvalidRecord, one for each record of the file, in its order."""
        ...


@dataclass(frozen=True, slots=True)
class Format:
    """name: as typed on the command line. title: for people. holds: what its values are."""

    name: str
    title: str
    holds: str
    writes: bool = False

    @property
    def module(self) -> FormatModule:
        return cast(FormatModule, import_module(f"saywhere.formats.{self.name.replace('-', '_')}"))

    def write(self, path: str | Path, values: Iterable[Any]) -> int:
        """Write all values, atomically; how many there were."""
        if not self.writes:
            raise InvalidFile(path, f"{self.title} can be read but not written", f"use one of {', '.join(WRITABLE)}")
        return int(cast(Any, self.module).write(path, values))


# In the order in which they are tried on an unknown file: the most particular first.
FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("localized-narratives", "Localized Narratives (JSONL)", "narratives", writes=True),
        Format("video-narratives", "Video Localized Narratives (JSONL)", "video narratives", writes=True),
        Format("trecs", "Localized Narratives with a tag for each word (TReCS, three text files)", "tagged narrations"),
        Format("hl", "HL scenes, actions, rationales (JSONL)", "caption rows", writes=True),
        Format("pope", "POPE yes/no questions (JSONL)", "questions"),
        Format("vsr", "Visual Spatial Reasoning: sentences about where things are (JSONL)", "sentences"),
        Format("coco-captions", "COCO captions (JSON)", "captions", writes=True),
        Format("coco-instances", "COCO instances with masks and boxes (JSON)", "instances", writes=True),
        Format("coco-results", "COCO caption or detection results (JSON)", "results", writes=True),
        Format("entities", "COCO and Flickr30k Entities as image → caption → boxes (JSON)", "captions with boxes"),
        Format("visual-genome", "Visual Genome region descriptions (JSON)", "region descriptions"),
        Format("refcoco", "RefCOCO, RefCOCO+, RefCOCOg (JSON)", "referring expressions"),
        Format("referring-lines", "RefCOCO, RefCOCO+, RefCOCOg boxes (TSV)", "referring expressions"),
        Format("referring-results", "Boxes and masks found for expressions (JSONL)", "results", writes=True),
        Format("aokvqa", "A-OKVQA questions with choices, answers and reasons (JSON)", "questions"),
        Format("vqa", "VQA v2 and VQA-CP questions with answers (JSON)", "questions"),
        Format("hat", "VQA-HAT human attention maps (folder of PNG)", "attention maps"),
        Format("osie", "OSIE mouse traces and eye fixations (MAT)", "gaze"),
        Format("salicon", "SALICON fixations (JSON)", "gaze"),
        Format("web-annotation", "W3C Web Annotation (JSON-LD)", "narratives", writes=True),
        Format("parquet", "Narratives as Parquet", "narratives", writes=True),
    )
}
READABLE = tuple(FORMATS)
WRITABLE = tuple(name for name, f in FORMATS.items() if f.writes)


def get(name: str) -> Format:
    """The format of this name."""
    if name not in FORMATS:
        raise UnknownName("format", name, FORMATS)
    return FORMATS[name]


def read(path: str | PathLike[str], format: str | None = None) -> Iterator[Any]:  # noqa: A002 - the word for it
    """The values of a file and its InvalidRecords, in its order. format: told by the content if not given.

    >>> next(read("examples/broken.jsonl", "localized-narratives"))
    <Narrative of image 'kitchen': ...>
    """
    return (get(format) if format else detect(path)).module.read(Path(path))


def detect(path: str | PathLike[str]) -> Format:
    """The format of this file or folder, told by its content."""
    path = Path(path)
    head = b""
    if not path.is_dir():
        with open_bytes(path) as file:
            try:
                head = file.read(_HEAD_BYTES)
            except (EOFError, OSError, zlib.error) as error:
                raise InvalidFile(path, f"the compressed file is cut off or damaged: {error}") from error
        if not head.strip():
            raise InvalidFile(path, "is empty")
    for name in READABLE:
        if FORMATS[name].module.sniff(path, head):
            return FORMATS[name]
    raise InvalidFile(path, "is in no format that saywhere knows", f"say which with --format: {', '.join(READABLE)}")
