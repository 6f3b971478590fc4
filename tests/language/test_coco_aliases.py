"""Which classes of COCO a caption names."""

from __future__ import annotations

import pytest

from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.language.coco_aliases import classes_named, coco_aliases, is_bare_name, names_class, plural


def test_every_class_has_names_and_names_itself() -> None:
    assert tuple(coco_aliases()) == COCO_CLASSES
    for name, aliases in coco_aliases().items():
        assert len(set(aliases)) == len(aliases)
        for alias in (name, *aliases):
            assert names_class(f"Here is one {alias}", name), (alias, name)
            assert names_class(f"Two {plural(alias).upper()}!", name), (alias, name)


@pytest.mark.parametrize(
    ("caption", "classes"),
    [
        ("Two men and a dog", {"person", "dog"}),
        ("A hot dog on a plate", {"hot dog"}),
        ("a teddy bear on a bed", {"teddy bear", "bed"}),
        ("a tennis player holding a racquet", {"person", "tennis racket"}),
        ("boys playing baseball", {"person"}),
        ("a man hitting a baseball with a bat", {"person", "sports ball", "baseball bat"}),
        ("a man in an orange shirt", {"person"}),
        ("an orange on a table", {"orange", "dining table"}),
        ("oranges and apples", {"orange", "apple"}),
        ("a bus stop", set()),
        ("children's knives and wine glasses", {"knife", "wine glass"}),
        ("a carpet and a category of catalogues", set()),
        ("", set()),
    ],
)
def test_a_name_counts_as_a_whole(caption: str, classes: set[str]) -> None:
    assert classes_named(caption) == classes


@pytest.mark.parametrize(
    ("one", "many"),
    [
        ("woman", "women"),
        ("policeman", "policemen"),
        ("bench", "benches"),
        ("puppy", "puppies"),
        ("toy", "toys"),
        ("park bench", "park benches"),
        ("computer mouse", "computer mice"),
        ("school bus", "school buses"),
    ],
)
def test_plurals(one: str, many: str) -> None:
    assert plural(one) == many


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("a dog", True),
        ("The hot dogs", True),
        ("person", True),
        ("people", True),
        ("a woman", False),
        ("dog on the left", False),
        ("a unicorn", False),
        ("", False),
    ],
)
def test_a_bare_name_says_no_more_than_the_kind(text: str, bare: bool) -> None:
    assert is_bare_name(text) == bare
