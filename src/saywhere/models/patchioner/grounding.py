"""Where a phrase is.

A phrase that names a kind of thing that the detector surely found is there. Which place shows it is for a part that
names boxes to say, if there is one. For any other the photo offers boxes (what the detector found, the bright parts of
the phrase's similarity map, the whole), and the one whose vector is nearest to the phrase's is it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from saywhere.core import Box, Grounded, WholeImage, WordBoxes
from saywhere.core.types import Floats32
from saywhere.language.coco_aliases import classes_named
from saywhere.language.phrases import english
from saywhere.models.patchioner.eyes import AlignedView
from saywhere.vision import Found

# Bright means above this share of the way from the map's mean to its maximum.
_BRIGHT = (0.35, 0.6)
_LEAST_FOUND = 0.05
_MOST_FOUND = 40
# A kind is there if it was found with this certainty, or if eye and detector together believe in it this much.
_SURELY_FOUND, _LIKELY_PRESENT = 0.08, 0.05
# With a part that names boxes, eye and detector together need to believe in a kind no more than this.
_MAY_BE_PRESENT = 0.02
# How sure things must be to be among several.
_SURELY_SEVERAL = 0.45
_SEVERAL = 2
_NUMBERS = {
    word: number for number, word in enumerate(("two", "three", "four", "five", "six", "seven", "eight"), start=2)
}
# What large things gain, times the square root of their share of the photo: people mean the large one of several.
_LARGE = 0.2
# Nouns that mean the photo, and nouns that mean a place in it: no things.
_THE_PHOTO = frozenset(
    ("image", "picture", "photo", "photograph", "scene", "view", "shot", "background", "foreground", "side", "front")
)
_WHERE = frozenset(("back", "top", "bottom", "left", "right", "center", "centre", "middle", "corner", "edge"))
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
class PhraseBox:
    """Where a phrase is. box_xyxy: fractions. cosine: how near the box's vector is to the phrase's.

    thing: what the detector calls it, if the phrase names that; then the cosine did not decide. missed: whether the
    phrase names a kind that the detector knows and did not surely find.
    """

    box_xyxy: tuple[float, float, float, float]
    cosine: float
    thing: str = ""
    missed: bool = False


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """first, stop: its words. text: without articles, as it is looked for. place: "left", "top" … if it says so. count:
    how many things it names; None for several of no said number."""

    first: int
    stop: int
    text: str
    place: str = ""
    count: int | None = 1


class Grounder:
    """Finds phrases in one look. place_bonus: what a cosine or score may gain if the box lies where the phrase says."""

    def __init__(self, seen: AlignedView, place_bonus: float = 0.1) -> None:
        self._seen, self._place_bonus = seen, place_bonus
        self._cells = seen.cell_vectors()
        found = sorted(seen.view.found, key=lambda one: -one.score)
        self._offered = [one.box_xyxy for one in found if one.score >= _LEAST_FOUND][:_MOST_FOUND]
        self._offered_vectors = seen.vectors([Box(*box) for box in self._offered] + [WholeImage()])

    def similarity(self, vector: Floats32) -> Floats32:
        """(rows, cols) cosines of every patch with a text's vector."""
        cosines: Floats32 = self._cells @ vector
        return cosines

    def find(self, text: str, vector: Floats32, place: str = "") -> PhraseBox:
        """Where a phrase most likely is. vector: of the text, of length 1. place: "left", "top" … if it says so."""
        named = classes_named(text)
        if not place and (likeliest := self._likeliest(named)):
            return self._thing(likeliest, vector)
        things = [one for one in self._seen.view.found if one.name in named and self._is_there(one)]
        if not things:
            known = not named.isdisjoint(self._seen.kinds)
            return replace(self.candidates(vector, place)[0], missed=known)

        def fits(one: Found) -> float:
            x1, y1, x2, y2 = one.box_xyxy
            return one.score + _LARGE * math.sqrt((x2 - x1) * (y2 - y1)) + self._bonus(one.box_xyxy, place)

        return self._thing(max(things, key=fits), vector)

    def find_several(self, text: str, vector: Floats32, count: int | None) -> PhraseBox | None:
        """Around all things of the kind that a phrase names, or the `count` surest; None if fewer than two are sure."""
        named = classes_named(text)
        sure = [one for one in self._seen.view.found if one.name in named and one.score >= _SURELY_SEVERAL]
        several = sorted(sure, key=lambda one: -one.score)[:count]
        if len(several) < _SEVERAL:
            return None
        left, top, right, bottom = np.transpose([one.box_xyxy for one in several])
        around = (float(left.min()), float(top.min()), float(right.max()), float(bottom.max()))
        return self._thing(replace(several[0], box_xyxy=around), vector)

    def _thing(self, one: Found, vector: Floats32) -> PhraseBox:
        return PhraseBox(one.box_xyxy, float(self._seen.vectors([Box(*one.box_xyxy)])[0] @ vector), one.name)

    def _likeliest(self, named: Set[str]) -> Found | None:
        """Where a kind that was named likeliest is, whatever the detector made of that in the end; None if none may be
        there, or without a part that names boxes."""
        kinds = [kind for kind in sorted(named) if self._seen.presence(kind) >= _MAY_BE_PRESENT]
        places = [place for kind in kinds if (place := self._seen.likeliest_place(kind)) is not None]
        return max(places, key=lambda one: one.score, default=None)

    def _is_there(self, one: Found) -> bool:
        if one.score >= _SURELY_FOUND:
            return True
        return one.name in self._seen.view.present and self._seen.presence(one.name) >= _LIKELY_PRESENT

    def candidates(self, vector: Floats32, place: str = "") -> list[PhraseBox]:
        """All boxes on offer for a phrase with this vector, the best first."""
        bright = self._bright_boxes(vector)
        boxes = [*self._offered, (0.0, 0.0, 1.0, 1.0), *bright]
        vectors = self._offered_vectors
        if bright:
            vectors = np.concatenate([vectors, self._seen.vectors([Box(*box) for box in bright])])
        cosines = (vectors @ vector).tolist()
        offers = [PhraseBox(box, cosine) for box, cosine in zip(boxes, cosines, strict=True)]
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

    def _bright_boxes(self, vector: Floats32) -> list[tuple[float, float, float, float]]:
        """Boxes around the connected bright parts of the similarity map."""
        from scipy import ndimage

        cosines = self.similarity(vector)
        x, y = self._seen.view.frame.cell_edges()
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
        if chunk.root.pos_ not in ("NOUN", "PROPN") or chunk.root.lemma_.lower() in _THE_PHOTO | _WHERE:
            continue
        named = [token for token in chunk if token.pos_ in ("NOUN", "PROPN", "ADJ", "VERB") and not token.is_stop]
        text = " ".join(token.text for token in named) or chunk.root.text
        first = int(np.searchsorted(starts, chunk.start_char, side="right")) - 1
        last = int(np.searchsorted(starts, chunk.end_char - 1, side="right")) - 1
        phrases.append(NounPhrase(first, last + 1, text.lower(), _place_said(chunk), _count_said(chunk)))
    return phrases


def _count_said(chunk: Any) -> int | None:
    """How many things a phrase names: "two dogs", "dogs", "a dog"."""
    if "Plur" not in chunk.root.morph.get("Number"):
        return 1
    said = (_NUMBERS.get(token.lower_) for token in chunk if token.dep_ == "nummod")
    return next((number for number in said if number), None)


def _place_said(chunk: Any) -> str:
    """The place that a phrase or what hangs on it names: "the left dog", "a dog on the left"."""
    for token in chunk.root.subtree:
        if token.lower_ in _PLACES and token.pos_ in ("ADJ", "NOUN", "ADV"):
            return str(token.lower_)
    return ""


def spread(words: Sequence[str], placed: Sequence[tuple[NounPhrase, PhraseBox]]) -> Grounded:
    """A place for every word.

    A hand stays on a thing until the next thing is named: words between phrases have the place of the last phrase that
    the detector found, those before the first one the place of the first. Any other phrase has its place for its own
    words alone, unless nothing was found by the detector. Without any placed phrase, no word has a place.
    """
    boxes = np.full((len(words), 4), np.nan)
    lasting = [(phrase, place) for phrase, place in placed if place.thing] or placed
    for number, (phrase, place) in enumerate(lasting):
        boxes[0 if number == 0 else phrase.first :] = place.box_xyxy
    for phrase, place in placed:
        boxes[phrase.first : phrase.stop] = place.box_xyxy
    return Grounded(tuple(words), WordBoxes(np.clip(boxes, 0, 1)))
