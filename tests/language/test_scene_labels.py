"""Labels of scenes: what counts as a place, and which one a row gets."""

from __future__ import annotations

from collections import Counter

import pytest

from saywhere.formats import hl
from saywhere.formats.hl import HLRow
from saywhere.language.scene_labels import PAPER_DROPPED, PLACE_PAIRS, scene_labels, scene_nouns, scene_nouns_of

pytest.importorskip("spacy")


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("the picture has been taken in a restaurant", ["restaurant"]),
        ("on a beach", ["beach"]),
        ("this is in an airport.", ["airport"]),
        ("The picture is taken in a LIVING room", ["living room"]),
        ("on the tennis courts", ["tennis court"]),
        ("this photo was shot at a train station, near the tracks", ["train station", "track"]),
        ("in front", []),
        ("", []),
    ],
)
def test_a_sentence_leaves_the_lemmas_of_its_places(text: str, labels: list[str]) -> None:
    assert scene_nouns(text) == labels


def test_the_papers_own_labels_are_single_words_and_drop_only_the_picture() -> None:
    assert scene_nouns("the picture is taken in a tennis court", pairs=(), dropped=PAPER_DROPPED) == ["tennis", "court"]
    assert scene_nouns("a photo in a park", pairs=(), dropped=PAPER_DROPPED) == ["photo", "park"]


def test_many_sentences_are_labelled_as_each_alone() -> None:
    texts = ["in a kitchen", "two dogs on a street", "", "at the ski resort"]
    assert scene_nouns_of(texts) == [scene_nouns(text) for text in texts]


def test_a_row_gets_the_label_that_most_of_its_captions_name() -> None:
    made = scene_labels({"a": ["in a park", "in the street", "a street"], "b": ["on a road", "in a park"], "c": []})
    assert made.label == {"a": "street", "b": "park", "c": None}
    assert made.counts == Counter({"street": 2, "park": 2, "road": 1})


def test_a_caption_that_says_a_word_twice_has_one_vote() -> None:
    made = scene_labels({"a": ["a street by a street by a street", "in a park", "the park"]})
    assert made.label["a"] == "park"
    assert made.counts["street"] == 3


def test_a_row_that_names_nothing_has_no_label() -> None:
    assert scene_labels({"a": ["the picture", "here"]}).label == {"a": None}
    assert scene_labels({}).label == {}


def test_pairs_are_two_lower_case_words() -> None:
    assert all(len(pair.split()) == 2 and pair == pair.lower() for pair in PLACE_PAIRS)


def test_the_real_rows_have_the_papers_scenes(shared) -> None:
    rows = [row for row in hl.read(shared("data/hl/test_first1000.jsonl")) if isinstance(row, HLRow)][:200]
    made = scene_labels({row.file_name: row.captions["scene"] for row in rows})
    assert {"street", "restaurant", "beach", "kitchen"} <= {label for label, _ in made.counts.most_common(20)}
    assert sum(label is None for label in made.label.values()) <= 2
