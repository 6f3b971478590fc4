"""Visual words: the list that comes with the package, and where captions have them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import InvalidFile
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.language.coco_aliases import classes_named
from saywhere.language.visual_words import parse_table, visual_word_table, visual_words, visual_words_in, words_of


def test_about_830_words_name_all_classes_of_coco() -> None:
    table = visual_word_table()
    assert 800 <= len(table) <= 860
    assert len(visual_words()) == len(table)
    assert set(visual_words().values()) == set(COCO_CLASSES)
    assert [row.class_name for row in table] == sorted((row.class_name for row in table), key=COCO_CLASSES.index)


def test_words_are_as_captions_have_them() -> None:
    assert all(words_of(row.word) == row.word.split() for row in visual_word_table())
    assert all(row.count >= 4 for row in visual_word_table())


@pytest.mark.parametrize(
    ("word", "class_name"),
    [
        ("man", "person"),
        ("children", "person"),
        ("toddler", "person"),
        ("fire hydrant", "fire hydrant"),
        ("puppies", "dog"),
        ("greyhound", "dog"),
        ("canoe", "boat"),
        ("geese", "bird"),
        ("hot dogs", "hot dog"),
        ("mouse", "mouse"),
        ("knives", "knife"),
    ],
)
def test_words_belong_to_the_class_that_captions_mean(word: str, class_name: str) -> None:
    assert visual_words()[word] == class_name


@pytest.mark.parametrize("word", ["tree", "glasses", "stroller", "wall", "the", "desk", "mannequin"])
def test_words_that_mean_no_class_are_not_in_the_list(word: str) -> None:
    assert word not in visual_words()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A man walks two dogs.", [(1, 2, "person"), (4, 5, "dog")]),
        ("a hot dog by a fire hydrant", [(1, 3, "hot dog"), (5, 7, "fire hydrant")]),
        ("An orange jacket", []),
        ("an orange on a table", [(1, 2, "orange"), (4, 5, "dining table")]),
        ("a dog park where a puppy plays", [(5, 6, "dog")]),
        ("a dog", [(1, 2, "dog")]),
        ("nothing here", []),
        ("", []),
    ],
)
def test_the_longest_name_counts_and_only_where_it_means_its_class(
    text: str, found: list[tuple[int, int, str]]
) -> None:
    assert visual_words_in(text) == found
    assert visual_words_in(words_of(text)) == found


@given(st.lists(st.sampled_from([*visual_words(), "a", "the", "on", "park", "jacket"]), max_size=8))
def test_places_rise_do_not_overlap_and_hold_words_of_the_list(parts: list[str]) -> None:
    words = " ".join(parts).split()
    found = visual_words_in(words)
    ends = [0, *(end for _, end, _ in found)]
    for (start, end, name), before in zip(found, ends, strict=False):
        assert before <= start < end <= len(words)
        assert visual_words()[" ".join(words[start:end])] == name


def test_on_real_photos_nearly_every_visual_word_has_a_box(shared: Callable[[str], Path]) -> None:
    boxes = json.loads(shared("data/coco_val/boxes.json").read_text())
    there = {int(image): {COCO_CLASSES[row[0]] for row in rows} for image, rows in boxes.items()}
    captions = json.loads(shared("data/coco_val/captions_val2017.json").read_text())["annotations"]
    told = [entry for entry in captions if entry["image_id"] in there][:800]
    hits = [name in there[one["image_id"]] for one in told for *_, name in visual_words_in(one["caption"])]
    assert len(hits) > 1000
    assert sum(hits) / len(hits) > 0.95
    same = sum({name for *_, name in visual_words_in(one["caption"])} == classes_named(one["caption"]) for one in told)
    assert same / len(told) > 0.93


@pytest.mark.parametrize(
    "text",
    ["", "# only a comment\n", "word\tclass\n", "word\tclass\tsource\tcount\ndog\tdog\tlemma\n",
     "word\tclass\tsource\tcount\ndog\tdog\tguess\t3\n", "word\tclass\tsource\tcount\ndog\tdog\tlemma\tmany\n"],
)  # fmt: skip
def test_a_table_that_is_none_is_a_clear_error(text: str) -> None:
    with pytest.raises(InvalidFile, match=r"words\.tsv"):
        parse_table(text, "words.tsv")
