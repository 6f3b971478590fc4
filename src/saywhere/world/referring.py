"""Referring expressions: phrases that pick out exactly one thing of a scene."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from saywhere.world.chance import shuffled, stream
from saywhere.world.english import garment, with_article
from saywhere.world.kinds import KINDS, MIGHT_BE
from saywhere.world.relations import Relation, relations
from saywhere.world.scene import Scene

_MOST_EACH = 3
_BESIDE = 0.08
_BIGGER = 1.6


@dataclass(frozen=True, slots=True)
class SceneReference:
    """One thing, by its index, and the phrases that fit it and nothing else in the scene."""

    thing: int
    expressions: tuple[str, ...]


def references(scene: Scene, seed: int = 0) -> tuple[SceneReference, ...]:
    """Every clearly visible object that can be told from all others in words, with up to three phrases each."""
    rng = stream(seed, scene.index, "referring")
    known = relations(scene)
    found = []
    for i in scene.objects:
        if scene.things[i].clear:
            phrases = list(dict.fromkeys(_phrases(scene, i, known)))
            if phrases:
                found.append(SceneReference(i, tuple(shuffled(rng, phrases)[:_MOST_EACH])))
    return tuple(found)


def _phrases(scene: Scene, index: int, known: tuple[Relation, ...]) -> Iterator[str]:
    """Each only if no other thing of the kind or like it, however small or hidden, fits it too."""
    thing = scene.things[index]
    names = {thing.kind} | MIGHT_BE.get(thing.kind, frozenset())
    rivals = [i for i in scene.objects if scene.things[i].kind in names and i != index]
    kind = KINDS[thing.kind]
    if not rivals:
        yield f"the {thing.kind}"
    coloured = _coloured(scene, index)
    alike = [i for i in rivals if scene.things[i].colour == thing.colour]
    if kind.named_by_colour and not alike:
        yield f"the {coloured}"
    if thing.pose and all(scene.things[i].pose != thing.pose for i in rivals):
        yield f"the {thing.kind} that is {thing.pose}"
    if rivals:
        yield from _by_place(scene, index, rivals, thing.kind)
    if kind.named_by_colour and alike:
        yield from _by_place(scene, index, alike, coloured)
    yield from _by_relation(scene, index, rivals, known)


def _coloured(scene: Scene, index: int) -> str:
    thing = scene.things[index]
    if KINDS[thing.kind].wears:
        return f"{thing.kind} with {with_article(f'{thing.colour} {garment(thing.kind, thing.pose)}')}"
    return f"{thing.colour} {thing.kind}"


def _by_place(scene: Scene, index: int, rivals: list[int], name: str) -> Iterator[str]:
    thing = scene.things[index]
    x, y = thing.centre
    others = [scene.things[i].centre for i in rivals]
    if all(x < ox - _BESIDE for ox, _ in others):
        yield f"the {name} on the left"
        yield f"the {name} farthest to the left"
    if all(x > ox + _BESIDE for ox, _ in others):
        yield f"the {name} on the right"
        yield f"the {name} farthest to the right"
    if len(others) == 2 and min(o[0] for o in others) < x - _BESIDE and max(o[0] for o in others) > x + _BESIDE:
        yield f"the {name} in the middle"
    if all(thing.area > _BIGGER * scene.things[i].area for i in rivals):
        yield f"the biggest {name}"
    if all(thing.area * _BIGGER < scene.things[i].area for i in rivals):
        yield f"the smallest {name}"
    if all(y > oy + _BESIDE for _, oy in others) and thing.depth < min(scene.things[i].depth for i in rivals):
        yield f"the {name} closest to the camera"


def _by_relation(scene: Scene, index: int, rivals: list[int], known: tuple[Relation, ...]) -> Iterator[str]:
    """ "the dog next to the bench", if there is one bench and no other dog next to it."""
    thing = scene.things[index]
    for relation in known:
        other = scene.things[relation.other]
        if (
            relation.subject != index
            or other.kind == thing.kind
            or relation.name in ("above", "below", "left of", "right of")
        ):
            continue
        lone = sum(t.kind == other.kind for t in scene.things) == 1
        shared = any(r.other == relation.other and r.name == relation.name and r.subject in rivals for r in known)
        doubtful = any(not scene.things[i].clear for i in rivals)
        if lone and not shared and not doubtful and not (other.stuff and not rivals):
            yield f"the {thing.kind} {relation.name} the {other.kind}"
