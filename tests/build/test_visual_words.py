"""How the list of visual words is found: a WordNet of nine nouns, and the rules on a few captions."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("spacy", reason="needs the extra 'language'")

from saywhere.build.visual_words import EXCLUDED, SYNSETS, WordClasses, find_visual_words, write_table
from saywhere.build.wordnet import WordNetNouns, all_kinds
from saywhere.core import InvalidFile, UnknownName
from saywhere.core.coco_classes import COCO_CLASSES
from saywhere.language.coco_aliases import coco_aliases, plural
from saywhere.language.visual_words import VisualWord, parse_table, visual_word_table

# offset, file, type, number of lemmas, (lemma, id) …, number of links, (symbol, offset, part, ends) … | gloss
DATA = """  1 This software and database is being provided to you
00000100 05 n 02 dog 0 domestic_dog 0 002 ~ 00000200 n 0000 ~ 00000300 n 0000 | a pet
00000200 05 n 01 whippet 0 001 @ 00000100 n 0000 | a kind of dog
00000300 05 n 01 old_dog 0 000 | a kind of dog
00000400 18 n 01 person 0 003 ~ 00000500 n 0000 ~ 00000600 n 0000 ~i 00000900 n 0000 | a human
00000500 18 n 01 fireman 0 000 | puts out fires
00000600 18 n 01 stroller 0 001 ~ 00000700 n 0000 | somebody who walks
00000700 18 n 01 dog 0 000 | an unpleasant person
00000800 06 n 01 fireman's_pole 0 000 | a pole
00000900 18 n 01 bob 0 000 | one person
"""
INDEX = """  1 This software and database is being provided to you
bob n 1 1 @ 1 0 00000900
dog n 2 1 @ 2 1 00000100 00000700
domestic_dog n 1 1 @ 1 0 00000100
fireman n 1 1 @ 1 0 00000500
old_dog n 1 1 @ 1 0 00000300
person n 1 1 @ 1 1 00000400
stroller n 1 1 @ 1 0 00000600
whippet n 1 1 @ 1 0 00000200
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data.noun").write_text(DATA)
    (tmp_path / "index.noun").write_text(INDEX)
    (tmp_path / "noun.exc").write_text("doggen dog\n")
    return tmp_path


@pytest.fixture
def classes(folder: Path) -> WordClasses:
    known = {"dog": ("dog.n.01",), "person": ("person.n.01",)}
    return WordClasses(WordNetNouns(folder), {name: known.get(name, ()) for name in COCO_CLASSES})


@pytest.mark.parametrize(
    ("word", "bases"),
    [
        ("dog", ("dog",)),
        ("dogs", ("dog",)),
        ("doggen", ("dog",)),
        ("firemen", ("fireman",)),
        ("old dogs", ("old dog",)),
        ("domestic doggen", ("domestic dog",)),
        ("cats", ()),
    ],
)
def test_words_go_back_to_their_base_forms(folder: Path, word: str, bases: tuple[str, ...]) -> None:
    assert WordNetNouns(folder).bases(word) == bases


def test_kinds_are_all_hyponyms_but_no_single_persons(folder: Path) -> None:
    nouns = WordNetNouns(folder)
    assert all_kinds(nouns, ["person.n.01"]) == {"00000400", "00000500", "00000600", "00000700"}
    assert nouns.synset("dog.n.02") == "00000700"
    with pytest.raises(UnknownName, match=r"dog\.n\.02"):
        nouns.synset("dog.n.03")


@pytest.mark.parametrize("name", ["data.noun", "index.noun"])
def test_a_folder_without_wordnet_is_a_clear_error(folder: Path, name: str) -> None:
    (folder / name).write_text("what is this\n")
    with pytest.raises(InvalidFile, match="is not WordNet's"):
        WordNetNouns(folder)
    (folder / name).unlink()
    with pytest.raises(InvalidFile, match=name):
        WordNetNouns(folder)


@pytest.mark.parametrize(
    ("word", "class_name", "source"),
    [
        ("dog", "dog", "lemma"),
        ("domestic dogs", "dog", "lemma"),
        ("whippets", "dog", "hyponym"),
        ("firemen", "person", "hyponym"),
        ("puppy", "dog", "alias"),
        ("hot dogs", "hot dog", "lemma"),
    ],
)
def test_a_word_belongs_to_the_class_of_its_first_sense_or_of_its_name(
    classes: WordClasses, word: str, class_name: str, source: str
) -> None:
    found = classes.of(word)
    assert found is not None
    assert (found.class_name, found.source) == (class_name, source)


@pytest.mark.parametrize("word", ["bob", "tree", "glass"])
def test_a_word_of_no_class_or_of_several_belongs_to_none(classes: WordClasses, word: str) -> None:
    assert classes.of(word) is None


def test_words_are_found_where_captions_use_them_as_nouns_often_enough(classes: WordClasses, tmp_path: Path) -> None:
    captions = [
        "A fireman holds a whippet.",
        "the fireman and his old dog",
        "A woman with a stroller and a whippet",
        "A fireman in a stroller",
        "Puppies and an old dog",
    ]
    rows = find_visual_words(captions, classes, least=2, least_named=1)
    assert rows == [
        VisualWord("fireman", "person", "hyponym", 3),
        VisualWord("woman", "person", "alias", 1),
        VisualWord("dog", "dog", "lemma", 2),
        VisualWord("puppies", "dog", "alias", 1),
        VisualWord("whippet", "dog", "hyponym", 2),
    ]
    write_table(tmp_path / "words.tsv", rows)
    text = (tmp_path / "words.tsv").read_text()
    assert list(parse_table(text, "words.tsv")) == rows
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in text


def test_every_class_has_its_synsets_and_nothing_excluded_is_in_the_list() -> None:
    assert tuple(SYNSETS) == COCO_CLASSES
    assert not EXCLUDED.keys() & {row.word for row in visual_word_table()}


def test_the_list_keeps_to_the_names_that_are_written_by_hand() -> None:
    named = {
        form: name for name, aliases in coco_aliases().items() for alias in aliases for form in (alias, plural(alias))
    }
    differ = [row.word for row in visual_word_table() if named.get(row.word, row.class_name) != row.class_name]
    assert differ == []
