"""Surroundings: what lies around things, such as sky, grass or a wall, and how captions speak of it.

Words that mean much the same stand together; the first of them is what the kind is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

SURROUNDINGS = (
    ("sky", "skies", "clouds"),
    ("grass", "lawn", "field", "pasture"),
    ("trees", "tree", "bushes", "woods", "forest"),
    ("water", "ocean", "sea", "lake", "river", "pond", "waves", "harbor"),
    ("snow",),
    ("sand", "beach", "shore"),
    ("road", "street", "highway", "pavement", "roadway", "tarmac", "runway"),
    ("sidewalk", "walkway", "path"),
    ("floor", "carpet", "rug"),
    ("wall", "walls"),
    ("ceiling",),
    ("building", "buildings", "house", "houses", "tower", "church"),
    ("mountain", "mountains", "hill", "hills", "hillside"),
    ("rocks", "rock", "boulders"),
    ("dirt", "ground", "mud"),
    ("fence", "railing", "gate"),
    ("window", "windows"),
    ("door", "doors", "doorway"),
    ("curtain", "curtains"),
    ("cabinets", "cabinet", "cupboards"),
    ("counter", "countertop"),
    ("shelf", "shelves"),
    ("tracks", "track", "rails"),
    ("court",),
    ("roof",),
    ("bridge",),
    ("stairs", "steps"),
    ("plants", "plant", "leaves"),
    ("flowers", "flower"),
    ("pier", "dock"),
)
_ARTICLES = frozenset(("a", "an", "the", "some"))
_QUALITIES = frozenset(
    (
        *("big", "bright", "calm", "clear", "cloudy", "dark", "dirty", "dry", "empty", "high", "large", "lush", "old"),
        *("open", "paved", "rocky", "sandy", "shallow", "small", "snowy", "tall", "tiled", "wet", "wide", "grassy"),
        *("brick", "city", "cobblestone", "concrete", "dirt", "glass", "hardwood", "metal", "stone", "tennis", "tile"),
        *("train", "wood", "wooden"),
        *("blue", "brown", "gray", "green", "grey", "orange", "pink", "purple", "red", "white", "yellow"),
    )
)
_FOLLOWERS = frozenset(
    (
        *("a", "an", "the", "there", "that", "which", "where", "and", "or", "but", "as", "while", "of", "for", "with"),
        *("above", "after", "among", "around", "at", "behind", "below", "beneath", "beside", "between", "by", "during"),
        *("from", "in", "inside", "into", "near", "next", "on", "outside", "over", "through", "to", "towards", "under"),
        *("underneath", "is", "are", "was", "were", "has", "have", "background", "using"),
    )
)
"""After these the word before was the name itself, and not what another thing is called by: a street sign."""


class Surrounding(NamedTuple):
    """kind: its number in SURROUNDINGS. phrase: as the caption puts it, "a clear blue sky"."""

    kind: int
    phrase: str


@cache
def kinds_by_word() -> dict[str, int]:
    """The number of the kind that each word means."""
    return {word: kind for kind, words in enumerate(SURROUNDINGS) for word in words}


def surroundings_in(words: Sequence[str]) -> list[Surrounding]:
    """What a caption, as lower-case words, says of surroundings."""
    found = []
    for place, word in enumerate(words):
        kind = kinds_by_word().get(word)
        following = words[place + 1] if place + 1 < len(words) else ""
        if kind is None or (following and following not in _FOLLOWERS):
            continue
        first = place
        while first and words[first - 1] in _QUALITIES:
            first -= 1
        first -= bool(first and words[first - 1] in _ARTICLES)
        found.append(Surrounding(kind, " ".join(words[first : place + 1])))
    return found
