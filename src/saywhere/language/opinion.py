"""When the words of a text were said, as one listener heard it: what every listener gives, before any is believed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saywhere.core.types import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Opinion:
    """One row for each word of the text; NaN where the word was not heard.

    starts_s, ends_s: seconds of the recording. scores: a log-probability, on the listener's own scale. ease: how long
    the word lasted, as a multiple of the shortest that it can be said in.

    >>> opinion = Opinion.of_nothing(2)
    >>> opinion.add(1, 0.5, 0.9, -2.0, 1.5)
    >>> opinion.starts_s
    array([nan, 0.5])
    """

    starts_s: Floats
    ends_s: Floats
    scores: Floats
    ease: Floats

    @classmethod
    def of_nothing(cls, n_words: int) -> Opinion:
        """Nothing heard yet."""
        return cls(*(np.full(n_words, np.nan) for _ in range(4)))

    def add(self, word: int, start_s: float, end_s: float, score: float, ease: float) -> None:
        """A word, or one more part of it: then it lasts until this one ends, and counts as its worse part."""
        if np.isnan(self.starts_s[word]):
            self.starts_s[word] = start_s
        self.ends_s[word] = end_s
        self.scores[word] = np.fmin(self.scores[word], score)
        self.ease[word] = np.fmin(self.ease[word], ease)
