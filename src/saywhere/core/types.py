"""Types that every package speaks, and arrays as values: checked once, copied, then read-only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saywhere.core.errors import InvalidValue

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class Progress(Protocol):
    """Is told how far some work is."""

    def __call__(self, doing: str, done: int, total: int, /) -> None:
        """doing: what, in a few words. total: 0 if nobody knows."""
        ...


def owned(values: ArrayLike, what: str, shape: Sequence[int | None], *, finite: bool = True) -> Floats:
    """A read-only float64 copy of `values`, which must have `shape` (None: any length) and, if asked, be finite."""
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InvalidValue(what, f"is not an array of numbers: {error}") from error
    if array.size == 0 and array.ndim < len(shape) and None in shape:
        array = array.reshape([0 if n is None else n for n in shape])
    if array.ndim != len(shape) or any(n is not None and n != m for n, m in zip(shape, array.shape, strict=True)):
        wanted = "(" + ", ".join("n" if n is None else str(n) for n in shape) + ")"
        raise InvalidValue(what, f"has shape {array.shape}, not {wanted}")
    if finite and not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0][0])
        raise InvalidValue(what, f"holds NaN or infinity, first in row {row}")
    array.flags.writeable = False
    return array


def minimum_jerk(u: Floats) -> Floats:
    """The hand's way from 0 to 1 as u goes from 0 to 1: no speed and no acceleration at either end."""
    eased: Floats = u**3 * (10 - 15 * u + 6 * u**2)
    return eased
