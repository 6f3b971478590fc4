"""What a model said about one photo, as pictures and pages show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saywhere.core import Caption, Grounded, Narrative
from saywhere.core.grounded import PlacedPhrase
from saywhere.plots.colour import hex_colours, inks
from saywhere.plots.photo import PhotoLike


@dataclass(frozen=True, slots=True, eq=False)
class ShownPhoto:
    """One photo and everything said about it; parts that nobody asked for are None or empty.

    photo: as `load_photo` takes it. title, about: over the picture. whole: the caption of the whole photo.
    grounded: a text and where it is. narrated: a narrative of the photo. levels: captions of the whole photo above
    objects.
    """

    photo: PhotoLike
    title: str
    about: str = ""
    whole: Caption | None = None
    regions: tuple[Caption, ...] = ()
    grounded: Grounded | None = None
    narrated: Narrative | None = None
    levels: tuple[Caption, ...] = ()


def own_colours(count: int) -> tuple[list[str], list[str]]:
    """Colours (#rrggbb) for so many things side by side, as far apart as can be, and the ink to write on each."""
    shares = np.linspace(0, 1, count) if count > 1 else np.full(count, 0.4)
    return hex_colours(shares), inks(shares)


def phrase_colours(phrases: Sequence[PlacedPhrase]) -> list[tuple[str, str] | None]:
    """The colour and ink of each phrase; None for those without a place."""
    colours = iter(zip(*own_colours(sum(phrase.box_xyxy is not None for phrase in phrases)), strict=True))
    return [None if phrase.box_xyxy is None else next(colours) for phrase in phrases]
