"""Words as numbers and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import InvalidFile, InvalidValue, UnknownName
from saywhere.language.vocabulary import BEGIN_ID, END_ID, FIRST_PIECE_ID, PAD_ID, UNKNOWN, Vocabulary

TEXTS = ["In this image, there is a dog.", "There is a red ball on the sand!", "Don't touch the t-shirt, please."]
WORDS = Vocabulary.of_words(TEXTS)
BPE = Vocabulary.of_bpe(TEXTS, 60, 1)


def test_markers_and_pieces_have_ids_of_their_own() -> None:
    assert (PAD_ID, BEGIN_ID, END_ID, FIRST_PIECE_ID) == (0, 1, 2, 3)
    assert WORDS.unknown_id == 3
    assert WORDS.encode(["dog"]).ids[0] > END_ID


def test_frequent_words_come_first_and_rare_ones_not_at_all() -> None:
    made = Vocabulary.of_words(["b b b a a c", "c c a"], most=3)
    assert made.pieces == (UNKNOWN, "a", "b")
    assert Vocabulary.of_words(["b b a"], min_count=2).pieces == (UNKNOWN, "b")


@pytest.mark.parametrize("vocabulary", [WORDS, BPE], ids=["words", "bpe"])
@pytest.mark.parametrize("text", TEXTS)
def test_known_texts_come_back_in_lower_case(vocabulary: Vocabulary, text: str) -> None:
    pieces = vocabulary.encode(text.split())
    assert vocabulary.text(pieces.ids) == text.lower()
    assert pieces.owners == vocabulary.spell(pieces.ids).owners


@pytest.mark.parametrize("vocabulary", [WORDS, BPE], ids=["words", "bpe"])
@given(words=st.lists(st.text(min_size=1).filter(lambda t: t.split() == [t]), max_size=6))
def test_any_words_give_pieces_that_know_their_owner(vocabulary: Vocabulary, words: list[str]) -> None:
    pieces = vocabulary.encode(words)
    assert list(pieces.owners) == sorted(pieces.owners)
    assert all(0 <= owner < len(words) for owner in pieces.owners)
    assert all(FIRST_PIECE_ID <= i < FIRST_PIECE_ID + len(vocabulary) for i in pieces.ids)
    spelled = vocabulary.spell(pieces.ids)
    assert len(spelled.owners) == len(pieces.ids)
    assert set(spelled.owners) == set(range(len(spelled.words)))


def test_signs_are_pieces_of_their_own_and_cling_when_spelled() -> None:
    pieces = WORDS.encode(["image,", "dog."])
    assert pieces.owners == (0, 0, 1, 1)
    assert WORDS.spell(pieces.ids).words == ("image,", "dog.")
    assert {WORDS.pieces[i - FIRST_PIECE_ID] for i in WORDS.sentence_end_ids} == {".", "!"}
    assert BPE.encode(["."]).ids[0] in BPE.sentence_end_ids


def test_letters_decide_what_is_one_word() -> None:
    assert [WORDS.pieces[i - FIRST_PIECE_ID] for i in WORDS.encode(["Don't", "t-shirt"]).ids] == ["don't", "t-shirt"]


def test_an_unknown_word_is_one_unknown_piece() -> None:
    assert WORDS.encode(["zebra"]).ids == (WORDS.unknown_id,)
    assert BPE.encode(["zebrä"]).ids == (BPE.unknown_id,)
    with pytest.raises(InvalidValue, match="'zebra' is not in the vocabulary"):
        Vocabulary("words", ("a",)).encode(["zebra"])


def test_learned_pieces_join_frequent_pairs() -> None:
    made = Vocabulary.of_bpe(["low lower lowest low low"] * 5, 16)
    assert len(made) <= 16
    assert "low</w>" in made.pieces
    assert len(made.encode(["low"]).ids) == 1
    assert len(made.encode(["lower"]).ids) > 1


def test_the_authors_table_keeps_its_numbers() -> None:
    made = Vocabulary.of_released({"1": "a", "2": "dog", "3": "UNK"})
    assert made.encode(["dog"]).ids == (2 + 2,)
    assert made.unknown_id == 3 + 2
    with pytest.raises(InvalidValue, match="number its words"):
        Vocabulary.of_released({"1": "a", "3": "dog"})


@pytest.mark.parametrize("vocabulary", [WORDS, BPE], ids=["words", "bpe"])
def test_a_saved_vocabulary_comes_back(vocabulary: Vocabulary, tmp_path: Path) -> None:
    vocabulary.save(tmp_path / "deep" / "vocabulary.json")
    again = Vocabulary.load(tmp_path / "deep" / "vocabulary.json")
    assert again == vocabulary
    assert again.fingerprint == vocabulary.fingerprint
    assert again.encode(["image,", "zebra"]) == vocabulary.encode(["image,", "zebra"])


def _written(**changes: object) -> str:
    return json.dumps(json.loads(WORDS.to_json()) | changes)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not JSON"),
        ("[" * 200_000, "not JSON"),
        ("[]", "not an object"),
        (_written(extra=1), "not an object"),
        (_written(pieces="abc"), "'pieces' is not of type list"),
        (_written(pieces=[]), "no pieces"),
        (_written(pieces=["a", "a"]), "'a' twice"),
        (_written(pieces=["a b"]), "not a piece"),
        (_written(pieces=[3]), "not a piece"),
        (_written(format=2), "has format 2"),
        (_written(kind="word"), "unknown kind"),
        (_written(merges=[["a"]]), "not a pair"),
        (_written(merges=[["x", "y"]]), "no piece"),
        (_written(lowercase=1), "'lowercase' is not of type bool"),
    ],
)
def test_files_that_are_no_vocabulary_are_refused(content: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text(content)
    with pytest.raises(InvalidFile, match=reason):
        Vocabulary.load(tmp_path / "v.json")


def test_a_missing_file_and_a_wrong_encoding_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="cannot be opened"):
        Vocabulary.load(tmp_path / "nothing.json")
    (tmp_path / "v.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(InvalidFile, match="not UTF-8"):
        Vocabulary.load(tmp_path / "v.json")


def test_ids_outside_the_table_and_unknown_kinds_are_refused() -> None:
    for wrong in (PAD_ID, END_ID, FIRST_PIECE_ID + len(WORDS)):
        with pytest.raises(InvalidValue, match="is none of"):
            WORDS.spell([wrong])
    with pytest.raises(UnknownName, match="words"):
        Vocabulary("wrods", ("a",))
