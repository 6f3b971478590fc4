"""Decoders that keep keys and values write what decoders without do, and keep to what they are told."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
import torch
from bench import uncached_mitr
from bench.bench_mitr import Watch

from saywhere.core import InvalidValue
from saywhere.language.vocabulary import END_ID, Vocabulary
from saywhere.models.common.batches import padding_mask
from saywhere.models.mitr import MITR, Batch, collate, decode
from saywhere.models.mitr.network import Memory
from saywhere.models.search import GenerationConfig, Hypothesis
from tests.models.small import batch, generation, narratives, network

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


def captions(model: MITR, one: Batch, how: GenerationConfig) -> list[Hypothesis]:
    return decode.caption(model, memory(model, one), one.boxes, mask(one), how)


def ids(said: list[Hypothesis]) -> list[list[int]]:
    return [list(one.tokens) for one in said]


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
    assert ids(captions(model, one, generation("beam", beams=beams, max_words=12))) == slow
    if beams == 1:
        assert ids(captions(model, one, generation("greedy", max_words=12))) == slow
    if end_bias == 6.0:
        assert min(len(text) for text in slow) < 12


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("end_bias", [-20.0, 4.0])
@pytest.mark.parametrize("beams", [1, 4])
def test_cached_and_uncached_joint_texts_are_the_same(layers: int, end_bias: float, beams: int) -> None:
    model, one = ending(network(layers=layers), end_bias), batch(sizes=SIZES)
    slow = uncached_mitr.joint(model, regions(one), beams, 10)
    said = decode.joint(model, memory(model, one), generation("beam", beams=beams, max_words=10))
    assert ids(said) == slow
    if beams == 1:
        assert ids(decode.joint(model, memory(model, one), generation("greedy", max_words=10))) == slow


@pytest.mark.parametrize("method", ["greedy", "beam", "nucleus"])
def test_joint_boxes_and_scores_are_those_of_the_words_chosen(method: str) -> None:
    model, one = ending(network(layers=2), 4.0), batch(sizes=SIZES)
    said = decode.joint(model, memory(model, one), generation(method, beams=3, max_words=8))
    for i, text in enumerate(said):
        total, boxes = uncached_mitr.joint_score(model, regions(one), i, list(text.tokens), text.ended)
        assert text.outputs is not None
        torch.testing.assert_close(text.outputs, boxes, atol=1e-5, rtol=0)
        assert text.score == pytest.approx(total / len(text.logprobs), abs=1e-3)


@pytest.mark.parametrize("layers", [1, 2])
def test_cached_and_uncached_traces_are_the_same(layers: int) -> None:
    model, one = network(layers=layers), batch(sizes=SIZES)
    slow = uncached_mitr.trace(model, regions(one), one.words, one.lengths)
    fast = decode.trace(model, memory(model, one), one.words, one.lengths)
    torch.testing.assert_close(fast, slow * mask(one)[:, :, None], atol=1e-5, rtol=0)


def test_one_image_is_answered_as_in_a_batch() -> None:
    model, examples = ending(network(), 3.0), narratives(sizes=SIZES)
    together = captions(model, collate(examples), generation(beams=3, max_words=12))
    alone = [captions(model, collate([one]), generation(beams=3, max_words=12))[0] for one in examples]
    assert ids(together) == ids(alone)


@pytest.mark.parametrize("length_penalty", [0.0, 0.7, 2.0])
def test_enough_beams_find_the_best_of_all_texts(length_penalty: float) -> None:
    # Four words and at most three places: 85 texts, all of which can be tried.
    model, one = ending(network(words=4), 1.0), batch(sizes=((4, 3),))
    one = replace(one, words=one.words.clamp(max=6))
    texts = [text for n in range(4) for text in product(range(3, 7), repeat=n)]
    best = max(_score(model, one, text, length_penalty) for text in texts)
    said = captions(model, one, generation(beams=200, max_words=3, length_penalty=length_penalty))[0]
    assert sum(said.logprobs) / len(said.logprobs) ** length_penalty == pytest.approx(best, abs=1e-4)
    assert _score(model, one, said.tokens, length_penalty) == pytest.approx(best, abs=1e-4)


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
        sum(len(text) for text in ids(captions(model, one, generation(max_words=12, length_penalty=power))))
        for power in (0.0, 1.0, 3.0)
    ]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]


@pytest.mark.parametrize("method", ["greedy", "beam", "nucleus"])
@pytest.mark.parametrize("run", [1, 2, 3])
def test_no_run_of_words_is_repeated_if_that_is_forbidden(method: str, run: int) -> None:
    model, one = ending(network(), -20.0), batch(sizes=SIZES)
    plain = generation(method, beams=3, max_words=16)
    how = replace(plain, no_repeat=run)
    assert any(_repeats(text, run) for text in ids(captions(model, one, replace(plain, top_p=0.3))))
    for text in ids(captions(model, one, how)):
        assert not _repeats(text, run)


def _repeats(text: list[int], run: int) -> bool:
    runs = [tuple(text[i : i + run]) for i in range(len(text) - run + 1)]
    return len(set(runs)) < len(runs)


def test_nucleus_sampling_follows_its_seed_and_a_small_nucleus_is_greedy() -> None:
    model, one = network(), batch(sizes=SIZES)
    how = generation("nucleus", max_words=12, top_p=0.95)
    first, again, other = (ids(captions(model, one, replace(how, seed=seed))) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    narrow, greedy = generation("nucleus", max_words=12, top_p=1e-6), generation("greedy", max_words=12)
    assert ids(captions(model, one, narrow)) == ids(captions(model, one, greedy))


@pytest.mark.parametrize("places", [6, 24])
def test_beam_search_keeps_no_scores_of_earlier_places(places: int) -> None:
    model, one = ending(network(words=997), -20.0), batch(sizes=SIZES)
    with Watch(998) as watch:
        captions(model, one, generation(beams=5, max_words=places))
    # The scores of one place a few times over, and the table that they come from.
    assert 0 < watch.most <= 3 * (4 * 5 * 998) + 998 * 32


def test_decoding_leaves_the_network_as_it_was() -> None:
    model, one, how = network(), batch(), generation(beams=2, max_words=6)
    seen = memory(model, one)
    at_rest = decode.joint(model, seen, how)
    assert not model.training
    learning = decode.joint(model.train(), seen, how)
    assert model.training
    assert model.word_stream.training
    assert ids(learning) == ids(at_rest)


@pytest.mark.parametrize("method", ["greedy", "beam", "nucleus"])
def test_a_network_of_nan_says_so(method: str) -> None:
    model, one = network(), batch()
    with torch.no_grad():
        model.say.weight[:] = float("nan")
    with pytest.raises(InvalidValue, match="NaN"):
        captions(model, one, generation(method, max_words=4))


def test_more_beams_than_words_is_no_trouble() -> None:
    model, one = network(words=2), replace(batch(), words=batch().words.clamp(max=4))
    assert all(len(text) <= 5 for text in ids(captions(model, one, generation(beams=50, max_words=5))))


@pytest.mark.parametrize("method", ["greedy", "beam", "nucleus"])
def test_the_vocabulary_tells_where_sentences_end_and_what_is_never_said(method: str) -> None:
    model, one = ending(network(), 2.0), batch(sizes=SIZES)
    plain = generation(method, beams=3, max_words=14)
    usual = ids(captions(model, one, plain))
    with pytest.raises(InvalidValue, match="end a sentence"):
        captions(model, one, replace(plain, finish_sentence=True))
    # The unknown word is one that would be said; ends of sentences are others.
    pieces = [f"w{i}" for i in range(30)]
    unknown = usual[0][0] - 3
    ends = [i for i in range(30) if i != unknown and all(i + 3 != text[-1] for text in usual)][:3]
    for i, piece in zip([unknown, *ends], ["<unk>", ".", "!", "?"], strict=True):
        pieces[i] = piece
    model.attach(Vocabulary("words", tuple(pieces)))
    signs = {i + 3 for i in ends}
    assert not any(unknown + 3 in text for text in ids(captions(model, one, plain)))
    said = ids(captions(model, one, replace(plain, finish_sentence=True)))
    assert all(text[-1] in signs for text in said if set(text) & signs)
    assert any(set(text) & signs for text in said)
