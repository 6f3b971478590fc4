"""What a model is sure of in a photo, put into words for people who do not see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from saywhere.core.description import DescribedSentence, DescribedThing, Description, varied
from saywhere.core.places import DIRECTIONS, BoxXyxy, edges_of, lies_in, neighbours, place_of_box
from saywhere.language.coco_aliases import plural

_PAIRS = frozenset(("skis", "scissors"))
_MANY = {"person": "people"} | {kind: f"pairs of {kind}" for kind in _PAIRS}
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_LARGE, _SMALL = 0.2, 0.01
"""Shares of the photo."""


@dataclass(frozen=True, slots=True)
class SureThing:
    """A thing that a model is sure of. kind: "dog". quality: how it looks, "a brown dog"; empty if that is not sure."""

    kind: str
    box_xyxy: BoxXyxy
    quality: str = ""


def named(kind: str) -> str:
    """What one thing of a kind is called.

    >>> named("umbrella"), named("skis")
    ('an umbrella', 'a pair of skis')
    """
    if kind in _PAIRS:
        return f"a pair of {kind}"
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def counted_kind(kind: str, count: int) -> str:
    """
    >>> counted_kind("person", 3), counted_kind("skis", 2), counted_kind("dog", 1)
    ('three people', 'two pairs of skis', 'a dog')
    """
    if count == 1:
        return named(kind)
    return f"{_number(count)} {_MANY.get(kind) or plural(kind)}"


def description_of(whole: str, things: Sequence[SureThing], origin: str = "", seed: int = 0) -> Description:
    """whole: a caption of the photo, empty if none is sure. things: in the order in which people look at them; things
    of one kind are told together. seed: of the choice among sentences that say the same.

    >>> dog, cup = SureThing("dog", (0.4, 0.3, 0.7, 0.8), "a brown dog"), SureThing("cup", (0.0, 0.6, 0.2, 0.8))
    >>> told = description_of("a dog on a table", [dog, cup])
    >>> told.text
    'A dog on a table. The eye goes first to a brown dog in the middle. There is a cup at the bottom left.'
    >>> told.things[0].about
    ('A brown dog.', 'In the middle.', 'Left of it: a cup.')
    """
    kinds = list(dict.fromkeys(one.kind for one in things))
    groups = [tuple(number for number, one in enumerate(things) if one.kind == kind) for kind in kinds]
    alike = [[things[number] for number in group] for group in groups]
    choices = [_ways_to_tell(some) for some in alike]
    if alike:
        choices[0] = [f"the eye goes first to {_what(alike[0])}{_where(alike[0])}"]
    lines = varied(choices, np.random.default_rng(seed), before=whole)
    told = [DescribedSentence(_sentence(whole))] if whole.strip() else _overview(alike)
    told += [DescribedSentence(_sentence(line), group) for line, group in zip(lines, groups, strict=True)]
    beside = neighbours([one.box_xyxy for one in things])
    described = (
        DescribedThing(named(one.kind), one.box_xyxy, tuple(_about(things, number, beside[number])), beside[number])
        for number, one in enumerate(things)
    )
    return Description(tuple(told), tuple(described), origin)


def _overview(alike: Sequence[Sequence[SureThing]]) -> list[DescribedSentence]:
    """What is there, in one sentence; none if there is nothing."""
    kinds = joined([counted_kind(some[0].kind, len(some)) for some in alike])
    return [DescribedSentence(f"In this photo: {kinds}.")] if kinds else []


def _ways_to_tell(some: Sequence[SureThing]) -> list[str]:
    """Sentences that say which things of one kind are where."""
    what, are = _what(some), "is" if len(some) == 1 else "are"
    if len(_places(some)) > 1:
        where = _where(some)
        return [f"there {are} {what}{where}", f"we can see {what}{where}", f"{what} {are} there{where}"]
    where = _where(some).strip()
    return [
        f"{where} there {are} {what}",
        f"there {are} {what} {where}",
        f"we can see {what} {where}",
        f"{what} {are} {where}",
    ]


def _what(some: Sequence[SureThing]) -> str:
    return some[0].quality if len(some) == 1 and some[0].quality else counted_kind(some[0].kind, len(some))


def _places(some: Sequence[SureThing]) -> Counter[str]:
    return Counter(place_of_box(one.box_xyxy) for one in some)


def _where(some: Sequence[SureThing]) -> str:
    """ " in the middle", or ": two in the middle and one on the left"."""
    places = _places(some)
    if len(places) == 1:
        return f" {next(iter(places))}"
    return f": {joined([f'{_number(count)} {place}' for place, count in places.items()])}"


def _about(things: Sequence[SureThing], number: int, beside: Mapping[str, int]) -> list[str]:
    """What is said of a thing when somebody stays with it: how it looks, where it is, what is around it."""
    one = things[number]
    said = [one.quality] if one.quality else []
    same = sum(other.kind == one.kind for other in things)
    if same > 1:
        said.append(f"one of {counted_kind(one.kind, same)}")
    said.append(", ".join([place_of_box(one.box_xyxy), *_size(one.box_xyxy)]))
    if edges := edges_of(one.box_xyxy):
        said.append(f"it reaches the {joined(edges)} edge{'s' * (len(edges) > 1)}")
    within = [other for other in things if lies_in(other.box_xyxy, one.box_xyxy)]
    if within:
        kinds = Counter(other.kind for other in within)
        said.append(f"with it: {joined([counted_kind(kind, count) for kind, count in kinds.items()])}")
    for direction, words in DIRECTIONS.items():
        if direction in beside:
            other = things[beside[direction]]
            said.append(f"{words}: {f'another {one.kind}' if other.kind == one.kind else named(other.kind)}")
    return [_sentence(text) for text in said]


def _size(box_xyxy: BoxXyxy) -> list[str]:
    share = (box_xyxy[2] - box_xyxy[0]) * (box_xyxy[3] - box_xyxy[1])
    return ["large"] if share >= _LARGE else ["small"] if share <= _SMALL else []


def joined(parts: Sequence[str]) -> str:
    """
    >>> joined(["a cup", "a fork", "a knife"])
    'a cup, a fork and a knife'
    """
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def _number(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text[:1].upper() + text[1:].rstrip(".") + "."
