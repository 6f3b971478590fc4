"""Answers in words, about images and about where one points."""

from __future__ import annotations

import numpy as np
import pytest

from saywhere.core import InvalidValue
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.updown import Answerer, AnswerVocabulary, RegionFeatures
from tests.models import updown_small as small

WORDS = ("<unk>", "what", "color", "is", "the", "cup", "dog", "tree", "how", "many", "are", "there")
ANSWERS = AnswerVocabulary(("yes", "no", "red", "blue", "green", "1", "2"))


def answerer(**changes: bool) -> Answerer:
    return Answerer(small.vqa(**changes), Vocabulary("words", WORDS), ANSWERS)


def images(*counts: int, size: int = small.REGION) -> list[RegionFeatures]:
    rng = np.random.default_rng(0)
    return [RegionFeatures(rng.normal(size=(n, size)), small.boxes_xyxy(rng, n)) for n in counts]


@pytest.mark.parametrize("use_boxes", [False, True])
def test_an_answer_has_its_probability_its_rivals_and_where_it_looked(use_boxes: bool) -> None:
    seen = images(3, 5)
    for one, image in zip(
        answerer(use_boxes=use_boxes).answer(seen, ["What color is the cup?", "How many?"]), seen, strict=True
    ):
        assert (one.text, one.probability) == one.ranked[0]
        assert len(one.ranked) == 5
        assert all(text in ANSWERS for text, _ in one.ranked)
        chances = [chance for _, chance in one.ranked]
        assert chances == sorted(chances, reverse=True)
        assert all(0 < chance < 1 for chance in chances)
        assert one.attention.shape == (len(image),)
        assert one.attention.sum() == pytest.approx(1)
        assert (one.unknown, one.unread) == ((), ())


def test_many_questions_get_the_answers_that_each_gets_alone() -> None:
    seen, asked = images(*range(1, 71)), ["What is there?", "is the cup"] * 35
    speaker = answerer()
    together = speaker.answer(seen, asked)
    for i in (0, 1, 63, 64, 69):
        (alone,) = speaker.answer([seen[i]], [asked[i]])
        assert alone.text == together[i].text
        assert alone.probability == pytest.approx(together[i].probability, abs=1e-6)


def test_signs_and_case_do_not_matter() -> None:
    first, second = answerer().answer(images(3, 3)[:1] * 2, ["WHAT color -- is the cup?!", "what color is the cup"])
    assert first.ranked == second.ranked


def test_unknown_words_are_named_once_each() -> None:
    (one,) = answerer().answer(images(2), ["What color is the zebra, a zebra?"])
    assert one.unknown == ("zebra", "a")


def test_a_long_question_is_cut_after_14_words_and_says_so() -> None:
    long = "what is the color " * 4
    cut, short = answerer().answer(images(2, 2)[:1] * 2, [long, " ".join(long.split()[:14])])
    assert cut.unread == ("the", "color")
    assert cut.ranked == short.ranked


def test_pointing_decides_where_it_looks() -> None:
    seen = images(3, 3, 3)
    pointing = [[0, 1, 0], None, np.array([0.5, 0.5, 0])]
    found = answerer().answer(seen, ["what is there"] * 3, pointing)
    assert found[0].attention.tolist() == [0, 1, 0]
    assert found[2].attention[2] == 0
    plain = answerer().answer(seen, ["what is there"] * 3)
    np.testing.assert_allclose(found[1].attention, plain[1].attention)
    assert found[0].probability != plain[0].probability


@pytest.mark.parametrize(
    ("counts", "questions", "pointing", "reason"),
    [
        ((2,), [""], None, "question 0: '' has no word"),
        ((2, 2), ["what", "?!"], None, "question 1: .* has no word"),
        ((2,), [None], None, "question 0: is None, not text"),
        ((2,), ["what", "is"], None, "1 images, 2 questions"),
        ((2,), ["what"], [None, None], "2 pointings"),
        ((2,), ["what"], [[1, 1, 1]], "pointing 0: has shape \\(3,\\), but its image has 2 regions"),
        ((2,), ["what"], [[1, -1]], "negative"),
        ((2,), ["what"], [[np.nan, 1]], "NaN"),
        ((2,), ["what"], [[0, 0]], "points at no region"),
    ],
)
def test_bad_input_is_refused(counts: tuple[int, ...], questions: list[str], pointing: object, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        answerer().answer(images(*counts), questions, pointing)  # type: ignore[arg-type]


def test_images_that_do_not_fit_are_named_and_without_regions_there_is_no_image() -> None:
    with pytest.raises(InvalidValue, match="image 1: has features of size 4, but the network reads 6"):
        answerer().answer([*images(2), *images(2, size=4)], ["what", "what"])
    with pytest.raises(InvalidValue, match="region features"):
        RegionFeatures(np.zeros((0, small.REGION)), np.zeros((0, 4)))
    assert answerer().answer([], []) == []


def test_a_network_without_vocabularies_or_with_others_is_refused() -> None:
    with pytest.raises(InvalidValue, match="does not know what its ids mean"):
        Answerer(small.vqa())
    with pytest.raises(InvalidValue, match="answer vocabulary: has 1 entries"):
        Answerer(small.vqa(), Vocabulary("words", WORDS), AnswerVocabulary(("yes",)))
