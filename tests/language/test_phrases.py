from __future__ import annotations

from itertools import pairwise

import pytest

from saywhere.core import MissingDependency, Word
from saywhere.core.errors import require

pytest.importorskip("spacy", reason="needs the extra 'language'")

from saywhere.language.phrases import phrases_of


def said(text: str) -> list[Word]:
    return [Word(word, float(i), float(i + 1)) for i, word in enumerate(text.split())]


def test_noun_chunks_stay_together_and_matter_most() -> None:
    found = phrases_of(said("there is a small cup on the table."))
    assert [(p.start_s, p.end_s, p.importance) for p in found if p.importance == 5] == [(2, 5, 5), (6, 8, 5)]
    assert min(p.importance for p in found) == 1


def test_every_word_lies_in_exactly_one_phrase() -> None:
    words = said("In the foreground I can see two dogs which don't run, and behind them trees")
    found = phrases_of(words)
    assert (found[0].start_s, found[-1].end_s) == (0, len(words))
    assert all(a.end_s == b.start_s for a, b in pairwise(found))
    assert phrases_of([]) == []


def test_a_missing_package_is_named_with_the_way_to_get_it() -> None:
    with pytest.raises(MissingDependency, match=r"reading minds needs the package 'telepathy'.*saywhere\[mind\]"):
        require("telepathy", needed_for="reading minds", extra="mind")
    assert require("json", needed_for="x", extra="y").loads("1") == 1
