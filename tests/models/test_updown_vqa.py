"""UpDn for questions: attention, padding, pointing, and derivatives of derivatives."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from saywhere.core import InvalidValue, UnknownName
from saywhere.language.vocabulary import PAD_ID, Vocabulary
from saywhere.models.updown import (
    AnswerVocabulary,
    UpDnCaptionConfig,
    UpDnConfig,
    answer_accuracy,
    answer_loss,
    answer_score,
)
from saywhere.models.updown.layers import shares
from tests.models import updown_small as small


@pytest.mark.parametrize("use_boxes", [False, True])
def test_answers_and_attention_have_their_shapes(use_boxes: bool) -> None:
    regions, present, boxes = small.scene()
    answered = small.vqa(use_boxes=use_boxes)(regions, present, small.questions(), boxes=boxes)
    assert answered.logits.shape == (3, small.ANSWERS)
    assert answered.attention.shape == (3, 5)


def test_the_defaults_are_the_papers_sizes() -> None:
    config, captions = UpDnConfig(words=19_901, answers=3_129), UpDnCaptionConfig(words=10_010)
    assert (config.region_size, config.embedding, config.width, config.max_words) == (2048, 300, 1024, 14)
    assert (captions.region_size, captions.embedding, captions.width, captions.attention) == (2048, 1000, 1000, 512)


@given(
    counts=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    seed=st.integers(0, 50),
    pointing=st.sampled_from(["nothing", "all", "one"]),
)
@settings(max_examples=25, deadline=None)
def test_attention_sums_to_1_and_is_0_on_absent_regions(counts: list[int], seed: int, pointing: str) -> None:
    regions, present, _ = small.scene(seed, tuple(counts))
    pointed = {"nothing": None, "all": torch.rand(present.shape) + 0.1, "one": torch.zeros(present.shape)}[pointing]
    if pointing == "one" and pointed is not None:
        pointed[:, 0] = 0.5
    attention = small.vqa(seed)(regions, present, small.questions((2,) * len(counts), seed), pointed=pointed).attention
    torch.testing.assert_close(attention.sum(dim=1), torch.ones(len(counts)))
    assert (attention[~present] == 0).all()
    assert (attention >= 0).all()


@given(more_words=st.integers(0, 4), more_regions=st.integers(0, 4), seed=st.integers(0, 30), use_boxes=st.booleans())
@settings(max_examples=25, deadline=None)
def test_padding_does_not_change_answers(more_words: int, more_regions: int, seed: int, use_boxes: bool) -> None:
    model = small.vqa(seed, use_boxes=use_boxes)
    regions, present, boxes = small.scene(seed)
    asked = small.questions(seed=seed)
    plain = model(regions, present, asked, boxes=boxes)
    # What fills the places of absent regions must not matter either.
    padded = model(
        functional.pad(regions, (0, 0, 0, more_regions), value=3.0),
        functional.pad(present, (0, more_regions)),
        functional.pad(asked, (0, more_words), value=PAD_ID),
        boxes=functional.pad(boxes, (0, 0, 0, more_regions), value=0.7),
    )
    torch.testing.assert_close(padded.logits, plain.logits)
    torch.testing.assert_close(padded.attention[:, : regions.shape[1]], plain.attention)


def test_an_answer_does_not_depend_on_its_neighbours_in_the_batch() -> None:
    model, asked = small.vqa(), small.questions()
    regions, present, _ = small.scene()
    together = model(regions, present, asked)
    for i, count in enumerate((4, 2, 5)):
        length = int((asked[i] != PAD_ID).sum())
        alone = model(regions[i : i + 1, :count], present[i : i + 1, :count], asked[i : i + 1, :length])
        torch.testing.assert_close(alone.logits[0], together.logits[i])
        torch.testing.assert_close(alone.attention[0], together.attention[i, :count])


def test_the_question_and_the_regions_both_matter() -> None:
    model = small.vqa()
    regions, present, _ = small.scene()
    asked = small.questions()
    first = model(regions, present, asked).logits
    assert not torch.allclose(first, model(regions, present, asked.flip(0)).logits, atol=1e-4)
    assert not torch.allclose(first, model(regions * 1.5, present, asked).logits, atol=1e-4)


def test_boxes_are_read_only_by_a_network_made_for_them() -> None:
    regions, present, boxes = small.scene()
    asked = small.questions()
    blind, placed = small.vqa(), small.vqa(use_boxes=True)
    torch.testing.assert_close(
        blind(regions, present, asked, boxes=boxes).logits, blind(regions, present, asked).logits
    )
    moved = placed(regions, present, asked, boxes=boxes.flip(1)).logits
    assert not torch.allclose(placed(regions, present, asked, boxes=boxes).logits, moved, atol=1e-5)
    with pytest.raises(InvalidValue, match="boxes: are missing"):
        placed(regions, present, asked)


def test_pointing_narrows_attention_to_what_is_pointed_at() -> None:
    model = small.vqa()
    regions, present, _ = small.scene()
    asked = small.questions()
    plain = model(regions, present, asked).attention
    pointed = torch.zeros(present.shape)
    pointed[:, 0], pointed[:, 1] = 1.0, 3.0
    narrowed = model(regions, present, asked, pointed=pointed).attention
    expected = plain * pointed
    torch.testing.assert_close(narrowed, expected / expected.sum(dim=1, keepdim=True))
    assert (narrowed[:, 2:] == 0).all()
    torch.testing.assert_close(model(regions, present, asked, pointed=torch.ones(present.shape)).attention, plain)


def test_what_attention_rounds_to_nothing_can_still_be_pointed_at() -> None:
    scores, present = torch.tensor([[0.0, 500.0]]), torch.ones(1, 2, dtype=torch.bool)
    torch.testing.assert_close(shares(scores, present), torch.tensor([[0.0, 1.0]]))
    torch.testing.assert_close(shares(scores, present, torch.tensor([[1.0, 0.0]])), torch.tensor([[1.0, 0.0]]))


def test_an_image_without_any_region_is_answered_from_the_question_alone() -> None:
    model = small.vqa()
    regions, present, _ = small.scene()
    regions.requires_grad_()
    answered = model(regions, torch.zeros_like(present), small.questions())
    assert (answered.attention == 0).all()
    (gradient,) = torch.autograd.grad(answered.logits.sum(), regions)
    assert (gradient == 0).all()
    other = model(torch.randn(regions.shape), torch.zeros_like(present), small.questions())
    torch.testing.assert_close(answered.logits, other.logits)


def test_the_second_derivative_is_finite_and_reaches_every_weight_but_the_last_bias() -> None:
    model = small.vqa()
    regions, present, _ = small.scene()
    regions.requires_grad_()
    targets = functional.one_hot(torch.tensor([0, 3, 6]), small.ANSWERS).float()
    score = answer_score(model(regions, present, small.questions()).logits, targets)
    (first,) = torch.autograd.grad(score.sum(), regions, create_graph=True)
    assert (first[~present] == 0).all()
    model.zero_grad()
    first.sum(dim=2).square().sum().backward()
    for name, weight in model.named_parameters():
        # No gradient by the regions depends on what is added to a logit.
        assert (weight.grad is None) == (name == "answer.bias")
        if weight.grad is not None and name != "attend.bias":
            assert weight.grad.isfinite().all()
            assert weight.grad.abs().max() > 0, name


@pytest.mark.parametrize("use_boxes", [False, True])
def test_a_shift_is_a_number_added_to_a_whole_feature_and_its_derivative_the_importance(use_boxes: bool) -> None:
    model = small.vqa(use_boxes=use_boxes).double()
    regions, present, boxes = (part.double() if part.is_floating_point() else part for part in small.scene())
    asked = small.questions()
    shift = torch.randn(present.shape, dtype=torch.float64) * present
    moved = model(regions, present, asked, boxes=boxes, shift=shift)
    wanted = model(regions + shift[:, :, None], present, asked, boxes=boxes)
    torch.testing.assert_close(moved.logits, wanted.logits)
    torch.testing.assert_close(moved.attention, wanted.attention)
    regions.requires_grad_()
    still = torch.zeros_like(shift, requires_grad=True)
    score = model(regions, present, asked, boxes=boxes, shift=still).logits[:, 2].sum()
    by_features, by_shift = torch.autograd.grad(score, (regions, still))
    torch.testing.assert_close(by_shift, by_features.sum(dim=2))
    assert by_shift.abs().max() > 1e-4


def test_gradients_of_the_score_agree_with_finite_differences() -> None:
    model = small.vqa(seed=3).double()
    regions, present, _ = small.scene(3)
    targets = torch.rand(3, small.ANSWERS).double().round()

    def score(values: torch.Tensor) -> torch.Tensor:
        return answer_score(model(values, present, small.questions()).logits, targets)

    assert torch.autograd.gradcheck(score, regions.double().requires_grad_(), fast_mode=True)
    assert torch.autograd.gradgradcheck(score, regions.double().requires_grad_(), fast_mode=True)


def test_the_score_sums_the_logits_of_correct_answers() -> None:
    logits = torch.tensor([[1.0, -2.0, 4.0], [0.5, 0.25, -1.0]])
    targets = torch.tensor([[0.3, 0.0, 1.0], [0.0, 0.0, 0.0]])
    assert answer_score(logits, targets).tolist() == [5.0, 0.0]
    assert answer_accuracy(logits, targets).tolist() == [1.0, 0.0]


def test_the_loss_is_summed_over_answers_and_averaged_over_questions() -> None:
    logits, targets = torch.tensor([[0.0, 2.0], [1.0, -1.0]]), torch.tensor([[1.0, 0.3], [0.0, 0.0]])
    p = logits.sigmoid()
    by_hand = -(targets * p.log() + (1 - targets) * (1 - p).log()).sum() / 2
    assert answer_loss(logits, targets).item() == pytest.approx(by_hand.item())


@pytest.mark.parametrize("function", [answer_score, answer_loss, answer_accuracy])
def test_targets_of_another_shape_are_refused(function: object) -> None:
    with pytest.raises(InvalidValue, match="not \\(b, answers\\)"):
        function(torch.zeros(2, 3), torch.zeros(3))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("regions", "present", "reason"),
    [
        (torch.zeros(2, 3, 5), torch.ones(2, 3, dtype=torch.bool), "reads \\(b, r, 6\\)"),
        (torch.zeros(3, 6), torch.ones(3, dtype=torch.bool), "reads \\(b, r, 6\\)"),
        (torch.zeros(2, 3, 6), torch.ones(2, 3), "booleans"),
        (torch.zeros(2, 3, 6), torch.ones(2, 4, dtype=torch.bool), "booleans"),
    ],
)
def test_regions_that_do_not_fit_are_refused(regions: torch.Tensor, present: torch.Tensor, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        small.vqa()(regions, present, torch.tensor([[3], [4]]))


def test_the_seed_alone_decides_fresh_weights() -> None:
    weights = [small.vqa(seed).state_dict()["answer.weight"] for seed in (1, 1, 2)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


@pytest.mark.parametrize(
    ("values", "error", "reason"),
    [
        ({"words": 0, "answers": 3}, InvalidValue, "words"),
        ({"words": 5, "answers": 3, "width": 2.5}, InvalidValue, "whole number"),
        ({"words": 5, "answers": True}, InvalidValue, "answers"),
        ({"words": 5, "answers": 3, "dropout": 1.0}, InvalidValue, "dropout"),
        ({"words": 5, "answers": 3, "use_boxes": 1}, InvalidValue, "true or false"),
        ({"words": 5, "answers": 3, "wdith": 4}, UnknownName, "width"),
    ],
)
def test_a_config_with_a_wrong_value_names_it(values: dict[str, object], error: type[Exception], reason: str) -> None:
    whole = UpDnConfig(5, 3).to_dict() | values
    with pytest.raises(error, match=reason):
        UpDnConfig.from_dict(whole)


def test_configs_come_back_from_their_dictionaries_and_none_may_be_incomplete() -> None:
    for config in (UpDnConfig(5, 3, width=9, use_boxes=True), UpDnCaptionConfig(5, attention=7)):
        assert type(config).from_dict(config.to_dict()) == config
    with pytest.raises(InvalidValue, match="does not say answers"):
        UpDnConfig.from_dict({"words": 5})


def test_vocabularies_of_another_size_are_not_attached() -> None:
    model = small.vqa()
    words = Vocabulary("words", tuple(f"w{i}" for i in range(small.WORDS)))
    with pytest.raises(InvalidValue, match="answer vocabulary: has 1 entries, but the model was made for 7"):
        model.attach(words, AnswerVocabulary(("yes",)))
    assert model.vocabulary is None
