"""A measure layer by layer, as lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from saywhere.core import InvalidValue
from saywhere.core.types import owned
from saywhere.plots.groups import AXIS_IN, LEFT_IN, TITLE_IN, GroupSheet
from saywhere.plots.palette import LIGHT, Palette
from saywhere.plots.sheet import MARGIN_IN, Rect

_WIDTH_IN, _HEIGHT_IN, _BETWEEN_IN = 8.8, 2.6, 0.22


def draw_lines(
    panels: Mapping[str, Mapping[str, Sequence[float]]], up: str, across: str = "layer", palette: Palette = LIGHT
) -> Figure:
    """A panel for each title, two in a row, all with the same axes: a line for each series over 1, 2, 3 …

    panels: title → series → one value of what `up` names for each layer; a line has a hole where there is no number.
    """
    if not panels:
        raise InvalidValue("lines", "have no panels")
    found = {
        title: {name: owned(list(line), "a line", (None,), finite=False) for name, line in panel.items()}
        for title, panel in panels.items()
    }
    columns = min(2, len(found))
    panel_in = (_WIDTH_IN - 2 * MARGIN_IN - columns * LEFT_IN - (columns - 1) * _BETWEEN_IN) / columns
    row_in = TITLE_IN + _HEIGHT_IN + AXIS_IN
    names = [name for panel in found.values() for name in panel]
    sheet = GroupSheet.of(names, _WIDTH_IN, -(-len(found) // columns) * row_in, [], palette)
    lines = [line for panel in found.values() for line in panel.values()]
    longest = max((len(line) for line in lines), default=0)
    known = np.concatenate([*lines, np.empty(0)])
    known = known[np.isfinite(known)]
    for i, (title, panel) in enumerate(found.items()):
        x = MARGIN_IN + LEFT_IN + (i % columns) * (panel_in + LEFT_IN + _BETWEEN_IN)
        place = Rect(x, sheet.top + TITLE_IN + (i // columns) * row_in, panel_in, _HEIGHT_IN)
        axes = sheet.panel(place, across, up, title)
        if not len(known):
            sheet.say(axes, "no values")
            continue
        low, high = float(known.min()), float(known.max())
        room = 0.06 * (high - low) or 0.06 * max(abs(high), 1.0)
        axes.set_xlim(0.8, max(longest, 2) + 0.2)
        axes.set_ylim(low - room, high + room)
        axes.xaxis.set_major_locator(MaxNLocator(12, integer=True))
        for name, line in panel.items():
            steps = np.arange(1, len(line) + 1)
            axes.plot(steps, line, mec=palette.paper, mew=0.8, clip_on=False, zorder=4, **sheet.styles[name])
    return sheet.figure
