"""The scores of every model here, and that importance of each can be computed, checked and learnt from."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from saywhere.core import InvalidValue
from saywhere.explain import (
    Attends,
    CorrectAnswerScore,
    MitrWordScore,
    PatchWordScore,
    Score,
    UpDnWordScore,
    deletion,
    feature_gradients,
    gradient_importance,
    gradient_times_input,
    occlusion,
    shift_importance,
)
from saywhere.language.vocabulary import BEGIN_ID, END_ID, PAD_ID
from saywhere.models.patchioner.aggregation import LearnedAggregation
from saywhere.models.updown.captioner import UpDnCaptioner
from saywhere.models.updown.config import UpDnCaptionConfig, UpDnConfig
from saywhere.models.updown.objective import answer_score
from saywhere.models.updown.vqa import UpDnVqa
from tests.models import patchioner_small, small

B, R = 3, 5
PRESENT = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], dtype=torch.bool)
WORDS = torch.tensor([[BEGIN_ID, 4, 6, 7], [BEGIN_ID, 5, END_ID, PAD_ID], [BEGIN_ID, 7, 4, END_ID]])
PLACES = torch.tensor([3, 1, 2])
SIZE = patchioner_small.SIZE


def _random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _boxes(columns: int) -> Tensor:
    corners = _random(B, R, 2, 2, seed=5).sigmoid().sort(dim=2).values.flatten(2)
    area = ((corners[..., 2] - corners[..., 0]) * (corners[..., 3] - corners[..., 1]))[..., None]
    return torch.cat([corners, area], dim=2)[:, :, :columns]


def _answers() -> tuple[Score, list[nn.Module], int]:
    model = UpDnVqa.fresh(UpDnConfig(9, 4, region_size=6, embedding=5, width=8, use_boxes=True), 0).double().eval()
    targets = torch.tensor([[1, 0, 0, 0], [0, 0.3, 0.9, 0], [0, 0, 0, 1]], dtype=torch.float64)
    return CorrectAnswerScore(model, WORDS.clamp_min(0), targets, _boxes(4)), [model], 6


def _captions() -> tuple[Score, list[nn.Module], int]:
    config = UpDnCaptionConfig(9, region_size=6, embedding=5, width=8, attention=4)
    model = UpDnCaptioner.fresh(config, 0).double().eval()
    return UpDnWordScore(model, WORDS, PLACES), [model], 6


def _mitr() -> tuple[Score, list[nn.Module], int]:
    model = small.network().double()
    trace = _random(B, 4, 5, seed=7).sigmoid()
    mask = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0]], dtype=torch.bool)
    return MitrWordScore(model, _boxes(5), WORDS, PLACES, trace, mask), [model], small.REGION


def _mitr_without_trace() -> tuple[Score, list[nn.Module], int]:
    model = small.network().double()
    # The boxes that tell nothing are float32, as a network in use reads them.
    score = MitrWordScore(model, _boxes(5), WORDS, PLACES)
    return score, [model], small.REGION


def _patches() -> tuple[Score, list[nn.Module], int]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        aggregation = LearnedAggregation(SIZE, heads=2).double().eval()
    decoder = patchioner_small.decoder().double()
    weights = _random(B, R, seed=9).exp()
    score = PatchWordScore(aggregation, decoder, weights / weights.sum(1, keepdim=True), WORDS, PLACES)
    return score, [aggregation, decoder], SIZE


Made = Callable[[], tuple[Score, list[nn.Module], int]]
MODELS = pytest.mark.parametrize("made", [_answers, _captions, _mitr, _patches])


@MODELS
def test_gradients_are_those_of_finite_differences(made: Made) -> None:
    score, _, size = made()
    features = _random(B, R, size)
    found = feature_gradients(score, features, PRESENT)
    step = 1e-6 * _random(B, R, size, seed=3)
    with torch.no_grad():
        ends = [score(features + sign * step, PRESENT, torch.arange(B)) for sign in (1, -1)]
    torch.testing.assert_close((found * step).sum(dim=(1, 2)), (ends[0] - ends[1]) / 2, atol=1e-11, rtol=1e-4)
    assert found.abs().amax(dim=(1, 2)).min() > 0


@MODELS
def test_importance_is_learnt_from_by_double_backward(made: Made) -> None:
    score, modules, size = made()
    features = _random(B, R, size)
    parameters = [p for module in modules for p in module.parameters() if p.requires_grad]

    def loss() -> Tensor:
        return (gradient_times_input(score, features, PRESENT, create_graph=True) * _random(B, R, seed=4)).sum()

    gradients = torch.autograd.grad(loss(), parameters, allow_unused=True)
    steps = [1e-6 * _random(*p.shape, seed=i) for i, p in enumerate(parameters)]
    expected = sum(float((g * s).sum()) for g, s in zip(gradients, steps, strict=True) if g is not None)
    ends = []
    for sign in (1, -1):
        with torch.no_grad():
            for parameter, step in zip(parameters, steps, strict=True):
                parameter.add_(step, alpha=sign)
        ends.append(loss().item())
        with torch.no_grad():
            for parameter, step in zip(parameters, steps, strict=True):
                parameter.sub_(step, alpha=sign)
    assert expected != 0
    assert (ends[0] - ends[1]) / 2 == pytest.approx(expected, rel=1e-4)


@MODELS
def test_rows_are_scored_as_if_they_were_alone(made: Made) -> None:
    score, _, size = made()
    features = _random(B, R, size)
    with torch.no_grad():
        together = score(features, PRESENT, torch.arange(B))
        items = torch.tensor([2, 0, 2])
        torch.testing.assert_close(score(features[items], PRESENT[items], items), together[items])
        for i in range(B):
            alone = score(features[i : i + 1], PRESENT[i : i + 1], torch.tensor([i]))
            torch.testing.assert_close(alone, together[i : i + 1])


@MODELS
def test_every_explanation_of_every_model_is_there(made: Made) -> None:
    score, _, size = made()
    features = _random(B, R, size)
    alpha = gradient_importance(score, features, PRESENT, chunk=2)
    torch.testing.assert_close(alpha, gradient_importance(score, features, PRESENT))
    for how in ("blank", "remove"):
        falls = occlusion(score, features, PRESENT, how=how, chunk=4)  # type: ignore[arg-type]
        assert falls.isfinite().all()
        assert (falls[~PRESENT] == 0).all()
    assert deletion(score, features, PRESENT, alpha).scores.shape == (B, R + 1)


@MODELS
def test_what_is_not_present_changes_no_score(made: Made) -> None:
    score, _, size = made()
    features = _random(B, R, size)
    noisy = torch.where(PRESENT[:, :, None], features, features + 3.0)
    with torch.no_grad():
        torch.testing.assert_close(score(noisy, PRESENT, torch.arange(B)), score(features, PRESENT, torch.arange(B)))


def test_the_answers_score_is_the_sum_of_the_correct_logits() -> None:
    score, (model,), size = _answers()
    features = _random(B, R, size)
    assert isinstance(score, CorrectAnswerScore)
    answered = model(features, PRESENT, score.questions, boxes=score.boxes)
    logits = answered.logits
    expected = torch.stack([logits[0, 0], logits[1, 1] + logits[1, 2], logits[2, 3]])
    torch.testing.assert_close(score(features, PRESENT, torch.arange(B)), expected)
    torch.testing.assert_close(score.attention(features, PRESENT, torch.arange(B)), answered.attention)
    best = CorrectAnswerScore.of_best(score.model, features, PRESENT, score.questions, score.boxes)
    torch.testing.assert_close(best(features, PRESENT, torch.arange(B)), logits.amax(dim=1))


def test_a_words_score_is_its_logit_where_it_is_said() -> None:
    score, (model,), size = _captions()
    features = _random(B, R, size)
    assert isinstance(score, UpDnWordScore)
    spoken = model(features, PRESENT, WORDS)
    expected = torch.stack([spoken.logits[0, 2, 7], spoken.logits[1, 0, 5], spoken.logits[2, 1, 4]])
    torch.testing.assert_close(score(features, PRESENT, torch.arange(B)), expected)
    looked = score.attention(features, PRESENT, torch.arange(B))
    torch.testing.assert_close(looked, spoken.attention[[0, 1, 2], [2, 0, 1]])


def test_mitrs_and_the_decoders_words_are_rows_of_their_tables() -> None:
    score, (mitr,), size = _mitr()
    assert isinstance(score, MitrWordScore)
    features = _random(B, R, size)
    memory = mitr.encode(features, score.region_boxes, PRESENT)  # type: ignore[operator]
    logits = mitr.caption(memory, WORDS, WORDS != PAD_ID, score.trace, score.trace_mask)  # type: ignore[operator]
    expected = torch.stack([logits[0, 2, 5], logits[1, 0, 3], logits[2, 1, 2]])
    torch.testing.assert_close(score(features, PRESENT, torch.arange(B)), expected)
    score, (aggregation, decoder), size = _patches()
    assert isinstance(score, PatchWordScore)
    features, everything = _random(B, R, size), torch.ones(B, R, dtype=torch.bool)
    vectors = torch.cat([aggregation(features[i], score.weights[i : i + 1]) for i in range(B)])
    logits = decoder(vectors, WORDS)
    expected = torch.stack([logits[0, 2, 5], logits[1, 0, 3], logits[2, 1, 2]])
    torch.testing.assert_close(score(features, everything, torch.arange(B)), expected)


def test_a_shift_of_the_features_gives_the_same_importance() -> None:
    for made in (_answers, _captions):
        score, (model,), size = made()
        features, shift = _random(B, R, size), torch.zeros(B, R, dtype=torch.float64, requires_grad=True)
        if isinstance(score, CorrectAnswerScore):
            scores = answer_score(
                model(features, PRESENT, score.questions, boxes=score.boxes, shift=shift).logits, score.targets
            )
        else:
            logits = model(features, PRESENT, WORDS, shift=shift).logits
            scores = logits[torch.arange(B), PLACES - 1, WORDS[torch.arange(B), PLACES]]
        torch.testing.assert_close(
            shift_importance(scores, shift, PRESENT), gradient_importance(score, features, PRESENT)
        )


def test_mitr_needs_no_trace() -> None:
    score, (model,), size = _mitr_without_trace()
    assert isinstance(score, MitrWordScore)
    model.float()
    plain = MitrWordScore(score.model, score.region_boxes.float(), WORDS, PLACES)
    alpha = gradient_importance(plain, _random(B, R, size).float(), PRESENT)
    assert alpha.abs().sum() > 0


def test_what_lies_between_patches_and_decoder_is_explained_through() -> None:
    score, _, size = _patches()
    assert isinstance(score, PatchWordScore)
    turned = PatchWordScore(
        score.aggregation, score.decoder, score.weights, WORDS, PLACES, between=lambda vectors: vectors.flip(1)
    )
    features = _random(B, R, size)
    assert not torch.allclose(
        gradient_times_input(turned, features, PRESENT), gradient_times_input(score, features, PRESENT)
    )


def test_the_sum_of_gradients_only_gives_a_learned_aggregations_weights_back() -> None:
    score, _, size = _patches()
    assert isinstance(score, PatchWordScore)
    features = _random(B, R, size)
    alpha = gradient_importance(score, features, torch.ones(B, R, dtype=torch.bool))
    ratio = alpha / score.weights
    torch.testing.assert_close(ratio, ratio[:, :1].expand_as(ratio))
    better = gradient_times_input(score, features, torch.ones(B, R, dtype=torch.bool)) / score.weights
    assert not torch.allclose(better, better[:, :1].expand_as(better))


def test_only_models_that_share_out_attention_say_so() -> None:
    assert [isinstance(made()[0], Attends) for made in (_answers, _captions, _mitr, _patches)] == [True, True] + [
        False
    ] * 2


@pytest.mark.parametrize(
    ("words", "places"), [(WORDS, [0, 1, 1]), (WORDS, [4, 1, 1]), (WORDS, [1, 3, 1]), (WORDS, [1, 1]), (WORDS[0], [1])]
)
def test_places_that_say_nothing_are_refused(words: Tensor, places: list[int]) -> None:
    score, _, _ = _captions()
    assert isinstance(score, UpDnWordScore)
    with pytest.raises(InvalidValue):
        UpDnWordScore(score.model, words, torch.tensor(places))


def test_a_trace_needs_its_mask_and_patches_need_weight() -> None:
    score, _, _ = _mitr()
    assert isinstance(score, MitrWordScore)
    with pytest.raises(InvalidValue, match="mask"):
        MitrWordScore(score.model, score.region_boxes, WORDS, PLACES, score.trace)
    patches, _, size = _patches()
    with pytest.raises(InvalidValue, match="weight"):
        patches(_random(B, R, size), torch.zeros(B, R, dtype=torch.bool), torch.arange(B))
