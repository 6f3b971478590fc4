"""The statistics of a data set as one picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from saywhere.build.riln.example import KINDS, LEVELS
from saywhere.build.riln.statistics import RilnStatistics
from saywhere.plots.palette import LIGHT, decorate
from saywhere.plots.sheet import MARGIN_IN, Rect, add_axes, font_settings, new_sheet, text_width_in, write
from saywhere.plots.text import drawable, shortened

_WIDTH_IN, _BAR_IN, _TITLE_IN, _GAP_IN = 10.0, 0.23, 0.3, 0.32
_TEXT_PT, _TITLE_PT = 8.5, 10.0
_COLUMN_IN = (_WIDTH_IN - 3 * MARGIN_IN) / 2
_BESIDE_IN = 0.05
_MOST_REASONS = 12


def draw_statistics(found: RilnStatistics, title: str = "RILN data set") -> Figure:
    """Questions by level and kind, turns, points, phrases and rejections as bars; every bar has its number."""
    left = [
        (
            "Questions",
            {f"{level}, {kind}": found.questions.get(f"{level}/{kind}", 0) for level in LEVELS for kind in KINDS},
        ),
        ("Dialogues by turns", {f"{n} turns": count for n, count in found.turns.items()} or {"none": 0}),
    ]
    lost = sorted(found.rejections.items(), key=lambda both: (-both[1], both[0]))
    shown = dict(lost[:_MOST_REASONS])
    if rest := sum(count for _, count in lost[_MOST_REASONS:]):
        shown["other reasons"] = rest
    right = [
        ("Points of all trajectories", {"as recorded": found.points_before, "thinned": found.points_after}),
        ("Phrases by importance", {f"importance {n}": found.importance.get(str(n), 0) for n in range(5, 0, -1)}),
        ("Rejections", shown or {"none": 0}),
    ]
    height = max(map(_height, (left, right)))
    figure = new_sheet(_WIDTH_IN, 0.62 + height + MARGIN_IN)
    figure.set_facecolor(LIGHT.paper)
    write(figure, title, MARGIN_IN, 0.32, size=13, colour=LIGHT.ink, bold=True)
    about = f"{found.examples:,} examples of {found.narratives:,} narratives on {len(found.images):,} images"
    write(figure, about, MARGIN_IN, 0.53, size=_TEXT_PT, colour=LIGHT.quiet)
    _column(figure, MARGIN_IN, left, 0)
    _column(figure, 2 * MARGIN_IN + _COLUMN_IN, right, len(left))
    return figure


def _height(panels: Sequence[tuple[str, Mapping[str, int]]]) -> float:
    return sum(_TITLE_IN + _BAR_IN * len(bars) + _GAP_IN for _, bars in panels)


def _column(figure: Figure, x: float, panels: Sequence[tuple[str, Mapping[str, int]]], colour: int) -> None:
    y = 0.62
    for i, (title, bars) in enumerate(panels):
        write(figure, title, x, y + 0.22, size=_TITLE_PT, colour=LIGHT.ink, bold=True)
        y += _TITLE_IN
        _bars(figure, x, y, bars, LIGHT.series[(colour + i) % len(LIGHT.series)])
        y += _BAR_IN * len(bars) + _GAP_IN


def _bars(figure: Figure, x: float, y: float, bars: Mapping[str, int], colour: str) -> None:
    names = [drawable(shortened(name, 44)) for name in bars]
    beside = 0.1 + max(text_width_in(name, _TEXT_PT) for name in names)
    place = Rect(x + beside, y, _COLUMN_IN - beside - 0.65, _BAR_IN * len(bars))
    axes = add_axes(figure, place)
    decorate(axes, LIGHT, "x", _TEXT_PT)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.set_xlim(0, max(bars.values()) or 1)
    axes.set_ylim(len(bars), 0)
    for i, (name, count) in enumerate(zip(names, bars.values(), strict=True)):
        axes.barh(i + 0.5, count, 0.7, color=colour)
        settings = {**font_settings(_TEXT_PT, LIGHT.ink), "va": "center_baseline", "clip_on": False}
        axes.text(
            -_BESIDE_IN / place.width, i + 0.5, name, ha="right", transform=axes.get_yaxis_transform(), **settings
        )
        axes.text(count + axes.get_xlim()[1] * _BESIDE_IN / place.width, i + 0.5, f"{count:,}", **settings)
