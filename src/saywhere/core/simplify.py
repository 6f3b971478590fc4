"""Douglas–Peucker on many traces at once, through GEOS."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.errors import InvalidValue
from saywhere.core.trace import Trace
from saywhere.core.types import Floats, Ints


def simplify_many(traces: Sequence[Trace], tolerance: ArrayLike, size: tuple[float, float] = (1.0, 1.0)) -> list[Trace]:
    """Each trace with fewer points. See `Trace.simplify`.

    tolerance: one number, or one for each trace.

    >>> from saywhere.core.trace import Trace
    >>> simplify_many([Trace([(0, 0, 0), (0.5, 0.001, 1), (1, 0, 2)])], 5, size=(640, 480))
    [<Trace of 2 points, 2.00 s>]
    """
    tolerances = np.broadcast_to(np.asarray(tolerance, dtype=np.float64), (len(traces),))
    if not traces:
        return []
    starts = [np.asarray(trace.starts, dtype=np.int64) for trace in traces]
    offsets = np.cumsum([0] + [len(trace) for trace in traces])
    points = np.concatenate([trace.points for trace in traces])
    piece_starts = np.concatenate([s + o for s, o in zip(starts, offsets[:-1], strict=True)])
    piece_tolerances = np.repeat(tolerances, [len(s) for s in starts])
    kept = kept_points(points[:, :2] * size, piece_starts, piece_tolerances)
    cuts = np.searchsorted(kept, offsets)
    kept_starts = np.searchsorted(kept, piece_starts) - np.repeat(cuts[:-1], [len(s) for s in starts])
    start_cuts = np.cumsum([0] + [len(s) for s in starts]).tolist()
    points, kept_starts, cuts = points[kept], kept_starts.tolist(), cuts.tolist()
    return [
        Trace._trusted(points[a:b].copy(), tuple(kept_starts[c:d]))
        for a, b, c, d in zip(cuts[:-1], cuts[1:], start_cuts[:-1], start_cuts[1:], strict=True)
    ]


def kept_points(xy: Floats, piece_starts: Ints, tolerances: Floats) -> Ints:
    """Indices, increasing, of the points that Douglas–Peucker keeps when each piece is simplified on its own.

    xy: (n, 2). piece_starts: (p,) first point of each piece, increasing from 0. tolerances: (p,) in the unit of xy.
    """
    import shapely

    if not np.isfinite(tolerances).all() or (tolerances < 0).any():
        raise InvalidValue("tolerance", "must be a number of at least 0")
    lengths = np.diff(np.append(piece_starts, len(xy)))
    long_enough = lengths > 2
    if not long_enough.any():
        return np.arange(len(xy))
    in_line = np.repeat(long_enough, lengths)
    # GEOS carries a third coordinate along unread: the index comes back with every point that stays.
    indexed = np.empty((len(xy), 3))
    # GEOS divides by squared lengths; adding and taking away 1 drops what is so small that its square is 0.
    np.subtract(xy + 1.0, 1.0, out=indexed[:, :2])
    indexed[:, 2] = np.arange(len(xy))
    if not long_enough.all():
        indexed = indexed[in_line]
    lines = shapely.linestrings(indexed, indices=np.repeat(np.arange(long_enough.sum()), lengths[long_enough]))
    simplified = shapely.simplify(lines, tolerances[long_enough], preserve_topology=False)
    kept = shapely.get_coordinates(simplified, include_z=True)[:, 2].astype(np.int64)
    return np.sort(np.concatenate([kept, np.flatnonzero(~in_line)]))
