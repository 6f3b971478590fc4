"""What captions say of surroundings: which words count, and how much of the phrase is taken."""

from __future__ import annotations

import pytest

from saywhere.language.surroundings import SURROUNDINGS, kinds_by_word, surroundings_in


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("a man flies a kite in a clear blue sky", [("sky", "a clear blue sky")]),
        ("two dogs on green grass near the ocean", [("grass", "green grass"), ("water", "the ocean")]),
        ("a street sign on the wall", [("wall", "the wall")]),
        ("a window sill with a cat", []),
        ("a water bottle in the snow", [("snow", "the snow")]),
        ("", []),
    ],
)
def test_phrases_of_surroundings(caption: str, expected: list[tuple[str, str]]) -> None:
    found = surroundings_in(caption.split())
    assert [(SURROUNDINGS[one.kind][0], one.phrase) for one in found] == expected


def test_every_word_means_one_kind() -> None:
    assert len(kinds_by_word()) == sum(map(len, SURROUNDINGS))
