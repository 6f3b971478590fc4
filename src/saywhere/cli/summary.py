"""A file of narratives in numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from saywhere.core.narrative import Narrative

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
        trace, words = narrative.trace, narrative.words
        speed = trace.speed()
        moving = speed[np.isfinite(speed)]
        inside = trace.xy[((trace.xy >= 0) & (trace.xy <= 1)).all(axis=1)]
        rows, cols = (np.minimum((inside[:, 1 - a] * n).astype(int), n - 1) for a, n in enumerate(_HEAT_SHAPE))
        np.add.at(self._heat, (rows, cols), 1)
        self._rows.append(
            (
                len(words) if words else len(narrative.caption.split()),
                narrative.end_s,
                len(trace),
                len(trace.starts),
                len(trace) - len(inside),
                float(np.median(moving)) if moving.size else np.nan,
                float(narrative.word_boxes().located.mean()) if words else np.nan,
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


def _spread(values: np.ndarray) -> str:
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    return f"median {middle:.4g}, 5 % below {low:.4g}, 5 % above {high:.4g}"
