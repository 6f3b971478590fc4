"""BLEU-1 … BLEU-4 (Papineni et al. 2002), with the constants and the reference length of the COCO evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from saywhere.metrics.captions._items import Accumulator, CaptionSet, Id, ScoreTable, caption_set, table
from saywhere.metrics.captions._ngrams import MAX_N, Ints, Runs, SentenceIds

NAMES = tuple(f"BLEU-{n}" for n in range(1, MAX_N + 1))

# Keep 0 / 0 at nearly 0. Other values change the scores in the ninth digit.
_TINY, _SMALL = 1e-15, 1e-9


@dataclass(frozen=True, eq=False)
class _BleuTally(Generic[Id]):
    """matched, tried: (n, 4) n-grams of each candidate, and those of them its references have too.
    candidate_length, reference_length: (n,) words, the latter of the reference nearest in length."""

    ids: Sequence[Id]
    matched: Ints
    tried: Ints
    candidate_length: Ints
    reference_length: Ints


def bleu(
    candidates: Mapping[Id, str], references: Mapping[Id, Sequence[str]], *, tokenized: bool = False
) -> ScoreTable[Id]:
    """Scores "BLEU-1" … "BLEU-4". That of the corpus is not a mean: the counts of all items are added up first.

    >>> round(bleu({1: "a red cup"}, {1: ["a blue cup"]})["corpus"]["BLEU-1"], 3)
    0.667
    """
    return _finish([_tally(caption_set(candidates, references, tokenized=tokenized))])


class Bleu(Accumulator[_BleuTally[int | str]]):
    """`bleu` over captions that come in batches."""

    def __init__(self) -> None:
        super().__init__(_tally, _finish)


def _tally(captions: CaptionSet[Id]) -> _BleuTally[Id]:
    sentences = captions.sentences
    length = sentences.length[sentences.is_candidate]
    tried = np.maximum(length[:, None] - np.arange(MAX_N), 0)
    matched = np.stack([_matched(runs, sentences) for runs in captions.ngrams], axis=1)
    return _BleuTally(captions.ids, matched, tried, length, _nearest_lengths(sentences))


def _matched(runs: Runs, sentences: SentenceIds) -> Ints:
    """(n,) n-grams of each candidate that a reference has, each at most as often as the reference that has it most."""
    n_items = int(sentences.item[-1]) + 1
    if not len(runs.gram):
        return np.zeros(n_items, dtype=np.int64)
    of_candidate = sentences.is_candidate[runs.sentence]
    most = np.maximum.reduceat(np.where(of_candidate, 0, runs.count), runs.run_start)
    entry = runs.run_start[of_candidate[runs.run_start]]
    clipped = np.minimum(runs.count[entry], most[runs.run[entry]])
    counted = np.bincount(sentences.item[runs.sentence[entry]], weights=clipped, minlength=n_items)
    return counted.astype(np.int64)


def _nearest_lengths(sentences: SentenceIds) -> Ints:
    """(n,) length of the reference nearest in length to each candidate; of two as near, the shorter."""
    start = np.flatnonzero(sentences.is_candidate)
    gap = np.abs(sentences.length - sentences.length[start][sentences.item])
    worst = int(sentences.length.max()) + 1
    key = np.where(sentences.is_candidate, worst * worst, gap * worst + sentences.length)
    return np.minimum.reduceat(key, start) % worst


def _finish(tallies: Sequence[_BleuTally[Id]]) -> ScoreTable[Id]:
    matched = np.concatenate([t.matched for t in tallies])
    tried = np.concatenate([t.tried for t in tallies])
    candidate = np.concatenate([t.candidate_length for t in tallies])
    reference = np.concatenate([t.reference_length for t in tallies])
    corpus = _scores(matched.sum(0)[None], tried.sum(0)[None], candidate.sum()[None], reference.sum()[None])[0]
    rows = _scores(matched, tried, candidate, reference)
    return table(NAMES, corpus.tolist(), [item for t in tallies for item in t.ids], rows.tolist())


def _scores(matched: Ints, tried: Ints, candidate_length: Ints, reference_length: Ints) -> NDArray[np.float64]:
    """(n, 4) BLEU-1 … BLEU-4 of n counts."""
    precision = np.cumprod((matched + _TINY) / (tried + _SMALL), axis=1)
    ratio = (candidate_length + _TINY) / (reference_length + _SMALL)
    brevity = np.exp(np.minimum(1 - 1 / ratio, 0))
    scores: NDArray[np.float64] = precision ** (1 / np.arange(1, MAX_N + 1)) * brevity[:, None]
    return scores
