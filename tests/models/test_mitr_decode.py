"""Decoders that keep keys and values write what decoders without do, and keep to what they are told."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from bench import uncached_mitr
from bench.bench_mitr import Watch

from saywhere.core import InvalidValue, UnknownName
from saywhere.language.vocabulary import END_ID
from saywhere.models.common.batches import padding_mask
from saywhere.models.mitr import MITR, Batch, Decoding, collate, decode
from saywhere.models.mitr.decode import Hypothesis
from saywhere.models.mitr.network import Memory
from tests.models.small import batch, narratives, network

SIZES = ((5, 4), (9, 7), (3, 5), (12, 1))


def regions(one: Batch) -> uncached_mitr.Regions:
    images = one.images
    assert images.regions is not None
    assert images.region_boxes is not None
    assert images.region_mask is not None
    return images.regions, images.region_boxes, images.region_mask


def mask(one: Batch) -> torch.Tensor:
    return padding_mask(one.lengths, one.words.shape[1])


@torch.no_grad()
def memory(model: MITR, one: Batch) -> Memory:
    return model.encode_images(one.images)


def captions(model: MITR, one: Batch, decoding: Decoding, seed: int = 0) -> list[Hypothesis]:
    generator = torch.Generator().manual_seed(seed)
    return decode.caption(model, memory(model, one), one.boxes, mask(one), decoding, generator)


def ids(said: list[Hypothesis]) -> list[list[int]]:
    return [list(one.ids) for one in said]


def ending(model: MITR, bias: float) -> MITR:
    """The same network, more or less eager to end."""
    with torch.no_grad():
        model.say.bias[0] = bias
    return model


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("end_bias", [-20.0, 3.0, 6.0])
@pytest.mark.parametrize("beams", [1, 2, 5])
def test_cached_and_uncached_captions_are_the_same(layers: int, end_bias: float, beams: int) -> None:
    model, one = ending(network(layers=layers), end_bias), batch(sizes=SIZES)
    slow = uncached_mitr.caption(model, regions(one), one.boxes, mask(one), beams, 12)
    assert ids(captions(model, one, Decoding("beam", beams=beams, max_words=12))) == slow
    if beams == 1:
        assert ids(captions(model, one, Decoding("greedy", max_words=12))) == slow
    if end_bias == 6.0:
        assert min(len(text) for text in slow) < 12


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("end_bias", [-20.0, 4.0])
@pytest.mark.parametrize("beams", [1, 4])
def test_cached_and_uncached_joint_texts_are_the_same(layers: int, end_bias: float, beams: int) -> None:
    model, one = ending(network(layers=layers), end_bias), batch(sizes=SIZES)
    slow = uncached_mitr.joint(model, regions(one), beams, 10)
    said = decode.joint(model, memory(model, one), Decoding("beam", beams=beams, max_words=10))
    assert ids(said) == slow
    if beams == 1:
        assert ids(decode.joint(model, memory(model, one), Decoding("greedy", max_words=10))) == slow


@pytest.mark.parametrize("method", ["greedy", "beam", "nucleus"])
def test_joint_boxes_and_scores_are_those_of_the_words_chosen(method: str) -> None:
    model, one = ending(network(layers=2), 4.0), batch(sizes=SIZES)
    generator = torch.Generator().manual_seed(0)
    said = decode.joint(model, memory(model, one), Decoding(method, beams=3, max_words=8), generator)
    for i, text in enumerate(said):
        score, boxes = uncached_mitr.joint_score(model, regions(one), i, list(text.ids), text.finished)
        assert text.boxes is not None
        torch.testing.assert_close(text.boxes, boxes, atol=1e-5, rtol=0)
        assert text.score == pytest.approx(score, abs=1e-3)


@pytest.mark.parametrize("layers", [1, 2])
def test_cached_and_uncached_traces_are_the_same(layers: int) -> None:
    model, one = network(layers=layers), batch(sizes=SIZES)
    slow = uncached_mitr.trace(model, regions(one), one.words, one.lengths)
    fast = decode.trace(model, memory(model, one), one.words, one.lengths)
    torch.testing.assert_close(fast, slow * mask(one)[:, :, None], atol=1e-5, rtol=0)


def test_one_image_is_answered_as_in_a_batch() -> None:
    model, examples = ending(network(), 3.0), narratives(sizes=SIZES)
    together = captions(model, collate(examples), Decoding(beams=3, max_words=12))
    alone = [captions(model, collate([one]), Decoding(beams=3, max_words=12))[0] for one in examples]
    assert ids(together) == ids(alone)


@pytest.mark.parametrize("length_penalty", [0.0, 0.7, 2.0])
def test_enough_beams_find_the_best_of_all_texts(length_penalty: float) -> None:
    # Four words and at most three places: 85 texts, all of which can be tried.
    model, one = ending(network(words=4), 1.0), batch(sizes=((4, 3),))
    one = replace(one, words=one.words.clamp(max=6))
    texts = [text for n in range(4) for text in product(range(3, 7), repeat=n)]
    best = max(_score(model, one, text, length_penalty) for text in texts)
    decoding = Decoding("beam", beams=200, max_words=3, length_penalty=length_penalty)
    said = captions(model, one, decoding)[0]
    assert said.score == pytest.approx(best, abs=1e-4)
    assert _score(model, one, said.ids, length_penalty) == pytest.approx(best, abs=1e-4)


def _score(model: MITR, one: Batch, text: tuple[int, ...], length_penalty: float) -> float:
    said = [*text, END_ID][:3]
    read = torch.tensor([[1, *said[:-1]]])
    with torch.no_grad():
        logits = model.caption(memory(model, one), read, torch.ones_like(read).bool(), one.boxes, mask(one))
    likely = logits[0].log_softmax(-1)
    return sum(float(likely[t, word - 2]) for t, word in enumerate(said)) / len(said) ** length_penalty


def test_a_length_penalty_favours_longer_texts() -> None:
    model, one = ending(network(), 6.0), batch(sizes=SIZES)
    lengths = [
        sum(len(text) for text in ids(captions(model, one, Decoding(max_words=12, length_penalty=power))))
        for power in (0.0, 1.0, 3.0)
    ]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]


@pytest.mark.parametrize("method", ["greedy", "beam", "nucleus"])
@pytest.mark.parametrize("run", [1, 2, 3])
def test_full_coverage_repeats_no_run_of_words(method: str, run: int) -> None:
    model, one = ending(network(), -20.0), batch(sizes=SIZES)
    plain = Decoding(method, beams=3, max_words=16)
    decoding = replace(plain, coverage=1e4, coverage_run=run)
    assert any(_repeats(text, run) for text in ids(captions(model, one, replace(plain, top_p=0.3))))
    for text in ids(captions(model, one, decoding)):
        assert not _repeats(text, run)


def _repeats(text: list[int], run: int) -> bool:
    runs = [tuple(text[i : i + run]) for i in range(len(text) - run + 1)]
    return len(set(runs)) < len(runs)


def test_coverage_takes_the_same_from_a_word_for_each_time_it_was_said() -> None:
    said = torch.tensor([[[4, 5, 4, 5, 4]]])
    logits = torch.zeros(1, 1, 8)
    plain = decode._word_scores(logits, said, Decoding())
    cut = decode._word_scores(logits, said, Decoding(coverage=0.5, coverage_run=2)) - plain
    assert cut[0, 0].tolist() == pytest.approx([0, 0, 0, 0, 0, -1.0, 0, 0])


@pytest.mark.parametrize("method", ["greedy", "beam", "nucleus"])
def test_whole_sentences_end_with_the_end_of_a_sentence(method: str) -> None:
    model, one = ending(network(), 2.0), batch(sizes=SIZES)
    plain = Decoding(method, beams=3, max_words=14)
    usual = {text.ids[-1] for text in captions(model, one, plain)}
    ends = tuple(word for word in range(3, 33) if word not in usual and word % 3 == 0)
    said = captions(model, one, replace(plain, finish_sentence=True, sentence_ends=ends))
    assert all(text.ids[-1] in ends for text in said if set(text.ids) & set(ends))
    assert any(set(text.ids) & set(ends) for text in said)


def test_a_text_that_runs_out_of_words_is_cut_back_to_its_last_sentence() -> None:
    decoding = Decoding(finish_sentence=True, sentence_ends=(9,))
    boxes = torch.rand(5, 5)
    cut = decode._whole_sentences(Hypothesis((3, 9, 4, 9, 5), -1.0, False, boxes), decoding)
    assert cut.ids == (3, 9, 4, 9)
    assert cut.boxes is not None
    assert torch.equal(cut.boxes, boxes[:4])
    assert decode._whole_sentences(Hypothesis((3, 4), -1.0, False), decoding).ids == (3, 4)


@pytest.mark.parametrize("method", ["greedy", "beam", "nucleus"])
def test_forbidden_words_are_never_said(method: str) -> None:
    model, one = ending(network(), -20.0), batch(sizes=SIZES)
    usual = {word for text in ids(captions(model, one, Decoding(method, max_words=12))) for word in text}
    forbidden = tuple(sorted(usual)[:3])
    said = captions(model, one, Decoding(method, max_words=12, forbidden=forbidden))
    assert not {word for text in ids(said) for word in text} & set(forbidden)


def test_nucleus_sampling_follows_its_generator() -> None:
    model, one = network(), batch(sizes=SIZES)
    decoding = Decoding("nucleus", max_words=12, top_p=0.95)
    first, again, other = (ids(captions(model, one, decoding, seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_small_nucleus_is_greedy() -> None:
    model, one = network(), batch(sizes=SIZES)
    assert ids(captions(model, one, Decoding("nucleus", max_words=12, top_p=1e-6))) == ids(
        captions(model, one, Decoding("greedy", max_words=12))
    )


def test_the_nucleus_is_the_smallest_set_that_reaches_top_p() -> None:
    chances = torch.tensor([[0.5, 0.05, 0.3, 0.15]]).log().repeat(4000, 1)
    drawn = decode._draw(chances, Decoding("nucleus", top_p=0.75), torch.Generator().manual_seed(0))[:, 0]
    shares = np.bincount(drawn.numpy(), minlength=4) / 4000
    np.testing.assert_allclose(shares, [0.625, 0, 0.375, 0], atol=0.03)


@pytest.mark.parametrize("places", [6, 24])
def test_beam_search_keeps_no_scores_of_earlier_places(places: int) -> None:
    model, one = ending(network(words=997), -20.0), batch(sizes=SIZES)
    with Watch(998) as watch:
        captions(model, one, Decoding(beams=5, max_words=places))
    # The scores of one place a few times over, and the table that they come from.
    assert 0 < watch.most <= 3 * (4 * 5 * 998) + 998 * 32


def test_decoding_leaves_the_network_as_it_was() -> None:
    model, one, decoding = network(), batch(), Decoding(beams=2, max_words=6)
    seen = memory(model, one)
    eval_mode = decode.joint(model, seen, decoding)
    assert not model.training
    learning = decode.joint(model.train(), seen, decoding)
    assert model.training
    assert model.word_stream.training
    assert ids(learning) == ids(eval_mode)


@pytest.mark.parametrize("method", ["greedy", "beam", "nucleus"])
def test_a_network_of_nan_says_so(method: str) -> None:
    model, one = network(), batch()
    with torch.no_grad():
        model.say.weight[:] = float("nan")
    with pytest.raises(InvalidValue, match="NaN"):
        captions(model, one, Decoding(method, max_words=4))


def test_random_words_need_a_generator_and_whole_sentences_their_signs() -> None:
    model, one = network(), batch()
    with pytest.raises(InvalidValue, match="needs one"):
        decode.joint(model, memory(model, one), Decoding("nucleus"))
    with pytest.raises(InvalidValue, match="end a sentence"):
        decode.joint(model, memory(model, one), Decoding(finish_sentence=True))


@pytest.mark.parametrize(
    "options",
    [
        {"beams": 0},
        {"max_words": 0},
        {"top_p": 0.0},
        {"top_p": 1.5},
        {"temperature": 0.0},
        {"length_penalty": -1.0},
        {"coverage": -0.1},
        {"coverage_run": 0},
        {"forbidden": (END_ID,)},
    ],
)
def test_decodings_that_cannot_be_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        Decoding(**options)  # type: ignore[arg-type]


def test_an_unknown_method_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="greedy"):
        Decoding("gredy")


def test_more_beams_than_words_is_no_trouble() -> None:
    model, one = network(words=2), replace(batch(), words=batch().words.clamp(max=4))
    assert all(len(text) <= 5 for text in ids(captions(model, one, Decoding(beams=50, max_words=5))))
