"""The caption that agrees most with the memory's sentences: by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import InvalidValue, Nearest
from saywhere.models.patchioner.consensus import ConsensusConfig, InverseFrequency, consensus
from saywhere.models.search import GenerationConfig

MEMORY = (
    "a dog on a couch",
    "a cat on a couch",
    "a man on a horse",
    "a cup beside a spoon",
    "two dogs run on a beach",
    "a man throws a frisbee to a dog",
)
RARITY = InverseFrequency(MEMORY)
WORDS = ("a", "dog", "cat", "on", "couch", "beach", "man", "purple")


def _heard(*sentences: str, cosines: Sequence[float] = ()) -> list[Nearest]:
    return [Nearest(one, cosine, 0.0) for one, cosine in zip(sentences, cosines or [0.5] * len(sentences), strict=True)]


def test_words_and_runs_are_as_loud_as_they_are_rare_and_as_often_as_they_are_said() -> None:
    words, pairs, triples, fours = InverseFrequency(["a dog", "a cat", "the dog", "a man"]).weights("A dog, a DOG!")
    assert words == {("a",): pytest.approx(2 * math.log(4 / 3)), ("dog",): pytest.approx(2 * math.log(4 / 2))}
    assert pairs == {("a", "dog"): pytest.approx(2 * math.log(4)), ("dog", "a"): pytest.approx(math.log(4))}
    assert set(triples) == {("a", "dog", "a"), ("dog", "a", "dog")}
    assert set(fours) == {("a", "dog", "a", "dog")}


@pytest.mark.parametrize(
    ("candidates", "references", "best"),
    [
        (["a cat on a beach", "a dog on a couch"], ["a dog on a couch"], "a dog on a couch"),
        (["a man", "a dog", "a cup"], ["a dog on a couch", "two dogs run", "a man and a dog"], "a dog"),
        (["a couch on a dog", "a dog on a couch"], ["the dog on a couch is asleep"], "a dog on a couch"),
        (["on a", "a spoon"], ["a cup beside a spoon on a table"], "a spoon"),
        (["a zebra", "dog"], ["a dog"], "dog"),
        (["A DOG ON A COUCH.", "a cat on a couch"], ["a dog on a couch"], "A DOG ON A COUCH."),
    ],
    ids=["words", "most sentences", "order", "rare words", "nothing in common", "neither case nor marks"],
)
def test_the_one_is_kept_whose_words_are_in_the_near_sentences(
    candidates: list[str], references: list[str], best: str
) -> None:
    for order in (candidates, candidates[::-1]):
        assert order[consensus(order, _heard(*references), RARITY, 0.05)] == best


def test_nearer_sentences_count_more_the_less_soft_it_is() -> None:
    references = _heard("a cat on a couch", "a man on a horse", "a man on a horse", cosines=(0.6, 0.5, 0.5))
    candidates = ["a man on a horse", "a cat on a couch"]
    assert consensus(candidates, references, RARITY, 0.05) == 1
    assert consensus(candidates, references, RARITY, 10.0) == 0


@pytest.mark.parametrize(
    ("once", "again"),
    [
        ("dog", "dog dog dog"),
        ("a dog", "a dog a dog"),
        ("a dog", "a dog dog dog"),
        ("a dog on a couch", "a dog on a couch on a couch on a couch"),
    ],
)
def test_saying_a_thing_again_does_not_win(once: str, again: str) -> None:
    references = _heard("a dog on a couch", "a brown dog on a bed", cosines=(0.6, 0.55))
    assert consensus([again, once], references, RARITY, 0.05) == 1


@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), min_size=1, max_size=5),
    st.lists(st.sampled_from(MEMORY), min_size=1, max_size=4),
)
def test_the_choice_is_the_same_each_time_and_of_equals_the_first(candidates: list[str], references: list[str]) -> None:
    near = _heard(*references)
    best = consensus(candidates, near, RARITY, 0.05)
    assert best == candidates.index(candidates[best])
    assert consensus(candidates, near, InverseFrequency(MEMORY), 0.05) == best
    assert consensus(candidates * 2, near, RARITY, 0.05) == best


def test_what_most_candidates_say_counts_beside_the_memory() -> None:
    candidates = ["a dog on a couch", "a cat on a bed", "a cat on the bed"]
    near = _heard("a dog on a couch")
    assert consensus(candidates, near, RARITY, 0.05) == 0
    assert consensus(candidates, near, RARITY, 0.05, among=0.3) == 0
    assert consensus(candidates, near, RARITY, 0.05, among=1.0) == 1
    assert consensus(candidates[:1], near, RARITY, 0.05, among=1.0) == 0


@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), min_size=2, max_size=5),
    st.lists(st.sampled_from(MEMORY), min_size=1, max_size=4),
    st.sampled_from((0.0, 0.3, 1.0)),
)
def test_the_choice_is_that_of_the_sums_written_out(candidates: list[str], references: list[str], among: float) -> None:
    def alike(ours: str, theirs: str) -> float:
        total = 0.0
        for some, other in zip(RARITY.weights(ours), RARITY.weights(theirs), strict=True):
            lengths = [math.sqrt(sum(value**2 for value in one.values())) or 1.0 for one in (some, other)]
            common = sum(min(value, other[run]) * other[run] for run, value in some.items() if run in other)
            total += common / math.prod(lengths)
        return total

    scores = []
    for place, text in enumerate(candidates):
        known = sum(alike(text, one) for one in references) / len(references)
        others = [alike(text, other) for number, other in enumerate(candidates) if number != place]
        scores.append((1 - among) * known + among * sum(others) / len(others))
    best = consensus(candidates, _heard(*references), RARITY, 0.05, among)
    assert scores[best] == pytest.approx(max(scores))


def test_texts_that_have_nothing_in_common_with_the_sentences_are_equals() -> None:
    assert consensus(["", "zebra", "purple zebra"], _heard("a dog"), RARITY, 0.05) == 0
    # In a memory of one sentence all words are equally usual.
    assert consensus(["a cat", "a dog"], _heard("a dog"), InverseFrequency(["a dog"]), 0.05) == 0


def test_without_candidates_or_sentences_there_is_no_consensus() -> None:
    with pytest.raises(InvalidValue, match="needs candidates"):
        consensus([], _heard("a dog"), RARITY, 0.05)
    with pytest.raises(InvalidValue, match="and sentences"):
        consensus(["a dog"], [], RARITY, 0.05)
    with pytest.raises(InvalidValue, match="there are none"):
        InverseFrequency([])


def test_an_agreement_says_how_its_candidates_are_written() -> None:
    way = ConsensusConfig(beams=2, draws=4, temperature=0.5, top_p=0.8, no_repeat=1, min_words=4)
    assert way.careful == GenerationConfig("beam", beams=2, no_repeat=1, min_words=4)
    assert way.drawing == GenerationConfig("nucleus", top_p=0.8, temperature=0.5, no_repeat=1, min_words=4)


def test_phrases_are_not_heard_where_there_are_sentences() -> None:
    near = _heard("a dog", "a dog on a couch", "dogs", "a dog on the beach", "a man on a horse")
    said = [one.sentence for one in ConsensusConfig(nearest=2, min_words=5).references(near)]
    assert said == ["a dog on a couch", "a dog on the beach"]
    assert ConsensusConfig(nearest=2, min_words=9).references(near) == near[:2]


@pytest.mark.parametrize(
    "changes", [{"beams": 0}, {"draws": 0}, {"nearest": 0}, {"softness": 0.0}, {"softness": math.nan}, {"among": 1.1}]
)
def test_an_agreement_of_nothing_is_refused(changes: dict[str, float]) -> None:
    with pytest.raises(InvalidValue, match="agreement"):
        ConsensusConfig(**changes)  # type: ignore[arg-type]
