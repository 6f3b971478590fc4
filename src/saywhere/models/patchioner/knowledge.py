"""Knowledge in words: a prompt that names what is there, beside the vector.

ViECap's form takes the nouns nearest to the vector; MeaCap's takes those that the nearest sentences of a memory agree
on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saywhere.core.errors import InvalidValue
from saywhere.language.embed import TextEncoder
from saywhere.language.nouns import nouns_of
from saywhere.models.patchioner.gap import Closed, Direct, Gap
from saywhere.models.patchioner.memory import MemoryBank, Nearest

_UNKNOWN = "something"


def prompt(names: Sequence[str]) -> str:
    """ViECap's sentence: "There are a, b, c in image."; of nothing, "There are something in image."."""
    return f"There are {', '.join(names) or _UNKNOWN} in image."


@dataclass(frozen=True, slots=True)
class KnowledgeGap:
    """A prompt of the nouns nearest to a vector.

    nouns: a bank whose sentences are nouns. most: at most so many. temperature: of the softmax over all nouns.
    least_share: a noun must have this share of it; ViECap has 0.2. soft: what is done to the vector itself.
    """

    nouns: MemoryBank
    most: int = 3
    temperature: float = 0.01
    least_share: float = 0.2
    soft: Gap = field(default_factory=Direct)

    def __post_init__(self) -> None:
        if self.most < 1:
            raise InvalidValue("most", f"is {self.most}, not at least 1")
        if not 0 <= self.least_share <= 1:
            raise InvalidValue("least_share", f"is {self.least_share}, not in [0, 1]")

    def close(self, vectors: ArrayLike) -> Closed:
        near = self.nouns.project(vectors, self.temperature, nearest=self.most).nearest
        chosen = [[noun for noun in row if noun.share >= self.least_share] for row in near]
        prompts = tuple(prompt([noun.sentence for noun in row]) for row in chosen)
        soft = self.soft.close(vectors)
        return Closed(soft.vectors, prompts, soft.nearest if any(soft.nearest) else chosen)


@dataclass(frozen=True, slots=True)
class FilteredKnowledgeGap:
    """A prompt of the nouns that the nearest sentences agree on.

    bank: of sentences. encoder: tells which nouns mean the same. sentences: how many of the nearest are asked.
    alike: nouns whose cosine is above this are one. votes: in how many sentences a noun must be. most: at most so many
    nouns. soft: what is done to the vector itself. read: sentences → the nouns of each.
    """

    bank: MemoryBank
    encoder: TextEncoder
    sentences: int = 5
    alike: float = 0.55
    votes: int = 3
    most: int = 4
    soft: Gap = field(default_factory=Direct)
    read: Callable[[Sequence[str]], list[tuple[str, ...]]] = nouns_of
    _known: dict[str, NDArray[np.float32]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.votes <= self.sentences:
            raise InvalidValue("votes", f"are {self.votes}, not in 1 … {self.sentences}")
        if self.most < 1:
            raise InvalidValue("most", f"is {self.most}, not at least 1")

    def close(self, vectors: ArrayLike) -> Closed:
        # With top = 1 nothing but the nearest sentences is worked out.
        near = self.bank.project(vectors, top=1, nearest=self.sentences).nearest
        nouns = self._nouns_in(near)
        prompts = tuple(prompt(self._agreed(row, nouns)) for row in near)
        soft = self.soft.close(vectors)
        return Closed(soft.vectors, prompts, near)

    def _nouns_in(self, near: Sequence[Sequence[Nearest]]) -> dict[str, tuple[str, ...]]:
        """Sentence → its nouns, whose vectors are known afterwards."""
        texts = list(dict.fromkeys(one.sentence for row in near for one in row))
        nouns = dict(zip(texts, self.read(texts), strict=True))
        new = sorted({noun for found in nouns.values() for noun in found} - set(self._known))
        if new:
            self._known.update(zip(new, self.encoder.embed(new), strict=True))
        return nouns

    def _agreed(self, row: Sequence[Nearest], nouns: dict[str, tuple[str, ...]]) -> list[str]:
        """Nouns with enough votes, the most voted first; of nouns that are one, the first said stands for all."""
        voters: dict[str, set[int]] = {}
        for voter, one in enumerate(row):
            for noun in nouns[one.sentence]:
                voters.setdefault(self._same(noun, list(voters)), set()).add(voter)
        agreed = [noun for noun, who in voters.items() if len(who) >= self.votes]
        return sorted(agreed, key=lambda noun: -len(voters[noun]))[: self.most]

    def _same(self, noun: str, heads: Sequence[str]) -> str:
        """The noun among `heads` that means the same, or the noun itself."""
        if noun in heads or not heads:
            return noun
        cosines = np.stack([self._known[head] for head in heads]) @ self._known[noun]
        best = int(cosines.argmax())
        return heads[best] if cosines[best] > self.alike else noun
