"""CIDEr and CIDEr-D (Vedantam et al. 2015): tf-idf-weighted n-grams shared with the references.

What papers and the COCO evaluation print as "CIDEr" is CIDEr-D, and so is `cider` here: counts are clipped to those of
the reference, a difference in length is punished by a Gaussian of width 6, and the result is multiplied by 10.
`variant="plain"` is the cosine of the tf-idf vectors alone, without stemming of words.

How rare an n-gram is comes from the references themselves, one document for each item, or from a
`DocumentFrequency` of a bigger set. Without the latter a single item always scores 0, because nothing is rare in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.core.types import Floats
from saywhere.metrics.captions._items import Accumulator, CaptionSet, Id, ScoreTable, caption_set, joined, table
from saywhere.metrics.captions._ngrams import MAX_N, Runs, SentenceIds
from saywhere.metrics.captions._tokenize import ptb_words

Variant = Literal["D", "plain"]
NAMES: dict[str, str] = {"D": "CIDEr", "plain": "CIDEr (plain)"}
_SIGMA = 6.0
_SCALE = 10.0


@dataclass(frozen=True, eq=False)
class DocumentFrequency:
    """In how many documents an n-gram is; a document is all references of one image.

    counts: n-gram, as a tuple of 1 to 4 words → number of documents. One that is not there counts as 1.
    documents: how many documents there are.
    """

    counts: Mapping[tuple[str, ...], float]
    documents: float

    def __post_init__(self) -> None:
        if not self.documents >= 1:
            raise InvalidValue("document frequency", f"of {self.documents} documents", "at least one is needed")
        most = max(self.counts.values(), default=0)
        if not most <= self.documents:
            raise InvalidValue("document frequency", f"an n-gram is in {most} of {self.documents} documents")

    @classmethod
    def of(cls, references: Iterable[Sequence[str]], *, tokenized: bool = False) -> DocumentFrequency:
        """Count the n-grams of the references of many images, each a list of captions."""
        counts: Counter[tuple[str, ...]] = Counter()
        documents = 0
        for captions in references:
            sentences = [caption.split() if tokenized else " ".join(ptb_words(caption)).split() for caption in captions]
            counts.update(
                {tuple(s[i : i + n]) for s in sentences for n in range(1, MAX_N + 1) for i in range(len(s) - n + 1)}
            )
            documents += 1
        return cls(dict(counts), documents)


def cider(
    candidates: Mapping[Id, str],
    references: Mapping[Id, Sequence[str]],
    *,
    tokenized: bool = False,
    df: DocumentFrequency | None = None,
    variant: Variant = "D",
) -> ScoreTable[Id]:
    """Score "CIDEr" (that is, CIDEr-D), or "CIDEr (plain)" with variant="plain"; 0 … 10. The corpus has the mean.

    >>> sorted(cider({1: "a red cup", 2: "a cat"}, {1: ["a red cup"], 2: ["a dog"]})["per_item"])
    [1, 2]
    """
    _check_variant(variant)
    return _finish([_tally(caption_set(candidates, references, tokenized=tokenized))], df=df, variant=variant)


class Cider(Accumulator[CaptionSet[int | str]]):
    """`cider` over captions that come in batches. They are kept until `reset`, for rarity depends on all of them."""

    def __init__(self, *, df: DocumentFrequency | None = None, variant: Variant = "D") -> None:
        _check_variant(variant)
        super().__init__(_tally, partial(_finish, df=df, variant=variant))


def _check_variant(variant: str) -> None:
    if variant not in NAMES:
        raise UnknownName("variant of CIDEr", variant, NAMES)


def _tally(captions: CaptionSet[Id]) -> CaptionSet[Id]:
    return captions


def _finish(
    tallies: Sequence[CaptionSet[Id]], *, df: DocumentFrequency | None = None, variant: Variant = "D"
) -> ScoreTable[Id]:
    captions = joined(tallies)
    sentences = captions.sentences
    log_documents = np.log(df.documents if df else len(captions.ids))
    similarity = np.zeros(len(sentences.length))
    for n, runs in enumerate(captions.ngrams, start=1):
        if len(runs.gram):
            frequency = _given_frequency(runs, sentences, n, df) if df else _own_frequency(runs, sentences)
            rarity = log_documents - np.log(np.maximum(frequency, 1.0))
            similarity += _similarity(runs, sentences, rarity, clipped=variant == "D")
    start = np.flatnonzero(sentences.is_candidate)
    if variant == "D":
        similarity *= _length_penalty(sentences, start)
    size = np.diff(start, append=len(sentences.length)) - 1
    score = np.add.reduceat(similarity, start) / MAX_N / size * _SCALE
    return table([NAMES[variant]], [float(score.mean())], captions.ids, score[:, None].tolist())


def _own_frequency(runs: Runs, sentences: SentenceIds) -> Floats:
    """(g,) in how many items a reference has the n-gram. A run has a reference unless the candidate is alone in it."""
    size = np.diff(runs.run_start, append=len(runs.gram))
    alone = sentences.is_candidate[runs.sentence[runs.run_start]] & (size == 1)
    return np.bincount(runs.gram[runs.run_start[~alone]], minlength=int(runs.gram[-1]) + 1).astype(np.float64)


def _given_frequency(runs: Runs, sentences: SentenceIds, n: int, df: DocumentFrequency) -> Floats:
    """(g,) the frequency of each n-gram in the given table."""
    first = np.unique(runs.gram, return_index=True)[1]
    words = sentences.word[runs.place[first][:, None] + np.arange(n)]
    names = sentences.vocabulary
    return np.array([df.counts.get(tuple(names[w] for w in gram), 0.0) for gram in words.tolist()], dtype=np.float64)


def _similarity(runs: Runs, sentences: SentenceIds, rarity: Floats, *, clipped: bool) -> Floats:
    """(s,) cosine of the weighted n-grams of each reference and its candidate; 0 for the candidates."""
    weight = runs.count * rarity[runs.gram]
    norm = np.sqrt(np.bincount(runs.sentence, weights=weight * weight, minlength=len(sentences.length)))
    head = runs.run_start[runs.run]
    shared = sentences.is_candidate[runs.sentence[head]] & ~sentences.is_candidate[runs.sentence]
    of_reference, of_candidate = weight[shared], weight[head[shared]]
    product = (np.minimum(of_candidate, of_reference) if clipped else of_candidate) * of_reference
    total = np.bincount(runs.sentence[shared], weights=product, minlength=len(sentences.length))
    bottom = norm * norm[np.flatnonzero(sentences.is_candidate)][sentences.item]
    return total / np.where(bottom > 0, bottom, 1.0)


def _length_penalty(sentences: SentenceIds, start: NDArray[np.int64]) -> Floats:
    """(s,) Gaussian of the difference in words between each sentence and the candidate of its item."""
    difference = sentences.length - sentences.length[start][sentences.item]
    penalty: Floats = np.exp(-(difference**2) / (2 * _SIGMA**2))
    return penalty
