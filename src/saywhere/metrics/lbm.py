"""Local Bipartite Matching (LBM): how far apart two traces of boxes are, 0 for equal ones.

A trace is one box per word, and two people neither say the same number of words nor point in quite the same order. LBM
gives every box of the shorter trace (q boxes) a box of its own in the longer one (m boxes), at most about k places
away on the shorter trace's scale, so that the mean L1 distance of the coordinates is least.

Two protocols, never to be mixed in one table:

* ``"paper"``: the definition, solved exactly over the whole trace.
* ``"released"``: what the authors' evaluation program computes on the same boxes. The lower edge of a window is not
  rounded down, edges are products of floats, and the shorter trace is cut into chunks of 20 boxes whose scores are
  averaged without weights. Neither protocol ever has a row without a column to take.

The authors' program also drops the boxes that cover the whole image (no location known) from the ground truth, and
only from there, so a perfect prediction does not score 0. A box that truly covers the image looks the same, so `lbm`
never drops one by itself. To repeat their tables: ``lbm(predicted, located_boxes(truth), protocol="released")``.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.core.types import Floats
from saywhere.metrics._lbm_assignment import Ints, Problems, cheapest_totals, exact_windows, rounded_windows

PROTOCOLS = ("paper", "released")
RELEASED_CHUNK_ROWS = 20
WHOLE_IMAGE_XYXY = (0.0, 0.0, 1.0, 1.0)
# Beyond this, sums of distances could overflow into the infinity that marks a forbidden match.
LARGEST_COORDINATE = 1e100


def lbm(a: ArrayLike, b: ArrayLike, k: int = 0, protocol: str = "paper") -> float:
    """The LBM distance of two traces.

    a, b: (n, 4) and (m, 4) boxes, xyxy in fractions of the image; values may leave [0, 1]. The order does not matter.
    k: how far out of order boxes may be matched; 0 keeps the order.
    Needs room for all q·m costs when k > 3. For many pairs, `lbm_many` is several times faster.

    >>> round(lbm([(0, 0, 0.5, 1)], [(0.1, 0, 0.6, 1)]), 3)
    0.05
    """
    return float(_tally([a], [b], k, protocol, labels=("a", "b"))[0])


def lbm_many(pairs_a: Sequence[ArrayLike], pairs_b: Sequence[ArrayLike], k: int = 0, protocol: str = "paper") -> Floats:
    """The LBM distance of each pair pairs_a[i], pairs_b[i], as `lbm` gives it. Returns (number of pairs,) float64.

    >>> lbm_many([[(0, 0, 0.5, 1)]], [[(0, 0, 0.5, 1)]]).tolist()
    [0.0]
    """
    return _tally(pairs_a, pairs_b, k, protocol, labels=("pairs_a[{}]", "pairs_b[{}]"))


def located_boxes(boxes_xyxy: ArrayLike) -> Floats:
    """The boxes of a trace, (n, 4), without those that are exactly the whole image [0, 0, 1, 1].

    The authors' evaluation does this to the ground truth before it compares, and skips a pair with no box left.

    >>> located_boxes([(0, 0, 1, 1), (0.1, 0.1, 0.2, 0.2)]).tolist()
    [[0.1, 0.1, 0.2, 0.2]]
    """
    boxes, _ = _pooled([boxes_xyxy], "boxes_xyxy")
    located: Floats = boxes[(boxes != WHOLE_IMAGE_XYXY).any(axis=1)]
    return located


class LBM:
    """The mean LBM distance over pairs of traces that arrive one after the other or in batches."""

    higher_is_better = False

    def __init__(self, k: int = 0, protocol: str = "paper") -> None:
        self.k, self.protocol = _checked_k(k), _checked_protocol(protocol)
        self.reset()

    def update(self, a: ArrayLike, b: ArrayLike) -> None:
        """Add one pair: (n, 4) and (m, 4) boxes, as for `lbm`."""
        self._total += lbm(a, b, self.k, self.protocol)
        self._pairs += 1

    def update_many(self, pairs_a: Sequence[ArrayLike], pairs_b: Sequence[ArrayLike]) -> None:
        """Add a batch of pairs, as for `lbm_many`. A batch with a bad pair is refused as a whole."""
        scores = lbm_many(pairs_a, pairs_b, self.k, self.protocol)
        self._total += float(scores.sum())
        self._pairs += len(scores)

    def compute(self) -> float:
        """The mean over all pairs so far."""
        return _finish(self._total, self._pairs)

    def reset(self) -> None:
        """Forget all pairs."""
        self._total, self._pairs = 0.0, 0


def _tally(
    pairs_a: Sequence[ArrayLike], pairs_b: Sequence[ArrayLike], k: int, protocol: str, labels: tuple[str, str]
) -> Floats:
    """One score per pair. labels: what to call the i-th trace of each side in an error."""
    k, protocol = _checked_k(k), _checked_protocol(protocol)
    if len(pairs_a) != len(pairs_b):
        raise InvalidValue("LBM pairs", f"{len(pairs_a)} traces on one side and {len(pairs_b)} on the other")
    if not len(pairs_a):
        return np.empty(0, dtype=np.float64)
    boxes_a, lengths_a = _pooled(pairs_a, labels[0])
    boxes_b, lengths_b = _pooled(pairs_b, labels[1])
    if protocol == "paper":
        problems = _shorter_as_rows(lengths_a, lengths_b)
        return cheapest_totals(np.concatenate([boxes_a, boxes_b]), problems, k, exact_windows) / problems.rows
    chunks, pair, chunks_per_pair = _chunked(_shorter_as_rows(lengths_a, lengths_b))
    scores = cheapest_totals(np.concatenate([boxes_a, boxes_b]), chunks, k, rounded_windows) / chunks.rows
    return np.bincount(pair, weights=scores) / chunks_per_pair


def _finish(total: float, pairs: int) -> float:
    """The mean score."""
    if not pairs:
        raise InvalidValue("LBM", "no pair to average over", "call update before compute")
    return total / pairs


def _checked_k(k: int) -> int:
    try:
        whole = operator.index(k)
    except TypeError as error:
        raise InvalidValue("LBM window k", f"{k!r} is not a whole number") from error
    if whole < 0:
        raise InvalidValue("LBM window k", f"{whole} is negative", "0 keeps the order of the boxes")
    return whole


def _checked_protocol(protocol: str) -> str:
    if protocol not in PROTOCOLS:
        raise UnknownName("LBM protocol", str(protocol), PROTOCOLS)
    return protocol


def _pooled(traces: Sequence[ArrayLike], label: str) -> tuple[Floats, Ints]:
    """All boxes of the traces in one (N, 4) array, and the length of each trace."""
    arrays = [_boxes_array(trace, label, i) for i, trace in enumerate(traces)]
    lengths = np.array([len(array) for array in arrays], dtype=np.int64)
    boxes = np.concatenate(arrays, dtype=np.float64)
    usable = np.abs(boxes) <= LARGEST_COORDINATE  # never true of NaN
    if not usable.all():
        bad = int(np.argmin(usable)) // 4
        trace = int(np.searchsorted(np.cumsum(lengths), bad, side="right"))
        box = bad - int(lengths[:trace].sum())
        reason = f"box {box} is {boxes[bad].tolist()}"
        raise InvalidValue(_name(label, trace), reason, f"coordinates must be finite and within ±{LARGEST_COORDINATE}")
    return boxes, lengths


def _boxes_array(trace: ArrayLike, label: str, i: int) -> np.ndarray:
    try:
        array = np.asarray(trace)
    except ValueError as error:  # nested lists of unequal lengths
        raise InvalidValue(_name(label, i), "not an (n, 4) array of numbers") from error
    if array.size == 0:
        raise InvalidValue(_name(label, i), "the trace is empty", "LBM needs at least one box on either side")
    if array.dtype.kind not in "iuf":
        raise InvalidValue(_name(label, i), f"boxes must be real numbers, not {array.dtype}")
    if array.ndim != 2 or array.shape[1] != 4:
        raise InvalidValue(_name(label, i), f"boxes have shape {array.shape}, expected (n, 4)", "x1, y1, x2, y2")
    return array


def _name(label: str, i: int) -> str:
    return f"LBM trace {label.format(i)}"


def _shorter_as_rows(lengths_a: Ints, lengths_b: Ints) -> Problems:
    """One problem per pair, over a pool that holds all boxes of side a, then all of side b."""
    first_a = np.cumsum(lengths_a) - lengths_a
    first_b = np.cumsum(lengths_b) - lengths_b + lengths_a.sum()
    swap = lengths_a > lengths_b
    return Problems(
        first_row=np.where(swap, first_b, first_a),
        rows=np.where(swap, lengths_b, lengths_a),
        first_column=np.where(swap, first_a, first_b),
        columns=np.where(swap, lengths_a, lengths_b),
    )


def _chunked(problems: Problems) -> tuple[Problems, Ints, Ints]:
    """Cut each problem after every 20 rows, its columns in proportion; neighbouring chunks may share a column.

    Returns the chunks, the problem each comes from (one entry per chunk), and the number of chunks of each problem.
    The bounds are float64 products, rounded as in the authors' program.
    """
    chunks = -(-problems.rows // RELEASED_CHUNK_ROWS)
    source = np.repeat(np.arange(len(chunks)), chunks)
    i = np.arange(len(source)) - np.repeat(np.cumsum(chunks) - chunks, chunks)
    whole = problems[source]
    columns_per_chunk = float(RELEASED_CHUNK_ROWS) * whole.columns / whole.rows
    begin = np.floor(i * columns_per_chunk).astype(np.int64)
    end = np.minimum(np.ceil((i + 1) * columns_per_chunk).astype(np.int64), whole.columns)
    row = i * RELEASED_CHUNK_ROWS
    cut = Problems(
        first_row=whole.first_row + row,
        rows=np.minimum(whole.rows - row, RELEASED_CHUNK_ROWS),
        first_column=whole.first_column + begin,
        columns=end - begin,
    )
    return cut, source, chunks
