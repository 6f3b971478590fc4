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
        self._seen = Counter(chain.from_iterable(set(chain.from_iterable(_runs(words))) for words in every))
        self._most = math.log(len(every))

    def weights(self, text: str) -> list[NgramWeights]:
        """For runs of 1, 2, 3 and 4 words: how often × how rare each is."""
        return [
            {run: times * (self._most - math.log(max(1, self._seen[run]))) for run, times in Counter(runs).items()}
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
    weights = [math.exp((one.cosine - highest) / softness) for one in references]
    sentences = [_profile(one.sentence, rarity) for one in references]
    own = [_profile(text, rarity) for text in candidates]
    scores = []
    for number, text in enumerate(own):
        known = sum(weight * _likeness(text, other) for weight, other in zip(weights, sentences, strict=True))
        others = [_likeness(text, other) for place, other in enumerate(own) if place != number and among]
        scores.append((1 - among) * known / sum(weights) + among * sum(others) / max(len(others), 1))
    return max(range(len(scores)), key=lambda number: (scores[number], -number))


Profile = Sequence[tuple[NgramWeights, float]]
"""For runs of 1, 2, 3 and 4 words: what each weighs, and the length of all of them as a vector."""


def _profile(text: str, rarity: InverseFrequency) -> Profile:
    return [(ngrams, _length(ngrams)) for ngrams in rarity.weights(text)]


def _likeness(ours: Profile, theirs: Profile) -> float:
    return sum(
        _alike(some, other) / (length * other_length)
        for (some, length), (other, other_length) in zip(ours, theirs, strict=True)
    )


def _alike(ours: NgramWeights, theirs: NgramWeights) -> float:
    """What is said more often than in the sentence does not count more: otherwise the one that repeats itself wins."""
    return sum(min(value, theirs[run]) * theirs[run] for run, value in ours.items() if run in theirs)


def _length(ngrams: NgramWeights) -> float:
    return math.sqrt(sum(value * value for value in ngrams.values())) or 1.0


def _runs(words: Sequence[str]) -> list[Iterator[tuple[str, ...]]]:
    """All runs of 1, 2, 3 and 4 words."""
    later = [words[start:] for start in range(_LONGEST)]
    return [zip(*later[:size], strict=False) for size in range(1, _LONGEST + 1)]
