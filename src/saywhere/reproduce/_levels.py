"""Photos of a report with captions at several levels: what was taken away is outlined and named on the photo."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from saywhere.core.regions import corners
from saywhere.plots.heatmap import NO_TRACE
from saywhere.plots.photo import load_photo
from saywhere.plots.seen import own_colours
from saywhere.plots.sheet import PAPER, Place, add_photo, font_settings, new_sheet, photo_height_in, text_width_in
from saywhere.plots.text import drawable, shortened
from saywhere.reproduce._cells import NOTHING
from saywhere.reproduce.results import LevelExample, LevelLine, NamedBox

TITLE = "Captions at several levels"
ABOUT = "Confidence is from 0 to 1. ✓: right, ✗: wrong, as far as that can be told."
_WIDTH_IN, _TEXT_PT = 4.4, 9.5
_EDGE = 0.008


@dataclass(frozen=True, slots=True)
class LevelScene:
    """An example ready to be drawn."""

    path: Path | None
    example: LevelExample

    @classmethod
    def of(cls, example: LevelExample, folder: Path) -> LevelScene:
        """folder: where the report is, and the photo beside it."""
        return cls(folder / example.photo if example.photo else None, example)

    @property
    def has_confidence(self) -> bool:
        return any(line.confidence is not None for line in self.example.lines)

    @property
    def has_verdict(self) -> bool:
        return any(line.good is not None for line in self.example.lines)

    def removed(self) -> str:
        """Which things were taken away, in words; empty if none were."""
        names = list(dict.fromkeys(box.name for box in self.example.removed))
        return f"taken away, outlined: {', '.join(names)}" if names else ""

    def described(self) -> str:
        """What the picture shows, for those who cannot see it."""
        what = f"Photo: {self.example.heading}" if self.example.heading else "The photo"
        return f"{what}; {self.removed()}" if self.example.removed else what

    def draw(self) -> Figure:
        """The photo, with each thing that was taken away under an outline with its name."""
        photo = load_photo(self.path)
        place = Place(0, 0, _WIDTH_IN, photo_height_in(photo, NO_TRACE, _WIDTH_IN))
        figure = new_sheet(place.width, place.height)
        axes = add_photo(figure, place, photo, NO_TRACE)
        names = list(dict.fromkeys(box.name for box in self.example.removed))
        colours = dict(zip(names, zip(*own_colours(len(names)), strict=True), strict=True))
        for box in self.example.removed:
            _add_outline(axes, box, colours[box.name][0])
        # After all outlines, so that none crosses a name; once each, because a thing may have many regions.
        taken: list[tuple[float, float, float, float]] = []
        for name, first in {box.name: box for box in reversed(self.example.removed)}.items():
            _add_name(axes, place, first, *colours[name], taken)
        return figure


def confidence(line: LevelLine) -> str:
    """For people; a dash if there is none."""
    known = line.confidence is not None and math.isfinite(line.confidence)
    return f"{line.confidence:.2f}" if known else NOTHING


def verdict(line: LevelLine) -> tuple[str, str]:
    """Whether it is right, as a sign and in a word."""
    return (NOTHING, "unknown") if line.good is None else ("✓", "right") if line.good else ("✗", "wrong")


def _add_outline(axes: Axes, box: NamedBox, colour: str) -> None:
    """In a light casing, because the photo may be of any colour beneath; hatched, because it is taken away."""
    points = corners(np.clip(box.box_xyxy, _EDGE, 1 - _EDGE).tolist())
    axes.add_patch(Polygon(points, fill=False, ec=colour, lw=0, hatch="///", alpha=0.55, zorder=2))
    for edge, width, order in ((PAPER, 4.0, 3), (colour, 2.0, 4)):
        axes.add_patch(Polygon(points, fill=False, ec=edge, lw=width, zorder=order, joinstyle="miter"))


def _add_name(
    axes: Axes, place: Place, box: NamedBox, colour: str, ink: str, taken: list[tuple[float, float, float, float]]
) -> None:
    """Inside the upper left corner of its box, or further down where another name stands."""
    text = drawable(shortened(box.name, 24))
    wide, high = (text_width_in(text, _TEXT_PT) + 0.1) / place.width, 0.2 / place.height
    x = float(np.clip(box.box_xyxy[0], _EDGE, max(_EDGE, 1 - _EDGE - wide)))
    y = float(np.clip(box.box_xyxy[1], _EDGE, max(_EDGE, 1 - _EDGE - high)))
    while any(x < x2 and x + wide > x1 and y < y2 and y + high > y1 for x1, y1, x2, y2 in taken) and y + high < 1:
        y += high / 4
    taken.append((x, y, x + wide, y + high))
    axes.add_patch(Polygon(corners((x, y, x + wide, y + high)), fc=colour, ec=PAPER, lw=0.8, zorder=6))
    settings = {**font_settings(_TEXT_PT, ink), "va": "center_baseline"}
    axes.text(x + 0.05 / place.width, y + high / 2, text, zorder=7, **settings)
