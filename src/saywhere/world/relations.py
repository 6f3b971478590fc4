"""Relations: how the things of a scene stand to each other, told from their places alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from saywhere.world.kinds import STUFF
from saywhere.world.scene import BoxXyxy, Scene, Thing

NAMES = ("on", "in", "left of", "right of", "above", "below", "in front of", "behind", "next to")

_APART = 0.25  # Of the narrower one: so much two things beside each other may overlap.
_LEVEL = 0.3  # Farther apart in height than this, nobody calls one left of the other.
_CLOSE = 0.1
_SAME_DEPTH = 0.18
_NEARER = 0.04


@dataclass(frozen=True, slots=True)
class Relation:
    """Thing `subject` is `name` thing `other`. Indices into the scene's things."""

    subject: int
    name: str
    other: int


@lru_cache(maxsize=32)  # Narrators, captions, questions and references of one scene all ask, one after the other.
def relations(scene: Scene) -> tuple[Relation, ...]:
    """All relations between clearly visible objects, and what each thing stands on or is in."""
    found = []
    for i, thing in enumerate(scene.things):
        if thing.on is not None:
            found.append(Relation(i, _support_name(scene.things[thing.on]), thing.on))
    shown = [i for i in scene.objects if scene.things[i].clear]
    for i in shown:
        for j in shown:
            a, b = scene.things[i], scene.things[j]
            if i != j and a.on != j and b.on != i:
                names = _between(a, b)
                if _together(scene, a, b) and _adjoin(a, b):
                    names.append("next to")
                found += [Relation(i, name, j) for name in names]
    return tuple(found)


def _together(scene: Scene, a: Thing, b: Thing) -> bool:
    """Whether both stand on the same thing, or neither on any: a cup on a table is not next to the lamp behind it."""
    on_thing = [t.on is not None and not scene.things[t.on].stuff for t in (a, b)]
    return a.on == b.on if any(on_thing) else True


def _support_name(support: Thing) -> str:
    return STUFF[support.kind] if support.stuff else "on"


def _between(a: Thing, b: Thing) -> list[str]:
    names = []
    (ax, ay), (bx, by) = a.centre, b.centre
    beside = _overlap(a.box_xyxy, b.box_xyxy, 0) <= _APART
    if beside and abs(ay - by) <= _LEVEL:
        names.append("left of" if ax < bx else "right of")
    if not beside and a.box_xyxy[3] <= b.box_xyxy[1] + 0.02:
        names.append("above")
    if not beside and b.box_xyxy[3] <= a.box_xyxy[1] + 0.02:
        names.append("below")
    if not beside and _overlap(a.box_xyxy, b.box_xyxy, 1) > 0.1 and abs(a.depth - b.depth) > _NEARER:
        names.append("in front of" if a.depth < b.depth else "behind")
    return names


def _adjoin(a: Thing, b: Thing) -> bool:
    gap = max(a.box_xyxy[0], b.box_xyxy[0]) - min(a.box_xyxy[2], b.box_xyxy[2])
    beside = _overlap(a.box_xyxy, b.box_xyxy, 0) <= _APART
    level = _overlap(a.box_xyxy, b.box_xyxy, 1) > 0.3
    return beside and level and gap <= _CLOSE and abs(a.depth - b.depth) <= _SAME_DEPTH


def _overlap(a: BoxXyxy, b: BoxXyxy, axis: int) -> float:
    """How much two boxes overlap along x (0) or y (1), as a share of the shorter side; negative if apart."""
    shorter = min(a[axis + 2] - a[axis], b[axis + 2] - b[axis])
    return (min(a[axis + 2], b[axis + 2]) - max(a[axis], b[axis])) / shorter
