"""Strokes of a file joined to one trace, with the place of what is wrong in them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from saywhere.core.errors import InvalidValue
from saywhere.core.trace import Trace
from saywhere.core.types import Floats

NO_TRACE = Trace.from_segments([])


def joined_trace(points: Floats, lengths: Sequence[int], place: str, time_key: str) -> Trace:
    """A trace from the finite points of all strokes, at least one; the array becomes the trace's own.

    points: (n, 3) x, y, t in the order of the file. lengths: points of each stroke; empty ones are left out.
    place, time_key: what the list of strokes and a point's time are called in the file, for the error.
    """
    times = points[:, 2]
    back = times[1:] < times[:-1]
    if np.count_nonzero(back):
        i = int(np.argmax(back)) + 1
        stroke = int(np.searchsorted(np.cumsum(lengths), i, side="right"))
        where = f"{place}[{stroke}][{i - sum(lengths[:stroke])}].{time_key}"
        raise InvalidValue(where, f"goes back in time, from {times[i - 1]:g} s to {times[i]:g} s")
    starts = accumulate([length for length in lengths if length][:-1], initial=0)
    return Trace._trusted(points, tuple(starts))
