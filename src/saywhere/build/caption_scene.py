"""What all captions of one photo say together: what is there once, how many people, which sport, which place."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from saywhere.build.caption_facts import CaptionThing, Facts
from saywhere.build.caption_words import (
    ANIMALS,
    FUSED,
    INDOOR_PLACES,
    MANY,
    NOT_REAL,
    OUTDOOR_PLACES,
    PLACES,
    ROOMS,
    SPORTS,
    VEHICLES,
    WHOLE_FIRST,
    WHOLE_PLACES,
    listed,
)
from saywhere.language.coco_aliases import classes_named

_SOME = "|".join(sorted(MANY))
_LEAST_ONE = 3
"""How many captions must say that there is one, and how many must count people."""
_LEAST_VOTES = 2
_MOST_ANSWERS = 4
_CROWDS = listed("crowd many several spectators audience onlookers fans bunch others")
_OUTSIDE = OUTDOOR_PLACES - listed("park street city airport train_station zoo stadium harbor")
_OUTSIDE_SPORTS = listed("surfing skiing snowboarding kite_flying")
_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_SPORTS = {sport: re.compile(rf"\b(?:{said})\b") for sport, said in SPORTS.items()}
_WHAT_WEATHER = {
    "sunny": r"sunny|sunlit",
    "cloudy": r"cloudy|overcast",
    "rainy": r"rain|rainy|raining",
    "snowy": r"snowing|snowfall|snowstorm|snow storm|blizzard|falling snow",
    "foggy": r"foggy|fog",
    "stormy": r"stormy",
    "clear": r"clear (?:blue )?(?:sky|day)",
}
_WHAT_TIME = {
    "night": r"at night|night ?time|night sky|nighttime|by night|night scene|night view",
    "day": r"sunny day|daytime|day time|during the day|in the day|cloudy day|bright day",
    "evening": r"evening|dusk",
    "sunset": r"sunset",
    "morning": r"morning",
    "afternoon": r"afternoon",
}
_WEATHER = {name: re.compile(rf"\b(?:{said})\b") for name, said in _WHAT_WEATHER.items()}
_TIME = {name: re.compile(rf"\b(?:{said})\b") for name, said in _WHAT_TIME.items()}
_BLACK_AND_WHITE = re.compile(r"\bblack[ -](?:and|&)[ -]white (?:\w+ )?(?:photo|picture|image|photograph|shot)\w*\b")


@dataclass(frozen=True)
class CaptionScene:
    """facts: what the captions of one photo say."""

    facts: Facts

    @cached_property
    def words(self) -> frozenset[str]:
        """All words of the captions."""
        return frozenset(word for text in self.facts.texts for word in _WORD.findall(text))

    @cached_property
    def text(self) -> str:
        return " | ".join(self.facts.texts)

    @cached_property
    def classes(self) -> frozenset[str]:
        """Classes of COCO that any caption names."""
        return frozenset().union(*(classes_named(text) for text in self.facts.texts))

    @cached_property
    def mentions(self) -> Mapping[str, tuple[CaptionThing, ...]]:
        """Last word of the name, or the kind of person → its mentions."""
        found: dict[str, list[CaptionThing]] = defaultdict(list)
        for thing in self.facts.things:
            found[_key(thing)].append(thing)
        return {key: tuple(alike) for key, alike in found.items()}

    def is_single(self, thing: CaptionThing) -> bool:
        """Whether "the dog" can mean one only: no caption speaks of dogs, or of a dog and another."""
        alike = self.mentions.get(_key(thing), ())
        if any(one.plural or (one.number or 1) > 1 for one in alike) or re.search(
            rf"\b(?:another|each|every|other) {thing.head}", self.text
        ):
            return False
        captions = Counter(one.place[0] for one in alike if one.number == 1)
        return not captions or max(captions.values()) == 1

    def the(self, thing: CaptionThing) -> str | None:
        """ "the dog", or "the dogs" where no caption speaks of one dog; none where it is not clear which is meant."""
        alike = self.mentions.get(_key(thing), ())
        if thing.plural:
            return f"the {thing.said}" if all(one.plural for one in alike) else None
        return f"the {thing.said}" if self.is_single(thing) else None

    @cached_property
    def sport(self) -> str | None:
        """The one that at least two captions tell of, and no caption tells of another."""
        votes = Counter(sport for text in self.facts.texts for sport, said in _SPORTS.items() if said.search(text))
        (best, count), *others = votes.most_common(2) or [("", 0)]
        return best if count >= _LEAST_VOTES and not others and self.has_people and not self.words & NOT_REAL else None

    @cached_property
    def sports(self) -> frozenset[str]:
        """All that any caption could be understood to tell of."""
        return frozenset(sport for sport, said in _SPORTS.items() if said.search(self.text) or sport in self.text)

    @cached_property
    def has_people(self) -> bool:
        return any(thing.person for thing in self.facts.things) or "person" in self.classes

    @cached_property
    def room(self) -> str | None:
        """The kind of room, where all captions that name one name the same."""
        named = {room for word, room in ROOMS.items() if word in self.text}
        meant = {ROOMS[one.name] for one in self.facts.things if one.name in ROOMS and not one.plural}
        return meant.pop() if len(meant) == 1 and len(named) == 1 and "store" not in self.words else None

    @cached_property
    def place(self) -> tuple[str, ...]:
        """Where the photo was taken, the commonest word first; empty if captions name a room also."""
        whole = [placed.ground.name for placed in self.facts.placed if placed.preposition in ("in", "at", "on")]
        votes = Counter(name for name in whole if name in WHOLE_PLACES)
        if self.room or not votes or any(name in ROOMS for name in whole):
            return ()
        return tuple(name for name, _ in votes.most_common(2))

    @cached_property
    def is_inside(self) -> bool | None:
        """Whether the photo was taken indoors; none where captions do not tell."""
        inside = bool(self.room) or any(
            one.ground.name in INDOOR_PLACES and one.preposition in ("in", "inside") for one in self.facts.placed
        )
        outside = self.sport in _OUTSIDE_SPORTS or any(one.name in _OUTSIDE for one in self.facts.things)
        return inside if inside != outside else None

    @cached_property
    def weather(self) -> frozenset[str]:
        return frozenset(name for name, said in _WEATHER.items() if said.search(self.text))

    @cached_property
    def times(self) -> frozenset[str]:
        return frozenset(name for name, said in _TIME.items() if said.search(self.text))

    @cached_property
    def is_black_and_white(self) -> bool:
        return bool(_BLACK_AND_WHITE.search(self.text))

    @cached_property
    def people_count(self) -> int | None:
        """How many people, where at least three captions tell and no caption says else."""
        counts, some = [], False
        for number in range(len(self.facts.texts)):
            people = [one for one in self.facts.things if one.place[0] == number and one.person]
            some |= any(one.number is None for one in people)
            if people and all(one.number for one in people):
                counts.append(sum(one.number or 0 for one in people))
        if len(set(counts)) != 1 or len(counts) < _LEAST_ONE or some or self.words & _CROWDS:
            return None
        return counts[0] if counts[0] > 1 or not self.words & MANY else None

    def count(self, key: str) -> int | None:
        """How many of a thing there are, where captions agree; one only where at least three say so."""
        alike = self.mentions.get(key, ())
        numbers = {one.number for one in alike if one.number}
        captions = {one.place[0] for one in alike}
        if len(numbers) != 1 or len(captions) < len(alike):
            return None
        number = numbers.pop()
        # What one caption alone calls by this name others may call by another.
        if len(captions) < 2 and (key in ANIMALS or key in VEHICLES):
            return None
        if number == 1:
            is_sure = len(captions) >= _LEAST_ONE and not any(one.plural for one in alike) and not self.words & MANY
            return 1 if is_sure and "other" not in self.words else None
        sure = sum(one.number == number for one in alike) >= 2
        vague = any(re.search(rf"\b(?:{_SOME})\b(?: \w+){{0,3}} {one.said}\b", self.text) for one in alike)
        return number if all(one.plural for one in alike) and (sure or not vague) else None

    def only(self, table: Mapping[str, str], at_least: int) -> tuple[str, tuple[CaptionThing, ...]] | None:
        """The one kind of the table that captions name, at least so many of them, with its mentions."""
        found = [(table[one.kind], one) for one in self.facts.things if one.kind in table]
        kinds = {kind for kind, _ in found}
        captions = {one.place[0] for _, one in found}
        if len(kinds) != 1 or len(captions) < at_least or self.words & NOT_REAL:
            return None
        return kinds.pop(), tuple(one for _, one in found)


def _key(thing: CaptionThing) -> str:
    return thing.person or thing.kind


@cache
def is_class(name: str) -> bool:
    """Whether people call a class of COCO so."""
    return bool(classes_named(name))


def answers_of(thing: CaptionThing) -> tuple[str, ...]:
    """What people answer for a thing: "bench" and "park bench", but only "hot dog"."""
    head = thing.said.split()[-1]
    if head == thing.said or thing.name in FUSED or thing.name in PLACES or thing.said in FUSED:
        return (thing.said,)
    return (thing.said, head) if thing.person or thing.name in WHOLE_FIRST else (head, thing.said)


def ranked(answers: Iterable[str]) -> tuple[str, ...]:
    """Each answer once, the commonest first; of equals the one said first."""
    return tuple(answer for answer, _ in Counter(answers).most_common())


def ranked_things(things: Collection[CaptionThing]) -> tuple[str, ...]:
    """Answers for things that captions name alike or not."""
    return ranked(answer for thing in things for answer in answers_of(thing))[:_MOST_ANSWERS]
