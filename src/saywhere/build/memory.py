"""Memory banks out of texts: read, cleared of what is there twice, cut into phrases if asked, put into vectors."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.types import Progress
from saywhere.formats import registry
from saywhere.formats.files import open_bytes, read_lines
from saywhere.formats.record import InvalidRecord, excerpt
from saywhere.language.embed import TextEncoder

if TYPE_CHECKING:
    from saywhere.models.patchioner.memory import MemoryBank

"""Called with what is done, how much of it, and how much there is."""

_LONGEST_CHARACTERS = 1000
_FEWEST_SIGHTINGS = 2
_EMBEDDED_AT_ONCE = 65_536
_SAID_EVERY = 1000
_STRUCTURED = re.compile(rb"\s*[{\[]|PAR1|\xef\xbb\xbf\s*[{\[]")
# Flickr's caption files have the photo's name and the caption's number before each caption.
_NUMBERED = re.compile(r"\S+#\d+\t")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"[^\W_]+")
_TEXT_OF: dict[str, Callable[[Any], list[str]]] = {
    "narratives": lambda value: _SENTENCE_END.split(value.caption),
    "captions": lambda value: [value.caption],
    "region descriptions": lambda value: [value.phrase],
    "captions with boxes": lambda value: [value.caption],
    "tagged narrations": lambda value: _SENTENCE_END.split(" ".join(value.words)),
}


@dataclass(slots=True)
class Collected:
    """Sentences for a bank. again: how many came that were there already. bad: lines and records that are no sentence.

    phrases: how many of the sentences, the last ones, are phrases cut out of the others.
    """

    sentences: list[str] = field(default_factory=list)
    phrases: int = 0
    again: int = 0
    bad: list[InvalidRecord] = field(default_factory=list)


def build_memory(
    files: Sequence[str | Path],
    out: str | Path,
    encoder: TextEncoder,
    *,
    phrases: bool = False,
    limit: int | None = None,
    batch: int = 64,
    progress: Progress | None = None,
) -> Collected:
    """Make a bank of all sentences in the files and write it to `out`, whole or not at all; what went into it.

    phrases: add the phrases that sentences are made of, those there at least twice. limit: take the first so many
    different sentences, phrases not counted.
    """
    if Path(out).suffix != ".safetensors" or Path(out).is_dir():
        raise InvalidFile(out, "is no name for a memory bank", "it should end in .safetensors")
    collected = collect(files, limit=limit, progress=progress)
    if phrases:
        add_phrases(collected, progress)
    bank = embedded(collected.sentences, encoder, _source(files, collected), batch=batch, progress=progress)
    bank.save(out)
    return collected


def collect(files: Sequence[str | Path], *, limit: int | None = None, progress: Progress | None = None) -> Collected:
    """The different sentences of the files, in their order. Case, space and punctuation make no difference."""
    if not files:
        raise InvalidValue("files", "are none")
    if limit is not None and limit < 1:
        raise InvalidValue("limit", f"is {limit}, not at least 1")
    collected, seen = Collected(), set[str]()
    for number, path in enumerate(files):
        for read, item in enumerate(read_sentences(path)):
            if progress is not None and read % _SAID_EVERY == 0:
                progress("reading files", number, len(files))
            if isinstance(item, InvalidRecord):
                collected.bad.append(item)
            elif (key := folded(item)) in seen:
                collected.again += 1
            elif len(collected.sentences) == limit:
                break
            else:
                seen.add(key)
                collected.sentences.append(item)
        if progress is not None:
            progress("reading files", number + 1, len(files))
    if not collected.sentences:
        first = f", first {collected.bad[0]}" if collected.bad else ""
        raise InvalidValue("files", f"hold no sentence; {len(collected.bad):,} bad lines{first}")
    return collected


def read_sentences(path: str | Path) -> Iterator[str | InvalidRecord]:
    """Every sentence of a file: plain text with one a line, or any format that saywhere reads texts from."""
    for text, place in _texts(Path(path)):
        if isinstance(text, InvalidRecord):
            yield text
            continue
        sentence = " ".join(text.split())
        if not sentence:
            continue
        reason = _fault(sentence)
        yield InvalidRecord(str(path), place, reason, excerpt=excerpt(sentence)) if reason else sentence


def add_phrases(collected: Collected, progress: Progress | None = None) -> None:
    """Add the phrases that the sentences are made of and that are there at least twice, the most frequent first."""
    from saywhere.language.nouns import region_phrases

    seen = {folded(sentence) for sentence in collected.sentences}
    for phrase, count in region_phrases(collected.sentences, progress).most_common():
        if count >= _FEWEST_SIGHTINGS and (key := folded(phrase)) and key not in seen:
            seen.add(key)
            collected.sentences.append(phrase)
            collected.phrases += 1


def embedded(
    sentences: Sequence[str],
    encoder: TextEncoder,
    source: dict[str, Any],
    *,
    batch: int = 64,
    progress: Progress | None = None,
) -> MemoryBank:
    """A bank of the sentences. Vectors are kept as float16 from the start: a large bank is never there in float32."""
    from saywhere.models.patchioner.memory import MemoryBank

    rows = np.empty((len(sentences), encoder.size), dtype=np.float16)
    for first in range(0, len(sentences), _EMBEDDED_AT_ONCE):
        part = sentences[first : first + _EMBEDDED_AT_ONCE]

        def said(doing: str, done: int, _: int, first: int = first) -> None:
            if progress is not None:
                progress(doing, first + done, len(sentences))

        rows[first : first + len(part)] = encoder.embed(part, batch=batch, progress=said)
    return MemoryBank(rows, sentences, encoder.fingerprint, source)


def folded(text: str) -> str:
    """What is the same for texts that differ in case, space and punctuation only."""
    return " ".join(_WORD.findall(text.casefold()))


def _texts(path: Path) -> Iterator[tuple[str | InvalidRecord, int]]:
    """Texts with the lines they stand on, 0 where a format has none."""
    if not _is_structured(path):
        yield from _plain(path)
        return
    kind = registry.detect(path)
    if kind.holds not in _TEXT_OF:
        raise InvalidFile(path, f"holds {kind.holds} ({kind.title}), and no sentences to remember")
    for value in kind.module.read(path):
        if isinstance(value, InvalidRecord):
            yield value, value.line
        else:
            yield from ((text, 0) for text in _TEXT_OF[kind.holds](value))


def _is_structured(path: Path) -> bool:
    if path.is_dir() or path.name.endswith(".ids.txt"):
        return True
    with open_bytes(path) as file:
        try:
            head = file.read(64)
        except (EOFError, OSError, zlib.error):
            return False  # a damaged archive: reading its lines says so
    return _STRUCTURED.match(head) is not None


def _plain(path: Path) -> Iterable[tuple[str | InvalidRecord, int]]:
    for item in read_lines(path):
        if isinstance(item, InvalidRecord):
            yield item, item.line
            continue
        number, line = item
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            reason = f"is not UTF-8 text: {error.reason} at byte {error.start}"
            yield InvalidRecord(str(path), number, reason, excerpt=excerpt(line)), number
            continue
        yield _NUMBERED.sub("", text, count=1), number


def _fault(sentence: str) -> str:
    if len(sentence) > _LONGEST_CHARACTERS:
        return f"is {len(sentence):,} characters long, and no sentence"
    if not sentence.isprintable():
        return "holds characters that cannot be printed"
    return "" if folded(sentence) else "holds no word"


def _source(files: Sequence[str | Path], collected: Collected) -> dict[str, Any]:
    return {
        "files": [Path(path).name for path in files],
        "sentences": len(collected.sentences) - collected.phrases,
        "phrases": collected.phrases,
    }
