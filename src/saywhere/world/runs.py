"""Run lengths: masks as COCO writes them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def run_lengths(mask: NDArray[np.bool_]) -> dict[str, list[int]]:
    """{"size": [height, width], "counts": runs of absent, present, absent … pixels, column by column}."""
    flat = mask.ravel(order="F")
    turns = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    borders = np.concatenate([[0], turns, [flat.size]])
    counts = np.diff(borders).tolist()
    # Runs start with what is absent; a mask whose first pixel is present starts with a run of none.
    return {"size": list(mask.shape), "counts": [0, *counts] if flat.size and flat[0] else counts}
