"""One number for each class and group, as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from saywhere.core import InvalidValue
from saywhere.core.types import Floats, owned
from saywhere.plots.groups import TEXT_PT, GroupSheet, bar_style
from saywhere.plots.palette import LIGHT, Palette
from saywhere.plots.sheet import MARGIN_IN, Rect, font_settings, text_width_in
from saywhere.plots.text import drawable, shortened

_WIDTH_IN, _BAR_IN, _SPACE_IN, _LEAST_IN = 7.6, 0.2, 0.16, 0.42
_LONGEST = 24


def draw_bars(
    values: Mapping[str, Mapping[str, Sequence[float]]],
    support: Mapping[str, int],
    across: str,
    highest: float | None = 1.0,
    palette: Palette = LIGHT,
) -> Figure:
    """Bars lying side by side: for each class one of each group, as long as its mean, with a tick for each seed.

    values: group → class → what `across` names, one for each seed, at least 0; a class without numbers gets a dash.
    support: classes in the order to show them, with how many cases each had, written under its name. highest: where
    the axis ends; None: at the largest value.
    """
    if not values or not support:
        raise InvalidValue("bars", "have no groups or no classes")
    unknown = {name for classes in values.values() for name in classes} - set(support)
    if unknown:
        raise InvalidValue("bars", f"have no support for {', '.join(sorted(unknown))}")
    found = {group: {name: _numbers(classes.get(name, ())) for name in support} for group, classes in values.items()}
    slot = max(_LEAST_IN, len(values) * _BAR_IN + _SPACE_IN)
    plot_in = slot * len(support)
    names = {name: drawable(shortened(name, _LONGEST)) for name in support}
    counts = {name: f"n = {count:,}" for name, count in support.items()}
    left = 0.14 + max(text_width_in(text, TEXT_PT) for text in (*names.values(), *counts.values()))
    sheet = GroupSheet.of(values, _WIDTH_IN, plot_in + 0.62, [_about(found)], palette, bars=True)
    place = Rect(MARGIN_IN + left, sheet.top + 0.06, _WIDTH_IN - 2 * MARGIN_IN - left - 0.4, plot_in)
    axes = sheet.panel(place, across, "")
    numbers = [number for classes in found.values() for numbers in classes.values() for number in numbers]
    axes.set_xlim(0, highest if highest is not None else max(numbers, default=0) * 1.02 or 1)
    axes.set_ylim(len(support), 0)
    axes.set_yticks([])
    axes.xaxis.set_major_locator(MaxNLocator(5))
    for i, name in enumerate(support):
        _name_class(axes, i, slot, names[name], counts[name], palette)
        for j, group in enumerate(found):
            y = i + 0.5 + (j - (len(found) - 1) / 2) * _BAR_IN / slot
            style = bar_style(sheet.styles[group]["color"], j, palette)
            _add_bar(axes, y, 0.86 * _BAR_IN / slot, found[group][name], style, palette)
    return sheet.figure


def _numbers(values: Sequence[float]) -> Floats:
    numbers = owned(list(values), "values of a bar", (None,), finite=False)
    if (numbers < 0).any():
        raise InvalidValue("values of a bar", "are below 0")
    return numbers[np.isfinite(numbers)]


def _about(found: Mapping[str, Mapping[str, Floats]]) -> str:
    several = any(len(numbers) > 1 for classes in found.values() for numbers in classes.values())
    return f"{'Bars end at the mean over seeds; each tick is a seed. ' if several else ''}n: cases of a class."


def _name_class(axes: Axes, i: int, slot_in: float, name: str, count: str, palette: Palette) -> None:
    """The name of the i-th class and its support, about the middle of its slot."""
    where: dict[str, Any] = {"ha": "right", "transform": axes.get_yaxis_transform(), "clip_on": False}
    both = ((-0.02, name, palette.ink), (0.15, count, palette.quiet))
    for down_in, text, colour in both:
        axes.text(-0.012, i + 0.5 + down_in / slot_in, text, **where, **font_settings(TEXT_PT, colour))
    if i:
        axes.axhline(i, color=palette.line, lw=0.6, zorder=0)


def _add_bar(axes: Axes, y: float, height: float, numbers: Floats, style: dict[str, Any], palette: Palette) -> None:
    text = {**font_settings(TEXT_PT, palette.ink), "va": "center_baseline", "clip_on": False, "zorder": 6}
    after = axes.get_xlim()[1] * 0.012
    if not len(numbers):
        axes.text(after, y, "–", **text)
        return
    mean = float(numbers.mean())
    axes.barh(y, mean, height, zorder=2, **style)
    if len(numbers) > 1:
        for number in numbers:
            ends = [y - height / 2, y + height / 2]
            axes.plot([number, number], ends, color=palette.ink, lw=0.9, zorder=4, clip_on=False)
    axes.text(max(mean, float(numbers.max())) + after, y, f"{mean:.2f}", **text)
