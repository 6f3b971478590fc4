"""Localized Narratives with a tag for each word (TReCS): three text files beside each other, line by line.

    STEM.ids.txt            344621_20         image and annotator
    STEM.words.txt          the image is …    the narration's words, in lower case
    STEM.cleaned_tags.txt   couch couch …     for each word the COCO-Stuff class that the mouse was on

There are no coordinates. A line whose three parts do not fit each other is an InvalidRecord; a file that is shorter
than the others is an InvalidFile, because nobody can tell which lines belong together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from saywhere.core.errors import InvalidFile
from saywhere.formats.files import read_bytes
from saywhere.formats.record import InvalidRecord, excerpt

_PARTS = ("ids", "words", "cleaned_tags")


@dataclass(frozen=True, slots=True)
class TaggedNarration:
    """words, tags: of equal length; a tag names the COCO-Stuff class that the mouse was on."""

    image_id: str
    annotator_id: str
    words: tuple[str, ...]
    tags: tuple[str, ...]


def sniff(path: Path, head: bytes) -> bool:  # noqa: ARG001 - the name tells: the content is plain words
    """Whether this is the ids file of such a set."""
    return path.name.endswith(".ids.txt")


def read(path: str | Path) -> Iterator[TaggedNarration | InvalidRecord]:
    """Every narration. path: the ids file; the other two are looked for beside it."""
    ids_path = Path(path)
    if not ids_path.name.endswith(".ids.txt"):
        raise InvalidFile(path, "is not the ids file of tagged narrations", "its name ends in .ids.txt")
    stem = ids_path.name.removesuffix(".ids.txt")
    columns = [_lines(ids_path.with_name(f"{stem}.{part}.txt")) for part in _PARTS]
    if len({len(column) for column in columns}) > 1:
        counts = ", ".join(f"{len(column)} {part}" for column, part in zip(columns, _PARTS, strict=True))
        raise InvalidFile(path, f"the files have different numbers of lines: {counts}")
    for number, (name, words, tags) in enumerate(zip(*columns, strict=True), 1):
        yield _narration(str(path), number, name, words.split(), tags.split())


def _narration(path: str, line: int, name: str, words: list[str], tags: list[str]) -> TaggedNarration | InvalidRecord:
    image_id, underscore, annotator_id = name.strip().rpartition("_")
    if not (image_id and underscore and annotator_id):
        return InvalidRecord(path, line, "is not of the form image_annotator", "ids", excerpt(name))
    if len(words) != len(tags):
        return InvalidRecord(path, line, f"{len(words)} words have {len(tags)} tags", "cleaned_tags", excerpt(name))
    if not words:
        return InvalidRecord(path, line, "has no words", "words", excerpt(name))
    return TaggedNarration(image_id, annotator_id, tuple(words), tuple(tags))


def _lines(path: Path) -> list[str]:
    try:
        return read_bytes(path).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise InvalidFile(path, f"is not UTF-8 text: {error.reason} at byte {error.start}") from error
