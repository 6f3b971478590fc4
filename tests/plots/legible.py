"""Whether all that is written on a figure can be read: whole on the sheet, and no text over another."""

from __future__ import annotations

from itertools import combinations

from matplotlib.figure import Figure
from matplotlib.text import Text

_SLACK_PX = 1.5
"""Letters reach a little beyond what they need."""


def written(figure: Figure) -> list[Text]:
    """All texts that are seen, the numbers of axes, too."""
    found = list(figure.texts)
    for axes in figure.axes:
        found += axes.texts
        for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
            low, high = sorted(axis.get_view_interval())
            both = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
            found += [label for place, label in both if low <= place <= high]
    return [text for text in found if text.get_text().strip() and text.get_visible()]


def unreadable(figure: Figure) -> list[str]:
    """Texts that are cut off, smaller than 9 points, or lie over another."""
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    sheet = figure.bbox
    boxes = [(text, text.get_window_extent(renderer)) for text in written(figure)]
    problems = [f"{text.get_text()!r} is small" for text, _ in boxes if text.get_fontsize() < 9]
    for text, box in boxes:
        if box.x0 < -_SLACK_PX or box.y0 < -_SLACK_PX or box.x1 > sheet.x1 + _SLACK_PX or box.y1 > sheet.y1 + _SLACK_PX:
            problems.append(f"{text.get_text()!r} is cut off")
    for (one, a), (other, b) in combinations(boxes, 2):
        wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        if wide > _SLACK_PX and high > _SLACK_PX:
            problems.append(f"{one.get_text()!r} lies over {other.get_text()!r}")
    return problems
