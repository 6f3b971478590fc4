"""The UpDn captioner: steps and teacher forcing, and writing."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
import torch
from torch.nn import functional

from saywhere.core import InvalidValue
from saywhere.language.vocabulary import BEGIN_ID, END_ID, PAD_ID, Vocabulary
from saywhere.models.search import GenerationConfig
from saywhere.models.updown import RegionFeatures, UpDnCaptioner, caption, caption_loss, word_score
from saywhere.models.updown.decode import CaptionSteps, write
from tests.models import updown_small as small


def read(lengths: tuple[int, ...] = (4, 6, 2), seed: int = 0) -> torch.Tensor:
    """(b, t) ids, BEGIN first, padded."""
    return torch.cat([torch.full((len(lengths), 1), BEGIN_ID), small.questions(lengths, seed)], dim=1)


@pytest.mark.parametrize("use_boxes", [False, True])
def test_words_and_attention_have_their_shapes_and_attention_its_sum(use_boxes: bool) -> None:
    regions, present, boxes = small.scene()
    spoken = small.captioner(use_boxes=use_boxes)(regions, present, read(), boxes=boxes)
    assert spoken.logits.shape == (3, 7, small.WORDS + 3)
    assert spoken.attention.shape == (3, 7, 5)
    torch.testing.assert_close(spoken.attention.sum(dim=2), torch.ones(3, 7))
    assert (spoken.attention.transpose(1, 2)[~present] == 0).all()


@pytest.mark.parametrize("more", [(0, 2), (3, 0), (1, 4)])
def test_padding_changes_no_word(more: tuple[int, int]) -> None:
    words, places = more
    model = small.captioner()
    regions, present, _ = small.scene()
    plain = model(regions, present, read())
    longer = model(
        functional.pad(regions, (0, 0, 0, places), value=3.0),
        functional.pad(present, (0, places)),
        functional.pad(read(), (0, words), value=PAD_ID),
    )
    torch.testing.assert_close(longer.logits[:, :7], plain.logits)
    torch.testing.assert_close(longer.attention[:, :7, :5], plain.attention)


def test_a_caption_does_not_depend_on_its_neighbours_in_the_batch() -> None:
    model = small.captioner()
    regions, present, _ = small.scene()
    together = model(regions, present, read())
    for i, count in enumerate((4, 2, 5)):
        alone = model(regions[i : i + 1, :count], present[i : i + 1, :count], read()[i : i + 1])
        torch.testing.assert_close(alone.logits[0], together.logits[i])


def test_teacher_forcing_equals_going_step_by_step() -> None:
    model = small.captioner()
    regions, present, _ = small.scene()
    spoken = model(regions, present, read())
    steps = CaptionSteps(model, model.look(regions, present))
    scores = [steps.start()] + [steps.advance(word) for word in read()[:, 1:].T]
    torch.testing.assert_close(torch.stack(scores, dim=1), spoken.logits)


def test_reordered_steps_go_on_from_the_rows_they_are_told() -> None:
    model = small.captioner()
    regions, present, _ = small.scene()
    steps = CaptionSteps(model, model.look(regions, present))
    steps.start()
    rows = torch.tensor([2, 0, 0, 1])
    steps.reorder(rows)
    scores = steps.advance(torch.tensor([5, 6, 7, 8]))
    words = torch.tensor([[BEGIN_ID, 5], [BEGIN_ID, 6], [BEGIN_ID, 7], [BEGIN_ID, 8]])
    torch.testing.assert_close(scores, model(regions[rows], present[rows], words).logits[:, 1])


def test_pointing_narrows_every_look() -> None:
    model = small.captioner()
    regions, present, _ = small.scene()
    pointed = torch.zeros(present.shape)
    pointed[:, 1] = 2.0
    spoken = model(regions, present, read(), pointed=pointed)
    torch.testing.assert_close(spoken.attention[:, :, 1], torch.ones(3, 7))
    assert not torch.allclose(spoken.logits, model(regions, present, read()).logits, atol=1e-4)


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_beam_of_1_says_what_greedy_says(length_penalty: float) -> None:
    for seed in range(5):
        model = small.captioner(seed)
        regions, present, _ = small.scene(seed)
        encoded = model.look(regions, present)
        beam = write(model, encoded, GenerationConfig("beam", beams=1, length_penalty=length_penalty))
        greedy = write(model, encoded, GenerationConfig("greedy"))
        assert [one.tokens for one in beam] == [one.tokens for one in greedy]
        assert [one.score for one in beam] == pytest.approx([one.score for one in greedy])


def _tiny(seed: int) -> UpDnCaptioner:
    return small.captioner(seed, max_words=3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_beam_as_wide_as_all_captions_finds_the_best_there_is(seed: int, length_penalty: float) -> None:
    model = _tiny(seed)
    regions, present, _ = small.scene(seed, (3, 2))
    encoded = model.look(regions, present)
    wide = write(model, encoded, GenerationConfig("beam", beams=small.WORDS**3, length_penalty=length_penalty))
    greedy = write(model, encoded, GenerationConfig("greedy"))
    pieces = range(3, 3 + small.WORDS)
    texts = [(*text, END_ID) for n in (1, 2) for text in itertools.product(pieces, repeat=n)]
    texts += list(itertools.product(pieces, repeat=3))
    for i, (best, plain) in enumerate(zip(wide, greedy, strict=True)):
        scores = _scores(model, regions[i : i + 1], present[i : i + 1], texts, length_penalty)
        found = sum(best.logprobs) / len(best.logprobs) ** length_penalty
        assert found == pytest.approx(max(scores.values()), abs=1e-5)
        assert found >= sum(plain.logprobs) / len(plain.logprobs) ** length_penalty - 1e-5
        assert max(scores, key=lambda text: scores[text]) == best.tokens + (END_ID,) * best.ended


def _scores(
    model: UpDnCaptioner,
    regions: torch.Tensor,
    present: torch.Tensor,
    texts: list[tuple[int, ...]],
    length_penalty: float,
) -> dict[tuple[int, ...], float]:
    """The score of every text, teacher-forced: a reference that knows nothing of searching."""
    read_ids = torch.tensor([(BEGIN_ID, *text, PAD_ID, PAD_ID)[:3] for text in texts])
    said = torch.tensor([(*text, PAD_ID, PAD_ID)[:3] for text in texts])
    many = len(texts)
    with torch.no_grad():
        spoken = model(regions.expand(many, -1, -1), present.expand(many, -1), read_ids)
    likely = spoken.logits.log_softmax(dim=-1).gather(2, said[:, :, None])[:, :, 0].masked_fill(said == PAD_ID, 0)
    totals = likely.sum(dim=1) / torch.tensor([len(text) for text in texts]) ** length_penalty
    return dict(zip(texts, totals.tolist(), strict=True))


def _speaker(seed: int = 0) -> UpDnCaptioner:
    words = ("<unk>", *(f"w{i}" for i in range(1, small.WORDS)))
    return small.captioner(seed).attach(Vocabulary("words", words))


@pytest.mark.parametrize("method", ["greedy", "beam", "nucleus"])
def test_captions_come_in_words_with_a_look_for_each(method: str) -> None:
    how = GenerationConfig(method, seed=4)
    rng = np.random.default_rng(0)
    images = [RegionFeatures(rng.normal(size=(n, small.REGION)), small.boxes_xyxy(rng, n)) for n in (2, 5)]
    model = _speaker().train()
    told = caption(model, images, how)
    assert model.training
    for (one, attention), image in zip(told, images, strict=True):
        words = one.text.split()
        assert all(re.fullmatch(r"w\d+", word) for word in words)
        assert attention.shape == (len(words), len(image))
        torch.testing.assert_close(attention.sum(dim=1), torch.ones(len(words)))
        assert one.score == pytest.approx(np.mean(one.token_logprobs))
    assert [caption(model, [image], how)[0][0].text for image in images] == [one.text for one, _ in told]


def test_the_unknown_word_and_markers_are_never_said() -> None:
    model = _speaker()
    with torch.no_grad():
        model.say.bias[[PAD_ID, BEGIN_ID, 3]] = 50.0
    regions, present, _ = small.scene()
    for how in (GenerationConfig("greedy"), GenerationConfig("beam", beams=3)):
        for one in write(model, model.look(regions, present), how):
            assert not {PAD_ID, BEGIN_ID, END_ID, 3} & set(one.tokens)


def test_a_captioner_without_words_and_images_that_do_not_fit_are_refused() -> None:
    image = RegionFeatures(np.ones((2, small.REGION)), [[0, 0, 1, 1], [0, 0, 0.5, 1]])
    with pytest.raises(InvalidValue, match="attach a vocabulary"):
        caption(small.captioner(), [image])
    wide = RegionFeatures(np.ones((2, 9)), [[0, 0, 1, 1], [0, 0, 0.5, 1]])
    with pytest.raises(InvalidValue, match="image 1: has features of size 9, but the network reads 6"):
        caption(_speaker(), [image, wide])
    with pytest.raises(InvalidValue, match="max_words"):
        caption(_speaker(), [image], GenerationConfig(max_words=7))
    assert caption(_speaker(), []) == []


def test_the_second_derivative_is_finite_and_not_zero_at_any_place() -> None:
    model = small.captioner()
    regions, present, _ = small.scene()
    regions.requires_grad_()
    targets = torch.cat([read()[:, 1:], torch.full((3, 1), END_ID)], dim=1)
    scores = word_score(model(regions, present, read()).logits, targets)
    # At the first place the states are still 0, and so is what their weights add.
    for place in (1, 3):
        model.zero_grad()
        (first,) = torch.autograd.grad(scores[:2, place].sum(), regions, create_graph=True, retain_graph=True)
        first.sum(dim=2).square().sum().backward(retain_graph=True)
        for layer in (model.attend, model.compare_region, model.attention_lstm, model.language_lstm):
            for weight in layer.parameters():
                assert weight.grad is not None
                assert weight.grad.isfinite().all()
                assert weight.grad.abs().max() > 0


@pytest.mark.parametrize("use_boxes", [False, True])
def test_a_shift_is_a_number_added_to_a_whole_feature_and_its_derivative_the_importance(use_boxes: bool) -> None:
    model = small.captioner(use_boxes=use_boxes).double()
    regions, present, boxes = (part.double() if part.is_floating_point() else part for part in small.scene())
    shift = torch.randn(present.shape, dtype=torch.float64) * present
    moved = model(regions, present, read(), boxes=boxes, shift=shift)
    wanted = model(regions + shift[:, :, None], present, read(), boxes=boxes)
    torch.testing.assert_close(moved.logits, wanted.logits)
    regions.requires_grad_()
    still = torch.zeros_like(shift, requires_grad=True)
    score = model(regions, present, read(), boxes=boxes, shift=still).logits[:, 3, 5].sum()
    by_features, by_shift = torch.autograd.grad(score, (regions, still))
    torch.testing.assert_close(by_shift, by_features.sum(dim=2))
    assert by_shift.abs().max() > 1e-4


def test_the_loss_is_a_mean_over_words_and_padding_is_none() -> None:
    logits = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    targets = torch.tensor([[3, 4, END_ID], [END_ID, PAD_ID, PAD_ID]])
    likely = logits.log_softmax(dim=-1)
    by_hand = -(likely[0, 0, 3] + likely[0, 1, 4] + likely[0, 2, 2] + likely[1, 0, 2]) / 4
    assert caption_loss(logits, targets).item() == pytest.approx(by_hand.item())
    assert word_score(logits, targets).tolist()[1] == [logits[1, 0, 2].item(), 0.0, 0.0]
    with pytest.raises(InvalidValue, match="no word"):
        caption_loss(logits, torch.zeros_like(targets))
