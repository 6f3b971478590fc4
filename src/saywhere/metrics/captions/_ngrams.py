"""All n-grams of many sentences, counted with sorting instead of dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

MAX_N = 4

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SentenceIds:
    """Sentences as numbers, item by item: first the candidate of the item, then its references.

    word: (w,) number of each word, sentence after sentence.
    sentence: (w,) the sentence each word is in.
    length: (s,) words in each sentence.
    item: (s,) the item each sentence belongs to.
    is_candidate: (s,) whether the sentence is the candidate of its item.
    vocabulary: the words in the order of their numbers.
    """

    word: Ints
    sentence: Ints
    length: Ints
    item: Ints
    is_candidate: NDArray[np.bool_]
    vocabulary: list[str]

    @property
    def start(self) -> Ints:
        """(s,) where in `word` each sentence starts."""
        return np.cumsum(self.length) - self.length


@dataclass(frozen=True, eq=False)
class Runs:
    """How often each n-gram of one length is in each sentence that has it.

    Entries are sorted by n-gram, then by sentence, so all sentences of one item that share an n-gram are
    neighbours: a *run*, whose first entry is the candidate if the candidate has the n-gram.

    gram: (e,) number of the n-gram, from 0.    sentence: (e,)    count: (e,)
    place: (e,) where in `SentenceIds.word` the n-gram is first written in the sentence.
    run: (e,) number of the run the entry is in.   run_start: (r,) its first entry.
    """

    gram: Ints
    sentence: Ints
    count: Ints
    place: Ints
    run: Ints
    run_start: Ints


def spaced_sentences(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> SentenceIds:
    """Sentences whose words are what single spaces separate: "" is one empty word, and so is a second space."""
    texts = [text for one, others in zip(candidates, references, strict=True) for text in (one, *others)]
    words = " ".join(texts).split(" ")
    vocabulary = list(dict.fromkeys(words))
    numbers = dict(zip(vocabulary, range(len(vocabulary)), strict=True))
    length = np.array([text.count(" ") + 1 for text in texts], dtype=np.int64)
    size = np.array([1 + len(others) for others in references], dtype=np.int64)
    is_candidate = np.zeros(len(length), dtype=np.bool_)
    is_candidate[np.cumsum(size) - size] = True
    return SentenceIds(
        np.fromiter(map(numbers.__getitem__, words), dtype=np.int64, count=len(words)),
        np.repeat(np.arange(len(length)), length),
        length,
        np.repeat(np.arange(len(size)), size),
        is_candidate,
        vocabulary,
    )


def blank_separated(sentences: SentenceIds) -> SentenceIds:
    """The same sentences with words separated by any white space and never empty."""
    pieces = [word.split() for word in sentences.vocabulary]
    if all(len(parts) == 1 for parts in pieces):
        return sentences
    vocabulary = list(dict.fromkeys(piece for parts in pieces for piece in parts))
    numbers = {word: number for number, word in enumerate(vocabulary)}
    piece = np.array([numbers[piece] for parts in pieces for piece in parts], dtype=np.int64)
    size = np.array([len(parts) for parts in pieces], dtype=np.int64)
    times = size[sentences.word]
    within = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    sentence = np.repeat(sentences.sentence, times)
    return replace(
        sentences,
        word=piece[within + np.repeat((np.cumsum(size) - size)[sentences.word], times)],
        sentence=sentence,
        length=np.bincount(sentence, minlength=len(sentences.length)),
        vocabulary=vocabulary,
    )


def ngram_runs(sentences: SentenceIds) -> list[Runs]:
    """Count the n-grams of n = 1 … 4 words; entry n - 1 of the list has those of n words."""
    runs = []
    place = np.arange(len(sentences.word))
    gram = sentences.word
    for n in range(1, MAX_N + 1):
        if n > 1:  # an n-gram is the (n-1)-gram it starts with and one word more, if that is in the same sentence
            inside = place + n - 1 < len(sentences.word)
            place, gram = place[inside], gram[inside]
            inside = sentences.sentence[place] == sentences.sentence[place + n - 1]
            place, gram = place[inside], gram[inside]
            gram = gram * len(sentences.vocabulary) + sentences.word[place + n - 1]
        order = np.argsort(gram, kind="stable")
        runs.append(_runs(gram[order], place[order], sentences))
        gram = _renumbered(gram, order)
    return runs


def _changes(*columns: Ints) -> NDArray[np.bool_]:
    """(n,) True where any of the columns, each (n,), differs from the entry before it."""
    new = np.ones(len(columns[0]), dtype=np.bool_)
    new[1:] = False
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def _renumbered(gram: Ints, order: Ints) -> Ints:
    """Numbers from 0 without holes, so that two of them multiplied still fit in 64 bits."""
    dense = np.empty_like(gram)
    dense[order] = np.cumsum(_changes(gram[order])) - 1
    return dense


def _runs(gram: Ints, place: Ints, sentences: SentenceIds) -> Runs:
    """Count equal neighbours. The input is sorted by n-gram; places ascend within one, and so do sentences."""
    sentence = sentences.sentence[place]
    entry = np.flatnonzero(_changes(gram, sentence))
    count = np.diff(entry, append=len(gram))
    number = np.cumsum(_changes(gram)) - 1
    gram, sentence, place = number[entry], sentence[entry], place[entry]
    new_run = _changes(gram, sentences.item[sentence])
    return Runs(gram, sentence, count, place, np.cumsum(new_run) - 1, np.flatnonzero(new_run))
