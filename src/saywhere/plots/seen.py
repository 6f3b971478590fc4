"""What a model said about one photo, as pictures and pages show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from saywhere.core import Box, BoxSet, Mask, Narrative, Patch, Point, Polygon, Region, Trace, WholeImage, WordBoxes
from saywhere.core.types import Floats
from saywhere.plots.colour import hex_colours, inks
from saywhere.plots.photo import PhotoLike

BoxXyxy = tuple[float, float, float, float]
_POINT = 0.03  # Half the side of the square that marks a point, in fractions of the photo.


@dataclass(frozen=True, slots=True)
class Said:
    """A caption. region: of what. sure: False is marked. nearest: sentences near to the region, to judge it by.

    level: "object" for what is there, or one above it, such as "scene" for where it is.
    """

    region: Region
    text: str
    sure: bool = True
    nearest: tuple[str, ...] = ()
    level: str = "object"


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A text and the box of each word, exactly; runs of words in one box are one phrase."""

    words: tuple[str, ...]
    boxes: WordBoxes

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def phrases(self) -> list[Phrase]:
        """The words in their order, those in one box together."""
        rows = zip(self.words, self.boxes.boxes_xyxy.tolist(), self.boxes.located.tolist(), strict=True)
        runs = groupby(rows, key=lambda row: (row[1][0], row[1][1], row[1][2], row[1][3]) if row[2] else None)
        return [Phrase(" ".join(word for word, _, _ in run), box) for box, run in runs]


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words with one box, or None if they have no place."""

    text: str
    box_xyxy: BoxXyxy | None


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """One photo and everything said about it; parts that nobody asked for are None or empty.

    photo: as `load_photo` takes it. title, about: over the picture. whole: the caption of the whole photo.
    grounded: a text and where it is. narrated: a narrative of the photo. levels: captions of the whole photo above
    objects.
    """

    photo: PhotoLike
    title: str
    about: str = ""
    whole: Said | None = None
    regions: tuple[Said, ...] = ()
    grounded: Placed | None = None
    narrated: Narrative | None = None
    levels: tuple[Said, ...] = ()


def own_colours(count: int) -> tuple[list[str], list[str]]:
    """Colours (#rrggbb) for so many things side by side, as far apart as can be, and the ink to write on each."""
    shares = np.linspace(0, 1, count) if count > 1 else np.full(count, 0.4)
    return hex_colours(shares), inks(shares)


def phrase_colours(phrases: Sequence[Phrase]) -> list[tuple[str, str] | None]:
    """The colour and ink of each phrase; None for those without a place."""
    colours = iter(zip(*own_colours(sum(phrase.box_xyxy is not None for phrase in phrases)), strict=True))
    return [None if phrase.box_xyxy is None else next(colours) for phrase in phrases]


def outlines(region: Region) -> list[Floats]:
    """Closed outlines of a region, each (n, 2) in fractions; none for the whole photo and for a trace, drawn as such.

    A point is marked by a small square; a mask by the box around it.
    """
    if isinstance(region, Box):
        return [corners(region.xyxy)]
    if isinstance(region, BoxSet):
        return [corners(box.xyxy) for box in region.boxes]
    if isinstance(region, Point):
        return [corners((region.x - _POINT, region.y - _POINT, region.x + _POINT, region.y + _POINT))]
    if isinstance(region, Polygon):
        return [np.clip(region.points_xy, 0, 1)]
    if isinstance(region, Mask):
        rows, cols = np.nonzero(region.values)
        height, width = region.values.shape
        box = (cols.min() / width, rows.min() / height, (cols.max() + 1) / width, (rows.max() + 1) / height)
        return [corners(box)]
    return []


def region_name(region: Region) -> str:
    """A region in a few words, as the command line takes them."""
    if isinstance(region, WholeImage):
        return "whole photo"
    if isinstance(region, Box):
        return "box " + ",".join(f"{value:.3g}" for value in region.xyxy)
    if isinstance(region, Point):
        return f"point {region.x:.3g},{region.y:.3g}"
    if isinstance(region, Polygon):
        return f"polygon of {len(region.points_xy)} points"
    if isinstance(region, Trace):
        return f"trace of {len(region)} points"
    if isinstance(region, BoxSet):
        return f"{len(region.boxes)} boxes"
    if isinstance(region, Patch):
        return f"patch {region.row},{region.col}"
    return "mask" if isinstance(region, Mask) else type(region).__name__


def corners(box_xyxy: Sequence[float]) -> Floats:
    """(4, 2) of a box, cut at the photo's edges, from the top left on clockwise."""
    x1, y1, x2, y2 = np.clip(box_xyxy, 0, 1)
    return np.array([(x1, y1), (x2, y1), (x2, y2), (x1, y2)])
