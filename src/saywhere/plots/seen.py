"""What a model said about one photo, as pictures and pages show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from saywhere.core import Narrative, Region, WordBoxes
from saywhere.plots.colour import hex_colours, inks
from saywhere.plots.photo import PhotoLike

BoxXyxy = tuple[float, float, float, float]


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
