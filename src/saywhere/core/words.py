"""Words in time: what was said, when, and how an utterance of several words is shared out among them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Floats


@dataclass(frozen=True, slots=True)
class Utterance:
    """Something said without a pause in the transcript's timing: one word, or several.

    text: as transcribed. start_s, end_s: seconds, start ≤ end; equal where the aligner found no duration.

    >>> Utterance("a red cup", 0.5, 1.25)
    Utterance(text='a red cup', start_s=0.5, end_s=1.25)
    """

    text: str
    start_s: float
    end_s: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.start_s) and math.isfinite(self.end_s)):
            raise InvalidValue(f"utterance {self.text!r}", f"has times {self.start_s}, {self.end_s}: not finite")
        if self.end_s < self.start_s:
            raise InvalidValue(
                f"utterance {self.text!r}", f"ends at {self.end_s:g} s, before it starts at {self.start_s:g} s"
            )


class Word(Utterance):
    """One word: an utterance without white space.

    >>> Word("cup", 1.0, 1.25).text
    'cup'
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        Utterance.__post_init__(self)
        if not self.text or self.text.split() != [self.text]:
            raise InvalidValue("word", f"{self.text!r} is not one word")


def check_order(utterances: Iterable[Utterance]) -> None:
    """Refuse utterances whose starts go back in time. Overlap is allowed: people's words run into each other."""
    for i, (before, after) in enumerate(pairwise(utterances)):
        if after.start_s < before.start_s:
            raise InvalidValue(
                f"utterance {i + 1} ({after.text!r})",
                f"starts at {after.start_s:g} s, before the one ahead of it at {before.start_s:g} s",
            )


def split_words(utterances: Sequence[Utterance]) -> tuple[Word, ...]:
    """A window for every word; windows never overlap.

    An utterance's window is shared out in proportion to its words' letters. It ends where the next one starts at the
    latest. One of no length borrows time: it reaches back to the middle of the utterance before it and on to the
    middle of the one after it, which are shortened by as much; one that is asked from both sides lends a quarter to
    each. Neighbouring utterances of no length borrow as one. Utterances without any word (white space) give none.

    >>> [(word.text, word.start_s, word.end_s) for word in split_words([Utterance("red cup", 1.0, 2.0)])]
    [('red', 1.0, 1.5), ('cup', 1.5, 2.0)]
    """
    spoken = [u for u in utterances if u.text.split()]
    check_order(spoken)
    runs = _runs(spoken)
    words: list[Word] = []
    for i, run in enumerate(runs):
        before, after = runs[i - 1] if i else None, runs[i + 1] if i + 1 < len(runs) else None
        start_s, end_s = run.start_s, run.end_s
        if run.timed:
            start_s += run.lends_s if before and not before.timed else 0
            end_s -= run.lends_s if after and not after.timed else 0
        else:
            start_s = before.end_s - before.lends_s if before else start_s
            end_s = after.start_s + after.lends_s if after else end_s
        words += _share(run.texts, start_s, end_s)
    return tuple(words)


def word_times(utterances: Sequence[Utterance]) -> Floats:
    """(n, 2) the windows of `split_words` alone, which is much faster where every utterance is one word with a length.

    >>> word_times([Utterance("red cup", 1.0, 2.0)]).tolist()
    [[1.0, 1.5], [1.5, 2.0]]
    """
    times = np.array([(one.start_s, one.end_s) for one in utterances], dtype=np.float64).reshape(-1, 2)
    times[:-1, 1] = np.minimum(times[:-1, 1], times[1:, 0])
    if (times[:, 1] > times[:, 0]).all() and all(len(one.text.split()) == 1 for one in utterances):
        return times
    words = split_words(utterances)
    return np.array([(word.start_s, word.end_s) for word in words], dtype=np.float64).reshape(-1, 2)


@dataclass(slots=True)
class _Run:
    """One utterance with a length, or neighbouring ones without. lends_s: what it gives to each neighbour in need."""

    texts: list[str]
    start_s: float
    end_s: float
    timed: bool
    lends_s: float = 0.0


def _runs(spoken: Sequence[Utterance]) -> list[_Run]:
    runs: list[_Run] = []
    following = [*(u.start_s for u in spoken), math.inf][1:]
    for utterance, next_start_s in zip(spoken, following, strict=True):
        end_s = min(utterance.end_s, next_start_s)
        timed = end_s > utterance.start_s
        if runs and not timed and not runs[-1].timed:
            runs[-1].texts += utterance.text.split()
            runs[-1].end_s = end_s
        else:
            runs.append(_Run(utterance.text.split(), utterance.start_s, end_s, timed))
    for before, after in pairwise(runs):
        for lender, borrower in ((before, after), (after, before)):
            if lender.timed and not borrower.timed:
                length_s = lender.end_s - lender.start_s
                lender.lends_s = length_s / 4 if lender.lends_s else length_s / 2
    return runs


def _share(texts: Sequence[str], start_s: float, end_s: float) -> list[Word]:
    if len(texts) == 1:
        return [Word(texts[0], start_s, end_s)]
    letters = [sum(c.isalnum() for c in text) or 1 for text in texts]
    cuts = start_s + (end_s - start_s) * np.cumsum([0, *letters]) / sum(letters)
    times = [start_s, *cuts[1:-1].tolist(), end_s]
    return [Word(text, a, b) for text, (a, b) in zip(texts, pairwise(times), strict=True)]
