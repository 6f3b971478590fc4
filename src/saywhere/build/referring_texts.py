"""What is said to a network that learns to find: expressions that people wrote, their mirror images, expressions made
from boxes, and expressions of things that are not there."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.language.coco_aliases import classes_named, coco_aliases, plural
from saywhere.language.vocabulary import plain_words

BoxXyxy = tuple[float, float, float, float]

TRUE, MADE, NOUN, COLOUR = "true", "made", "noun", "colour"
"""People's; made from boxes; people's with the thing replaced; with the colour replaced."""
SPLITS = ("train", "validation", "test")
_SHARES = (0.8, 0.9)
_COLOURS = ("red", "blue", "green", "yellow", "orange", "pink", "purple", "black", "white", "brown")
# Colours that people give to the same thing.
_ALIKE = (frozenset(("red", "orange", "pink", "purple", "brown")), frozenset(("yellow", "orange", "brown", "white")))
_MIRROR = {"left": "right", "right": "left", "leftmost": "rightmost", "rightmost": "leftmost"}
_SIDE = re.compile(r"\b(leftmost|rightmost|left|right)\b", re.IGNORECASE)
_ORDINALS = ("first", "second", "third", "fourth")
_MOST_ALIKE, _LEAST_AREA, _LEAST_STEP = 6, 0.004, 0.04
_MOST_MADE = 3
_REPLACED_SHARE = 0.5


class Said(msgspec.Struct, frozen=True, array_like=True):
    """An expression. mirror: what it would be in the mirrored photo. kind: see TRUE … COLOUR. box_xyxy: what it means;
    None if that is not there. source: the data set's own split, such as "unc_val"; class_name: of what it means."""

    text: str
    mirror: str
    kind: str
    box_xyxy: BoxXyxy | None = None
    source: str = ""
    class_name: str = ""


def split_of_photo(key: str, store_split: str) -> str:
    """ "train", "validation" or "test", eight to one to one, by a hash of the photo's key. What the store keeps for
    validation, which its eye did not learn from, is for the test."""
    if store_split == "validation":
        return "test"
    place = int.from_bytes(hashlib.sha256(f"referring {key}".encode()).digest()[:8], "big") / 2**64
    return SPLITS[int(np.searchsorted(_SHARES, place, side="right"))]


def mirrored(text: str) -> str:
    """What is true of a photo in the mirror: left for right.

    >>> mirrored("left man, right hand up")
    'right man, left hand up'
    """
    return _SIDE.sub(lambda found: _MIRROR[found[1].lower()], text)


def said_of(row: Mapping[str, Any], key: str, split: str) -> tuple[list[Said], frozenset[str]]:
    """All that is said of a row of a COCO store, and the kinds of things that are there, by boxes and captions."""
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big"))
    boxes, classes = row["boxes_xyxy"], row["classes"]
    true = [
        Said(text, mirrored(text), TRUE, tuple(one["box_xyxy"]), one["split"], COCO_CLASSES[one["class"]])
        for one in row["referring"] or ()
        if plain_words(text := " ".join(one["expression"].split()))
    ]
    there = {COCO_CLASSES[kind] for kind in (() if classes is None else classes.tolist())}
    for text in (*(row["captions"] or ()), *(one.text for one in true)):
        there |= classes_named(text)
    wrong = [one for said in true if rng.random() < _REPLACED_SHARE for one in replaced(said, there, rng)]
    made = [] if split != "train" or boxes is None else list(made_from(boxes.tolist(), classes.tolist(), rng))
    return [*true, *wrong, *made], frozenset(there)


def replaced(said: Said, there: Collection[str], rng: np.random.Generator) -> Iterator[Said]:
    """The same with another thing, which is not there, or with another colour, if it names one; neither if none."""
    words = said.text.split()
    lower = [word.lower() for word in words]
    coloured = [number for number, word in enumerate(lower) if word in _COLOURS]
    if coloured and rng.random() < 0.5:
        number = coloured[int(rng.integers(len(coloured)))]
        others = [one for one in _COLOURS if one not in lower and not _are_alike(one, lower[number])]
        yield _not_there(said, words, number, others[int(rng.integers(len(others)))], COLOUR)
        return
    named = [number for number, word in enumerate(lower) if classes_named(word)]
    absent = [name for name in coco_aliases() if name not in there]
    if named and absent:
        other = coco_aliases()[absent[int(rng.integers(len(absent)))]][0]
        yield _not_there(said, words, named[0], other, NOUN)


def _are_alike(a: str, b: str) -> bool:
    return a == b or any({a, b} <= some for some in _ALIKE)


def _not_there(said: Said, words: Sequence[str], number: int, other: str, kind: str) -> Said:
    text = " ".join([*words[:number], other, *words[number + 1 :]])
    return Said(text, mirrored(text), kind, None, said.source)


def made_from(boxes_xyxy: Sequence[BoxXyxy], classes: Sequence[int], rng: np.random.Generator) -> Iterator[Said]:
    """A few expressions that follow from boxes alone: "second horse from the right", "largest cup", "the dog"."""
    every = []
    for kind in sorted(set(classes)):
        alike = [tuple(box) for box, one in zip(boxes_xyxy, classes, strict=True) if one == kind]
        if len(alike) <= _MOST_ALIKE and min(_area(box) for box in alike) >= _LEAST_AREA:
            names = coco_aliases()[COCO_CLASSES[kind]][:3]
            every += list(_phrases(names[int(rng.integers(len(names)))], alike))
    for number in rng.permutation(len(every))[:_MOST_MADE].tolist():
        text, box = every[number]
        yield Said(text, mirrored(text), MADE, box)


def _phrases(name: str, boxes: Sequence[Any]) -> Iterator[tuple[str, BoxXyxy]]:
    if len(boxes) == 1:
        yield f"the {name}", boxes[0]
        return
    across = sorted(boxes, key=lambda box: box[0] + box[2])
    middles = [(box[0] + box[2]) / 2 for box in across]
    if min(np.diff(middles)) >= _LEAST_STEP:
        for side, ordered in (("left", across), ("right", across[::-1])):
            yield f"{name} on the {side}", ordered[0]
            yield f"{side}most {name}", ordered[0]
            for ordinal, box in zip(_ORDINALS, ordered, strict=False):
                yield f"{ordinal} {name} from the {side}", box
        if len(boxes) == 3:
            yield f"{name} in the middle", across[1]
            yield f"middle one of the {plural(name)}", across[1]
    by_size = sorted(boxes, key=_area)
    if _area(by_size[-1]) > 1.3 * _area(by_size[-2]):
        yield f"largest {name}", by_size[-1]
        yield f"the big {name}", by_size[-1]
    if _area(by_size[0]) < _area(by_size[1]) / 1.3:
        yield f"smallest {name}", by_size[0]


def _area(box: Any) -> float:
    return float((box[2] - box[0]) * (box[3] - box[1]))
