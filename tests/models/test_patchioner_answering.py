"""Questions to a seer: the places that answers are made from, and what pointing does to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from saywhere.core import Box, Frame, InvalidValue, Point, Polygon, Region, Trace, WholeImage
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.common.overlaps import pointed
from saywhere.models.face import MissingSkill
from saywhere.models.patchioner.answering import KINDS, LEAST_SCORE, MOST_THINGS, answer_regions, answer_size
from saywhere.models.patchioner.seer import Seer, save_config
from saywhere.models.updown import Answerer, AnswerVocabulary, UpDnConfig, UpDnVqa
from saywhere.vision import Found, View
from tests.models.patchioner_seeing import (
    BOTTOM_RIGHT,
    FOUND,
    LEFT,
    TOP_RIGHT,
    alignment,
    bank,
    decoder,
    open_tiny,
    photo,
    seer,
    tags,
)
from tests.models.test_patchioner_seer import CONFIG

ANSWERS = ("yes", "no", "cat")


def network(region_size: int = answer_size(3), seed: int = 0) -> UpDnVqa:
    words = Vocabulary.of_words(["is there a cat", "what is it"])
    config = UpDnConfig(len(words), len(ANSWERS), region_size, embedding=4, width=16, max_words=6)
    made = UpDnVqa.fresh(config, seed).attach(words, AnswerVocabulary(ANSWERS))
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.5)
    return made.eval()


class ReadsStates:
    """An answerer that reads places by an eye's hidden states, too."""

    region_size, reads_states, second = answer_size(3), True, None


def answering_seer(found: tuple[Found, ...] = FOUND) -> Seer:
    return seer(found=found, answerer=Answerer(network()))


def test_the_places_are_the_whole_the_sure_things_and_the_windows() -> None:
    faint = Found((0.1, 0.1, 0.2, 0.2), "cup", LEAST_SCORE - 0.01)
    look = seer(found=(FOUND[2], faint, FOUND[0], FOUND[1])).look(photo())
    places = look.places
    assert places.features.shape == (1 + 3 + 16, answer_size(3))
    np.testing.assert_allclose(places.boxes_xyxy[:4], [(0, 0, 1, 1), LEFT, TOP_RIGHT, BOTTOM_RIGHT])
    np.testing.assert_allclose(places.boxes_xyxy[4:6], [(0, 0, 0.25, 0.25), (0.25, 0, 0.5, 0.25)])
    np.testing.assert_allclose(places.features[:5, 3], [0, 0.9, 0.8, 0.7, 0])
    kinds = [KINDS[i] for i in places.features[:, 4:].argmax(axis=1)]
    assert kinds == ["whole", *["thing"] * 3, *["window"] * 16]
    assert (places.features[:, 4:].sum(axis=1) == 1).all()


def test_a_place_s_vector_is_that_of_its_region() -> None:
    look = seer().look(photo())
    places = look.places
    regions = [WholeImage(), *(Box(*map(float, box)) for box in places.boxes_xyxy[1:])]
    np.testing.assert_allclose(places.features[:, :3], look.aligned.vectors(regions), atol=1e-6)


def test_the_regions_for_other_networks_are_each_place_once_whatever_answers_are_made_from() -> None:
    made = seer(answerer=ReadsStates())
    seen = made.eyes.look(photo())
    states = np.random.default_rng(0).normal(size=(1 + 16, 3))
    look = made.see(View(seen.frame, seen.patches, seen.whole, found=seen.found, states=states))
    assert look.places.boxes_xyxy[:2].tolist() == [[0, 0, 1, 1]] * 2
    regions = look.region_set
    assert [tuple(box) for box in regions.boxes_xyxy[:4].tolist()] == [(0, 0, 1, 1), LEFT, TOP_RIGHT, BOTTOM_RIGHT]
    assert len(regions) == 1 + 3 + 16 == len(np.unique(regions.boxes_xyxy, axis=0))
    np.testing.assert_allclose(np.linalg.norm(regions.features[:, :3], axis=1), 1, atol=1e-6)


def test_only_the_surest_of_many_things_are_taken() -> None:
    many = tuple(Found((0, 0, 0.5, 0.5), "cat", 0.2 + 0.01 * i) for i in range(30))
    places = answer_regions(seer(found=many).look(photo()).aligned)
    scores = places.features[1 : 1 + MOST_THINGS, 3]
    assert len(places) == 1 + MOST_THINGS + 16
    assert scores[0] == pytest.approx(0.49)
    assert (np.diff(scores) < 0).all()


def test_what_the_encoder_cuts_off_is_no_place() -> None:
    frame = Frame.centre_crop((80, 20), 4, (4, 4), 1)
    view = View(frame, np.ones((4, 4, 3)), np.ones(3), found=(Found((0, 0, 0.1, 1), "cat", 0.9), FOUND[1]))
    places = answer_regions(seer().see(view).aligned)
    # A quarter of the width is seen, from 0.375 to 0.625: two columns of windows, and the dog from 0.5 on.
    assert len(places) == 1 + 1 + 8


POINTINGS: list[tuple[Region, int]] = [
    (Box(*LEFT), 1),
    (Box(0.52, 0.05, 0.98, 0.45), 2),
    (Point(0.1, 0.1), 4),
    (Polygon([(0.5, 0.5), (1, 0.5), (1, 1), (0.5, 1)]), 3),
]


@pytest.mark.parametrize(("region", "best"), POINTINGS)
def test_the_place_that_fits_is_pointed_at_most(region: Region, best: int) -> None:
    look = seer().look(photo())
    fits = pointed(look.places.boxes_xyxy, region, look.view.frame)
    assert fits is not None
    assert fits.argmax() == best
    assert 0 < fits[0] < fits[best] <= 1


def test_a_line_over_a_thing_means_the_thing_and_neither_the_whole_nor_a_corner_of_it() -> None:
    look = seer().look(photo())
    fits = pointed(
        look.places.boxes_xyxy, Trace([(0.1, 0.05, 0.0), (0.4, 0.4, 1.0), (0.1, 0.95, 2.0)]), look.view.frame
    )
    assert fits is not None
    assert fits.argmax() == 1


@pytest.mark.parametrize(("region", "power"), [(Point(0.1, 0.1), 0.5), (Box(0, 0, 0.25, 0.25), 1.0)])
def test_how_little_of_a_place_is_pointed_at_matters_less_for_points(region: Region, power: float) -> None:
    look = seer().look(photo())
    fits = pointed(look.places.boxes_xyxy, region, look.view.frame)
    assert fits is not None
    # One patch of sixteen, of the cat's eight, of the dog's none, and all of the first window.
    np.testing.assert_allclose(fits[:5], [(1 / 16) ** power, (1 / 8) ** power, 0, 0, 1], atol=1e-6)


@pytest.mark.parametrize("region", [None, WholeImage()])
def test_pointing_at_nothing_or_at_all_of_it_is_no_pointing(region: Region | None) -> None:
    look = seer().look(photo())
    assert pointed(look.places.boxes_xyxy, region, look.view.frame) is None


@settings(max_examples=25)
@given(st.tuples(*[st.floats(0, 0.9)] * 2), st.tuples(*[st.floats(0.02, 1)] * 2))
def test_any_box_is_best_fitted_by_itself(corner: tuple[float, float], size: tuple[float, float]) -> None:
    box = (*corner, *(min(1.0, at + long) for at, long in zip(corner, size, strict=True)))
    look = seer(found=(Found(box, "cat", 0.9), *FOUND)).look(photo())
    fits = pointed(look.places.boxes_xyxy, Box(*box), look.view.frame)
    assert fits is not None
    assert fits.max() == pytest.approx(fits[1], abs=1e-4)
    assert fits[1] == pytest.approx(1, abs=1e-3)


def test_a_seer_that_answers_says_so_and_gives_the_network_s_answer() -> None:
    made = answering_seer()
    look = made.look(photo())
    assert made.skills == ("caption", "ground", "narrate", "answer", "chat")
    assert look.question_kinds == ("is there a …?",)
    answer = look.answer("is there a cat?")
    [direct] = Answerer(network()).answer([look.places], ["is there a cat?"])
    assert (answer.text, answer.ranked) == (direct.text, direct.ranked)
    assert look.places is look.places


def test_pointing_moves_attention_to_what_is_pointed_at() -> None:
    look = answering_seer().look(photo())
    before, after = (look.answer("what is it", region).attention for region in (None, Box(*BOTTOM_RIGHT)))
    assert after[3] > before[3]
    assert after[1] == 0  # The cat's box does not meet the cup's.
    assert after.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("region", [None, Box(*BOTTOM_RIGHT), Point(0.1, 0.1)])
def test_the_score_of_an_answer_is_its_logit(region: Region | None) -> None:
    look = answering_seer().look(photo())
    answer = look.answer("is there a cat?", region)
    for text, probability in answer.ranked:
        score = look.answer_score("is there a cat?", region, text)
        logit = score(score.features[None], torch.ones(1, len(score.features), dtype=torch.bool), torch.zeros(1))
        assert logit.sigmoid().item() == pytest.approx(probability, abs=1e-5)
        np.testing.assert_allclose(score.attention, answer.attention)
    assert look.answer_score("is there a cat?", region).word == answer.text


def test_what_cannot_be_answered_is_refused() -> None:
    mute = seer().look(photo())
    assert mute.seer.skills == ("caption", "ground", "narrate")
    with pytest.raises(MissingSkill, match=r"the model tiny cannot answer questions.*saywhere-base.*updown-vqa"):
        mute.answer("is there a cat?")
    look = answering_seer().look(photo())
    with pytest.raises(InvalidValue, match="no word"):
        look.answer("?!")
    with pytest.raises(InvalidValue, match="none that the model knows"):
        look.answer_score("is there a cat?", None, "zebra")
    with pytest.raises(InvalidValue, match="covers nothing"):
        look.answer("is there a cat?", Point(2, 2))


def test_an_answerer_that_reads_other_places_is_refused() -> None:
    with pytest.raises(InvalidValue, match="reads places of 9 numbers, but this seer's have 7"):
        seer(answerer=Answerer(network(9))).look(photo()).answer("is there a cat?")


def test_a_seer_with_answers_comes_from_its_folder_again(tmp_path: Path) -> None:
    alignment().save_pretrained(tmp_path / "alignment")
    tags().save_pretrained(tmp_path / "tags")
    decoder().save_pretrained(tmp_path / "decoder")
    bank().save(tmp_path / "memory.safetensors")
    network().save_pretrained(tmp_path / "answers")
    kinds = ["is there a …?"]
    save_config(tmp_path, {**CONFIG, "answers": "answers", "question_kinds": kinds})
    opened = open_tiny(tmp_path)
    assert opened.parts.question_kinds == tuple(kinds)
    look = opened.look(Image.fromarray(np.asarray(photo())))
    [direct] = Answerer(network()).answer([look.places], ["what is it"])
    assert look.answer("what is it").text == direct.text
