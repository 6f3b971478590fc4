"""Why a word was said or an answer given: maps of patches and places, and what they are worth."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from saywhere.core import Box, Point, Region, UnknownName, WholeImage
from saywhere.explain.seen import METHODS, Method, why_answer, why_word
from saywhere.models.patchioner.look import SeerLook
from tests.models.patchioner_seeing import LEFT, photo
from tests.models.test_patchioner_answering import answering_seer
from tests.models.test_patchioner_why import loud_seer, whole_score

TEXT = "a red cat"


def look() -> SeerLook:
    return loud_seer().look(photo())


def without(seen: SeerLook, region: Region, cell: int) -> float:
    """The score when one patch looks like the photo on average, by hand."""
    score = seen.word_score(region, TEXT, 2)
    features = score.features.clone()
    features[score.cells.tolist().index(cell)] = 0
    return score(features[None], torch.ones(1, len(features), dtype=torch.bool), torch.zeros(1)).item()


@pytest.mark.parametrize("region", [WholeImage(), Box(*LEFT), Point(0.9, 0.9)])
@pytest.mark.parametrize("method", METHODS)
def test_only_patches_of_the_region_count(region: Region, method: Method) -> None:
    seen = look()
    reason = why_word(seen, region, TEXT, 2, method)
    assert reason.weights.shape == (4, 4)
    assert (reason.said, reason.method) == ("cat", method)
    assert reason.score == pytest.approx(whole_score(seen.word_score(region, TEXT, 2)), abs=1e-5)
    outside = seen.aligned.weights([region])[0] == 0
    assert (reason.weights[outside] == 0).all()
    assert reason.weights.any()


def test_occlusion_is_how_far_the_score_falls_without_each_patch() -> None:
    seen = look()
    reason = why_word(seen, WholeImage(), TEXT, 2, "occlusion")
    for cell in (0, 6, 15):
        assert reason.weights.flat[cell] == pytest.approx(reason.score - without(seen, WholeImage(), cell), abs=1e-5)
    assert reason.faithfulness is None


def test_attention_is_how_the_region_weighs_patches_and_without_an_order_it_explains_nothing() -> None:
    seen = look()
    reason = why_word(seen, WholeImage(), TEXT, 2, "attention")
    np.testing.assert_allclose(reason.weights, 1 / 16)
    assert reason.faithfulness is None


def test_gradients_order_the_patches_nearly_as_occlusion_does() -> None:
    reason = why_word(look(), WholeImage(), TEXT, 2, "gradient")
    assert reason.faithfulness is not None
    assert 0.8 < reason.faithfulness <= 1


def test_the_score_falls_faster_if_the_important_patches_go_first() -> None:
    seen = look()
    good = why_word(seen, WholeImage(), TEXT, 2, "occlusion")
    assert good.fall >= why_word(seen, WholeImage(), TEXT, 2, "attention").fall


def test_what_names_add_is_the_share_of_the_probability_that_is_lost_without_them() -> None:
    seen = look()
    shares = []
    for index in range(3):
        score = seen.word_score(Box(*LEFT), TEXT, index)
        quiet = score.without_names()
        assert quiet is not None
        reason = why_word(seen, Box(*LEFT), TEXT, index)
        assert reason.from_names == pytest.approx(max(0, 1 - math.exp(quiet) / math.exp(whole_score(score))), abs=1e-5)
        shares.append(reason.from_names)
    assert max(share for share in shares if share is not None) > 0
    assert why_word(loud_seer(names=False).look(photo()), WholeImage(), TEXT, 0).from_names is None


@pytest.mark.parametrize("method", METHODS)
def test_an_answer_is_explained_by_its_places(method: Method) -> None:
    seen = answering_seer().look(photo())
    reason = why_answer(seen, "is there a cat?", None, method)
    answer = seen.answer("is there a cat?")
    assert reason.said == answer.text
    assert reason.score == pytest.approx(math.log(answer.probability / (1 - answer.probability)), abs=1e-4)
    assert reason.weights.shape == (64, 64)
    assert reason.weights.min() >= 0
    assert reason.weights.max() in (0, pytest.approx(1))
    assert reason.from_names is None
    assert (reason.faithfulness is None) == (method == "occlusion")


def test_the_place_with_most_attention_is_hottest() -> None:
    seen = answering_seer().look(photo())
    reason = why_answer(seen, "is there a cat?", Box(0.5, 0.5, 1, 1), "attention")
    attention = seen.answer("is there a cat?", Box(0.5, 0.5, 1, 1)).attention
    x1, y1, x2, y2 = (64 * seen.places.boxes_xyxy[attention.argmax()]).astype(int)
    assert (reason.weights[y1:y2, x1:x2] == 1).all()


def test_another_answer_can_be_asked_about() -> None:
    seen = answering_seer().look(photo())
    reasons = [why_answer(seen, "is there a cat?", answer=answer) for answer in ("yes", "no")]
    assert [reason.said for reason in reasons] == ["yes", "no"]
    assert reasons[0].score != reasons[1].score


def test_a_method_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownName, match="gradient"):
        why_word(look(), WholeImage(), TEXT, 0, "gradiant")  # type: ignore[arg-type]
