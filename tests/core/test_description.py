"""Descriptions of photos as values, and sentences that do not begin alike."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core.description import NOTHING_SURE, DescribedSentence, Description, labelled, varied

WAYS = ["at the top there is {}", "there is {} at the top", "we can see {}", "{} is at the top"]


def test_a_description_of_nothing_says_so() -> None:
    assert Description().text == Description().alt_text == NOTHING_SURE


def test_the_alt_text_is_the_first_sentence() -> None:
    told = Description((DescribedSentence("A dog."), DescribedSentence("A cup is on the left.", (0,))))
    assert told.alt_text == "A dog."
    assert told.text == "A dog. A cup is on the left."


def test_a_name_with_line_breaks_stays_on_its_line() -> None:
    assert labelled("a\nb.jpg", "by hand", "A.", "B.").splitlines()[0] == "Photo: a b.jpg"


@given(st.integers(0, 12), st.integers(0, 2**32), st.sampled_from(["", "a cat", "there is a cat"]))
def test_no_more_sentences_begin_alike_than_must(count: int, seed: int, before: str) -> None:
    choices = [[way.format("a dog") for way in WAYS]] * count
    chosen = varied(choices, np.random.default_rng(seed), before)
    beginnings = [text.split()[0] for text in ([before] if before else []) + chosen]
    most = max(Counter(beginnings).values(), default=0)
    assert most <= -(-len(beginnings) // len(WAYS))
    assert all(one != other for one, other in pairwise(beginnings))


def test_the_same_seed_gives_the_same_words_and_others_give_others() -> None:
    choices = [[way.format("a dog") for way in WAYS]] * 4
    told = [varied(choices, np.random.default_rng(seed)) for seed in (0, 0, 1, 2, 3)]
    assert told[0] == told[1]
    assert len({tuple(one) for one in told}) > 1


def test_what_can_be_said_in_one_way_alone_is_said_so() -> None:
    assert varied([["a dog"], ["a cat"]], np.random.default_rng(0), "a cup") == ["a dog", "a cat"]
