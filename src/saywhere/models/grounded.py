"""A text with a place for each of its words: what every model that points gives back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saywhere.core import InvalidValue, Narrative, Utterance, Word, WordBoxes, split_words, trace_through

WORDS_PER_S = 2.5
"""How fast people speak who describe a photo: the pace of made-up timings."""


@dataclass(frozen=True, slots=True, eq=False)
class Grounded:
    """A text and where each of its words is. words: without white space. boxes: one for each."""

    words: tuple[str, ...]
    boxes: WordBoxes

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def narrative(self, image_id: str, words_per_s: float = WORDS_PER_S, origin: str = "mitr") -> Narrative:
        """A narrative with made-up, even timings, and a smooth trace through the boxes."""
        if not (np.isfinite(words_per_s) and words_per_s > 0):
            raise InvalidValue("words_per_s", f"is {words_per_s}, not a positive number")
        timed: tuple[Word, ...] = ()
        if self.words:
            timed = split_words([Utterance(self.text, 0.0, len(self.words) / words_per_s)])
        trace = trace_through(timed, self.boxes)
        said = tuple(Utterance(word.text, word.start_s, word.end_s) for word in timed)
        return Narrative(image_id, self.text, said, trace, origin=origin)
