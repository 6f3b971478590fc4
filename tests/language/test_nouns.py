from __future__ import annotations

import pytest

pytest.importorskip("spacy", reason="needs the extra 'language'")

from saywhere.language.nouns import phrases_in, region_phrases


def test_phrases_count_over_sentences_whatever_their_article() -> None:
    said: list[tuple[int, int]] = []
    found = region_phrases(
        ["A brown dog lying on a couch.", "The brown dog barks", "a brown dog", "A group of people."],
        lambda _, done, total: said.append((done, total)),
    )
    assert found["a brown dog"] == 3
    assert found["a couch"] == 1
    assert found["a brown dog lying on a couch"] == 1
    assert found["a group of people"] == 1
    assert "the brown dog" not in found
    assert "a group" not in found
    assert said[-1] == (4, 4)


def test_the_phrases_of_each_text_are_those_that_are_counted_each_once_in_their_order() -> None:
    texts = ["A brown dog lying on a couch . a couch", "It runs", "A group of people in the front of the photo."]
    found = phrases_in(texts)
    assert found[0] == ["a brown dog", "a brown dog lying on a couch", "a couch"]
    assert found[1] == []
    assert "people" in found[2]
    assert not {"the front", "the photo", "a group"} & set(found[2])
    assert phrases_in([]) == []
    for text, phrases in zip(texts, found, strict=True):
        assert phrases_in([text]) == [phrases]
        assert set(phrases) == set(region_phrases([text]))
