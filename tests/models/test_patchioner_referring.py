"""Referring expressions: what boxes are told of each other, and a network that finds which one is meant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from saywhere.core import InvalidFile, InvalidValue
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.patchioner.candidates import (
    COLOURS,
    STANDING,
    WHOLE,
    Candidates,
    box_colours,
    candidates_of,
    mirrored_colours,
    standing,
)
from saywhere.models.patchioner.referring import Referrer, ReferringConfig, ReferringNet, naming, referring_loss
from saywhere.models.registry import embedded
from saywhere.vision import Found, View
from tests.models.patchioner_seeing import FOUND, LEFT, TOP_RIGHT, eyes, photo, seer
from tests.models.referring_small import SIZE, reader, row_of_horses

WORDS = Vocabulary.of_words(["the second red horse from the left cat dog cup"])
_GEOMETRY, _COUNTED = 11, 12


def referrer(vector_size: int = SIZE, states_size: int = 0, least_there: float = 0.0, bias: float = 0.0) -> Referrer:
    """With random weights. bias: what "not there" gains."""
    torch.manual_seed(0)
    config = ReferringConfig(
        len(WORDS), vector_size, states_size, width=16, heads=2, layers=1, word_size=8, least_there=least_there
    )
    made = Referrer(ReferringNet(config), WORDS)
    with torch.no_grad():
        made.net.score[-1].bias += bias
    return made


def horses(count: int = 3) -> Candidates:
    return row_of_horses(np.random.default_rng(0), count)


def test_boxes_know_their_place_in_the_row_and_how_many_there_are() -> None:
    boxes = np.array([[0.4, 0, 0.6, 1], [0, 0, 0.2, 1], [0.8, 0, 1, 1], [0, 0, 1, 1]], np.float32)
    told = standing(boxes, ("horse",) * 3 + (WHOLE,), np.array([0.9, 0.9, 0.9, 0], np.float32))
    assert told.shape == (4, STANDING)
    places = told[:3, _GEOMETRY + _COUNTED :][:, : 6 * 3].reshape(3, 6, 3).argmax(axis=2)
    assert places[:, 0].tolist() == [1, 0, 2]
    assert places[:, 1].tolist() == [1, 2, 0]
    many = told[:3, _GEOMETRY + _COUNTED + 18 :][:, :4].argmax(axis=1)
    assert many.tolist() == [2, 2, 2]


def test_an_unsure_box_and_a_second_box_of_the_same_thing_are_not_counted() -> None:
    boxes = np.array([[0, 0, 0.2, 1], [0.02, 0, 0.2, 1], [0.4, 0, 0.6, 1], [0.8, 0, 1, 1]], np.float32)
    told = standing(boxes, ("horse",) * 4, np.array([0.9, 0.6, 0.1, 0.9], np.float32))
    from_left = told[:, _GEOMETRY + _COUNTED :][:, :3].argmax(axis=1)
    assert from_left.tolist() == [0, 0, 1, 1]


def test_things_of_another_name_are_beside_but_no_peers() -> None:
    boxes = np.array([[0, 0, 0.2, 1], [0.4, 0, 0.6, 1]], np.float32)
    told = standing(boxes, ("horse", "dog"), np.array([0.9, 0.9], np.float32))
    peers, all_ = told[1, _GEOMETRY], told[1, _GEOMETRY + 6]
    assert peers == 0
    assert all_ == pytest.approx(np.log1p(0.9))


def test_colours_of_a_box_are_those_of_its_cells_and_turn_in_the_mirror() -> None:
    image = photo(64)
    whole = np.array([[0, 0, 1, 1]], np.float32)
    colours = box_colours(image, whole)
    assert colours.shape == (1, COLOURS)
    assert colours.reshape(4, 3, 3)[0, 0].tolist() == pytest.approx([1, 0, 0])
    turned = box_colours(image.transpose(Image.Transpose.FLIP_LEFT_RIGHT), whole)
    np.testing.assert_allclose(mirrored_colours(colours), turned, atol=1e-6)


def test_a_view_offers_what_was_found_once_and_the_whole() -> None:
    found = (*FOUND, Found((0.0, 0.0, 0.49, 1.0), "dog", 0.5), Found((0.1, 0.1, 0.2, 0.2), "cup", 0.01))
    seeing = eyes(found)
    offered = candidates_of(seeing.align(seeing.look(photo())), photo())
    assert offered.names == ("cat", "dog", "cup", WHOLE)
    assert offered.states is None
    np.testing.assert_allclose(np.linalg.norm(offered.vectors, axis=1), 1, atol=1e-5)


def test_hidden_states_are_averaged_over_the_boxes_where_there_are_any() -> None:
    seeing = eyes()
    plain = seeing.look(photo())
    states = np.arange(17 * 2, dtype=np.float32).reshape(17, 2)
    view = View(plain.frame, plain.patches, plain.whole, None, plain.found, states)
    offered = candidates_of(seeing.align(view))
    assert offered.colours is None
    assert offered.states is not None
    np.testing.assert_allclose(offered.states[-1], states[1:].mean(axis=0), rtol=1e-5)
    left = states[1:].reshape(4, 4, 2)[:, :2].mean(axis=(0, 1))
    np.testing.assert_allclose(offered.states[offered.names.index("cat")], left, rtol=1e-5)


def test_candidates_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(InvalidValue, match="scores"):
        replace(horses(), scores=np.zeros(1, np.float32))
    empty = np.zeros((0, 4), np.float32)
    with pytest.raises(InvalidValue, match="0 names"):
        Candidates(empty, (), np.zeros(0, np.float32), np.zeros((0, SIZE), np.float32))


def test_an_expression_is_the_same_alone_and_among_padding() -> None:
    made, offered = referrer(), horses()
    boxes, said = made.batch(offered, "the red horse", reader)
    wide = [torch.nn.functional.pad(part, (0, 0, 0, 3)) for part in boxes[1:-1]]
    there = torch.nn.functional.pad(boxes.there, (0, 3))
    padded = said._replace(
        ids=torch.nn.functional.pad(said.ids, (0, 2)), named=torch.nn.functional.pad(said.named, (0, 0, 0, 3))
    )
    with torch.inference_mode():
        alone = made.net(boxes, said)
        among = made.net(type(boxes)(there, *wide, boxes.coloured), padded)
    np.testing.assert_allclose(among[:, :-3], alone, atol=1e-5)
    assert (among[0, -3:] < -1e3).all()


@pytest.mark.parametrize("text", ["", "  ", "!?"])
def test_a_text_without_a_word_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="has no word"):
        referrer().refer(horses(), text, reader)


def test_a_photo_in_which_nothing_was_found_offers_the_whole() -> None:
    alone = row_of_horses(np.random.default_rng(0), 0)
    index, there = referrer().refer(alone, "the red horse", reader)
    assert index == 0
    assert 0 <= there <= 1


def test_hidden_states_of_another_size_are_refused() -> None:
    with pytest.raises(InvalidValue, match="reads 5"):
        referrer(states_size=5).refer(horses(), "the horse", reader)


def test_what_a_text_names_is_told_beside_each_name() -> None:
    assert naming("the red horse", ("horse", "dog")).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert naming("the red one", ("horse",)).tolist() == [[0, 0, 1]]


def test_the_loss_is_least_for_the_box_that_fits_and_for_not_there_if_none_does() -> None:
    overlaps = torch.tensor([[0.1, 0.9, 0.4], [0.0, 0.0, 0.0]])
    right = torch.tensor([[-9.0, -9.0, 9.0, -9.0], [9.0, -9.0, -9.0, -9.0]])
    assert float(referring_loss(right, overlaps)) < 1e-3
    assert float(referring_loss(right.roll(1, dims=1), overlaps)) > 1


def test_a_saved_part_finds_the_same(tmp_path: Path) -> None:
    made, offered = referrer(least_there=0.25), horses()
    made.save_pretrained(tmp_path / "part", int8=False)
    again = Referrer.from_pretrained(tmp_path / "part")
    assert again.config == made.config
    assert again.refer(offered, "second horse", reader) == made.refer(offered, "second horse", reader)


def test_a_folder_with_another_shape_or_without_words_is_no_part(tmp_path: Path) -> None:
    referrer().save_pretrained(tmp_path / "part")
    config = (tmp_path / "part" / "config.json").read_text()
    (tmp_path / "part" / "config.json").write_text(config.replace('"width": 16', '"width": 32'))
    with pytest.raises(InvalidFile):
        Referrer.from_pretrained(tmp_path / "part")


@pytest.mark.parametrize("wrong", [{"width": 10}, {"words": 0}, {"least_there": 1.5}])
def test_a_shape_that_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidValue):
        ReferringConfig(**{"words": 5, "vector_size": 3} | wrong)


def test_a_seer_with_the_part_finds_with_it_and_says_what_is_not_there() -> None:
    own = seer()
    plain = own.look(photo()).find_place("a red cat")
    assert plain is not None
    assert plain.box_xyxy == LEFT
    own.parts = replace(own.parts, referrer=lambda: referrer(3))
    look = own.look(photo())
    found = look.find_place("a red cat")
    assert found is not None
    assert found.box_xyxy in {LEFT, TOP_RIGHT, (0.5, 0.5, 1, 1), (0, 0, 1, 1)}
    assert look.find_alike("a red cat") == plain
    assert look.grounded("a cat and a dog").boxes.located.any()


def test_a_kind_that_is_said_not_to_be_there_is_not_looked_for_by_likeness() -> None:
    own = seer(found=())
    own.parts = replace(own.parts, referrer=lambda: referrer(3, least_there=1.0))
    look = own.look(photo())
    assert look.find_place("a red cat") is None
    assert look.find_alike("a red cat") is not None


def test_a_name_alone_refers_to_none_of_several_so_the_surest_thing_of_that_kind_is_meant() -> None:
    own = seer()
    own.parts = replace(own.parts, referrer=lambda: referrer(3, least_there=1.0))
    look = own.look(photo())
    assert look.find_place("the cat") == look.find_alike("the cat")
    assert look.find_place("the red cat") is None


@pytest.mark.parametrize("text", ["dinosaur", "a red dinosaur", "the second dinosaur from the left"])
def test_what_has_a_name_that_was_never_read_is_not_taken_for_something_else(text: str) -> None:
    own = seer()
    own.parts = replace(own.parts, referrer=lambda: referrer(3))
    look = own.look(photo())
    assert not referrer(3).understands(text)
    assert look.find_place(text) is None
    assert not look.grounded(text).boxes.located.any()


def test_the_part_that_comes_with_the_package_is_not_asked_about_dinosaurs() -> None:
    shipped = Referrer.from_pretrained(embedded() / "referring")
    assert not shipped.understands("a big dinosaur on the left")
    assert shipped.understands("the man beside a dinosaur")
    assert shipped.understands("the tall tree on the left")


def test_a_strange_word_beside_a_known_kind_is_still_an_expression() -> None:
    assert referrer().understands("the chartreuse horse")
    assert referrer().understands("the second from the left")
    assert not referrer().understands("…")


def test_what_is_no_thing_is_still_found_by_likeness() -> None:
    own = seer(least_grounding=-1.0)
    own.parts = replace(own.parts, referrer=lambda: referrer(3, least_there=1.0))
    found = own.look(photo()).find_place("the sky")
    assert found is not None
    assert found.thing == ""


def test_a_photo_of_one_colour_without_things_gives_a_place_or_none_but_no_error() -> None:
    own = seer(found=())
    own.parts = replace(own.parts, referrer=lambda: referrer(3))
    found = own.look(Image.new("RGB", (40, 40), (90, 90, 90))).find_place("second horse from the left")
    assert found is None or found.box_xyxy == (0, 0, 1, 1)


def test_a_part_for_other_vectors_is_refused() -> None:
    own = seer()
    own.parts = replace(own.parts, referrer=lambda: referrer(5))
    with pytest.raises(InvalidValue, match="5 numbers"):
        own.look(photo()).find_place("a red cat")
