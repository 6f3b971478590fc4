"""The learning curves of a run, drawn from its log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saywhere.atomic import write_atomic
from saywhere.learn.records import LogRecord, StepDone, Validated, read_log

_COLUMNS = 3
_SMOOTH_SHARE = 0.02
# A curve that falls by more than this factor is drawn on a logarithmic axis.
_LOG_SPAN = 20
_BLUE, _ORANGE, _GREY = "#1f5f99", "#c8501e", "#888888"


def draw_curves(log: Path, png: Path, title: str) -> None:
    """A panel for each loss, the learning rate, the gradient's norm, and each validation metric, over the steps."""
    # Slow to import, and only needed when a run ends.
    from matplotlib.figure import Figure

    panels = _panels(read_log(log))
    rows = max(1, math.ceil(len(panels) / _COLUMNS))
    figure = Figure(figsize=(4 * _COLUMNS, 2.7 * rows + 0.4), layout="constrained")
    figure.suptitle(title, fontsize=11)
    for axes, panel in zip(figure.subplots(rows, _COLUMNS, squeeze=False).flat, panels, strict=False):
        panel.draw(axes)
    for axes in figure.axes[len(panels) :]:
        axes.set_axis_off()
    with write_atomic(png) as file:
        figure.savefig(file, format="png")


class _Panel:
    def __init__(
        self, name: str, steps: Sequence[int], values: Sequence[float], best: int | None, smooth: bool
    ) -> None:
        self.name, self.best, self.smooth = name, best, smooth
        self.steps, self.values = np.array(steps), np.array(values, dtype=float)

    def draw(self, axes: Any) -> None:
        axes.set_title(self.name, fontsize=9)
        axes.tick_params(labelsize=8, which="both")
        axes.grid(alpha=0.25)
        axes.set_xlabel("step", fontsize=8)
        many = len(self.values) > 1 / _SMOOTH_SHARE
        if self.smooth and many:
            axes.plot(self.steps, self.values, color=_GREY, linewidth=0.5, alpha=0.6)
            axes.plot(self.steps, _smoothed(self.values), color=_BLUE, linewidth=1.5)
        else:
            axes.plot(self.steps, self.values, color=_BLUE, linewidth=1.5, marker="" if many else ".")
        finite = self.values[np.isfinite(self.values)]
        if self.smooth and len(finite) and finite.min() > 0:
            trend = _smoothed(finite)
            axes.set_yscale("log" if trend.max() > _LOG_SPAN * trend.min() else "linear")
        if self.best is not None:
            axes.axvline(self.best, color=_ORANGE, linewidth=1, linestyle="--", label=f"best: step {self.best}")
            axes.legend(fontsize=7, frameon=False)


def _panels(measured: Sequence[LogRecord]) -> list[_Panel]:
    steps = [record for record in measured if isinstance(record, StepDone)]
    checks = [record for record in measured if isinstance(record, Validated)]
    best = max((record.step for record in checks if record.best), default=None)
    at = [record.step for record in steps]
    panels = []
    for name in _names([record.losses for record in steps]):
        values = [_number(record.losses.get(name)) for record in steps]
        panels.append(_Panel(f"train: {name}", at, values, None, smooth=True))
    for name in _names([record.metrics for record in checks]):
        values = [_number(record.metrics.get(name)) for record in checks]
        panels.append(_Panel(f"validate: {name}", [record.step for record in checks], values, best, smooth=False))
    panels.append(_Panel("learning rate", at, [record.lr for record in steps], None, smooth=False))
    norms = [_number(record.grad_norm) for record in steps]
    panels.append(_Panel("gradient norm", at, norms, None, smooth=True))
    return panels


def _names(tables: Sequence[dict[str, Any]]) -> list[str]:
    """All keys, in the order of their first appearance."""
    return list(dict.fromkeys(name for table in tables for name in table))


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _smoothed(values: np.ndarray) -> np.ndarray:
    """A centred moving mean over a fiftieth of the run; the window shrinks at the ends."""
    half = max(1, round(len(values) * _SMOOTH_SHARE / 2))
    there = np.isfinite(values)
    sums = np.concatenate([[0.0], np.cumsum(np.where(there, values, 0.0))])
    counts = np.concatenate([[0.0], np.cumsum(there)])
    ends = np.minimum(np.arange(len(values)) + half + 1, len(values))
    starts = np.maximum(np.arange(len(values)) - half, 0)
    number = counts[ends] - counts[starts]
    return np.where(number > 0, (sums[ends] - sums[starts]) / np.maximum(number, 1), np.nan)
