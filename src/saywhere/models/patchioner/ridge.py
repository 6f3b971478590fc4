"""The linear alignment in closed form, and the same for photos it has not seen.

Ridge regression onto the mean vector of a photo's captions takes seconds where contrastive training takes minutes, and
was as good on our photos (docs/log.md). What it gives for its own photos is too good to learn a decoder from, so
`out_of_fold` gives each photo the vector of an alignment that never saw it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from saywhere.core.errors import InvalidValue
from saywhere.core.types import Floats32


def fit_ridge(
    inputs: ArrayLike, targets: ArrayLike, penalty: float, weights: ArrayLike | None = None
) -> tuple[Floats32, Floats32]:
    """(d, t) weight and (t,) offset with targets ≈ inputs @ weight + offset.

    inputs: (n, d), centred and scaled already. targets: (n, t). penalty: on the squared weight. weights: (n,) how much
    each row counts; 1 by default. The offset is the targets' weighted mean, and is not penalised.
    """
    rows, wanted, counts = _checked(inputs, targets, penalty, weights)
    offset = (wanted * counts[:, None]).sum(axis=0) / counts.sum()
    strong = rows * counts[:, None]
    # Float64: the sums of squares of thousands of rows lose too many digits otherwise.
    gram = strong.T.astype(np.float64) @ rows + penalty * np.eye(rows.shape[1])
    weight = np.linalg.solve(gram, strong.T.astype(np.float64) @ (wanted - offset))
    return weight.astype(np.float32), offset.astype(np.float32)


def out_of_fold(
    inputs: ArrayLike,
    targets: ArrayLike,
    penalty: float,
    weights: ArrayLike | None = None,
    folds: int = 5,
    seed: int = 0,
) -> Floats32:
    """(n, t) for each row the prediction of a fit that left its fold out. The penalty shrinks with the rows."""
    rows, wanted, counts = _checked(inputs, targets, penalty, weights)
    if not 2 <= folds <= len(rows):
        raise InvalidValue("folds", f"is {folds}, not from 2 to the {len(rows)} rows there are")
    fold = np.random.default_rng(seed).permutation(len(rows)) % folds
    predicted = np.empty(wanted.shape, dtype=np.float32)
    for number in range(folds):
        kept, left = fold != number, fold == number
        weight, offset = fit_ridge(rows[kept], wanted[kept], penalty * (folds - 1) / folds, counts[kept])
        predicted[left] = rows[left] @ weight + offset
    return predicted


def _checked(
    inputs: ArrayLike, targets: ArrayLike, penalty: float, weights: ArrayLike | None
) -> tuple[Floats32, Floats32, Floats32]:
    rows, wanted = np.asarray(inputs, dtype=np.float32), np.asarray(targets, dtype=np.float32)
    if rows.ndim != 2 or wanted.ndim != 2 or len(rows) != len(wanted) or not len(rows):
        raise InvalidValue("inputs, targets", f"have shapes {rows.shape} and {wanted.shape}, not (n, d) and (n, t)")
    if not penalty > 0:
        raise InvalidValue("penalty", f"is {penalty}, not above 0")
    counts = np.ones(len(rows), dtype=np.float32) if weights is None else np.asarray(weights, dtype=np.float32)
    if counts.shape != (len(rows),) or not (counts >= 0).all() or not counts.any():
        raise InvalidValue("weights", f"have shape {counts.shape} for {len(rows)} rows, or are negative or all zero")
    if not (np.isfinite(rows).all() and np.isfinite(wanted).all()):
        raise InvalidValue("inputs, targets", "hold NaN or infinity")
    return rows, wanted, counts
