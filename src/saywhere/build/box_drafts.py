"""What can be asked about the boxes of a photo, and when the answer is beyond doubt.

Each function gives all questions of its kind. `clear` are the classes of which every thing is large enough to be seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from saywhere.build.photo_boxes import PhotoBoxes, area
from saywhere.build.region_texts import BoxXyxy, with_article
from saywhere.language.coco_aliases import plural

Clear = Mapping[str, tuple[BoxXyxy, ...]]

MOST_COUNTED = 5
_WITH_NONE = 1 / 3
_APART = 0.1
"""Centres of things of which one is clearly to the left are at least so far apart, in widths of the photo."""

# Their names are no singular, and one box may hold a pair or a heap: only their presence is asked for.
_NOT_ONE = frozenset(("skis", "scissors", "broccoli"))
_MANY = {"person": "people"}

_ON_A_TABLE = frozenset(
    (
        *("bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple", "sandwich", "orange"),
        *("carrot", "hot dog", "pizza", "donut", "cake", "potted plant", "laptop", "keyboard", "mouse", "remote"),
        *("cell phone", "book", "vase", "teddy bear", "cat", "tv", "clock", "toaster", "microwave"),
    )
)
_ON_A_SEAT = frozenset(
    (
        *("person", "cat", "dog", "teddy bear", "book", "laptop", "remote", "cell phone", "suitcase", "backpack"),
        *("handbag", "bird", "pizza", "umbrella"),
    )
)
# What may lie or stand on what. Things that mostly stand before or behind it, a person at a table, are left out.
_CARRIES = {
    "dining table": _ON_A_TABLE,
    "bed": _ON_A_SEAT,
    "couch": _ON_A_SEAT,
    "bench": _ON_A_SEAT - {"person"},
    "chair": _ON_A_SEAT - {"person"},
}


# Of a table mostly the top is seen; what ends low on a seat stands on the floor before it.
_DEEPEST = {"dining table": 0.95, "bed": 0.8, "couch": 0.75, "bench": 0.6, "chair": 0.7}

_LEAST_CARRIER = 0.05
"""Share of the photo under which it cannot be told what is on a table or seat."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A question without its photo. boxes_xyxy: what one must look at, fractions of the photo. classes: it is about."""

    text: str
    question_type: str
    answer: str
    boxes_xyxy: tuple[BoxXyxy, ...]
    classes: tuple[str, ...]


def presence(
    clear: Clear, likely: Sequence[str], absent: Sequence[str], share: float, most: int, rng: np.random.Generator
) -> Iterator[Draft]:
    """ "Is there a dog in the photo?": as many things that are there as such that are not.

    Of these, `share` are usual there, so that the kind of place does not give the answer away.
    """
    each = most // 2
    there = [sorted(clear)[i] for i in rng.permutation(len(clear))[:each]]
    usual = min(sum(rng.random() < share for _ in there), len(likely))
    missing = [
        *(likely[i] for i in rng.permutation(len(likely))[:usual]),
        *(absent[i] for i in rng.permutation(len(absent))[: len(there) - usual]),
    ]
    for name in there:
        yield Draft(_is_there(name), "is there a", "yes", clear[name], (name,))
    for name in missing:
        yield Draft(_is_there(name), "is there a", "no", (), (name,))


def numbers(clear: Clear, likely: Sequence[str], rng: np.random.Generator) -> Iterator[Draft]:
    """ "How many cars are there?", up to five; on one photo in three also none of a thing that would be usual."""
    for name, boxes in clear.items():
        if name not in _NOT_ONE and len(boxes) <= MOST_COUNTED:
            yield Draft(_how_many(name), "how many", str(len(boxes)), boxes, (name,))
    countable = [name for name in likely if name not in _NOT_ONE]
    if countable and rng.random() < _WITH_NONE:
        name = countable[int(rng.integers(len(countable)))]
        yield Draft(_how_many(name), "how many", "0", (), (name,))


def larger(photo: PhotoBoxes, clear: Clear, ratio: float, rng: np.random.Generator) -> Iterator[Draft]:
    """ "Which is larger in the photo, the dog or the chair?": of two things that are there once, by box area."""
    for first, second in combinations(_singles(photo, clear), 2):
        sizes = area(clear[first][0]), area(clear[second][0])
        if max(sizes) < ratio * min(sizes):
            continue
        one, other = (first, second) if rng.random() < 0.5 else (second, first)
        text = f"Which is larger in the photo, the {one} or the {other}?"
        answer = first if sizes[0] > sizes[1] else second
        yield Draft(text, "which is larger", answer, (clear[one][0], clear[other][0]), (one, other))


def sides(photo: PhotoBoxes, clear: Clear, rng: np.random.Generator) -> Iterator[Draft]:
    """ "Is the dog to the left of the chair?": of two things that are there once and share no column of pixels."""
    for first, second in combinations(_singles(photo, clear), 2):
        if not (_left_of(clear[first][0], clear[second][0]) or _left_of(clear[second][0], clear[first][0])):
            continue
        one, other = (first, second) if rng.random() < 0.5 else (second, first)
        side = "left" if rng.random() < 0.5 else "right"
        is_left = _left_of(clear[one][0], clear[other][0])
        answer = "yes" if is_left == (side == "left") else "no"
        text = f"Is the {one} to the {side} of the {other}?"
        yield Draft(text, "is the", answer, (clear[one][0], clear[other][0]), (one, other))


def what_is_beside(photo: PhotoBoxes, clear: Clear) -> Iterator[Draft]:
    """ "What is to the left of the dog?", where nothing else is level with it on that side, however small."""
    for name in _singles(photo, clear):
        own = clear[name][0]
        for side in ("left", "right"):
            there = {
                other: tuple(box for box in boxes if _level(box, own) and _is_beside(box, own, side))
                for other, boxes in photo.boxes.items()
                if other != name
            }
            there = {other: boxes for other, boxes in there.items() if boxes}
            if len(there) != 1:
                continue
            ((other, boxes),) = there.items()
            if other in _NOT_ONE or other not in clear or len(boxes) > MOST_COUNTED or photo.crowds:
                continue
            if all(_left_of(*((box, own) if side == "left" else (own, box))) for box in boxes):
                text = f"What is to the {side} of the {name}?"
                yield Draft(text, "what is to the", other, (*boxes, own), (name, other))


def on_what(photo: PhotoBoxes, clear: Clear) -> Iterator[Draft]:
    """ "What is on the dining table?", where only one class can be meant."""
    for name in _singles(photo, clear):
        carried = _CARRIES.get(name, frozenset())
        own = clear[name][0]
        over = {other for other, boxes in photo.boxes.items() if other != name and any(_over(b, own) for b in boxes)}
        near = over & carried
        if len(near) != 1 or photo.crowds or area(own) < _LEAST_CARRIER:
            continue
        other = next(iter(near))
        # One thing that only may be on it spoils the question as much as a second class would.
        resting = [box for box in photo.boxes[other] if _over(box, own)]
        if (
            other in clear
            and len(resting) <= MOST_COUNTED
            and all(_rests_on(box, own, _DEEPEST[name]) for box in resting)
        ):
            yield Draft(f"What is on the {name}?", "what is on the", other, (*resting, own), (name, other))


def _is_there(name: str) -> str:
    if name in _NOT_ONE:
        return f"{'Is' if name == 'broccoli' else 'Are'} there {name} in the photo?"
    return f"Is there {with_article(name)} in the photo?"


def _how_many(name: str) -> str:
    return f"How many {_MANY.get(name) or plural(name)} are there?"


def _singles(photo: PhotoBoxes, clear: Clear) -> list[str]:
    """Classes of which "the dog" says all."""
    return [n for n in clear if len(photo.boxes[n]) == 1 and n not in _NOT_ONE]


def _centre(box_xyxy: BoxXyxy) -> float:
    return (box_xyxy[0] + box_xyxy[2]) / 2


def _left_of(one_xyxy: BoxXyxy, other_xyxy: BoxXyxy) -> bool:
    return one_xyxy[2] <= other_xyxy[0] and _centre(other_xyxy) - _centre(one_xyxy) >= _APART


def _level(one_xyxy: BoxXyxy, other_xyxy: BoxXyxy) -> bool:
    """Whether they share rows of pixels: neither is above the other."""
    return min(one_xyxy[3], other_xyxy[3]) > max(one_xyxy[1], other_xyxy[1])


def _is_beside(box_xyxy: BoxXyxy, own_xyxy: BoxXyxy, side: str) -> bool:
    """Whether the middle of the box lies on that side of the other's."""
    return (_centre(box_xyxy) < _centre(own_xyxy)) == (side == "left")


def _over(box_xyxy: BoxXyxy, carrier_xyxy: BoxXyxy) -> bool:
    """Whether the box may at all be on the carrier: it ends inside the carrier's box and shares its columns."""
    x1, y1, x2, y2 = carrier_xyxy
    return min(box_xyxy[2], x2) > max(box_xyxy[0], x1) and y1 <= box_xyxy[3] <= y2


def _rests_on(box_xyxy: BoxXyxy, carrier_xyxy: BoxXyxy, deepest: float) -> bool:
    """Smaller, all between the carrier's sides but for a tenth, and its foot neither at the carrier's top nor lower
    than `deepest`, in heights of the carrier."""
    x1, y1, x2, y2 = carrier_xyxy
    within = min(box_xyxy[2], x2) - max(box_xyxy[0], x1) >= 0.9 * (box_xyxy[2] - box_xyxy[0])
    foot = (box_xyxy[3] - y1) / (y2 - y1)
    return within and 0.1 <= foot <= deepest and area(box_xyxy) <= area(carrier_xyxy) / 1.5
