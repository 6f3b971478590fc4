"""Referring expressions: read back by a reader of our own, each finds its thing and no other."""

from __future__ import annotations

import re

import pytest

from saywhere.world import KINDS, Scene, Thing, references, relations, scenes
from saywhere.world.kinds import MIGHT_BE


@pytest.fixture(scope="module")
def some() -> list[Scene]:
    return list(scenes(80, seed=31, size=64))


def _named(scene: Scene, name: str) -> list[int]:
    """Things that "red cup", "man with a red shirt" or "cup" could mean."""
    dressed = re.fullmatch(r"(.+) with an? (\w+) (shirt|dress|jacket|scarf)", name)
    colour, _, rest = name.partition(" ")
    kind = name if name in KINDS else dressed[1] if dressed else rest
    wanted = None if name in KINDS else dressed[2] if dressed else colour
    assert kind in KINDS, name
    called = {kind, *MIGHT_BE.get(kind, ())}
    return [i for i in scene.objects if scene.things[i].kind in called and wanted in (None, scene.things[i].colour)]


def _found(scene: Scene, text: str) -> list[int]:
    body = text.removeprefix("the ")

    def thing(i: int) -> Thing:
        return scene.things[i]

    if m := re.fullmatch(r"(.+) that is (\w+)", body):
        return [i for i in _named(scene, m[1]) if thing(i).pose == m[2]]
    if m := re.fullmatch(r"(.+) (?:on the|farthest to the) (left|right)", body):
        ranked = sorted(_named(scene, m[1]), key=lambda i: thing(i).centre[0])
        return [ranked[0] if m[2] == "left" else ranked[-1]]
    if m := re.fullmatch(r"(.+) in the middle", body):
        ranked = sorted(_named(scene, m[1]), key=lambda i: thing(i).centre[0])
        return ranked[1:-1]
    if m := re.fullmatch(r"(biggest|smallest) (.+)", body):
        ranked = sorted(_named(scene, m[2]), key=lambda i: thing(i).area)
        return [ranked[-1] if m[1] == "biggest" else ranked[0]]
    if m := re.fullmatch(r"(.+) closest to the camera", body):
        return sorted(_named(scene, m[1]), key=lambda i: thing(i).depth)[:1]
    if m := re.fullmatch(r"(.+?) (next to|in front of|behind|on|in) the (.+)", body):
        others = [i for i, t in enumerate(scene.things) if t.kind == m[3]]
        assert len(others) == 1, text
        known = {(r.subject, r.name, r.other) for r in relations(scene)}
        return [i for i in _named(scene, m[1]) if (i, m[2], others[0]) in known]
    return _named(scene, body)


def test_every_expression_finds_its_thing_and_no_other(some: list[Scene]) -> None:
    checked = 0
    for scene in some:
        for reference in references(scene):
            for text in reference.expressions:
                assert _found(scene, text) == [reference.thing], f"scene {scene.index}: {text}"
                checked += 1
    assert checked > 800


def test_expressions_are_varied_and_most_objects_have_some(some: list[Scene]) -> None:
    texts = [text for scene in some for r in references(scene) for text in r.expressions]
    for form in ("on the left", "next to", "biggest", "with a", "that is", "on the table"):
        assert any(form in text for text in texts), form
    clear = sum(scene.things[i].clear for scene in some for i in scene.objects)
    assert sum(len(references(scene)) for scene in some) > 0.8 * clear


def test_references_have_visible_masks_and_are_the_same_by_seed(some: list[Scene]) -> None:
    for scene in some[:20]:
        assert references(scene, 2) == references(scene, 2)
        for reference in references(scene):
            assert scene.mask(reference.thing).any()
            assert 1 <= len(reference.expressions) <= 3
