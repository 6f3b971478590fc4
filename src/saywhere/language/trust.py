"""Whom to believe, word by word: several listeners' opinions become one time and a confidence for every word.

A time that two listeners agree on, of a word that was easily heard among others that were, is likely right. How likely
was learnt from recordings of real voices (`python -m bench.align_folds`), and is kept in `trust.json`: what each
listener is late by, the weights of a logistic regression, and below which confidence a text is not what was said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from saywhere.core.types import Floats, Ints
from saywhere.language.opinion import Opinion

# Listeners who agree are nearer than this; farther apart than that is simply elsewhere.
_FAR_S, _ELSEWHERE_S = 0.1, 1.0
# Scores below this say no more than that nothing fits.
_WORST_SCORE, _MOST_EASE = -10.0, 3.0
_ARTICLES = ("a", "an", "the")
# How many words on either side are a word's neighbours.
_NEIGHBOURS = 2
_LEAST_CONFIDENCE = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Trust:
    """late_s: what each listener's starts are later than the true ones. weights: one for each of `evidence`'s columns.
    least: the mean confidence below which a text is not what was said. unheard: the confidence of words that nobody
    heard, which are put between their neighbours."""

    late_s: Mapping[str, float]
    weights: Floats
    least: float
    unheard: float


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One row for each word; NaN where nobody was believed."""

    starts_s: Floats
    ends_s: Floats
    confidence: Floats

    def among(self, n_words: int, places: Sequence[int], unheard: float) -> Judged:
        """The same words at their places in a longer text, whose others nobody could hear."""
        longer = Judged(np.full(n_words, np.nan), np.full(n_words, np.nan), np.full(n_words, unheard))
        longer.starts_s[places], longer.ends_s[places] = self.starts_s, self.ends_s
        longer.confidence[places] = self.confidence
        return longer


@cache
def learnt() -> Trust:
    """What was learnt about pocketsphinx as it listens here."""
    facts = json.loads(files("saywhere.language").joinpath("trust.json").read_text("utf-8"))
    return Trust(facts["late_s"], np.array(facts["weights"]), facts["least"], facts["unheard"])


def judge(words: Sequence[str], opinions: Mapping[str, Opinion], trust: Trust) -> Judged:
    """For every word of a text the time that is surest, in an order that never goes back."""
    names = sorted(opinions)
    starts_s = np.stack([opinions[name].starts_s - trust.late_s[name] for name in names])
    ends_s = np.stack([opinions[name].ends_s - trust.late_s[name] for name in names])
    sure = np.stack(
        [1 / (1 + np.exp(-evidence(words, opinions, trust.late_s, name) @ trust.weights)) for name in names]
    )
    who = _surest_in_order(starts_s, np.where(np.isnan(starts_s), 0.0, sure))
    known, at = who >= 0, (np.maximum(who, 0), np.arange(starts_s.shape[1]))
    return Judged(
        np.where(known, starts_s[at], np.nan),
        np.where(known, ends_s[at], np.nan),
        np.where(known, sure[at], trust.unheard),
    )


def evidence(words: Sequence[str], opinions: Mapping[str, Opinion], late_s: Mapping[str, float], name: str) -> Floats:
    """(words, columns) what speaks for and against one listener's times: a constant; how far the nearest other listener
    is, whether that is far, and how far others are for the words around; how well the word fits the sound, how well its
    neighbours do; how much time it had; whether it is an article that hangs before a pause, where nobody leaves one."""
    mine = opinions[name]
    starts_s = mine.starts_s - late_s[name]
    others = [_apart(starts_s, other.starts_s - late_s[who]) for who, other in opinions.items() if who != name]
    nearest = np.min(others, axis=0)
    score = np.nan_to_num(mine.scores, nan=_WORST_SCORE).clip(_WORST_SCORE, 0.0)
    ease = np.nan_to_num(mine.ease, nan=1.0).clip(1.0, _MOST_EASE)
    hanging = _pause_after(mine) * np.isin([word.lower() for word in words], _ARTICLES)
    fit = (score, _around(score), ease)
    return np.stack([np.ones(len(starts_s)), nearest, nearest > _FAR_S, _around(nearest), *fit, hanging], axis=1)


def _pause_after(opinion: Opinion) -> Floats:
    """Seconds between a word and the next that was heard, at most one."""
    after_s = np.append(opinion.starts_s[1:], np.inf)
    for i in range(len(after_s) - 2, -1, -1):
        if np.isnan(after_s[i]):
            after_s[i] = after_s[i + 1]
    pauses = (after_s - opinion.ends_s).clip(0.0, _ELSEWHERE_S)
    return np.where(np.isfinite(after_s), np.nan_to_num(pauses), 0.0)


def _around(values: Floats) -> Floats:
    """The mean of each word's and its neighbours' values."""
    near = np.ones(2 * _NEIGHBOURS + 1)
    mean: Floats = np.convolve(values, near)[_NEIGHBOURS:-_NEIGHBOURS]
    return mean / np.convolve(np.ones(len(values)), near)[_NEIGHBOURS:-_NEIGHBOURS]


def _apart(one: Floats, other: Floats) -> Floats:
    """Seconds between two opinions, at most one; one, if either did not hear the word."""
    return np.nan_to_num(np.abs(one - other), nan=_ELSEWHERE_S).clip(0.0, _ELSEWHERE_S)


def _surest_in_order(starts_s: Floats, sure: Floats) -> Ints:
    """(words,) which listener is believed, or −1, so that starts never decrease and the sum of log-odds is greatest.

    starts_s, sure: (listeners, words); what was not heard has a confidence of 0.
    """
    n_words = starts_s.shape[1]
    word, who = np.nonzero(sure.T > _LEAST_CONFIDENCE)
    chosen = np.full(n_words, -1, dtype=np.int64)
    if not len(word):
        return chosen
    at_s, odds = starts_s[who, word], sure[who, word]
    gain = np.log(odds / (1 - odds).clip(1e-9)) - np.log(_LEAST_CONFIDENCE)
    total, before = gain.copy(), np.full(len(word), -1, dtype=np.int64)
    for i in range(1, len(word)):
        fits = np.where((word[:i] < word[i]) & (at_s[:i] <= at_s[i]), total[:i], 0.0)
        best = int(fits.argmax())
        if fits[best] > 0:
            total[i] += fits[best]
            before[i] = best
    i = int(total.argmax())
    while i >= 0:
        chosen[word[i]] = who[i]
        i = int(before[i])
    return chosen
