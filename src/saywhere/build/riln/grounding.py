"""Stage 1: what was said where. Phrases with their importance, the trace thinned by it, and points for every word."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saywhere.build.riln.example import AlignedWord, PointedPhrase, SourceNarrative
from saywhere.build.trace_benchmark import sentences_of
from saywhere.core.narrative import Narrative
from saywhere.core.trace import Trace
from saywhere.core.trajectory import BINS, simplify_phrases, to_text
from saywhere.core.types import Floats
from saywhere.core.words import Word
from saywhere.language.nouns import NO_THINGS
from saywhere.language.phrases import PhraseSpan, timed_phrases

ASSUMED_SIZE_PX = (640, 480)
"""Of photos that are not at hand: the tolerance of thinning is in pixels."""
BASE_PX = 5.0

SMALL_WORDS = frozenset(
    (
        *("a", "an", "the", "some", "of", "and", "or", "this", "that", "these", "those", "its", "his", "her", "their"),
        *("is", "are", "in", "on", "at", "to", "with", "it", "there", "which", "who"),
    )
)
"""Words that tell nothing about what is pointed at."""

_SIGNS = " .,;:!?\"'“”()"


@dataclass(frozen=True, slots=True)
class Groundwork:
    """A narrative after stage 1.

    trace: thinned. phrases: in the order of time, their indices count points of this trace. sentences: text of each,
    and the phrases [first, stop) that it consists of. points_before: how many points the narrative has.
    """

    narrative: Narrative
    trace: Trace
    phrases: tuple[PointedPhrase, ...]
    sentences: tuple[tuple[str, int, int], ...]
    points_before: int

    @property
    def things(self) -> list[int]:
        """The phrases that name something and have points."""
        return [i for i, phrase in enumerate(self.phrases) if phrase.noun and phrase.points[0] < phrase.points[1]]

    @property
    def everything(self) -> tuple[int, ...]:
        return tuple(range(len(self.phrases)))

    def rows(self, chosen: Sequence[int]) -> list[int]:
        """Indices of the points of these phrases; neighbours bring the points of the pause between them along."""
        if len(chosen) == len(self.phrases):
            return list(range(len(self.trace)))
        rows: list[int] = []
        for i in sorted(chosen):
            first, stop = self.phrases[i].points
            rows += range(rows[-1] + 1 if rows and i - 1 in chosen else first, stop)
        return rows

    def path(self, chosen: Sequence[int]) -> str:
        """What `rows` finds, as text."""
        return path_text(self.trace.points[self.rows(chosen)])

    def middle(self, i: int) -> Floats:
        """(2,) the mean of a phrase's points, on the photo."""
        first, stop = self.phrases[i].points
        middle: Floats = np.clip(self.trace.xy[first:stop], 0, 1).mean(axis=0)
        return middle

    @property
    def source(self) -> SourceNarrative:
        told = self.narrative
        return SourceNarrative(told.dataset_id, told.image_id, told.annotator_id, told.origin, digest_of(told))


def ground(narrative: Narrative, spans: Sequence[PhraseSpan], size_px: tuple[float, float]) -> Groundwork:
    """Thin the trace phrase by phrase, and give every phrase and word its points. spans: cover all words."""
    words = narrative.words
    thinned = simplify_phrases(narrative.trace, timed_phrases(words, spans), size_px, BASE_PX)
    bounds = _bounds(thinned, words)
    phrases = tuple(_pointed(words, span, bounds) for span in spans)
    return Groundwork(narrative, thinned, phrases, _sentences(narrative, spans), len(narrative.trace))


def path_text(points: Floats) -> str:
    """(n, ≥ 2) points as a model reads them."""
    return to_text(Trace(np.column_stack([points[:, :2], np.arange(len(points))])))


def bins(xy: Floats) -> list[tuple[int, int]]:
    """Positions as integers 0 … 999, the same as `to_text` writes."""
    cells = np.clip(np.floor(xy[:, :2] * BINS), 0, BINS - 1).astype(int)
    return [(x, y) for x, y in cells.tolist()]


def digest_of(narrative: Narrative) -> str:
    """Sixteen hexadecimal digits that differ where anything of the narrative does."""
    said = [(u.text, u.start_s, u.end_s) for u in narrative.utterances]
    told = (narrative.dataset_id, narrative.image_id, narrative.annotator_id, narrative.origin, narrative.caption, said)
    content = repr(told).encode("utf-8", "backslashreplace") + narrative.trace.points.tobytes()
    return hashlib.sha256(content).hexdigest()[:16]


def _bounds(trace: Trace, words: Sequence[Word]) -> list[tuple[int, int]]:
    """Each word's points [first, stop). A point on a border belongs to the later word; the last window is closed."""
    first = np.searchsorted(trace.times_s, [word.start_s for word in words], side="left")
    stop = np.searchsorted(trace.times_s, [word.end_s for word in words], side="left")
    stop[-1] = np.searchsorted(trace.times_s, words[-1].end_s, side="right")
    return list(zip(first.tolist(), np.maximum(first, stop).tolist(), strict=True))


def _pointed(words: Sequence[Word], span: PhraseSpan, bounds: Sequence[tuple[int, int]]) -> PointedPhrase:
    said, inside = words[span.first : span.stop], bounds[span.first : span.stop]
    text = " ".join(word.text for word in said).strip(_SIGNS)
    begins = span.first == 0 or words[span.first - 1].text[-1] in ".!?"
    if begins and (text[1:2] in ("", " ") or text[1:2].islower()):
        text = text[:1].lower() + text[1:]
    return PointedPhrase(
        text,
        span.importance,
        round(said[0].start_s, 3),
        round(said[-1].end_s, 3),
        (inside[0][0], max(inside[0][0], inside[-1][1])),
        tuple(AlignedWord(word.text.strip(_SIGNS), *both) for word, both in zip(said, inside, strict=True)),
        span.noun if span.noun not in NO_THINGS and text else "",
    )


def _sentences(narrative: Narrative, spans: Sequence[PhraseSpan]) -> tuple[tuple[str, int, int], ...]:
    """A phrase belongs to the sentence of its first word; sentences without a phrase are left out."""
    found, phrase, word = [], 0, 0
    for sentence in sentences_of(narrative):
        word += len(sentence.words)
        first = phrase
        while phrase < len(spans) and spans[phrase].first < word:
            phrase += 1
        if phrase > first:
            found.append((sentence.text, first, phrase))
    return tuple(found)
