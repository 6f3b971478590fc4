"""Word ⇄ trace: a box for every word, and back from boxes to a plausible trace.

The rules are public because everything downstream depends on them; docs/alignment.md explains them with pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.errors import InvalidValue
from saywhere.core.trace import Trace
from saywhere.core.types import Bools, Floats, Ints, minimum_jerk, owned
from saywhere.core.words import Word

REACH_S = 0.4
"""How far away in time, on either side, a point may lie and still tell where a word without points was."""

NOWHERE = (0.0, 0.0, 1.0, 1.0, 1.0)
"""What models are given for a word without a place: the whole image."""


@dataclass(frozen=True, slots=True, eq=False)
class WordBoxes:
    """Where each word of a narrative is.

    boxes_xyxy: (n, 4) fractions within [0, 1], x1 ≤ x2, y1 ≤ y2; NaN where the word is unlocated.
    located: (n,) False where nothing tells the word's place.

    >>> WordBoxes([(0.1, 0.1, 0.4, 0.5), (float("nan"),) * 4])
    <WordBoxes of 2 words, 1 located>
    """

    boxes_xyxy: Floats
    located: Bools

    def __init__(self, boxes_xyxy: ArrayLike, located: ArrayLike | None = None) -> None:
        boxes = np.array(owned(boxes_xyxy, "word boxes", (None, 4), finite=False))
        known = ~np.isnan(boxes).any(axis=1) if located is None else np.array(located, dtype=bool)
        if known.shape != (len(boxes),):
            raise InvalidValue("word boxes", f"{len(boxes)} boxes, but {known.shape} located flags")
        boxes[~known] = np.nan
        inside = boxes[known]
        if not np.isfinite(inside).all() or (inside < 0).any() or (inside > 1).any():
            raise InvalidValue("word boxes", "a located word's box is not finite or leaves the image")
        if (inside[:, :2] > inside[:, 2:]).any():
            raise InvalidValue("word boxes", "a box has its left or top edge beyond its right or bottom edge")
        boxes.flags.writeable = False
        known.flags.writeable = False
        object.__setattr__(self, "boxes_xyxy", boxes)
        object.__setattr__(self, "located", known)

    def __repr__(self) -> str:
        return f"<WordBoxes of {len(self)} words, {int(self.located.sum())} located>"

    def __len__(self) -> int:
        return len(self.boxes_xyxy)

    @property
    def located_xyxy(self) -> Floats:
        """(k, 4) the boxes of the located words alone."""
        return self.boxes_xyxy[self.located]

    def encode(self) -> Floats:
        """(n, 5) x1, y1, x2, y2, area: the numbers models read, with the whole image for unlocated words."""
        x1, y1, x2, y2 = self.boxes_xyxy.T
        encoded = np.column_stack([self.boxes_xyxy, (x2 - x1) * (y2 - y1)])
        encoded[~self.located] = NOWHERE
        return encoded

    @classmethod
    def decode(cls, encoded: ArrayLike) -> WordBoxes:
        """Boxes from a model's (n, 4) or (n, 5) numbers: ordered, clipped; exactly the whole image means unlocated."""
        values = np.asarray(encoded, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] not in (4, 5):
            raise InvalidValue("encoded boxes", f"have shape {values.shape}, not (n, 4) or (n, 5)")
        if not np.isfinite(values).all():
            raise InvalidValue("encoded boxes", "hold NaN or infinity")
        corners = np.clip(values[:, :4], 0, 1)
        boxes = np.concatenate(
            [np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])], 1
        )
        return cls(boxes, (boxes != NOWHERE[:4]).any(axis=1))


def word_boxes(words: Sequence[Word], trace: Trace, reach_s: float = REACH_S) -> WordBoxes:
    """The bounds of the points that fall in each word's window, clipped to the image.

    A point on the border of two windows belongs to the later word; the last word's window is closed. A word without
    points gets the place at its mid-time, on the line between the nearest points before and after, if both lie
    within `reach_s` of it and the pen was down in between. Otherwise it is unlocated.

    >>> word_boxes([Word("cup", 0, 1)], Trace([(0.1, 0.2, 0.0), (0.3, 0.4, 0.5)])).boxes_xyxy.tolist()
    [[0.1, 0.2, 0.3, 0.4]]
    """
    boxes = np.full((len(words), 4), np.nan)
    if not len(trace) or not words:
        return WordBoxes(boxes)
    times_s = np.array([(word.start_s, word.end_s) for word in words])
    spans = _spans(times_s, trace)
    touched = spans[:, 1] > spans[:, 0]
    boxes[touched] = _bounds(trace.xy, spans[touched])
    place = _place_near(trace, times_s[~touched].mean(axis=1), reach_s)
    boxes[~touched] = np.concatenate([place, place], axis=1)
    return WordBoxes(np.clip(boxes, 0, 1))


def located_words(times_s: Floats, trace: Trace, reach_s: float = REACH_S) -> Bools:
    """(n,) which words `word_boxes` would find a place for. times_s: (n, 2) their windows.

    >>> located_words(np.array([[0.0, 1.0], [5.0, 6.0]]), Trace([(0.1, 0.2, 0.0), (0.3, 0.4, 0.5)])).tolist()
    [True, False]
    """
    if not len(trace) or not len(times_s):
        return np.zeros(len(times_s), dtype=bool)
    spans = _spans(times_s, trace)
    located: Bools = spans[:, 1] > spans[:, 0]
    if not located.all():
        located[~located] = ~np.isnan(_place_near(trace, times_s[~located].mean(axis=1), reach_s)[:, 0])
    return located


def _spans(times_s: Floats, trace: Trace) -> Ints:
    """(n, 2) first and stop of the points in each window; the last window is closed."""
    spans = np.searchsorted(trace.times_s, times_s, side="left")
    spans[-1, 1] = np.searchsorted(trace.times_s, times_s[-1, 1], side="right")
    return spans


def _bounds(xy: Floats, spans: Ints) -> Floats:
    """(k, 4) bounds of the points of each non-empty span [first, stop). Spans may overlap."""
    # reduceat reads pairs of indices; a sentinel row makes a stop at the very end legal.
    padded = np.concatenate([xy, xy[-1:]])
    low = np.minimum.reduceat(padded, spans.ravel(), axis=0)[::2]
    high = np.maximum.reduceat(padded, spans.ravel(), axis=0)[::2]
    return np.concatenate([low, high], axis=1)


def _place_near(trace: Trace, times_s: Floats, reach_s: float) -> Floats:
    """(k, 2) position at each time, NaN where the points around it are too far off or the pen was up."""
    after = np.searchsorted(trace.times_s, times_s, side="left").clip(1, max(1, len(trace) - 1))
    before = after - 1
    if len(trace) == 1:
        after = before
    # A time before the first or after the last point has |distance| on the wrong side: compare signed distances.
    near = (times_s - trace.times_s[before] <= reach_s) & (trace.times_s[after] - times_s <= reach_s)
    return np.where(near[:, None], trace.at(times_s), np.nan)


def trace_through(words: Sequence[Word], boxes: WordBoxes, rate_hz: float = 60.0, travel_share: float = 0.3) -> Trace:
    """A plausible smooth trace: while a word is said, the pointer circles once around its box.

    It travels from box to box as a hand does (minimum jerk): in the pause or the unlocated words before a word where
    that is long enough, otherwise also in the first `travel_share` of the word's own window. Where windows have length
    and do not overlap, the box that `word_boxes` reads back covers the one given here. One segment; points at
    `rate_hz`, and never fewer than the circle needs.

    >>> words = [Word("cup", 0, 1)]
    >>> trace = trace_through(words, WordBoxes([(0.2, 0.2, 0.4, 0.4)]))
    >>> word_boxes(words, trace).boxes_xyxy.round(2).tolist()
    [[0.2, 0.2, 0.4, 0.4]]
    """
    if len(words) != len(boxes):
        raise InvalidValue("word boxes", f"{len(boxes)} boxes for {len(words)} words")
    if not (0 <= travel_share < 1 and rate_hz > 0):
        raise InvalidValue("travel_share, rate_hz", f"are {travel_share}, {rate_hz}: need 0 ≤ share < 1 and rate > 0")
    strokes: list[Floats] = []
    for i in np.flatnonzero(boxes.located).tolist():
        word, box = words[i], boxes.boxes_xyxy[i]
        start_s = word.start_s
        if strokes:
            here = strokes[-1][-1]
            start_s = max(start_s, here[2])
            begin = _nearest_side(box, here[:2])
            hurry_s = travel_share * max(0.0, word.end_s - start_s)
            arrive_s = start_s if start_s - here[2] > hurry_s else start_s + hurry_s
            strokes.append(_travel(here, _side(box, begin), arrive_s, rate_hz))
            start_s = arrive_s
        else:
            begin = 0
        strokes.append(_circle(box, begin, start_s, max(start_s, word.end_s), rate_hz))
    return Trace(np.concatenate(strokes)) if strokes else Trace(np.empty((0, 3)), ())


def _side(box: Floats, quarter: int) -> Floats:
    """(2,) the point where the ellipse inside the box touches its right, bottom, left or top side (0 … 3)."""
    centre, half = (box[:2] + box[2:]) / 2, (box[2:] - box[:2]) / 2
    point: Floats = centre + half * ((1, 0), (0, 1), (-1, 0), (0, -1))[quarter]
    return point


def _nearest_side(box: Floats, point: Floats) -> int:
    return int(np.argmin([np.hypot(*(_side(box, quarter) - point)) for quarter in range(4)]))


def _travel(origin: Floats, target: Floats, arrive_s: float, rate_hz: float) -> Floats:
    steps = max(1, round((arrive_s - origin[2]) * rate_hz))
    way = minimum_jerk(np.linspace(0, 1, steps + 1)[1:])[:, None] * (target - origin[:2])
    # linspace ends exactly at arrive_s; adding up shares could overshoot it by a rounding error, back in time.
    return np.column_stack([origin[:2] + way, np.linspace(origin[2], arrive_s, steps + 1)[1:]])


def _circle(box: Floats, quarter: int, start_s: float, end_s: float, rate_hz: float) -> Floats:
    # A multiple of four steps puts a point on each of the four sides, so the bounds come out exactly.
    steps = 4 * max(4, round((end_s - start_s) * rate_hz / 4))
    u = np.linspace(0, 1, steps + 1)
    angle = 2 * np.pi * u + quarter * np.pi / 2
    centre, half = (box[:2] + box[2:]) / 2, (box[2:] - box[:2]) / 2
    # Within a window, all points but the last: that one falls on the next word's border and belongs to it.
    times = start_s + u * (end_s - start_s) * (1 - 1 / (2 * steps))
    return np.column_stack([centre[0] + half[0] * np.cos(angle), centre[1] + half[1] * np.sin(angle), times])
