"""Visual words: what captions call the things that COCO's 80 classes are, one class for each word.

The words stand in visual_words.tsv (see `saywhere.build.visual_words` for how they were found): lemmas and kinds of the
classes in WordNet that captions use, and the names of `coco_aliases`; singular and plural, up to four words long.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from saywhere.core.errors import InvalidFile
from saywhere.language.coco_aliases import classes_named

FILE = "visual_words.tsv"
COLUMNS = ("word", "class", "source", "count")
SOURCES = ("lemma", "hyponym", "alias")
_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")


@dataclass(frozen=True, slots=True)
class VisualWord:
    """word: lower case, of one or more words. source: how it was found. count: how often the captions had it."""

    word: str
    class_name: str
    source: str
    count: int


@cache
def visual_word_table() -> tuple[VisualWord, ...]:
    """All visual words, in the order of their classes and then of the alphabet."""
    return parse_table((files("saywhere.language") / FILE).read_text("utf-8"), FILE)


@cache
def visual_words() -> Mapping[str, str]:
    """Word → its class of COCO."""
    return {row.word: row.class_name for row in visual_word_table()}


def parse_table(text: str, path: str) -> tuple[VisualWord, ...]:
    """Rows of word, class, source and count between tabs, under a header; lines that begin with # are comments."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    if not lines or tuple(lines[0].split("\t")) != COLUMNS:
        raise InvalidFile(path, f"does not begin with the columns {', '.join(COLUMNS)}")
    rows = []
    for line in lines[1:]:
        cells = line.split("\t")
        if len(cells) != len(COLUMNS) or cells[2] not in SOURCES or not cells[3].isdigit():
            raise InvalidFile(path, f"is not a row of {', '.join(COLUMNS)}: {line[:60]!r}")
        rows.append(VisualWord(cells[0], cells[1], cells[2], int(cells[3])))
    return tuple(rows)


def words_of(text: str) -> list[str]:
    """The words of a caption in lower case, without punctuation."""
    return _WORD.findall(text.lower().replace("’", "'"))


def visual_words_in(text: str | Sequence[str]) -> list[tuple[int, int, str]]:
    """Where a caption, or its words in lower case, names things: (first word, one past the last word, class).

    At each place the longest known name counts, and no name inside it. A word that `coco_aliases` knows in its class
    counts only in captions that name this class by its rules: no dog in "a dog park", no fruit in "an orange jacket".
    """
    words = words_of(text) if isinstance(text, str) else list(text)
    known, longest = visual_words(), _longest()
    found = []
    at = 0
    while at < len(words):
        sizes = range(min(longest, len(words) - at), 0, -1)
        size = next((n for n in sizes if " ".join(words[at : at + n]) in known), 0)
        if size:
            found.append((at, at + size, known[" ".join(words[at : at + size])]))
        at += size or 1
    return [one for one in found if _is_meant(one, found, words)]


def _is_meant(one: tuple[int, int, str], found: Sequence[tuple[int, int, str]], words: Sequence[str]) -> bool:
    """Whether the word means its class where it stands, as far as `coco_aliases` knows the word."""
    start, end, name = one
    if name not in _alias_classes(" ".join(words[start:end])):
        return True
    # Other names of the class would answer for this one, so they are covered.
    covered = {i for first, last, other in found if other == name and first != start for i in range(first, last)}
    return name in classes_named(" ".join("it" if i in covered else word for i, word in enumerate(words)))


@cache
def _longest() -> int:
    return max(len(word.split()) for word in visual_words())


@cache
def _alias_classes(word: str) -> frozenset[str]:
    return classes_named(word)
