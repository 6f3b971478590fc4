"""Traces as text: `<traj>(x1,y1),(x2,y2),…</traj>`, thinned phrase by phrase, and a parser that survives models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from saywhere.core.errors import InvalidValue
from saywhere.core.simplify import kept_points
from saywhere.core.trace import Trace
from saywhere.core.types import Floats

BINS = 1000
LEAST, MOST = 1, 5


@dataclass(frozen=True, slots=True)
class Phrase:
    """A stretch of speech and how much it matters, from 1 (function words) to 5.

    >>> Phrase(0.5, 1.25, importance=5)
    Phrase(start_s=0.5, end_s=1.25, importance=5)
    """

    start_s: float
    end_s: float
    importance: float

    def __post_init__(self) -> None:
        if not self.start_s <= self.end_s:
            raise InvalidValue("phrase", f"goes from {self.start_s} s to {self.end_s} s")
        if not LEAST <= self.importance <= MOST:
            raise InvalidValue("phrase", f"has importance {self.importance}, not {LEAST} to {MOST}")


def simplify_phrases(trace: Trace, phrases: Sequence[Phrase], size: tuple[float, float], base_px: float = 5.0) -> Trace:
    """Fewer points where little was said: Douglas–Peucker on each phrase, tolerance base_px / (importance / 5).

    phrases: in the order of time, not overlapping. Points between them are treated as a phrase of importance 1.
    size: width and height of the image, in pixels. The first and last point of each phrase and of each segment stay,
    and every point keeps its time.

    >>> bent = Trace([(0, 0, 0), (0.5, 0.02, 1), (1, 0, 2)])
    >>> [len(simplify_phrases(bent, [Phrase(0, 3, importance)], (640, 480))) for importance in (1, 5)]
    [2, 3]
    """
    if not len(trace):
        return trace
    for before, after in pairwise(phrases):
        if after.start_s < before.end_s:
            raise InvalidValue(
                "phrases", f"overlap: one ends at {before.end_s:g} s, the next starts at {after.start_s:g} s"
            )
    # Borders alternate: start, end, start, end …; the piece after a start belongs to the phrase, after an end to none.
    borders = np.array([t for phrase in phrases for t in (phrase.start_s, phrase.end_s)], dtype=np.float64)
    tolerances = np.full(len(borders) + 1, base_px * MOST / LEAST)
    tolerances[1::2] = [base_px * MOST / phrase.importance for phrase in phrases]
    owner = np.searchsorted(borders, trace.times_s, side="right")
    changes = np.flatnonzero(np.diff(owner)) + 1
    starts = np.unique(np.concatenate([trace.starts, changes]).astype(np.int64))
    kept = kept_points(trace.xy * size, starts, tolerances[owner[starts]])
    return Trace(trace.points[kept], np.searchsorted(kept, trace.starts).tolist())


def to_text(trace: Trace, bins: int = BINS) -> str:
    """The trace in words a model can read: integers 0 … bins − 1 per axis, points off the image moved to its edge."""
    cells = np.clip(np.floor(trace.xy * bins), 0, bins - 1).astype(int).tolist()
    return "<traj>" + ",".join(f"({x},{y})" for x, y in cells) + "</traj>"


@dataclass(frozen=True, slots=True, eq=False)
class ParsedTrajectory:
    """One trajectory found in a text.

    points_xy: (n, 2) fractions, the middles of the bins. span: where in the text it stood. problems: what was mended.
    """

    points_xy: Floats
    span: tuple[int, int]
    problems: tuple[str, ...]

    def timed(self, start_s: float = 0.0, end_s: float = 1.0) -> Trace:
        """As a trace with even times: the text holds none."""
        return Trace(np.column_stack([self.points_xy, np.linspace(start_s, end_s, len(self.points_xy))]))


_OPEN = re.compile(r"<\s*traj\s*>", re.IGNORECASE)
_CLOSE = re.compile(r"<\s*/\s*traj\s*>", re.IGNORECASE)
_NUMBER = r"[-+]?[0-9]{1,12}(?:\.[0-9]{0,12})?"
# Both are free of ambiguous repeats, so that no output, however long and odd, makes them slow.
_PAIR = re.compile(rf"(?<![0-9.])({_NUMBER})(?:\s*[,;]\s*|\s+)({_NUMBER})")
_CLEAN = re.compile(r"\([0-9]+, ?[0-9]+\)(?:, ?\([0-9]+, ?[0-9]+\))*")


def from_text(text: str, bins: int = BINS) -> list[ParsedTrajectory]:
    """Every trajectory in a model's output, in order. Never fails: what is malformed is mended and named.

    A missing closing tag ends at the next opening one or at the end of the text; numbers out of range move to the
    edge; other brackets and separators, and decimals, are read; anything else inside is skipped.
    """
    found = []
    position = 0
    while opening := _OPEN.search(text, position):
        following = _OPEN.search(text, opening.end())
        limit = following.start() if following else len(text)
        closing = _CLOSE.search(text, opening.end(), limit)
        stop = closing.start() if closing else limit
        end = closing.end() if closing else limit
        points, problems = _read_points(text[opening.end() : stop], bins)
        if not closing:
            problems.insert(0, "no closing tag")
        found.append(ParsedTrajectory(points, (opening.start(), end), tuple(problems)))
        position = end
    return found


def _read_points(body: str, bins: int) -> tuple[Floats, list[str]]:
    problems = []
    cells = np.array(_PAIR.findall(body), dtype=np.float64).reshape(-1, 2)
    if not _CLEAN.fullmatch(body.strip()):
        problems.append("malformed points")
    inside = np.clip(cells, 0, bins - 1)
    if (inside != cells).any():
        problems.append(f"{int((inside != cells).any(axis=1).sum())} points out of range")
    if not len(cells):
        problems.append("no points")
    return (np.floor(inside) + 0.5) / bins, problems
