"""Texts as UpDn reads and writes them: lower-case words without signs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from saywhere.language.vocabulary import Vocabulary

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def plain_words(text: str) -> list[str]:
    """The words of a text, in lower case: runs of letters and digits, with what joins them inside (what's, t-shirt)."""
    return _WORD.findall(text.lower())


def owned_words(text: str) -> list[tuple[str, int]]:
    """Each of the plain words with the index of the one of `text.split()` that it comes from."""
    return [(word, i) for i, part in enumerate(text.split()) for word in plain_words(part)]


def vocabulary_of(texts: Sequence[str], least_count: int, most: int) -> Vocabulary:
    """The most frequent plain words that occur often enough, and the unknown word."""
    return Vocabulary.of_words((" ".join(plain_words(text)) for text in texts), most, least_count)
