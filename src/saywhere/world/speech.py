"""Speech: when each word is said, and how a transcript with its faults writes that down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saywhere.core.words import Utterance
from saywhere.world.chance import between
from saywhere.world.english import Token

# About 2.5 words a second with pauses: a word of n letters takes (0.13 + 0.042 n) s at tempo 1.
_WORD_S, _LETTER_S, _SPREAD = 0.13, 0.042, 0.2
_SENTENCE_PAUSE_S = (0.35, 1.0)
_COMMA_PAUSE_S = (0.1, 0.35)
_HESITATION_SHARE, _HESITATION_S = 0.04, (0.3, 1.2)

# In the raw Localized Narratives record at hand, times are tenths of a second, 2 of 19 utterances hold several words,
# and 3 have no length: the aligner lost them, and what follows starts at once.
_TENTHS = 10
_JOINED_SHARE, _MOST_JOINED = 0.25, 4
_LOST_JOINED_SHARE, _LOST_WORD_SHARE, _LOST_LETTERS = 0.4, 0.12, 3


def speak(rng: np.random.Generator, words: Sequence[str], tempo: float) -> list[tuple[float, float]]:
    """Start and end of each word in seconds. tempo: above 1 is slower."""
    noise = np.exp(_SPREAD * rng.standard_normal(len(words))).tolist()
    hesitates = (rng.random(len(words)) < _HESITATION_SHARE).tolist()
    now = between(rng, 0.1, 0.9)
    times = []
    for word, factor, hesitation in zip(words, noise, hesitates, strict=True):
        now += between(rng, *_HESITATION_S) if hesitation else 0.0
        end = now + (_WORD_S + _LETTER_S * len(word.strip(".,"))) * tempo * factor
        times.append((now, end))
        now = end
        if word.endswith("."):
            now += between(rng, *_SENTENCE_PAUSE_S)
        elif word.endswith(","):
            now += between(rng, *_COMMA_PAUSE_S)
    return times


def transcribe(
    rng: np.random.Generator, tokens: Sequence[Token], times_s: Sequence[tuple[float, float]]
) -> tuple[Utterance, ...]:
    """The words as an aligner gives them: tenths of seconds, some joined, some without length.

    Only words that refer to nothing are joined. The words stay in order and none is lost.
    """
    utterances: list[Utterance] = []
    chances = rng.random((len(tokens), 2)).tolist()
    i, earliest, lost = 0, 0.0, False
    while i < len(tokens):
        stop = i + 1
        joins = chances[i][0] < _JOINED_SHARE
        while (
            joins and stop < len(tokens) and stop - i < _MOST_JOINED and not (tokens[i].things or tokens[stop].things)
        ):
            stop += 1
        start_s = earliest if lost else max(earliest, round(times_s[i][0] * _TENTHS) / _TENTHS)
        end_s = max(start_s, round(times_s[stop - 1][1] * _TENTHS) / _TENTHS)
        short = len(tokens[i].text) <= _LOST_LETTERS and not tokens[i].things
        lost = chances[i][1] < (_LOST_JOINED_SHARE if stop - i > 1 else _LOST_WORD_SHARE if short else 0.0)
        if lost:
            end_s = start_s
        utterances.append(Utterance(" ".join(token.text for token in tokens[i:stop]), start_s, end_s))
        earliest, i = end_s, stop
    return tuple(utterances)
