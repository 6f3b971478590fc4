"""Relations, on scenes laid out by hand and on drawn ones."""

from __future__ import annotations

import numpy as np
import pytest

from saywhere.world import Relation, Scene, Thing, relations, scenes
from saywhere.world.scene import BoxXyxy


def _scene(*things: Thing) -> Scene:
    return Scene(0, "park", np.zeros((16, 16, 3), np.uint8), np.ones((16, 16), np.uint8), things)


def _thing(kind: str, box: BoxXyxy, depth: float = 0.3, on: int | None = None) -> Thing:
    return Thing(kind, "red", "", box, (box[2] - box[0]) * (box[3] - box[1]), 1.0, depth, on)


GRASS = Thing("grass", "", "", (0.0, 0.4, 1.0, 1.0), 0.5, 1.0, 1.0, None, stuff=True)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (((0.1, 0.5, 0.2, 0.7), 0.3), ((0.22, 0.5, 0.32, 0.7), 0.3), {"left of", "next to"}),
        (((0.7, 0.5, 0.8, 0.7), 0.3), ((0.1, 0.5, 0.2, 0.7), 0.3), {"right of"}),
        (((0.1, 0.1, 0.3, 0.2), 0.9), ((0.1, 0.5, 0.3, 0.7), 0.3), {"above"}),
        (((0.1, 0.5, 0.3, 0.9), 0.1), ((0.1, 0.4, 0.3, 0.7), 0.5), {"in front of"}),
        (((0.1, 0.4, 0.3, 0.7), 0.5), ((0.1, 0.5, 0.3, 0.9), 0.1), {"behind"}),
        (((0.1, 0.0, 0.2, 0.1), 0.3), ((0.5, 0.8, 0.6, 0.9), 0.3), set()),
    ],
)
def test_two_things_stand_to_each_other_as_people_would_say(
    first: tuple[BoxXyxy, float], second: tuple[BoxXyxy, float], expected: set[str]
) -> None:
    scene = _scene(_thing("dog", *first), _thing("cat", *second))
    assert {r.name for r in relations(scene) if r.subject == 0 and r.other == 1} == expected


def test_what_stands_on_something_has_no_other_relation_to_it() -> None:
    scene = _scene(_thing("table", (0.1, 0.5, 0.9, 0.9)), _thing("cup", (0.4, 0.4, 0.5, 0.55), on=0))
    assert relations(scene) == (Relation(1, "on", 0),)


def test_a_cup_on_a_table_is_not_next_to_the_dog_beside_the_table() -> None:
    scene = _scene(
        _thing("table", (0.1, 0.5, 0.4, 0.9), on=3),
        _thing("cup", (0.3, 0.45, 0.39, 0.6), on=0),
        _thing("dog", (0.42, 0.5, 0.6, 0.9), on=3),
        GRASS,
    )
    names = {(r.subject, r.name, r.other) for r in relations(scene)}
    assert (1, "next to", 2) not in names
    assert (0, "next to", 2) in names


OPPOSITE = {"left of": "right of", "above": "below", "in front of": "behind", "next to": "next to"}


def test_relations_of_drawn_scenes_have_their_opposites() -> None:
    seen = set()
    for scene in scenes(40, seed=1, size=64):
        known = set(relations(scene))
        for relation in known:
            seen.add(relation.name)
            if relation.name in OPPOSITE:
                assert Relation(relation.other, OPPOSITE[relation.name], relation.subject) in known
    assert {"on", "in", *OPPOSITE, *OPPOSITE.values()} <= seen
