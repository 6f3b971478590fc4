"""How the writer of scenes, actions and rationales is made, at a scale of seconds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from saywhere.build.levels import LevelSettings, begin_from, tell_rows, train_levels
from saywhere.build.levels_data import (
    Saying,
    Source,
    draw,
    hl_sayings,
    hl_split,
    level_vocabulary,
    place_sayings,
    read_hl,
)
from saywhere.build.levels_places import PLACES, agreed_words, place_words, places_of
from saywhere.build.levels_texts import LEVELS, level_sentence, place_sentence, scene_sentence, well_formed
from saywhere.core import InvalidFile, InvalidValue
from saywhere.formats import hl
from saywhere.formats.hl import HLRow
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.patchioner.decoder import DecoderConfig, PrefixDecoder
from saywhere.models.patchioner.gap_model import GapModel

_SIZE = 8


def _row(name: str, scene: str, **more: tuple[float, ...]) -> HLRow:
    captions = {
        "scene": (scene,),
        "action": ("he is cooking",),
        "rationale": ("for fun",),
        "object": ("a man", "a pan"),
    }
    return HLRow(name, captions, {"scene": more["sure"]} if "sure" in more else {})


def _gap(rng: np.random.Generator) -> GapModel:
    texts = rng.normal(size=(60, _SIZE))
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    return GapModel.fit(texts, texts)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("in a car", "the picture is taken in a car"),
        ("The picture was shot on the Tennis court.", "the picture is taken on the tennis court"),
        ("this is at home", "the picture is taken at home"),
        ("that's a kitchen", "the picture is taken in a kitchen"),
        ("it is outside a shop", "the picture is taken outside a shop"),
        ("this picture was taken from the front", None),
        ("undercarriage of a plane", None),
        ("in", None),
        ("", None),
    ],
)
def test_answers_are_brought_into_one_manner_or_left_out(said: str, sentence: str | None) -> None:
    assert scene_sentence(said) == sentence
    assert level_sentence("scene", said) == sentence


def test_actions_and_rationales_keep_their_words() -> None:
    assert level_sentence("action", "He's posing, for a photo!") == "he's posing for a photo"
    assert level_sentence("rationale", "…") is None


def test_every_place_can_be_said_in_that_manner() -> None:
    sentences = [place_sentence(name) for names in PLACES.values() for name in names]
    assert [scene_sentence(text) for text in sentences] == sentences


def test_a_said_place_is_the_same_place() -> None:
    words = [name for names in PLACES.values() for name in names]
    heard = place_words(place_sentence(word) for word in words)
    lost = [word for word, found in zip(words, heard, strict=True) if not places_of([word]) <= places_of(found)]
    # What the tagger takes for something else than a noun.
    assert len(lost) <= 3, lost


def test_places_are_heads_of_phrases_and_no_name_is_in_two_places() -> None:
    assert place_words(["a street sign in a kitchen", "Two men in the living rooms"]) == [["kitchen"], ["living room"]]
    names = [name for names in PLACES.values() for name in names]
    assert len(names) == len(set(names))


def test_places_count_where_two_captions_agree_by_whatever_name() -> None:
    assert agreed_words([["road"], ["street", "park"], []]) == Counter({"road": 1, "street": 1})
    assert not agreed_words([["road"], ["park"]])
    [first, second] = place_sayings([[["road"], ["street"]], [["park"], ["kitchen"]]])
    assert (first.group, first.weight) == (second.group, second.weight) == (0, 0.5)


def test_rows_are_split_by_name_alone_and_seven_of_ten_are_learnt_from() -> None:
    parts = Counter(hl_split(f"COCO_train2014_{number:012d}.jpg") for number in range(3000))
    assert 2000 < parts["train"] < 2200
    assert 230 < parts["validation"] < 370
    assert 520 < parts["test"] < 680


def test_rows_without_object_captions_are_named_and_left_out(tmp_path: Path) -> None:
    rows = [_row(f"{number}.jpg", "in a car") for number in range(20)]
    bare = HLRow("bare.jpg", {"scene": ("in a car",)})
    hl.write(tmp_path / "hl.jsonl", [*rows, bare])
    kept, bad = read_hl(tmp_path / "hl.jsonl")
    assert sum(map(len, kept.values())) == 20
    assert [(record.line, record.reason) for record in bad] == [(21, "has no object captions")]
    hl.write(tmp_path / "none.jsonl", [bare])
    with pytest.raises(InvalidFile, match="no row to learn from"):
        read_hl(tmp_path / "none.jsonl")


def test_doubtful_answers_weigh_less() -> None:
    weights = [one.weight for one in hl_sayings([_row("a", "in a car", sure=(2.5,))]) if one.level == "scene"]
    assert weights == [0.25]


def test_what_is_drawn_follows_shares_and_leaves_out_unknown_words() -> None:
    rng = np.random.default_rng(0)
    captions, photos = rng.normal(size=(2, 3, _SIZE)).astype(np.float32), np.eye(_SIZE, dtype=np.float32)
    told = Source("text", 0.75, captions, (Saying(0, "scene", "in a car", 1.0), Saying(1, "scene", "in a zzz", 9.0)))
    seen = Source("photos", 0.25, photos, (Saying(3, "scene", "in a car", 1.0),))
    words = Vocabulary("words", ("<unk>", *LEVELS, "in", "a", "car"))
    drawn = draw([told, seen], 400, words, _gap(rng), most_words=5, seed=0)
    of_photos = (drawn.vectors == photos[3]).all(axis=1)
    assert 60 < of_photos.sum() < 140
    assert set(drawn.sentences) == {"in a car"}
    assert set(drawn.prompts) == {"scene"}
    assert np.allclose(np.linalg.norm(drawn.vectors, axis=1), 1, atol=1e-5)
    again = draw([told, seen], 400, words, _gap(np.random.default_rng(0)), most_words=5, seed=0)
    assert again.sentences == drawn.sentences


def test_the_vocabulary_has_the_levels_and_no_word_said_once() -> None:
    said = (Saying(0, "scene", "in a car", 1.0), Saying(0, "action", "in a scene", 1.0))
    words = level_vocabulary([Source("x", 1.0, np.ones((1, 1, 2), np.float32), said)])
    assert words.pieces == ("<unk>", *LEVELS, "a", "in")


def _base() -> PrefixDecoder:
    words = Vocabulary("words", ("<unk>", "a", "in", "car", "dog"))
    config = DecoderConfig(words=5, vector_size=_SIZE, width=16, layers=2, heads=2, feed_forward=32, max_words=9)
    return PrefixDecoder.fresh(config, words, 0)


def test_a_writer_begins_with_what_the_base_knows() -> None:
    base, words = _base(), Vocabulary("words", ("<unk>", *LEVELS, "car", "kitchen"))
    begun = begin_from(base, words, LevelSettings(layers=1, max_words=6))
    assert begun.config.layers == 1
    assert begun.config.prompt_words == 1
    old, new = base.state_dict(), begun.state_dict()
    assert (new["words.weight"][3 + 4] == old["words.weight"][3 + 3]).all()
    assert (new["prefix.weight"] == old["prefix.weight"]).all()
    # With a prompt, the begin of the text lies one place further on.
    assert (new["positions.weight"][2:] == old["positions.weight"][1:8]).all()


class _Encoder:
    name, size = "random", _SIZE
    fingerprint: ClassVar[dict[str, str]] = {"encoder": "random"}


def test_a_small_writer_learns_each_level_by_its_name_and_refuses_to_go_on_with_other_settings(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [_row(f"{i}.jpg", "in a kitchen") for i in range(4)]
    vectors = rng.normal(size=(4, 2, _SIZE)).astype(np.float32)
    _base().save_pretrained(tmp_path / "base" / "decoder")
    settings = LevelSettings(steps=40, batch=16, rate=1e-2, max_words=9, min_count=1, dropout=0.0)
    parts = {"train": rows, "validation": rows[:1], "test": rows}
    seen = {"train": vectors, "validation": vectors[:1], "test": vectors}
    given = [Source("hl", 1.0, vectors, hl_sayings(rows))], tmp_path / "base", _gap(rng), tmp_path / "work"
    encoder: Any = _Encoder()
    told = tell_rows(train_levels(*given, settings, parts, seen, encoder), rows, vectors)
    assert {level: set(one.texts.values()) for level, one in told.items()} == {
        "scene": {"the picture is taken in a kitchen"},
        "action": {"he is cooking"},
        "rationale": {"for fun"},
    }
    assert told["scene"].wanted == {number: ["in a kitchen"] for number in range(4)}
    with pytest.raises(InvalidValue, match="differ"):
        train_levels(*given, LevelSettings(steps=41), parts, seen, encoder)


def test_a_well_formed_scene_says_where() -> None:
    sentences = ["the picture is taken in a kitchen", "a dog", "the picture is taken", "the picture is taken in the in"]
    assert well_formed(sentences) == 0.25
    with pytest.raises(InvalidValue):
        well_formed([])
