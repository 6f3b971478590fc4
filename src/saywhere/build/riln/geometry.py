"""What a path says in words: where on the photo, which way, and in which manner."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saywhere.core.types import Floats

_ROWS, _COLUMNS = ("top", "middle", "bottom"), ("left", "middle", "right")
_NEAR = 0.05
"""Steps below this share of the photo are no direction, and paths within it stay where they are."""
_CLOSED = 0.35


def place(xy: Floats) -> str:
    """Which ninth of the photo a position is in."""
    column, row = (min(2, max(0, int(3 * value))) for value in xy.tolist())
    if row == column == 1:
        return "in the middle"
    if row == 1:
        return f"on the {_COLUMNS[column]}"
    return f"at the {_ROWS[row]}" + ("" if column == 1 else f" {_COLUMNS[column]}")


def direction(step: Floats) -> str:
    """Which way a step of (x, y) goes; empty if it is too short to say."""
    across, down = step.tolist()
    parts = [("to the right" if across > 0 else "to the left", abs(across)), ("down" if down > 0 else "up", abs(down))]
    # A step that goes far one way and hardly the other is told by the first alone.
    least = max(_NEAR, 0.4 * max(size for _, size in parts))
    return " and ".join(words for words, size in parts if size >= least)


def manner(xy: Floats) -> tuple[str, str]:
    """How a path moves, and what that marks."""
    size = xy.max(axis=0) - xy.min(axis=0)
    across, down = (f"{100 * side:.0f} %" for side in size.tolist())
    if size.max() < _NEAR:
        return "stays almost where it is", "a single spot"
    length = float(np.linalg.norm(np.diff(xy, axis=0), axis=1).sum())
    gap = float(np.linalg.norm(xy[-1] - xy[0]))
    extent = f"a part {across} of the photo wide and {down} high"
    if len(xy) > 3 and gap < _CLOSED * length:
        return "goes around and comes back", extent
    return f"sweeps {direction(xy[-1] - xy[0]) or 'back and forth'}", extent


def listed(texts: Sequence[str]) -> str:
    """One, two and three."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def capital(text: str) -> str:
    """With a large first letter."""
    return text[:1].upper() + text[1:]
