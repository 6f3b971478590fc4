"""Plan: what a narrator mentions, in which order and in which sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saywhere.world.chance import pick
from saywhere.world.english import Token, about, group_phrase, listed, phrase, plain, sentence
from saywhere.world.places import PLACES
from saywhere.world.relations import relations
from saywhere.world.scene import Scene

_OPENERS = (
    "in this image I can see",
    "in this picture I can see",
    "in this image we can see",
    "in the picture we can see",
    "here I can see",
    "I can see",
    "this image shows",
    "in this image there {is}",
    "in this picture there {is}",
)
_FOREGROUND = ("in the foreground I can see", "in the front there {is}", "in the foreground there {is}")
_FURTHER = ("I can also see", "there {is} also", "we can also see", "there {is}", "I can see", "we can see")
_BACKGROUND = (
    "in the background there {is}",
    "in the background I can see",
    "in the background we can see",
    "behind that there {is}",
    "at the back I can see",
)
_SIDES = {
    "left": (
        "on the left side there {is}",
        "on the left I can see",
        "on the left there {is}",
        "to the left we can see",
    ),
    "right": (
        "on the right side there {is}",
        "on the right I can see",
        "on the right there {is}",
        "to the right we can see",
    ),
    "middle": ("in the middle there {is}", "in the center there {is}", "in the middle I can see"),
}
_PLACE_OPENERS = ("this image is taken {where}", "this is a picture taken {where}", "the photo was taken {where}")
_PLURAL_STUFF = frozenset({"hill", "tracks"})
_FAR = 0.72


@dataclass(frozen=True, slots=True)
class Manner:
    """How one narrator describes: shares from 0 to 1.

    thoroughness: of the objects, how many are mentioned. scans: how often things are taken from left to right instead
    of the striking ones first. colour: how often colours are said. opens_with_place: how often the place comes first.
    """

    thoroughness: float
    scans: float
    colour: float
    opens_with_place: float


class _Telling:
    """The sentences so far, and what was mentioned in them."""

    def __init__(self, rng: np.random.Generator, scene: Scene, manner: Manner) -> None:
        self.rng, self.scene, self.manner = rng, scene, manner
        self.tokens: list[Token] = []
        self.mentioned: set[int] = set()

    def add(self, tokens: Sequence[Token]) -> None:
        self.tokens += sentence(tokens)
        self.mentioned |= {i for token in tokens for i in token.things}

    def name(self, group: Sequence[int]) -> list[Token]:
        """A noun phrase; "another …" for one of a kind that was mentioned before."""
        tokens = group_phrase(self.rng, self.scene, group, self.manner.colour)
        kinds = {self.scene.things[i].kind for i in self.mentioned}
        if tokens[0].text in ("a", "an") and self.scene.things[group[0]].kind in kinds:
            tokens[0] = Token("another", tokens[0].things)
        return tokens

    def lead(self, options: Sequence[str], group: Sequence[int]) -> list[Token]:
        """An opening whose verb agrees with what follows."""
        plural = len(group) > 1 or self.scene.things[group[0]].kind in _PLURAL_STUFF
        return plain(pick(self.rng, options).replace("{is}", "are" if plural else "is"))

    def place_of(self, group: Sequence[int]) -> list[Token]:
        """ "on the table", "on the grass", now and then; nothing for what hangs in the sky."""
        on = self.scene.things[group[0]].on
        if on is None or any(self.scene.things[i].on != on for i in group):
            return []
        support = self.scene.things[on]
        if support.kind in ("sky", "roof", "skyline", "hill") or self.rng.random() > (0.3 if support.stuff else 0.7):
            return []
        return [*plain("on"), *about(f"the {support.kind}", on)]


def describe(rng: np.random.Generator, scene: Scene, manner: Manner) -> list[Token]:
    """The whole text, as words that know what they refer to."""
    telling = _Telling(rng, scene, manner)
    near, far = _ordered_groups(rng, scene, manner)
    if rng.random() < manner.opens_with_place or not near:
        where = PLACES[scene.place].where
        telling.add(plain(pick(rng, _PLACE_OPENERS).replace("{where}", where)))
    _tell_near(telling, near)
    _tell_far(telling, far)
    return telling.tokens


def _ordered_groups(rng: np.random.Generator, scene: Scene, manner: Manner) -> tuple[list[list[int]], list[list[int]]]:
    """What will be mentioned: in front, and at the back, in the order of mention. Things of one kind go together."""
    groups: dict[tuple[str, int | None, int], list[int]] = {}
    for i in scene.objects:
        thing = scene.things[i]
        if thing.clear:
            apart = i if rng.random() < 0.12 or thing.pose == "sitting" else -1
            groups.setdefault((thing.kind, thing.on, apart), []).append(i)
    ranked = sorted(groups.values(), key=lambda group: -_salience(rng, scene, group))
    kept = [g for rank, g in enumerate(ranked) if rank == 0 or rng.random() < manner.thoroughness]
    near = [g for g in kept if scene.things[g[0]].depth < _FAR]
    far = [g for g in kept if scene.things[g[0]].depth >= _FAR]
    if rng.random() < manner.scans:
        near = sorted(near, key=lambda g: scene.things[g[0]].centre[0] + 0.08 * rng.standard_normal())
    return near, far


def _salience(rng: np.random.Generator, scene: Scene, group: Sequence[int]) -> float:
    things = [scene.things[i] for i in group]
    first = things[0]
    x, y = first.centre
    alive = {"person": 0.22, "animal": 0.12, "vehicle": 0.08}.get(first.group, 0.0)
    off_centre = float(np.hypot(x - 0.5, y - 0.55))
    size = math.sqrt(sum(thing.area for thing in things))
    return size + alive + 0.12 * (1 - first.depth) - 0.15 * off_centre + 0.08 * float(rng.standard_normal())


def _tell_near(telling: _Telling, near: list[list[int]]) -> None:
    waiting = list(near)
    while waiting:
        group = waiting.pop(0)
        if set(group) <= telling.mentioned:
            continue
        if not telling.mentioned:
            _tell_first(telling, group, waiting)
        elif _tell_table(telling, group, waiting) or _tell_pose(telling, group) or _tell_beside(telling, group):
            continue
        else:
            _tell_somewhere(telling, group, waiting)


def _tell_first(telling: _Telling, group: list[int], waiting: list[list[int]]) -> None:
    rng, scene = telling.rng, telling.scene
    in_front = scene.things[group[0]].depth < 0.3 and rng.random() < 0.5
    tokens = telling.lead(_FOREGROUND if in_front else _OPENERS, group)
    parts = [telling.name(group)]
    where = telling.place_of(group)
    if not where and waiting and rng.random() < 0.5:
        parts.append(telling.name(waiting.pop(0)))
    telling.add([*tokens, *listed(parts), *where])


def _tell_table(telling: _Telling, group: list[int], waiting: list[list[int]]) -> bool:
    """ "On the table there are a cup, a plate and an apple." once the table was mentioned."""
    scene = telling.scene
    on = scene.things[group[0]].on
    if on is None or scene.things[on].stuff or on not in telling.mentioned or telling.rng.random() < 0.2:
        return False
    groups = [group, *(g for g in waiting if scene.things[g[0]].on == on)]
    if any(scene.things[i].pose == "sitting" for g in groups for i in g):
        return False
    waiting[:] = [g for g in waiting if g not in groups]
    lead = telling.lead(("there {is}", "I can see", "we can see"), [i for g in groups for i in g])
    support = about(f"the {scene.things[on].kind}", on)
    telling.add([*plain("on"), *support, *lead, *listed([telling.name(g) for g in groups])])
    return True


def _tell_pose(telling: _Telling, group: list[int]) -> bool:
    """ "A man in a red shirt is sitting on the bench." """
    scene = telling.scene
    thing = scene.things[group[0]]
    if len(group) > 1 or not thing.pose or telling.rng.random() < 0.35:
        return False
    tokens = [*telling.name(group), *about(f"is {thing.pose}", *group)]
    where = telling.place_of(group)
    telling.add([*tokens, *where])
    return True


def _tell_beside(telling: _Telling, group: list[int]) -> bool:
    """ "Next to the bench there is a dog." if something beside it was mentioned."""
    scene, rng = telling.scene, telling.rng
    on = scene.things[group[0]].on
    if rng.random() < 0.55 or len(group) > 1 or (on is not None and not scene.things[on].stuff):
        return False
    known = [
        r
        for r in relations(scene)
        if r.subject == group[0] and r.other in telling.mentioned and r.name in ("next to", "in front of", "behind")
    ]
    unique = [r for r in known if sum(t.kind == scene.things[r.other].kind for t in scene.things) == 1]
    if not unique:
        return False
    relation = pick(rng, unique)
    name = pick(rng, ("next to", "beside")) if relation.name == "next to" else relation.name
    other = phrase(rng, scene, relation.other, definite=True, colour=0.15)
    telling.add(
        [*plain(name), *other, *telling.lead(("there {is}", "I can see", "we can see"), group), *telling.name(group)]
    )
    return True


def _tell_somewhere(telling: _Telling, group: list[int], waiting: list[list[int]]) -> None:
    rng, scene = telling.rng, telling.scene
    xs = [scene.things[i].centre[0] for i in group]
    side = (
        "left" if max(xs) < 0.36 else "right" if min(xs) > 0.64 else "middle" if 0.42 < sum(xs) / len(xs) < 0.58 else ""
    )
    if side and rng.random() < 0.6:
        telling.add([*telling.lead(_SIDES[side], group), *telling.name(group), *telling.place_of(group)])
        return
    parts = [telling.name(group)]
    where = telling.place_of(group)
    while not where and waiting and len(parts) < 3 and rng.random() < 0.45:
        parts.append(telling.name(waiting.pop(0)))
    telling.add([*telling.lead(_FURTHER, group), *listed(parts), *where])


def _tell_far(telling: _Telling, far: list[list[int]]) -> None:
    rng, scene = telling.rng, telling.scene
    groups = [g for g in far if not set(g) <= telling.mentioned]
    stuff = [i for i, t in enumerate(scene.things) if t.stuff and t.area > 0.04 and i not in telling.mentioned]
    if not groups and not stuff:
        return
    behind = [i for i in stuff if scene.things[i].kind in ("sky", "wall", "hill", "sea", "skyline", "roof")]
    spoken = [i for i in behind if rng.random() < 0.6 * telling.manner.thoroughness]
    parts = [*groups, *([i] for i in spoken)]
    if parts:
        telling.add([*telling.lead(_BACKGROUND, parts[0]), *listed([telling.name(g) for g in parts])])
    below = [i for i in stuff if i not in behind]
    if below and rng.random() < 0.4 * telling.manner.thoroughness:
        ground = pick(rng, below)
        options = ("at the bottom there {is}", "at the bottom I can see", "at the bottom we can see")
        telling.add([*telling.lead(options, [ground]), *telling.name([ground])])
