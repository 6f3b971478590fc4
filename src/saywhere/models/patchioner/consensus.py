"""The caption that agrees most with what the memory knows and with the other captions that were drawn.

Several captions are drawn for one vector; the one is kept that shares most words and runs of words with the sentences
nearest to the vector (Devlin et al. 2015, here with texts alone), and with each other (the least expected loss, if
drawn captions are what people may write), rare runs counting more. No photo is compared with any other: the memory
holds only texts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saywhere.core import InvalidValue, Nearest
from saywhere.language.vocabulary import plain_words
from saywhere.models.search import GenerationConfig

_LONGEST = 4
NgramWeights = Mapping[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class ConsensusConfig:
    """How to write by consensus.

    beams: two candidates come from a beam search, one for the vector as it was seen and one for what the gap's way of
    closing made of it. draws: so many more are drawn at random; always the same for the same vector. temperature,
    top_p, no_repeat: of the drawing, see `GenerationConfig`. nearest: so many sentences of the memory are references,
    weighted by exp(cosine / softness). min_words: of candidates and of references: a memory may hold phrases too,
    which the shortest candidates agree with best. among: how much likeness among the candidates counts, the rest is
    likeness to the memory's sentences.
    """

    beams: int = 3
    draws: int = 16
    temperature: float = 0.5
    top_p: float = 0.9
    no_repeat: int = 3
    nearest: int = 150
    softness: float = 0.05
    min_words: int = 6
    among: float = 0.3

    def __post_init__(self) -> None:
        if min(self.beams, self.draws, self.nearest) < 1:
            raise InvalidValue("agreement", f"needs at least 1 of beams, draws and nearest: {self}")
        if not 0 < self.softness < math.inf:
            raise InvalidValue("agreement softness", f"is {self.softness}, not above 0")
        if not 0 <= self.among <= 1:
            raise InvalidValue("agreement among candidates", f"is {self.among}, not within [0, 1]")

    @property
    def careful(self) -> GenerationConfig:
        return GenerationConfig("beam", beams=self.beams, no_repeat=self.no_repeat, min_words=self.min_words)

    @property
    def drawing(self) -> GenerationConfig:
        return GenerationConfig(
            "nucleus",
            top_p=self.top_p,
            temperature=self.temperature,
            no_repeat=self.no_repeat,
            min_words=self.min_words,
        )

    def references(self, nearest: Sequence[Nearest]) -> list[Nearest]:
        """The sentences to compare with, out of more than enough; short ones if none is long enough."""
        long = [one for one in nearest if len(one.sentence.split()) >= self.min_words]
        return (long or list(nearest))[: self.nearest]


class InverseFrequency:
    """How rare words and runs of up to four words are among sentences."""

    def __init__(self, sentences: Iterable[str]) -> None:
        every = [plain_words(sentence) for sentence in sentences]
        if not every:
            raise InvalidValue("sentences", "there are none")
        seen = Counter(chain.from_iterable(set(chain.from_iterable(_runs(words))) for words in every))
        self._most = math.log(len(every))
        self._rarity = {run: self._most - math.log(times) for run, times in seen.items()}

    def weights(self, text: str) -> list[NgramWeights]:
        """For runs of 1, 2, 3 and 4 words: how often × how rare each is."""
        return [
            {run: times * self._rarity.get(run, self._most) for run, times in Counter(runs).items()}
            for runs in _runs(plain_words(text))
        ]


def consensus(
    candidates: Sequence[str],
    references: Sequence[Nearest],
    rarity: InverseFrequency,
    softness: float,
    among: float = 0.0,
) -> int:
    """The number of the candidate most alike to the reference sentences and, by the share `among`, to the other
    candidates; of equals the first."""
    if not candidates or not references:
        raise InvalidValue("consensus", "needs candidates and sentences")
    highest = max(one.cosine for one in references)
    weights = np.exp([(one.cosine - highest) / softness for one in references])
    by_text = {text: rarity.weights(text) for text in dict.fromkeys(candidates)}
    own = [by_text[text] for text in candidates]
    column = {run: number for number, run in enumerate(dict.fromkeys(chain.from_iterable(chain(*own))))}
    sizes = np.array([len(run) - 1 for run in column], dtype=np.intp)
    ours = _profiles(own, column, sizes)
    known = _likeness(ours, _profiles([rarity.weights(one.sentence) for one in references], column, sizes))
    # Row by row, because a product of matrices may round equal rows otherwise, and of equals the first is kept.
    scores = (1 - among) * (known * weights).sum(axis=1) / weights.sum()
    if among:
        alike = _likeness(ours, ours)
        np.fill_diagonal(alike, 0)
        scores += among * alike.sum(axis=1) / max(len(own) - 1, 1)
    return int(scores.argmax())


class _Profiles(NamedTuple):
    """Texts by the runs that any candidate has.

    weights: (texts, runs) what each run weighs in each text. shares: the same over the length, as a vector, of all runs
    of that size in the text. lengths: (texts, runs) those lengths.
    """

    weights: NDArray[np.float64]
    shares: NDArray[np.float64]
    lengths: NDArray[np.float64]


def _profiles(
    texts: Sequence[Sequence[NgramWeights]], column: Mapping[tuple[str, ...], int], sizes: NDArray[np.intp]
) -> _Profiles:
    """column: of each run; others count in the lengths alone. sizes: (runs,) of each in words, less one."""
    weights = np.zeros((len(texts), len(column)))
    lengths = np.empty((len(texts), _LONGEST))
    for row, text in enumerate(texts):
        lengths[row] = [_length(ngrams) for ngrams in text]
        said = {column[run]: value for ngrams in text for run, value in ngrams.items() if run in column}
        weights[row, list(said)] = list(said.values())
    by_run = lengths[:, sizes]
    return _Profiles(weights, weights / by_run, by_run)


def _likeness(ours: _Profiles, theirs: _Profiles) -> NDArray[np.float64]:
    """(ours, theirs). What is said more often than in the sentence does not count more: otherwise the one that repeats
    itself wins."""
    alike = np.empty((len(ours.weights), len(theirs.weights)))
    for row, (values, lengths) in enumerate(zip(ours.weights, ours.lengths, strict=True)):
        (said,) = values.nonzero()
        common = np.minimum(values[said], theirs.weights[:, said]) * theirs.shares[:, said]
        alike[row] = (common / lengths[said]).sum(axis=1)
    return alike


def _length(ngrams: NgramWeights) -> float:
    return math.hypot(*ngrams.values()) or 1.0


def _runs(words: Sequence[str]) -> list[Iterator[tuple[str, ...]]]:
    """All runs of 1, 2, 3 and 4 words."""
    later = [words[start:] for start in range(_LONGEST)]
    return [zip(*later[:size], strict=False) for size in range(1, _LONGEST + 1)]
