"""ROUGE-L (Lin 2004) as the COCO evaluation computes it: the longest common subsequence of words, beta 1.2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from saywhere.metrics.captions._items import Accumulator, CaptionSet, Id, ScoreTable, caption_set, table
from saywhere.metrics.captions._ngrams import Ints, SentenceIds

NAME = "ROUGE-L"
_BETA = 1.2
_WORD_BITS = 64


@dataclass(frozen=True, eq=False)
class _RougeTally(Generic[Id]):
    """score: (n,) of each item."""

    ids: Sequence[Id]
    score: NDArray[np.float64]


def rouge_l(
    candidates: Mapping[Id, str], references: Mapping[Id, Sequence[str]], *, tokenized: bool = False
) -> ScoreTable[Id]:
    """Score "ROUGE-L". The best precision and the best recall may come from different references, as in the original.

    Words are what single spaces separate. An empty candidate scores 0, even where a reference is empty too.

    >>> round(rouge_l({1: "a red cup"}, {1: ["a blue cup"]})["corpus"]["ROUGE-L"], 3)
    0.667
    """
    return _finish([_tally(caption_set(candidates, references, tokenized=tokenized))])


class RougeL(Accumulator[_RougeTally[int | str]]):
    """`rouge_l` over captions that come in batches."""

    def __init__(self) -> None:
        super().__init__(_tally, _finish)


def _tally(captions: CaptionSet[Id]) -> _RougeTally[Id]:
    sentences = captions.spaced
    start = np.flatnonzero(sentences.is_candidate)
    common = _common_lengths(sentences)
    # The candidate's own entries are 0, so they never are the best.
    precision = np.maximum.reduceat(common / sentences.length[start][sentences.item], start)
    recall = np.maximum.reduceat(common / sentences.length, start)
    weight = _BETA**2
    bottom = np.where(precision > 0, recall + weight * precision, 1.0)
    score = (1 + weight) * precision * recall / bottom
    score[[not candidate for candidate in captions.candidates]] = 0.0
    return _RougeTally(captions.ids, score)


def _finish(tallies: Sequence[_RougeTally[Id]]) -> ScoreTable[Id]:
    score = np.concatenate([t.score for t in tallies])
    return table([NAME], [float(score.mean())], [item for t in tallies for item in t.ids], score[:, None].tolist())


def _common_lengths(sentences: SentenceIds) -> Ints:
    """(s,) words of the longest common subsequence of each reference and its candidate; 0 for the candidates."""
    candidate = np.flatnonzero(sentences.is_candidate)
    long = (sentences.length[candidate] > _WORD_BITS)[sentences.item]
    common = _common_lengths_short(sentences)
    start = sentences.start
    words = sentences.word.tolist()
    for reference in np.flatnonzero(long & ~sentences.is_candidate):
        a, b = (
            words[start[s] : start[s] + sentences.length[s]] for s in (candidate[sentences.item[reference]], reference)
        )
        common[reference] = common_length(a, b)
    return common


def common_length(a: Sequence[object], b: Sequence[object]) -> int:
    """Length of the longest common subsequence of two sequences.

    One bit for each element of `a`, in one big integer. A bit is cleared where the best common subsequence of the
    part of `b` seen so far and of `a` up to that element grows by one; so the cleared bits are the length.
    """
    where: dict[object, int] = {}
    for i, element in enumerate(a):
        where[element] = where.get(element, 0) | 1 << i
    full = (1 << len(a)) - 1
    row = full
    for element in b:
        hit = row & where.get(element, 0)
        row = ((row + hit) | (row - hit)) & full
    return len(a) - row.bit_count()


def _common_lengths_short(sentences: SentenceIds) -> Ints:
    """As `common_length` for all references at once, one 64-bit integer for each; longer candidates give nonsense."""
    hits = _hits(sentences)
    start = sentences.start
    by_length = np.argsort(-sentences.length, kind="stable")
    row = np.full(len(sentences.length), np.uint64(0xFFFF_FFFF_FFFF_FFFF))
    for step in range(int(sentences.length.max())):
        alive = by_length[: np.searchsorted(-sentences.length[by_length], -step)]
        old = row[alive]
        hit = old & hits[start[alive] + step]
        row[alive] = (old + hit) | (old - hit)
    cleared = _WORD_BITS - np.bitwise_count(row).astype(np.int64)
    return np.where(sentences.is_candidate, 0, cleared)


def _hits(sentences: SentenceIds) -> NDArray[np.uint64]:
    """(w,) for each word, the places of the same word in the candidate of its item, as bits from 0."""
    place = np.arange(len(sentences.word)) - sentences.start[sentences.sentence]
    item = sentences.item[sentences.sentence]
    key = item * len(sentences.vocabulary) + sentences.word
    order = np.argsort(key, kind="stable")
    bits = np.left_shift(np.uint64(1), (place % _WORD_BITS).astype(np.uint64))
    bits[~sentences.is_candidate[sentences.sentence]] = 0
    new = np.ones(len(key), dtype=np.bool_)
    new[1:] = key[order][1:] != key[order][:-1]
    hits = np.empty(len(key), dtype=np.uint64)
    hits[order] = np.bitwise_or.reduceat(bits[order], np.flatnonzero(new))[np.cumsum(new) - 1]
    return hits
