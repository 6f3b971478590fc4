"""What all rules that make questions out of captions share: drafts, types, what is usual, and how to put it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from saywhere.build.caption_facts import CaptionThing
from saywhere.build.caption_scene import CaptionScene
from saywhere.build.caption_words import CHOSEN_AMONG, SEATS, UNCOUNTABLE
from saywhere.build.region_texts import with_article

COLOUR, HOW_MANY, MADE_OF, KIND = "what color is the", "how many", "what is made of", "what kind of"
DOING, WHAT_VERB, WHO, WEARING = "what is doing", "what is acted on", "who is", "what is worn"
WHERE, WHAT_AT, ROOM, PLACE = "where is the", "what is on the", "what room is", "what place is"
ANIMAL, VEHICLE, FOOD_IS, SPORT = "what animal is", "what vehicle is", "what food is", "what sport is"
WHEN, WEATHER = "what time of day", "what is the weather"
IS_THERE, IS_COLOUR, IS_VERB, IS_AT = "is there a", "is the (color)", "is the (doing)", "is the (where)"
IS_THIS, IS_IT, ARE_THERE_N = "is this a", "is it", "are there (number)"
IS_WORN, IS_SPORT = "is (wearing)", "is (sport)"


@dataclass(frozen=True, slots=True)
class CaptionDraft:
    """A question without its photo. answers: right ones, the best first."""

    text: str
    question_type: str
    answers: tuple[str, ...]


Pair = tuple[CaptionDraft, CaptionDraft]
"""A question to be answered by yes and one to be answered by no."""


@dataclass
class UsualCaptions:
    """What captions usually say, counted over many photos: the "no" is chosen among it.

    colours: thing → colours. objects: verb → things with their articles. seats: kind of thing → on what it is. verbs:
    what the living do. near: class of COCO → other classes named with it. classes: how many photos name each.
    """

    colours: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    objects: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    near: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    seats: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    verbs: Counter[str] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)

    def add(self, scene: CaptionScene) -> None:
        """Count what the captions of one photo say."""
        for thing in scene.facts.things:
            if len(thing.colours) == 1:
                self.colours[thing.head][thing.colours[0]] += 1
        for act in scene.facts.acts:
            self.verbs[act.verb] += 1
            shown = indefinite(act.objects[0]) if len(act.objects) == 1 and act.verb in CHOSEN_AMONG else None
            if shown:
                self.objects[act.verb][shown] += 1
        for one in scene.facts.placed:
            if one.preposition == "on" and one.ground.name in SEATS:
                self.seats[one.thing.kind][one.ground.name] += 1
        self.classes.update(scene.classes)
        for name in scene.classes:
            self.near[name].update(scene.classes - {name})


@dataclass(frozen=True)
class PhotoAsking:
    """One photo about to be asked about: what its captions say, what captions usually say, and chance."""

    scene: CaptionScene
    usual: UsualCaptions
    rng: np.random.Generator

    def pick(self, *texts: str) -> str:
        """One of these ways to put it, the first half of the time."""
        if len(texts) == 1 or self.chance(0.5):
            return texts[0]
        return texts[1 + int(self.rng.integers(len(texts) - 1))]

    def chance(self, share: float) -> bool:
        """True in that share of the calls."""
        return bool(self.rng.random() < share)

    def draw(self, counts: Mapping[str, int]) -> str:
        """One of these names, as often as it is usual; rare ones somewhat oftener than that."""
        names = sorted(counts)
        weights = np.sqrt([counts[name] for name in names])
        return names[int(self.rng.choice(len(names), p=weights / weights.sum()))]


def pair(yes: str, no: str, question_type: str) -> Pair:
    """Two questions of one type, the first to be answered by yes."""
    return CaptionDraft(yes, question_type, ("yes",)), CaptionDraft(no, question_type, ("no",))


def be(named: str, thing: CaptionThing) -> str:
    """ "is the dog", "are the dogs"."""
    return f"{'are' if thing.plural else 'is'} {named}"


def is_it(named: str, thing: CaptionThing) -> str:
    """ "Is the dog", "Are the dogs"."""
    return f"{'Are' if thing.plural else 'Is'} {named}"


def indefinite(thing: CaptionThing) -> str | None:
    """ "a dog", "dogs", "grass"; none of people, and where it is not clear whether there is one or as much."""
    if thing.person:
        return None
    if thing.plural or thing.head in UNCOUNTABLE:
        return thing.said
    return with_article(thing.said) if thing.number == 1 else None
