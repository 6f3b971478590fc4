"""Captions: five of the objects, three a level above them, all true and written as people write."""

from __future__ import annotations

import re

import pytest

from saywhere.core.errors import InvalidValue
from saywhere.world import KINDS, PLACES, Scene, high_level_captions, scenes
from saywhere.world import object_captions as captions_of
from saywhere.world.english import COUNTS


@pytest.fixture(scope="module")
def some() -> list[Scene]:
    return list(scenes(70, seed=12, size=48))


def object_captions(scene: Scene, seed: int = 0, n: int = 5) -> list[str]:
    return [caption.text for caption in captions_of(scene, seed, n)]


def test_words_of_captions_refer_to_things_of_their_kind(some: list[Scene]) -> None:
    for scene in some:
        for caption in captions_of(scene):
            words = caption.text.lower().rstrip(".").replace(",", "").split()
            assert len(words) == len(caption.word_things)
            for i, thing in enumerate(scene.things):
                said = {word for word, things in zip(words, caption.word_things, strict=True) if (i,) == things}
                known = {thing.kind, *thing.kind.split(), "ground"}
                assert not said or said & known or len(said) >= 2, caption.text


def test_five_captions_are_different_wherever_there_is_enough_to_say(some: list[Scene]) -> None:
    for scene in some:
        captions = object_captions(scene)
        assert len(captions) == 5
        if len({scene.things[i].kind for i in scene.objects if scene.things[i].clear}) >= 3:
            assert len(set(captions)) == 5


def test_captions_are_sentences_with_the_right_articles(some: list[Scene]) -> None:
    text = " ".join(caption for scene in some for caption in object_captions(scene))
    assert not re.search(r"\b[Aa] [aeiou]|\b[Aa]n [^aeiou]|  |\.\.| ,", text)
    for scene in some:
        assert all(c[0].isupper() and c.endswith(".") for c in object_captions(scene))


def test_counts_in_captions_are_those_of_the_clear_things(some: list[Scene]) -> None:
    many = {kind.many: kind.name for kind in KINDS.values()}
    checked = 0
    for scene in some:
        for caption in object_captions(scene):
            for count, name in re.findall(r"\b(two|three|four|five) ((?:\w+ )?\w+)", caption.lower()):
                kind = many.get(name) or many.get(name.split()[-1]) or many.get(name.split()[0])
                if kind:
                    clear = [t for t in scene.things if t.kind == kind and t.clear]
                    assert len(clear) == COUNTS.index(count), caption
                    checked += 1
    assert checked > 20


def test_captions_are_the_same_by_seed_and_do_not_depend_on_narrations(some: list[Scene]) -> None:
    assert object_captions(some[0], 4) == object_captions(some[0], 4)
    assert object_captions(some[0], 4) != object_captions(some[0], 5)


def test_no_captions_at_all_cannot_be_asked_for(some: list[Scene]) -> None:
    with pytest.raises(InvalidValue, match="at least one"):
        object_captions(some[0], n=0)


def test_scene_captions_name_the_place(some: list[Scene]) -> None:
    for scene in some:
        where = PLACES[scene.place].where.split()[-1]
        captions = high_level_captions(scene).captions["scene"]
        assert len(captions) == 3
        assert all(where in caption for caption in captions)


def test_actions_and_reasons_are_told_of_people_only(some: list[Scene]) -> None:
    levels = set()
    for scene in some:
        people = [t for t in scene.things if t.group == "person" and t.clear]
        told = high_level_captions(scene)
        levels.add(len(told.captions))
        assert ("action" in told.captions) == ("rationale" in told.captions) == bool(people)
        assert {level: len(texts) for level, texts in told.captions.items()} == {
            level: len(numbers) for level, numbers in told.confidence.items()
        }
        text = " ".join(caption for texts in told.captions.values() for caption in texts)
        assert "{" not in text
        if len(people) == 1:
            assert not re.search(r"\bthey\b", text)
    assert levels == {1, 3}
