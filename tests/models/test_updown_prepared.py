"""Prepared questions and captions: what goes in comes out, and what cannot is named and counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from saywhere.core import InvalidFile, InvalidValue, UnknownName
from saywhere.language.vocabulary import BEGIN_ID, END_ID, PAD_ID, owned_words, plain_words
from saywhere.models.prepared import NO_IMAGE, NO_WORDS, OTHER_SIZE, TOO_LARGE, TWICE
from saywhere.models.updown import (
    AnswerVocabulary,
    Captions,
    PreparedCaption,
    PreparedQuestion,
    Questions,
    RegionFeatures,
    collate_captions,
    collate_questions,
    save_captions,
    save_questions,
)
from saywhere.models.updown import prepared as reasons
from tests.models import updown_small as small

SPLITS = ("train",) * 6 + ("validation",) * 2 + ("changed priors",) * 2


def image(regions: int = 2, size: int = 4, value: float = 0.5) -> RegionFeatures:
    boxes = np.tile([0.1, 0.1, 0.6, 0.6], (regions, 1))
    return RegionFeatures(np.full((regions, size), value), boxes)


def ask(name: str, split: str = "train", answers: tuple[str, ...] = ("yes",), **changes: object) -> PreparedQuestion:
    values = {"image": "a", "text": "Is it?", "question_type": "is it", "answer_type": "yes/no", "importance": None}
    return PreparedQuestion(id=name, split=split, answers=answers, **(values | changes))  # type: ignore[arg-type]


def test_prepared_questions_come_back_as_they_were(tmp_path: Path) -> None:
    asked = small.save_coloured_questions(tmp_path, SPLITS)
    prepared = Questions(tmp_path)
    assert prepared.splits == dict(Counter(SPLITS))
    assert prepared.counts == {"given": 10, "kept": 10, "hinted": 5, "cut": 0, "unanswerable": 0}
    assert prepared.skipped == ()
    assert (prepared.about, prepared.region_size, prepared.max_words) == ({"made": "here"}, 6, 14)
    for i, (given, split) in enumerate(zip(asked, SPLITS, strict=True)):
        found = prepared.question(i)
        for name in ("id", "image", "split", "text", "question_type", "answer_type", "answers"):
            assert getattr(found, name) == getattr(given, name)
        assert (found.importance is None) == (given.importance is None)
        assert found.split == split
    first = prepared.split("changed priors")[1]
    assert prepared.vocabulary.text(first.words.tolist()) == asked[9].text.lower().removesuffix("?")
    assert prepared.answers.text(int(first.targets.argmax())) == asked[9].answers[0]
    np.testing.assert_array_equal(first.importance, asked[9].importance)
    assert first.index == 9


def test_the_regions_of_an_image_come_back_in_half_precision(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = {
        name: RegionFeatures(rng.normal(size=(n, 5)), small.boxes_xyxy(rng, n)) for name, n in (("a", 3), ("b", 1))
    }
    save_questions(tmp_path, images, [ask("0", image="b"), ask("1", image="a")], {}, least_count=1)
    prepared = Questions(tmp_path)
    for index, name in enumerate("ba"):
        found = prepared.regions(index)
        np.testing.assert_array_equal(found.features, images[name].features.astype(np.float16))
        np.testing.assert_array_equal(found.boxes_xyxy, images[name].boxes_xyxy)


def test_questions_that_cannot_be_used_are_named_counted_and_left_out(tmp_path: Path) -> None:
    images = {"a": image(), "wide": image(size=5), "bright": image(value=1e5)}
    bad = {
        "absent": (NO_IMAGE, {"image": "nowhere"}),
        "wide": (OTHER_SIZE, {"image": "wide"}),
        "bright": (TOO_LARGE, {"image": "bright"}),
        "mute": (NO_WORDS, {"text": "?!"}),
        "good": (TWICE, {}),
        "nobody": (reasons.NO_ANSWERS, {"answers": ()}),
        "short": (reasons.BAD_IMPORTANCE, {"importance": np.ones(3)}),
        "nan": (reasons.BAD_IMPORTANCE, {"importance": np.array([np.nan, np.nan])}),
        "high": (reasons.BAD_IMPORTANCE, {"importance": np.array([0.5, 1.5])}),
        "rare": (reasons.NOT_KNOWN, {"answers": ("never again",)}),
    }
    given = [ask("good"), ask("same"), *(ask(name, **changes) for name, (_, changes) in bad.items())]  # type: ignore[arg-type]
    save_questions(tmp_path, images, given, {}, least_count=2)
    prepared = Questions(tmp_path)
    assert {one.id: one.reason for one in prepared.skipped} == {name: reason for name, (reason, _) in bad.items()}
    assert prepared.counts["given"] == len(given) == prepared.counts["kept"] + len(prepared.skipped)
    assert len(prepared.split("train")) == 2


def test_a_test_question_without_a_known_answer_stays_and_nothing_is_right(tmp_path: Path) -> None:
    given = [ask("0"), ask("1"), ask("2", answers=("maybe",)), ask("3", "test", ("perhaps",)), ask("4", "test")]
    save_questions(tmp_path, {"a": image()}, given, {}, least_count=2)
    prepared = Questions(tmp_path)
    assert prepared.answers.texts == ("yes",)
    assert (prepared.counts["kept"], prepared.counts["unanswerable"]) == (4, 1)
    assert [one.targets.tolist() for one in prepared.split("test")] == [[0.0], [1.0]]


def test_vocabularies_know_only_the_training_questions(tmp_path: Path) -> None:
    given = [ask("0", text="Is it red?"), ask("1", "test", ("no",) * 9, text="Is it blue?")]
    save_questions(tmp_path, {"a": image()}, given, {}, least_count=1)
    prepared = Questions(tmp_path)
    assert set(prepared.vocabulary.pieces) == {"<unk>", "is", "it", "red"}
    assert prepared.answers.texts == ("yes",)
    assert prepared.split("test")[0].words.tolist()[2] == prepared.vocabulary.unknown_id


def test_a_long_question_is_cut_and_counted(tmp_path: Path) -> None:
    save_questions(tmp_path, {"a": image()}, [ask("0", text="what " * 20)], {}, least_count=1)
    prepared = Questions(tmp_path)
    assert len(prepared.split("train")[0].words) == 14
    assert prepared.counts["cut"] == 1


def test_nothing_to_learn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="none can be stored: its image is not there"):
        save_questions(tmp_path, {}, [ask("0")], {})
    with pytest.raises(InvalidValue, match="lower least_count"):
        save_questions(tmp_path, {"a": image()}, [ask("0")], {}, least_count=2)
    with pytest.raises(InvalidValue, match=r"none of the split 'train'.*1 × its text has no word"):
        save_captions(tmp_path, {"a": image()}, [PreparedCaption("0", "a", "train", "...")], {})


def test_an_unknown_split_and_a_folder_of_another_kind_are_refused(tmp_path: Path) -> None:
    small.save_coloured_questions(tmp_path, SPLITS)
    with pytest.raises(UnknownName, match="Did you mean 'train'"):
        Questions(tmp_path).split("trian")
    with pytest.raises(InvalidFile, match="holds questions, not captions"):
        Captions(tmp_path)


@pytest.mark.parametrize(
    "name",
    ["index.json", "00*.safetensors", "images/index.json", "images/00*.safetensors", "vocabulary.json", "answers.json"],
)
@pytest.mark.parametrize("damage", ["missing", "torn"])
def test_a_damaged_folder_is_refused(tmp_path: Path, name: str, damage: str) -> None:
    small.save_coloured_questions(tmp_path, SPLITS)
    path = next(tmp_path.glob(name))
    content = path.read_bytes()
    path.unlink()
    if damage == "torn":
        path.write_bytes(content[: len(content) // 2])
    with pytest.raises(InvalidFile):
        Questions(tmp_path)


def test_a_folder_that_is_written_anew_is_unfinished_until_its_end(tmp_path: Path) -> None:
    small.save_coloured_questions(tmp_path, SPLITS)
    with pytest.raises(InvalidValue, match="lower least_count"):
        save_questions(tmp_path, {"a": image()}, [ask("0")], {}, least_count=2)
    with pytest.raises(InvalidFile, match="not a folder of prepared questions"):
        Questions(tmp_path)


@pytest.mark.parametrize("what", ["answer", "importance", "feature", "order"])
def test_the_fingerprint_changes_with_the_data(tmp_path: Path, what: str) -> None:
    def made(name: str, changed: str) -> str:
        importance = np.array([0.2, 0.3 if changed == "importance" else 0.4])
        answers = ("no",) if changed == "answer" else ("yes",)
        given = [ask("0", answers=answers), ask("1", importance=importance)]
        images = {"a": image(value=0.25 if changed == "feature" else 0.5)}
        save_questions(tmp_path / name, images, given[::-1] if changed == "order" else given, {}, least_count=1)
        return Questions(tmp_path / name).fingerprint

    assert made("first", "") == made("second", "")
    assert made("first", "") != made("third", what)


def test_questions_are_collated_with_nan_where_nobody_looked(tmp_path: Path) -> None:
    given = [ask("0"), ask("1", image="b", importance=np.array([0.25, 1.0, 0.0]), text="What is it on?")]
    save_questions(tmp_path, {"a": image(2), "b": image(3)}, given, {}, least_count=1)
    batch = collate_questions(list(Questions(tmp_path).split("train"))).to("cpu")
    assert batch.present.tolist() == [[True, True, False], [True, True, True]]
    assert batch.hinted.tolist() == [False, True]
    assert batch.importance[0].isnan().all()
    assert batch.importance[1].tolist() == [0.25, 1.0, 0.0]
    assert batch.questions.shape == (2, 4)
    assert (batch.questions[0, 2:] == PAD_ID).all()
    assert (batch.regions[0, 2] == 0).all()
    assert batch.index.tolist() == [0, 1]
    assert len(batch) == 2
    with pytest.raises(InvalidValue, match="holds no item"):
        collate_questions([])


def test_importance_is_nan_on_regions_that_are_not_there(tmp_path: Path) -> None:
    given = [ask("0", importance=np.array([0.5, 1.0])), ask("1", image="b")]
    save_questions(tmp_path, {"a": image(2), "b": image(3)}, given, {}, least_count=1)
    batch = collate_questions(list(Questions(tmp_path).split("train")))
    assert batch.importance[0, :2].tolist() == [0.5, 1.0]
    assert batch.importance[0, 2].isnan()


def test_prepared_captions_come_back_as_they_were(tmp_path: Path) -> None:
    said = small.save_coloured_captions(tmp_path, SPLITS)
    prepared = Captions(tmp_path)
    assert prepared.counts == {"given": 10, "kept": 10, "hinted": 5, "cut": 0, "visual_cut": 0}
    for i, given in enumerate(said):
        found = prepared.caption(i)
        assert (found.id, found.image, found.split, found.text) == (given.id, given.image, given.split, given.text)
        assert [place for place, _ in found.visual] == [place for place, _ in given.visual]
        for (_, stored), (_, wanted) in zip(found.visual, given.visual, strict=True):
            np.testing.assert_array_equal(stored, wanted)
        words = prepared.item(i).words.tolist()
        if given.split == "train":
            assert prepared.vocabulary.text(words).split() == plain_words(given.text)
    assert len(prepared.split("validation", 1)) == 1


def test_captions_are_collated_so_that_importance_stands_where_its_word_is_said(tmp_path: Path) -> None:
    small.save_coloured_captions(tmp_path, SPLITS)
    prepared = Captions(tmp_path)
    items = prepared.split("train")
    batch = collate_captions([items[0], items[1]]).to("cpu")
    assert (batch.words[:, 0] == BEGIN_ID).all()
    for length, read, said in zip((6, 4), batch.words, batch.targets, strict=True):
        assert torch.equal(read[1 : length + 1], said[:length])
        assert said[length] == END_ID
        assert (read[length + 1 :] == PAD_ID).all()
        assert (said[length + 1 :] == PAD_ID).all()
    assert batch.hinted.nonzero().tolist() == [[1, 3]]
    noun = prepared.vocabulary.text([int(batch.targets[1, 3])])
    assert noun == plain_words(items.caption(1).text)[3]
    assert batch.importance[1, 3].tolist() == [1.0, 0.5]
    assert int(batch.importance.isfinite().sum()) == 2


def test_captions_that_cannot_be_used_are_named_and_what_is_cut_is_counted(tmp_path: Path) -> None:
    shares = np.array([0.5, 1.0])
    given = [
        PreparedCaption("good", "a", "train", "a (red) cup , here", ((1, shares), (4, shares))),
        PreparedCaption("sign", "a", "train", "a red , cup", ((2, shares),)),
        PreparedCaption("beyond", "a", "train", "a cup", ((2, shares),)),
        PreparedCaption("twice", "a", "train", "a cup", ((1, shares), (1, shares))),
        PreparedCaption("wrong", "a", "train", "a cup", ((1, np.ones(3)),)),
        PreparedCaption("mute", "a", "train", "..."),
    ]
    save_captions(tmp_path, {"a": image()}, given, {}, least_word_count=1, max_words=3)
    prepared = Captions(tmp_path)
    assert [one.id for one in prepared.skipped] == ["sign", "beyond", "twice", "wrong", "mute"]
    assert Counter(one.reason for one in prepared.skipped) == {
        reasons.BAD_PLACE: 3,
        reasons.BAD_IMPORTANCE: 1,
        NO_WORDS: 1,
    }
    assert prepared.counts == {"given": 6, "kept": 1, "hinted": 1, "cut": 1, "visual_cut": 1}
    assert prepared.caption(0).visual[0][0] == 1


def test_words_know_the_part_of_the_text_they_come_from() -> None:
    assert owned_words("What's on the t-shirt , cat/dog?") == [
        ("what's", 0),
        ("on", 1),
        ("the", 2),
        ("t-shirt", 3),
        ("cat", 5),
        ("dog", 5),
    ]


def test_a_lone_answer_is_the_truth_and_several_are_people() -> None:
    answers = AnswerVocabulary(("yes", "no", "2"))
    assert answers.targets(("Yes.",)).tolist() == [1.0, 0.0, 0.0]
    assert answers.targets(("yes", "no", "No", "two", "maybe")).tolist() == pytest.approx([0.3, 0.6, 0.3])
    assert answers.targets(("maybe",)).tolist() == [0.0, 0.0, 0.0]
    assert "two" in answers
    assert "maybe" not in answers


def test_the_answers_that_can_be_given_are_those_right_often_enough() -> None:
    given = [("yes", "no", "yes"), ("Yes",), ("no", "no", "yes"), ("two", "2"), ("2",), ("a", "the")]
    assert AnswerVocabulary.of(given, least_count=2).texts == ("2", "yes")
    assert AnswerVocabulary.of(given, least_count=1).texts == ("2", "yes", "no")


def test_answers_come_back_from_their_file_and_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    AnswerVocabulary(("yes", "café")).save(path)
    assert AnswerVocabulary.load(path) == AnswerVocabulary(("yes", "café"))
    for content in (b"{", b"[]", b"\xff", msgspec.json.encode({"format": 2, "answers": ["yes"]})):
        path.write_bytes(content)
        with pytest.raises(InvalidFile):
            AnswerVocabulary.load(path)


@pytest.mark.parametrize(
    ("texts", "reason"), [((), "no answer"), (("yes", " "), "not an answer"), (("yes", "yes"), "'yes' twice")]
)
def test_an_answer_vocabulary_that_cannot_be_is_refused(texts: tuple[str, ...], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        AnswerVocabulary(texts)


def test_what_a_question_points_at_comes_back_and_others_point_everywhere(tmp_path: Path) -> None:
    image = RegionFeatures(np.ones((2, 3)), [[0, 0, 1, 1], [0, 0, 0.5, 0.5]])
    given = [
        PreparedQuestion("a", "i", "train", "what is this", "what is", "other", ("cup",), None, np.array([0.25, 1.0])),
        PreparedQuestion("b", "i", "train", "what is there", "what is", "other", ("cup",), np.array([0.5, 0.75])),
        PreparedQuestion("c", "i", "train", "what is this", "what is", "other", ("cup",), None, np.zeros(2)),
    ]
    save_questions(tmp_path, {"i": image}, given, {}, least_count=1)
    kept = Questions(tmp_path)
    items = kept.split("train")
    assert items.question(0).pointed is not None
    assert items.question(1).pointed is None
    batch = collate_questions(list(items))
    assert batch.pointed.tolist() == [[0.25, 1.0], [1.0, 1.0]]
    assert batch.hinted.tolist() == [False, True]
    # Pointing at nothing at all is no pointing.
    assert [one.id for one in kept.skipped] == ["c"]
