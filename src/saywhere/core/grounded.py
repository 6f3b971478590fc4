"""A text with a place for each of its words: what every model that points gives back."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from saywhere.core.alignment import WordBoxes, trace_through
from saywhere.core.errors import InvalidValue
from saywhere.core.narrative import Narrative
from saywhere.core.words import Utterance, Word, split_words

WORDS_PER_S = 2.5
"""How fast people speak who describe a photo: the pace of made-up timings."""


@dataclass(frozen=True, slots=True)
class PlacedPhrase:
    """Words with one box, or None if they have no place."""

    text: str
    box_xyxy: tuple[float, float, float, float] | None


@dataclass(frozen=True, slots=True, eq=False)
class Grounded:
    """A text and where each of its words is. words: without white space. boxes: one for each.

    >>> left, nowhere = (0.0, 0.0, 0.5, 1.0), (np.nan,) * 4
    >>> placed = Grounded(("so", "a", "cat"), WordBoxes([nowhere, left, left]))
    >>> [(phrase.text, phrase.box_xyxy) for phrase in placed.phrases()]
    [('so', None), ('a cat', (0.0, 0.0, 0.5, 1.0))]
    """

    words: tuple[str, ...]
    boxes: WordBoxes

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def phrases(self) -> list[PlacedPhrase]:
        """The words in their order, those in one box together."""
        rows = zip(self.words, self.boxes.boxes_xyxy.tolist(), self.boxes.located.tolist(), strict=True)
        runs = groupby(rows, key=lambda row: (row[1][0], row[1][1], row[1][2], row[1][3]) if row[2] else None)
        return [PlacedPhrase(" ".join(word for word, _, _ in run), box) for box, run in runs]

    def narrative(self, image_id: str, origin: str, words_per_s: float = WORDS_PER_S) -> Narrative:
        """A narrative with made-up, even timings, and a smooth trace through the boxes. origin: what made it."""
        if not (np.isfinite(words_per_s) and words_per_s > 0):
            raise InvalidValue("words_per_s", f"is {words_per_s}, not a positive number")
        timed: tuple[Word, ...] = ()
        if self.words:
            timed = split_words([Utterance(self.text, 0.0, len(self.words) / words_per_s)])
        trace = trace_through(timed, self.boxes)
        said = tuple(Utterance(word.text, word.start_s, word.end_s) for word in timed)
        return Narrative(image_id, self.text, said, trace, origin=origin)
