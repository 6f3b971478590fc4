from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from saywhere.core import InvalidValue, Utterance, Word, split_words
from tests.strategies import utterances


def windows(*said: tuple[str, float, float]) -> list[tuple[str, float, float]]:
    return [(w.text, round(w.start_s, 9), round(w.end_s, 9)) for w in split_words([Utterance(*u) for u in said])]


def test_a_window_is_shared_out_in_proportion_to_letters() -> None:
    assert windows(("we can see there", 0, 13)) == [("we", 0, 2), ("can", 2, 5), ("see", 5, 8), ("there", 8, 13)]
    assert windows(("- it's", 0, 4)) == [("-", 0, 1), ("it's", 1, 4)]


def test_an_utterance_of_no_length_borrows_up_to_the_neighbours_midpoints() -> None:
    said = [("image", 1.2, 1.6), ("we see", 1.6, 1.6), ("is", 1.6, 1.8)]
    assert windows(*said) == [("image", 1.2, 1.4), ("we", 1.4, 1.52), ("see", 1.52, 1.7), ("is", 1.7, 1.8)]


def test_neighbours_of_no_length_borrow_as_one() -> None:
    said = [("a", 0, 2), ("b", 2, 2), ("c", 2, 2), ("d", 2, 4)]
    assert windows(*said) == [("a", 0, 1), ("b", 1, 2), ("c", 2, 3), ("d", 3, 4)]


def test_an_utterance_asked_from_both_sides_lends_a_quarter_to_each() -> None:
    assert windows(("a", 0, 0), ("b", 0, 4), ("c", 4, 4)) == [("a", 0, 1), ("b", 1, 3), ("c", 3, 4)]


def test_an_utterance_of_no_length_without_neighbours_keeps_its_moment() -> None:
    assert windows(("hello", 3, 3)) == [("hello", 3, 3)]


def test_an_utterance_ends_where_the_next_one_starts_at_the_latest() -> None:
    assert windows(("a b", 0, 9), ("c", 2, 3)) == [("a", 0, 1), ("b", 1, 2), ("c", 2, 3)]
    assert windows(("a", 0, 9), ("b", 0, 2)) == [("a", 0, 1), ("b", 1, 2)]


@given(utterances())
def test_every_word_gets_one_window_and_windows_follow_each_other(said: tuple[Utterance, ...]) -> None:
    words = split_words(said)
    assert [w.text for w in words] == [text for u in said for text in u.text.split()]
    assert all(before.end_s <= after.start_s + 1e-9 for before, after in pairwise(words))
    assert all(np.isfinite([w.start_s, w.end_s]).all() for w in words)
    if any(u.end_s > u.start_s + 1e-3 for u in said[:1]) and len(said) == 1:
        assert all(w.end_s > w.start_s for w in words)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Utterance("a", 1, 0.5), "ends at 0.5 s, before it starts at 1 s"),
        (lambda: Utterance("a", float("nan"), 1), "not finite"),
        (lambda: Utterance("a", 0, float("inf")), "not finite"),
        (lambda: Word("two words", 0, 1), "not one word"),
        (lambda: Word("", 0, 1), "not one word"),
        (lambda: split_words([Utterance("a", 1, 2), Utterance("b", 0, 3)]), r"utterance 1 \('b'\): starts at 0 s"),
    ],
)
def test_times_that_cannot_be_are_refused(make: object, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        make()  # type: ignore[operator]
