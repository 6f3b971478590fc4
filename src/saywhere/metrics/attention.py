"""Does a map look where people look? NSS, AUC-Judd, CC, KL and SIM as the MIT saliency benchmark defines them.

A map is an (h, w) array of finite numbers on any scale. Fixations are points (n, 2), x and y as fractions of the
image's width and height, or a boolean map of the same (h, w). As in the benchmark, a cell counts once however many
fixations fall into it, so points and the map they mark give the same score. Maps of different shapes are an error (the
benchmark resizes silently).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Bools, Floats, owned
from saywhere.metrics._mean import MeanScore

_EPSILON = float(np.finfo(np.float64).eps)


def nss(saliency: ArrayLike, fixations: ArrayLike) -> float:
    """Normalised scanpath saliency: mean over fixated cells of the map in standard deviations from its mean.

    0 is chance. NaN when the map is constant or there is no fixation. The deviation divides by n - 1, as MATLAB does.

    >>> nss([[0, 0, 0, 1]], [[False, False, False, True]])
    1.5
    """
    values = _map(saliency, "saliency map")
    fixated = _fixated(fixations, values.shape)
    if _is_constant(values) or not fixated.any():
        return math.nan
    return float((values[fixated].mean() - values.mean()) / values.std(ddof=1))


def auc_judd(saliency: ArrayLike, fixations: ArrayLike, *, jitter: np.random.Generator | None = None) -> float:
    """Area under the ROC curve that separates fixated cells from all others, in [0, 1].

    Judd's curve has one point for each fixated cell, its value as threshold, joined by straight lines. So with n
    fixated cells the area exceeds the rank-sum area by up to 1 / (2 n), and a constant map scores 0.5 + 1 / (2 n + 2).
    Equal values: the benchmark breaks ties by random jitter; without `jitter` this is the exact mean over all ways to
    break them, and nothing is random. jitter: adds noise of up to 1e-7 of the map's range instead, as the benchmark
    does. NaN when no cell or every cell is fixated.

    >>> auc_judd([[0, 1, 2, 3]], [[False, False, False, True]])
    1.0
    """
    values = _map(saliency, "saliency map")
    fixated = _fixated(fixations, values.shape)
    if fixated.all() or not fixated.any():
        return math.nan
    if jitter is not None:
        values = values + jitter.random(values.shape) * (np.ptp(values) or 1.0) * 1e-7
    inside, outside = values[fixated], np.sort(values[~fixated])
    beaten, not_above = (np.searchsorted(outside, inside, side=side) for side in ("left", "right"))
    rank_sum_area = (beaten + not_above).mean() / 2 / len(outside)
    # The straight lines add half a step for every other cell above the lowest fixated one. Of those tied with it, each
    # is below all k tied fixated cells in one of k + 1 orders.
    lowest, k = inside.min(), int((inside == inside.min()).sum())
    above = (outside > lowest).mean() + (outside == lowest).mean() * k / (k + 1)
    return float(rank_sum_area + above / (2 * len(inside)))


def cc(saliency: ArrayLike, human: ArrayLike) -> float:
    """Pearson's correlation of two maps (h, w), in [-1, 1]. NaN when either is constant.

    >>> cc([[0, 1], [2, 3]], [[0, 2], [4, 6]])
    1.0
    """
    a, b = _two_maps(saliency, human)
    if _is_constant(a) or _is_constant(b):
        return math.nan
    x, y = (a - a.mean()).ravel(), (b - b.mean()).ravel()
    return float(np.clip(x @ y / math.sqrt(x @ x) / math.sqrt(y @ y), -1.0, 1.0))


def kl(saliency: ArrayLike, human: ArrayLike) -> float:
    """Kullback–Leibler divergence in nats from the human map to the saliency map, both (h, w) and scaled to sum 1.

    0 is best. Cells the model rules out are smoothed by machine epsilon, as in the benchmark, so the result stays
    finite and may be below 0 by rounding. Negative values are an error. NaN when a map is 0 everywhere.

    >>> round(kl([[1, 1]], [[3, 1]]), 3)
    0.131
    """
    a, b = _two_maps(saliency, human)
    if a.min() < 0 or b.min() < 0:
        raise InvalidValue("maps", "KL needs distributions, but a value is negative")
    if not a.any() or not b.any():
        return math.nan
    model, people = a / a.sum(), b / b.sum()
    return float((people * np.log(_EPSILON + people / (model + _EPSILON))).sum())


def sim(saliency: ArrayLike, human: ArrayLike) -> float:
    """Histogram intersection of two maps (h, w), each stretched to [0, 1] and then scaled to sum 1; in [0, 1].

    NaN when either map is constant.

    >>> sim([[0, 1], [1, 2]], [[0, 1], [2, 1]])
    0.75
    """
    a, b = _two_maps(saliency, human)
    if _is_constant(a) or _is_constant(b):
        return math.nan
    x, y = a - a.min(), b - b.min()
    return float(np.minimum(x / x.sum(), y / y.sum()).sum())


class NSS(MeanScore):
    """Mean of `nss` over images."""

    def update(self, saliency: ArrayLike, fixations: ArrayLike) -> None:
        """Add one image: a map (h, w) and its fixations."""
        self._scores.append(nss(saliency, fixations))


class AUCJudd(MeanScore):
    """Mean of `auc_judd` over images."""

    def __init__(self, *, jitter: np.random.Generator | None = None) -> None:
        super().__init__()
        self.jitter = jitter

    def update(self, saliency: ArrayLike, fixations: ArrayLike) -> None:
        """Add one image: a map (h, w) and its fixations."""
        self._scores.append(auc_judd(saliency, fixations, jitter=self.jitter))


class CC(MeanScore):
    """Mean of `cc` over images."""

    def update(self, saliency: ArrayLike, human: ArrayLike) -> None:
        """Add one image: two maps (h, w)."""
        self._scores.append(cc(saliency, human))


class KL(MeanScore):
    """Mean of `kl` over images."""

    higher_is_better = False

    def update(self, saliency: ArrayLike, human: ArrayLike) -> None:
        """Add one image: two maps (h, w)."""
        self._scores.append(kl(saliency, human))


class SIM(MeanScore):
    """Mean of `sim` over images."""

    def update(self, saliency: ArrayLike, human: ArrayLike) -> None:
        """Add one image: two maps (h, w)."""
        self._scores.append(sim(saliency, human))


def _map(values: ArrayLike, what: str) -> Floats:
    """A map (h, w) divided by its largest magnitude: no score here depends on scale, and squares cannot overflow."""
    array = owned(values, what, (None, None))
    if not array.size:
        raise InvalidValue(what, f"has shape {array.shape}: no cell")
    peak = float(np.abs(array).max())
    return array / peak if peak else array


def _two_maps(saliency: ArrayLike, human: ArrayLike) -> tuple[Floats, Floats]:
    a, b = _map(saliency, "saliency map"), _map(human, "human map")
    if a.shape != b.shape:
        raise InvalidValue("maps", f"have shapes {a.shape} and {b.shape}", "resize one to the other first")
    return a, b


def _is_constant(values: Floats) -> bool:
    return bool(values.min() == values.max())


def _fixated(fixations: ArrayLike, shape: tuple[int, ...]) -> Bools:
    """The cells that hold a fixation, (h, w)."""
    try:
        given = np.asarray(fixations)
    except ValueError as error:
        raise InvalidValue("fixations", f"are not an array: {error}") from error
    if given.dtype == np.bool_:
        if given.shape != shape:
            raise InvalidValue("fixation map", f"has shape {given.shape}, the saliency map {shape}")
        return given
    if given.ndim == 2 and given.shape[1] != 2:
        raise InvalidValue(
            "fixations", f"have shape {given.shape}", "give points (n, 2), or a map (h, w) of dtype bool"
        )
    points = owned(given, "fixations", (None, 2))
    if points.size and (points.min() < 0 or points.max() > 1):
        raise InvalidValue(
            "fixations", "a point lies outside the image", "points are fractions in [0, 1]; drop the others first"
        )
    rows, cols = (
        np.minimum((points[:, axis] * n).astype(np.intp), n - 1) for axis, n in ((1, shape[0]), (0, shape[1]))
    )
    marked = np.zeros(shape, np.bool_)
    marked[rows, cols] = True
    return marked
