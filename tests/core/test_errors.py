from __future__ import annotations

import pickle

import pytest

from saywhere.core import InvalidFile, InvalidValue, MissingDependency, UnknownName
from saywhere.core.errors import SaywhereError


def test_of_unknown_names_the_known_are_listed_if_there_are_any() -> None:
    assert str(UnknownName("code", "A1", ["A2"])).endswith("Known: A2.")
    assert str(UnknownName("code", "A1", ())) == "unknown code 'A1'."


@pytest.mark.parametrize(
    "error",
    [
        InvalidValue("box", "has no area", "give x2 > x1"),
        InvalidFile("a/b.json", "is not JSON"),
        UnknownName("format", "cocoo", ["coco", "vqa"]),
        MissingDependency("the package 'x'", "y", "pip install x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_comes_whole_out_of_another_process(error: SaywhereError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
