"""Captions: of objects as in COCO, and of the scene, the action and its reason as in HL."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from saywhere.core.errors import InvalidValue
from saywhere.world.chance import pick, shuffled, stream
from saywhere.world.english import (
    Token,
    about,
    group_phrase,
    listed,
    phrase,
    plain,
    sentence,
    with_article,
    written,
)
from saywhere.world.places import PLACES
from saywhere.world.relations import relations
from saywhere.world.scene import Scene

_ROOMY = {"snow": "a snowy slope", "station": "a train station", "sea": "the sea"}
_GRAZING = frozenset({"cow", "horse", "sheep"})
_HL_LEVELS = 3


@dataclass(frozen=True, slots=True)
class HighLevelCaptions:
    """captions: by level, "scene", "action", "rationale"; the last two only where people are to be seen.

    confidence: for each caption, 1 … 5, how sure its writer was.
    """

    captions: dict[str, tuple[str, ...]]
    confidence: dict[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObjectCaption:
    """word_things: for each white-space separated word of `text`, the indices of the things that it refers to."""

    text: str
    word_things: tuple[tuple[int, ...], ...]


def object_captions(scene: Scene, seed: int = 0, n: int = 5) -> tuple[ObjectCaption, ...]:
    """n sentences about the objects, as different people would write them."""
    if n < 1:
        raise InvalidValue("n", f"is {n}: there must be at least one caption")
    rng = stream(seed, scene.index, "captions")
    captions: dict[str, ObjectCaption] = {}
    for _ in range(6 * n):
        tokens = sentence(pick(rng, _FORMS)(rng, scene) or _whole(rng, scene))
        caption = ObjectCaption(written(tokens), tuple(token.things for token in tokens))
        captions.setdefault(caption.text, caption)
        if len(captions) == n:
            break
    # A scene with next to nothing in it has fewer different captions than people to write them.
    different = list(captions.values())
    return tuple(different[i % len(different)] for i in range(n))


def _main_groups(rng: np.random.Generator, scene: Scene) -> list[list[int]]:
    """Clear objects, those of one kind together, the most important first."""
    groups: dict[str, list[int]] = {}
    for i in scene.objects:
        if scene.things[i].clear:
            groups.setdefault(scene.things[i].kind, []).append(i)
    weight = {"person": 0.3, "animal": 0.2, "vehicle": 0.15}

    def importance(group: list[int]) -> float:
        first = scene.things[group[0]]
        size = math.sqrt(sum(scene.things[i].area for i in group))
        return size + weight.get(first.group, 0.0) - 0.2 * first.depth + 0.1 * float(rng.standard_normal())

    return sorted(groups.values(), key=importance, reverse=True)


def _place(scene: Scene) -> str:
    return PLACES[scene.place].where


def _setting(scene: Scene) -> str:
    """ "a kitchen", "a snowy slope"."""
    return _ROOMY.get(scene.place) or with_article(scene.place)


def _whole(rng: np.random.Generator, scene: Scene) -> list[Token]:
    """ "A kitchen with a table, a refrigerator and an oven." """
    groups = _main_groups(rng, scene)[: pick(rng, (2, 3, 3, 4))]
    if not groups:
        return plain(f"a view of {_setting(scene)}")
    return [*plain(f"{_setting(scene)} with"), *listed([group_phrase(rng, scene, g, 0.35) for g in groups])]


def _doing(rng: np.random.Generator, scene: Scene) -> list[Token]:
    """ "A man in a red shirt sitting on a bench in a park." """
    groups = [g for g in _main_groups(rng, scene) if scene.things[g[0]].pose or scene.things[g[0]].kind in _GRAZING]
    if not groups:
        return []
    group = groups[0]
    first = scene.things[group[0]]
    poses = {scene.things[i].pose for i in group}
    verb = first.pose if len(poses) == 1 and first.pose else "grazing" if first.kind in _GRAZING else ""
    tokens = [*group_phrase(rng, scene, group, 0.7), *about(verb, *group)]
    on = first.on
    if on is not None and len(group) == 1 and (not scene.things[on].stuff or rng.random() < 0.4):
        support = scene.things[on]
        tokens += [*plain("on"), *about(f"the {support.kind}" if support.stuff else with_article(support.kind), on)]
    return [*tokens, *plain(_place(scene))] if rng.random() < 0.7 else tokens


def _related(rng: np.random.Generator, scene: Scene) -> list[Token]:
    """ "A red cup next to a plate on a table." """
    allowed = {"on", "next to", "in front of", "behind"}
    known = [r for r in relations(scene) if r.name in allowed and not scene.things[r.other].stuff]
    known = [r for r in known if scene.things[r.subject].clear and scene.things[r.other].clear]
    if not known:
        return []
    relation = pick(rng, known)
    other = phrase(rng, scene, relation.other, colour=0.3)
    tokens = [*phrase(rng, scene, relation.subject), *plain(relation.name), *other]
    on = scene.things[relation.other].on
    if on is not None and on == scene.things[relation.subject].on and not scene.things[on].stuff:
        return [*tokens, *plain("on"), *about(with_article(scene.things[on].kind), on)]
    return [*tokens, *plain(_place(scene))] if rng.random() < 0.35 else tokens


def _several(rng: np.random.Generator, scene: Scene) -> list[Token]:
    """ "Two cows and a tree in a field." """
    groups = _main_groups(rng, scene)[:4]
    if not groups:
        return []
    some = shuffled(rng, groups)[: pick(rng, (1, 2, 2, 3))]
    start = plain("there are" if len(some[0]) > 1 else "there is") if rng.random() < 0.25 else []
    return [*start, *listed([group_phrase(rng, scene, g, 0.5) for g in some]), *plain(_place(scene))]


_FORMS: tuple[Callable[[np.random.Generator, Scene], list[Token]], ...] = (
    _whole,
    _doing,
    _doing,
    _related,
    _related,
    _several,
)


_ACTIONS: dict[str, tuple[str, ...]] = {
    "kitchen": ("preparing a meal", "cooking", "getting something to eat"),
    "living room": ("relaxing at home", "spending time at home", "resting"),
    "bedroom": ("getting ready to sleep", "resting in the bedroom", "spending time in the bedroom"),
    "bathroom": ("getting ready for the day", "washing up", "getting ready for a bath"),
    "office": ("working", "doing office work", "having a break from work"),
    "street": ("walking in the street", "going somewhere", "waiting to cross the street"),
    "station": ("waiting for the train", "waiting on the platform", "starting a trip"),
    "beach": ("enjoying the beach", "spending a day at the beach", "having fun at the beach"),
    "sea": ("sailing", "being at sea", "traveling by boat"),
    "park": ("enjoying the park", "taking a walk in the park", "spending time outdoors"),
    "field": ("walking in the field", "looking at the landscape", "spending time in nature"),
    "farm": ("working on the farm", "looking after the farm", "taking care of the animals"),
    "snow": ("playing in the snow", "enjoying the snow", "spending time in the snow"),
}
_REASONS: dict[str, tuple[str, ...]] = {
    "kitchen": ("{they} {are} hungry", "{they} {want} to eat", "it is time for lunch"),
    "living room": ("{they} {want} to relax", "{they} {are} at home", "{they} {have} free time"),
    "bedroom": ("{they} {are} tired", "it is late", "{they} {want} to rest"),
    "bathroom": ("{they} {want} to be clean", "{they} {are} going out", "it is early in the morning"),
    "office": ("{they} {have} a job to do", "it is a working day", "{they} {want} to finish the work"),
    "street": ("{they} {want} to get home", "{they} {are} going to work", "{they} {have} to go shopping"),
    "station": ("{they} {want} to travel", "{they} {are} going on a trip", "the train is about to leave"),
    "beach": ("{they} {are} on vacation", "the weather is nice", "{they} {want} to have fun"),
    "sea": ("{they} {like} the sea", "{they} {want} to travel", "the wind is good"),
    "park": ("{they} {want} some fresh air", "the weather is nice", "{they} {have} free time"),
    "field": ("{they} {like} nature", "{they} {want} some fresh air", "{they} {are} on a walk"),
    "farm": ("{they} {are} working there", "the animals need care", "{they} {live} there"),
    "snow": ("{they} {like} winter", "{they} {want} to have fun", "{they} {are} on vacation"),
}
_SINGULAR = {"are": "is", "want": "wants", "have": "has", "like": "likes", "live": "lives"}


def high_level_captions(scene: Scene, seed: int = 0) -> HighLevelCaptions:
    """Three captions a level, by three people: where, what is being done, and why."""
    rng = stream(seed, scene.index, "hl")
    captions: dict[str, tuple[str, ...]] = {"scene": tuple(_where(rng, scene) for _ in range(_HL_LEVELS))}
    people = [i for i in scene.objects if scene.things[i].group == "person" and scene.things[i].clear]
    if people:
        they = _pronoun(scene, people)
        captions["action"] = tuple(_action(rng, scene, people, they) for _ in range(_HL_LEVELS))
        captions["rationale"] = tuple(_agreed(pick(rng, _REASONS[scene.place]), they) for _ in range(_HL_LEVELS))
    confidence = {
        level: tuple(float(pick(rng, (5, 5, 5, 4, 4, 3))) for _ in texts) for level, texts in captions.items()
    }
    return HighLevelCaptions(captions, confidence)


def _where(rng: np.random.Generator, scene: Scene) -> str:
    where = _place(scene)
    if rng.random() < 0.3:
        where = where.replace(" a ", " the ").replace(" an ", " the ")
    return pick(rng, ("{}", "the picture is taken {}", "this is {}", "the photo was taken {}", "{}")).format(where)


def _pronoun(scene: Scene, people: list[int]) -> str:
    if len(people) > 1:
        return "they"
    return {"man": "he", "woman": "she"}.get(scene.things[people[0]].kind, "the " + scene.things[people[0]].kind)


def _agreed(text: str, they: str) -> str:
    for verb, third in _SINGULAR.items():
        text = text.replace("{" + verb + "}", verb if they == "they" else third)
    return text.replace("{they}", they)


def _action(rng: np.random.Generator, scene: Scene, people: list[int], they: str) -> str:
    person = scene.things[pick(rng, people)]
    doing = person.pose if person.pose in ("sitting", "walking", "waving", "skiing") and rng.random() < 0.5 else ""
    if not doing:
        doing = "skiing" if person.kind == "skier" else pick(rng, _ACTIONS[scene.place])
        return pick(rng, (doing, _agreed("{they} {are} " + doing, they)))
    if len(people) > 1:
        return f"{with_article(person.kind)} is {doing}"
    return pick(rng, (doing, f"{they} is {doing}"))
