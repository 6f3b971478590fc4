"""What a model is sure of, in words."""

from __future__ import annotations

from saywhere.core.description import NOTHING_SURE
from saywhere.language.describing import SureThing, description_of

DOG = SureThing("dog", (0.4, 0.3, 0.7, 0.7), "a brown dog")
CUP = SureThing("cup", (0.0, 0.7, 0.1, 0.8))
PEOPLE = [SureThing("person", (x, 0.4, x + 0.08, 0.6)) for x in (0.1, 0.2, 0.45)]


def test_things_are_told_in_their_order_and_none_is_left_out() -> None:
    told = description_of("a dog on a bench", [CUP, DOG])
    assert [one.text for one in told.sentences] == [
        "A dog on a bench.",
        "The eye goes first to a cup at the bottom left.",
        "We can see a brown dog in the middle.",
    ]
    assert [one.things for one in told.sentences] == [(), (0,), (1,)]
    assert [one.name for one in told.things] == ["a cup", "a dog"]


def test_things_of_a_kind_are_counted_with_their_places() -> None:
    told = description_of("", [PEOPLE[0], CUP, *PEOPLE[1:]])
    assert told.alt_text == "In this photo: three people and a cup."
    assert told.sentences[1].text == "The eye goes first to three people: two on the left and one in the middle."
    assert told.sentences[1].things == (0, 2, 3)


def test_who_stays_hears_how_it_looks_where_it_is_and_what_is_beside_it() -> None:
    told = description_of("", [DOG, CUP, *PEOPLE])
    assert told.things[0].about == (
        "A brown dog.",
        "In the middle.",
        "With it: a person.",
        "Left of it: a person.",
    )
    assert told.things[2].about[0] == "One of three people."
    assert told.things[3].about[2:4] == ("Left of it: another person.", "Right of it: a dog.")


def test_sizes_and_edges_are_said() -> None:
    about = description_of(
        "", [SureThing("couch", (0.0, 0.4, 0.8, 1.0)), SureThing("fork", (0.9, 0.1, 0.95, 0.2))]
    ).things
    assert about[0].about[:2] == ("At the bottom, large.", "It reaches the left and bottom edges.")
    assert about[1].about[0] == "At the top right, small."


def test_where_nothing_is_sure_nothing_is_told() -> None:
    told = description_of(" ", [])
    assert told.things == ()
    assert told.text == NOTHING_SURE


def test_what_a_seed_chose_stays_and_another_may_choose_otherwise() -> None:
    things = [DOG, CUP, SureThing("fork", (0.8, 0.1, 0.9, 0.2)), SureThing("bowl", (0.8, 0.8, 0.9, 0.9))]
    texts = [description_of("", things, seed=seed).text for seed in (0, 0, 1, 2)]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1
