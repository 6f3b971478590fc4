"""A file of narratives in numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from saywhere.core.alignment import located_words
from saywhere.core.narrative import Narrative
from saywhere.core.words import word_times

_HEAT_SHAPE = (48, 64)


class Summary:
    """Counts that grow with each narrative; memory grows by a few numbers for each."""

    def __init__(self) -> None:
        self._images: set[str] = set()
        self._annotators: set[str] = set()
        self._rows: list[tuple[float, ...]] = []
        self._heat = np.zeros(_HEAT_SHAPE)

    def add(self, narrative: Narrative) -> None:
        """Count one more."""
        self._images.add(f"{narrative.dataset_id}/{narrative.image_id}")
        self._annotators.add(narrative.annotator_id)
        trace, words = narrative.trace, word_times(narrative.utterances)
        speed = trace.speed()
        moving = speed[np.isfinite(speed)]
        x, y = trace.xy.T
        inside = (x >= 0) & (x <= 1) & (y >= 0) & (y <= 1)
        cells = ((y[inside], _HEAT_SHAPE[0]), (x[inside], _HEAT_SHAPE[1]))
        rows, cols = (np.minimum((places * n).astype(int), n - 1) for places, n in cells)
        self._heat += np.bincount(rows * _HEAT_SHAPE[1] + cols, minlength=self._heat.size).reshape(_HEAT_SHAPE)
        self._rows.append(
            (
                len(words) or len(narrative.caption.split()),
                narrative.end_s,
                len(trace),
                len(trace.starts),
                len(trace) - len(rows),
                _median(moving) if moving.size else np.nan,
                float(located_words(words, trace).mean()) if len(words) else np.nan,
            )
        )

    def columns(self) -> Mapping[str, np.ndarray]:
        """The distributions worth drawing, by title, and a heat map of all points."""
        words, seconds, points, _, _, speed, located = self._table().T
        return {
            "words in a narrative": words,
            "seconds": seconds,
            "trace points": points,
            "speed, image sizes a second": speed[np.isfinite(speed)],
            "share of words with a place": located[np.isfinite(located)],
            "where people point": self._heat,
        }

    def rows(self) -> list[tuple[str, str]]:
        """Names and numbers for people."""
        words, seconds, points, segments, off, speed, located = self._table().T
        rows = [
            ("narratives", f"{len(words):,}"),
            ("images", f"{len(self._images):,}"),
            ("annotators", f"{len(self._annotators):,}"),
        ]
        if not len(words):
            return rows
        rows += [
            ("words in all", f"{int(words.sum()):,}"),
            ("words in a narrative", _spread(words)),
            ("seconds", _spread(seconds)),
            ("trace points", _spread(points)),
            ("narratives with pen-up gaps", f"{(segments > 1).mean():.1%}"),
            ("narratives without a trace", f"{(points == 0).mean():.1%}"),
            ("points outside the image", f"{off.sum() / max(points.sum(), 1):.1%}"),
        ]
        if np.isfinite(speed).any():
            rows.append(("median speed, image sizes a second", _spread(speed[np.isfinite(speed)])))
        if np.isfinite(located).any():
            share = np.average(located[np.isfinite(located)], weights=words[np.isfinite(located)])
            rows.append(("words with a place", f"{share:.1%}"))
        return rows

    def _table(self) -> np.ndarray:
        return np.array(self._rows, dtype=np.float64).reshape(-1, 7)


def _median(values: np.ndarray) -> float:
    """As numpy's, without its care for NaN, which takes longer than all else."""
    middle = (len(values) - 1) // 2, len(values) // 2
    return float(np.partition(values, middle)[list(middle)].mean())


def _spread(values: np.ndarray) -> str:
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    return f"median {middle:.4g}, 5 % below {low:.4g}, 5 % above {high:.4g}"
