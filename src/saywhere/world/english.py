"""English: noun phrases with the right article, number and attributes, each word knowing what it refers to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saywhere.world.chance import pick
from saywhere.world.kinds import KINDS, STUFF
from saywhere.world.scene import Scene, Thing

COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

_ALSO: dict[str, tuple[str, str]] = {
    "sofa": ("couch", "couches"),
    "television": ("TV", "TVs"),
    "refrigerator": ("fridge", "fridges"),
    "bicycle": ("bike", "bikes"),
    "airplane": ("plane", "planes"),
    "child": ("kid", "kids"),
    "stop sign": ("sign board", "sign boards"),
    "plant": ("house plant", "house plants"),
    "hen": ("chicken", "chickens"),
    "cup": ("mug", "mugs"),
    "sailboat": ("boat", "boats"),
    "telephone": ("phone", "phones"),
    "rug": ("carpet", "carpets"),
}
"""Other names that people use, one and many."""

_STUFF_ALSO: dict[str, tuple[str, ...]] = {
    "sea": ("the sea", "the water", "the ocean"),
    "pond": ("a pond", "the pond", "the water"),
    "sand": ("the sand",),
    "grass": ("the grass", "the green grass"),
    "sky": ("the sky",),
    "snow": ("the snow", "the white snow"),
    "hill": ("hills", "some hills", "the hills"),
    "wall": ("a wall", "the wall"),
    "floor": ("the floor", "the ground"),
    "road": ("the road", "a road"),
    "sidewalk": ("the sidewalk", "a sidewalk"),
    "path": ("a path", "the path"),
    "soil": ("the soil", "the brown soil"),
    "platform": ("the platform",),
    "tracks": ("the tracks", "the railway tracks"),
    "roof": ("a roof", "the roof"),
    "skyline": ("the city", "the skyline"),
}

_GARMENTS = {"man": "shirt", "woman": "dress", "child": "shirt", "skier": "jacket", "snowman": "scarf"}

NOUNS = frozenset(
    word
    for name in (
        *KINDS,
        *(kind.many for kind in KINDS.values()),
        *(name for pair in _ALSO.values() for name in pair),
        *STUFF,
        *_GARMENTS.values(),
        *("background", "hills", "water", "ocean", "ground", "city"),
    )
    for word in name.lower().split()
)
"""Every noun that narrators use, in small letters."""

_KIND_CALLED = {
    called.lower(): name for name, kind in KINDS.items() for called in (kind.name, kind.many, *_ALSO.get(name, ()))
}
_NO_THING = "train station"
"""A place whose name has a thing's name in it."""
_LONGEST_NAME = max(len(called.split()) for called in _KIND_CALLED)


@dataclass(frozen=True, slots=True)
class Token:
    """One word as written, with its punctuation. things: indices of what it refers to; none for "there is"."""

    text: str
    things: tuple[int, ...] = ()


def plain(text: str) -> list[Token]:
    """Words that refer to nothing."""
    return [Token(word) for word in text.split()]


def about(text: str, *things: int) -> list[Token]:
    """Words that all refer to these things."""
    return [Token(word, things) for word in text.split()]


def written(tokens: Sequence[Token]) -> str:
    return " ".join(token.text for token in tokens)


def sentence(tokens: Sequence[Token]) -> list[Token]:
    """With a capital and a full stop."""
    first, last = tokens[0], tokens[-1]
    if len(tokens) == 1:
        return [Token(_capital(first.text) + ".", first.things)]
    return [Token(_capital(first.text), first.things), *tokens[1:-1], Token(last.text + ".", last.things)]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def kinds_named(text: str) -> frozenset[str]:
    """The kinds of things that a text names, by any of their names, one or many. A "pine tree" is no tree beside."""
    words = [word.strip(".,").lower() for word in text.split()]
    named, place = set(), 0
    while place < len(words):
        for length in range(_LONGEST_NAME, 0, -1):
            called = " ".join(words[place : place + length])
            if called in _KIND_CALLED or called == _NO_THING:
                named |= {_KIND_CALLED[called]} if called != _NO_THING else set()
                place += length - 1
                break
        place += 1
    return frozenset(named)


def with_article(noun: str) -> str:
    """ "a cup", "an orange cup"."""
    return ("an " if noun[:1].lower() in "aeiou" else "a ") + noun


def noun(kind: str, count: int = 1) -> str:
    return KINDS[kind].name if count == 1 else KINDS[kind].many


def garment(kind: str, pose: str = "") -> str:
    """What has the colour of someone who wears it."""
    return "shirt" if kind == "woman" and pose == "sitting" else _GARMENTS[kind]


def varied_noun(rng: np.random.Generator, kind: str, count: int = 1) -> str:
    """The noun, or now and then another one for the same."""
    if kind in _ALSO and rng.random() < 0.3:
        return _ALSO[kind][0 if count == 1 else 1]
    return noun(kind, count)


def colour_phrase(thing: Thing, name: str) -> str:
    """ "red cup"; "man in a red shirt"; without the colour where people would not say it."""
    kind = KINDS[thing.kind]
    if not kind.named_by_colour:
        return name
    if kind.wears:
        joined = "with" if thing.kind == "snowman" else "in"
        return f"{name} {joined} {with_article(f'{thing.colour} {garment(thing.kind, thing.pose)}')}"
    return f"{thing.colour} {name}"


def phrase(
    rng: np.random.Generator, scene: Scene, index: int, *, definite: bool = False, colour: float = 0.6
) -> list[Token]:
    """A noun phrase for one thing. colour: how likely its colour is said."""
    thing = scene.things[index]
    if thing.stuff:
        return about(pick(rng, _STUFF_ALSO[thing.kind]) if not definite else f"the {thing.kind}", index)
    name = varied_noun(rng, thing.kind)
    full = colour_phrase(thing, name) if rng.random() < colour else name
    return about(f"the {full}" if definite or thing.kind == "sun" else with_article(full), index)


def group_phrase(rng: np.random.Generator, scene: Scene, indices: Sequence[int], colour: float = 0.5) -> list[Token]:
    """A noun phrase for several things of one kind: "two cows", "three red apples"."""
    if len(indices) == 1:
        return phrase(rng, scene, indices[0], colour=colour)
    things = [scene.things[i] for i in indices]
    kind = KINDS[things[0].kind]
    name = varied_noun(rng, kind.name, len(indices))
    colours = {thing.colour for thing in things}
    if len(colours) == 1 and kind.named_by_colour and not kind.wears and rng.random() < colour:
        name = f"{things[0].colour} {name}"
    count = COUNTS[len(indices)] if len(indices) < len(COUNTS) else str(len(indices))
    many = count if rng.random() < 0.8 or len(indices) == 2 else pick(rng, ("some", "a few"))
    return about(f"{many} {name}", *indices)


def listed(phrases: Sequence[list[Token]]) -> list[Token]:
    """ "a cup, a plate and an apple"."""
    tokens: list[Token] = []
    for i, part in enumerate(phrases):
        if i and i == len(phrases) - 1:
            tokens.append(Token("and"))
        elif i:
            tokens[-1] = Token(tokens[-1].text + ",", tokens[-1].things)
        tokens += part
    return tokens
