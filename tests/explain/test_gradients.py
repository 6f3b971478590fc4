"""Importance of regions by gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from saywhere.core import InvalidValue
from saywhere.explain import feature_gradients, grad_cam, gradient_importance, gradient_times_input
from tests.explain.tiny import Counted, fresh

_GENERATOR = torch.Generator().manual_seed(0)
FEATURES = torch.randn(5, 3, 4, generator=_GENERATOR, dtype=torch.float64)
PRESENT = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 1], [0, 0, 0], [1, 1, 1]], dtype=torch.bool)
SCALE = torch.tensor([1.0, -2.0, 0.5, 3.0, 1.0], dtype=torch.float64)


def _by_hand() -> Tensor:
    """d/dx of a · tanh(Σ x) is a · (1 − tanh²) for each of the four numbers."""
    slope = SCALE[:, None] * (1 - FEATURES.sum(dim=2).tanh() ** 2)
    return slope.masked_fill(~PRESENT, 0.0)


def test_importance_is_the_sum_of_the_gradient_over_the_feature() -> None:
    torch.testing.assert_close(gradient_importance(Counted(SCALE), FEATURES, PRESENT), 4 * _by_hand())


def test_regions_that_are_not_there_have_no_importance_even_if_the_score_looks_at_them() -> None:
    found = gradient_importance(lambda f, p, i: f.sum(dim=(1, 2)), FEATURES, PRESENT)
    assert torch.equal(found, 4.0 * PRESENT)


def test_gradient_times_input_weighs_the_gradient_by_the_feature() -> None:
    expected = _by_hand() * FEATURES.sum(dim=2)
    torch.testing.assert_close(gradient_times_input(Counted(SCALE), FEATURES, PRESENT), expected)


def test_grad_cam_weighs_features_by_their_mean_gradient_and_keeps_the_positive_part() -> None:
    slope = _by_hand()
    mean = slope.sum(dim=1) / PRESENT.sum(dim=1).clamp_min(1)
    expected = (mean[:, None] * FEATURES.sum(dim=2)).relu().masked_fill(~PRESENT, 0.0)
    found = grad_cam(Counted(SCALE), FEATURES, PRESENT)
    torch.testing.assert_close(found, expected)
    assert (found > 0).any()
    assert (found >= 0).all()


@pytest.mark.parametrize("importance", [gradient_importance, gradient_times_input, grad_cam])
@pytest.mark.parametrize("chunk", [1, 2, 5, 99])
def test_chunks_change_nothing_and_bound_the_rows(importance: object, chunk: int) -> None:
    assert callable(importance)
    score = Counted(SCALE)
    torch.testing.assert_close(
        importance(score, FEATURES, PRESENT, chunk=chunk), importance(Counted(SCALE), FEATURES, PRESENT)
    )
    assert score.most == min(chunk, 5)
    assert score.rows == 5


@pytest.mark.parametrize("chunk", [None, 2])
def test_importance_can_be_learnt_from_chunked_or_not(chunk: int | None) -> None:
    net = fresh(2)
    features, present = FEATURES[:3, :, :2], PRESENT[:3]

    def alphas(*parameters: Tensor) -> Tensor:
        named = dict(zip(dict(net.named_parameters()), parameters, strict=True))

        def score(rows: Tensor, here: Tensor, items: Tensor) -> Tensor:
            return torch.func.functional_call(net, named, (rows, here)) * SCALE[items]

        return gradient_importance(score, features, present, create_graph=True, chunk=chunk)

    parameters = tuple(p.detach().clone().requires_grad_() for p in net.parameters())
    assert torch.autograd.gradcheck(alphas, parameters)
    assert torch.autograd.gradgradcheck(alphas, parameters, fast_mode=True)


def test_features_that_something_made_are_learnt_through() -> None:
    made = FEATURES.clone().requires_grad_()
    importance = gradient_importance(Counted(SCALE), made * 2, PRESENT, create_graph=True)
    importance.sum().backward()
    assert made.grad is not None
    assert made.grad.abs().sum() > 0


def test_gradients_are_taken_even_where_they_are_switched_off() -> None:
    with torch.no_grad():
        found = gradient_importance(Counted(SCALE), FEATURES, PRESENT)
    assert not found.requires_grad
    torch.testing.assert_close(found, 4 * _by_hand())


def test_the_given_features_are_left_as_they_were() -> None:
    mine = FEATURES.clone()
    feature_gradients(Counted(SCALE), mine, PRESENT)
    assert not mine.requires_grad
    assert mine.grad is None


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (lambda f, p, i: torch.zeros(len(f)), "does not depend"),
        (lambda f, p, i: torch.ones(1, requires_grad=True).expand(len(f)) * 1.0, "does not depend on the features"),
        (lambda f, p, i: f.sum(), "gave shape"),
    ],
)
def test_a_score_that_cannot_be_explained_is_refused(score: object, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        gradient_importance(score, FEATURES, PRESENT)  # type: ignore[arg-type]  # a broken score on purpose


@pytest.mark.parametrize(
    ("features", "present", "chunk"),
    [
        (FEATURES[0], PRESENT, None),
        (FEATURES, PRESENT[:, :2], None),
        (FEATURES, PRESENT.int(), None),
        (FEATURES.long(), PRESENT, None),
        (FEATURES, PRESENT, 0),
    ],
)
def test_shapes_that_do_not_fit_are_refused(features: Tensor, present: Tensor, chunk: int | None) -> None:
    with pytest.raises(InvalidValue):
        gradient_importance(Counted(SCALE), features, present, chunk=chunk)
