"""Where a phrase is: boxes that the photo offers, and the one whose vector is nearest to the phrase's.

The photo offers what the detector found, the bright parts of the phrase's similarity map, and the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saywhere.core import Box, WholeImage, WordBoxes
from saywhere.language.phrases import english
from saywhere.models.grounded import Grounded
from saywhere.models.patchioner.sight import Sight

Floats = NDArray[np.float32]
# Bright means above this share of the way from the map's mean to its maximum.
_BRIGHT = (0.35, 0.6)
_LEAST_FOUND = 0.05
_MOST_FOUND = 40
# Nouns that mean the photo or a place in it, not a thing.
_THE_PHOTO = frozenset(
    ("image", "picture", "photo", "photograph", "scene", "view", "shot", "background", "foreground", "side")
)
# Which way from the photo's middle a place lies, in x and y; none for the middle itself.
_PLACES = {
    "left": (-1, 0),
    "right": (1, 0),
    "top": (0, -1),
    "bottom": (0, 1),
    "foreground": (0, 1),
    "centre": (0, 0),
    "center": (0, 0),
    "middle": (0, 0),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a phrase is. box_xyxy: fractions. cosine: how near the box's vector is to the phrase's."""

    box_xyxy: tuple[float, float, float, float]
    cosine: float


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """first, stop: its words. text: without articles, as it is looked for. place: "left", "top" … if it says so."""

    first: int
    stop: int
    text: str
    place: str = ""


class Grounder:
    """Finds phrases in one look. place_bonus: what a cosine may gain if the box lies where the phrase says."""

    def __init__(self, sight: Sight, place_bonus: float = 0.1) -> None:
        self._sight, self._place_bonus = sight, place_bonus
        self._cells = sight.cell_vectors()
        found = sorted(sight.view.found, key=lambda one: -one.score)
        self._offered = [one.box_xyxy for one in found if one.score >= _LEAST_FOUND][:_MOST_FOUND]
        self._offered_vectors = sight.vectors([Box(*box) for box in self._offered] + [WholeImage()])

    def similarity(self, vector: Floats) -> Floats:
        """(rows, cols) cosines of every patch with a text's vector."""
        cosines: Floats = self._cells @ vector
        return cosines

    def places(self, vector: Floats, place: str = "") -> list[Place]:
        """All boxes on offer for a phrase with this vector, the best first."""
        bright = self._bright_boxes(vector)
        boxes = [*self._offered, (0.0, 0.0, 1.0, 1.0), *bright]
        vectors = self._offered_vectors
        if bright:
            vectors = np.concatenate([vectors, self._sight.vectors([Box(*box) for box in bright])])
        cosines = (vectors @ vector).tolist()
        offers = [Place(box, cosine) for box, cosine in zip(boxes, cosines, strict=True)]
        return sorted(offers, key=lambda offer: -(offer.cosine + self._bonus(offer.box_xyxy, place)))

    def _bonus(self, box: tuple[float, float, float, float], place: str) -> float:
        """The nearer the box's middle lies to the place that was said, the more; nothing if none was said."""
        if not place:
            return 0.0
        right, down = _PLACES[place]
        x, y = (box[0] + box[2]) / 2 - 0.5, (box[1] + box[3]) / 2 - 0.5
        if not (right or down):
            return self._place_bonus * (1 - 2 * max(abs(x), abs(y)))
        return self._place_bonus * (0.5 + right * x + down * y)

    def _bright_boxes(self, vector: Floats) -> list[tuple[float, float, float, float]]:
        """Boxes around the connected bright parts of the similarity map."""
        from scipy import ndimage

        cosines = self.similarity(vector)
        x, y = self._sight.view.frame.cell_edges()
        boxes = []
        for share in _BRIGHT:
            level = cosines.mean() + share * (cosines.max() - cosines.mean())
            parts, _ = ndimage.label(cosines >= level)
            for rows, cols in ndimage.find_objects(parts):
                corners = np.clip([x[cols.start], y[rows.start], x[cols.stop], y[rows.stop]], 0, 1).tolist()
                if corners[0] < corners[2] and corners[1] < corners[3]:
                    boxes.append((corners[0], corners[1], corners[2], corners[3]))
        return boxes


def noun_phrases(words: Sequence[str]) -> list[NounPhrase]:
    """The phrases of a text that name things, in their order. words: without white space."""
    doc = english()(" ".join(words))
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])[:-1]
    phrases = []
    for chunk in doc.noun_chunks:
        if chunk.root.pos_ not in ("NOUN", "PROPN") or chunk.root.lemma_.lower() in _THE_PHOTO:
            continue
        named = [token for token in chunk if token.pos_ in ("NOUN", "PROPN", "ADJ", "VERB") and not token.is_stop]
        text = " ".join(token.text for token in named) or chunk.root.text
        first = int(np.searchsorted(starts, chunk.start_char, side="right")) - 1
        last = int(np.searchsorted(starts, chunk.end_char - 1, side="right")) - 1
        phrases.append(NounPhrase(first, last + 1, text.lower(), _place_said(chunk)))
    return phrases


def _place_said(chunk: Any) -> str:
    """The place that a phrase or what hangs on it names: "the left dog", "a dog on the left"."""
    for token in chunk.root.subtree:
        if token.lower_ in _PLACES and token.pos_ in ("ADJ", "NOUN", "ADV"):
            return str(token.lower_)
    return ""


def spread(words: Sequence[str], placed: Sequence[tuple[NounPhrase, Place]]) -> Grounded:
    """A place for every word: that of its phrase, else of the phrase before it, else of the first.

    So does a hand: it stays where it is until the next thing is named. Without any placed phrase, no word has a place.
    """
    boxes = np.full((len(words), 4), np.nan)
    for number, (phrase, place) in enumerate(placed):
        begin = 0 if number == 0 else phrase.first
        boxes[begin:] = place.box_xyxy
    return Grounded(tuple(words), WordBoxes(np.clip(boxes, 0, 1)))
