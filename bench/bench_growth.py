"""Text and outlines that nobody meant to write: eight times as much takes at most thirty times as long."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from saywhere.core import Frame, Polygon
from saywhere.core.trajectory import from_text
from saywhere.metrics.captions._tokenize import ptb_words

CAPTIONS = ("&", "<a ", "a@", "1 ", "a,", "'", "a.", "😀", "http://", "ae'")
ANSWERS = (" ", "1", "(", "1 ", "(1,", "<traj>")
LEAST_S = 0.001
"""Below this, only the clock would be measured."""


def seconds(work: Callable[[int], object], n: int) -> float:
    times = []
    for _ in range(3):
        began = time.process_time()
        work(n)
        times.append(time.process_time() - began)
    return min(times)


def growth(work: Callable[[int], object], n: int) -> float:
    """How many times as long eight times as much takes."""
    work(10)
    return seconds(work, 8 * n) / max(seconds(work, n), LEAST_S)


def scribble(n: int) -> object:
    return Polygon(np.random.default_rng(0).random((n, 2))).weights(Frame.of_grid(14, 14))


def run() -> list[tuple[str, str, str, bool]]:
    captions = max(growth(partial(lambda unit, n: ptb_words(unit * n), unit), 1_000) for unit in CAPTIONS)
    answers = max(growth(partial(lambda unit, n: from_text("<traj>" + unit * n), unit), 5_000) for unit in ANSWERS)
    outline = growth(scribble, 500)
    return [
        (what, f"{grown:.1f} ×", "< 30 ×", grown < 30)
        for what, grown in (
            ("words of odd captions, 8,000 signs against 1,000", captions),
            ("trajectories of odd answers, 40,000 signs against 5,000", answers),
            ("weights of a scribble, 4,000 points against 500", outline),
        )
    ]


if __name__ == "__main__":
    for row in run():
        print(*row, sep=" | ")
