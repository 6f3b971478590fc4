"""What figures and the page alike tell about a narrative."""

from __future__ import annotations

import numpy as np

from saywhere.core import Narrative, Word, WordBoxes
from saywhere.core.narrative import HUMAN
from saywhere.core.types import Floats
from saywhere.plots.text import seconds, shortened

_LONGEST_CAPTION = 4000


def counted(n: int, noun: str) -> str:
    """As in: 1 word, 3,000 words."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def summary(narrative: Narrative, boxes: WordBoxes) -> str:
    """One line of facts: how many words and points, how many words without a place, how long."""
    nowhere = len(boxes) - int(boxes.located.sum())
    parts = [counted(len(boxes), "word") + (f", {nowhere:,} without a place" if nowhere else "")]
    parts.append(f"{counted(len(narrative.trace), 'point')} in {counted(len(narrative.trace.starts), 'stroke')}")
    parts.append(seconds(narrative.end_s))
    if narrative.origin != HUMAN:
        parts.append(f"by {narrative.origin}")
    return " · ".join(parts)


def notes_on(narrative: Narrative) -> list[str]:
    """What a reader must be told because it cannot be seen."""
    notes = []
    if not narrative.words and narrative.caption:
        notes.append(f"The words have no times: {shortened(narrative.caption, _LONGEST_CAPTION)}")
    elif not narrative.words:
        notes.append("Nothing was said.")
    if not len(narrative.trace):
        notes.append("Nobody pointed: there is no trace.")
    return notes


def word_time_s(word: Word) -> float:
    """The moment that gives a word its colour: the middle of its window."""
    return word.start_s / 2 + word.end_s / 2


def drawn_boxes(boxes_xyxy: Floats, least_side: float) -> Floats:
    """(n, 4) boxes grown about their middles where a side is too short to see, and kept on the image.

    A word may have a single point.
    """
    middles = (boxes_xyxy[:, :2] + boxes_xyxy[:, 2:]) / 2
    halves = np.maximum((boxes_xyxy[:, 2:] - boxes_xyxy[:, :2]) / 2, least_side / 2)
    middles = np.clip(middles, halves, 1 - halves)
    return np.concatenate([middles - halves, middles + halves], axis=1)
