"""HINT's ranking loss, its gradients, and the hints that items are given."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from saywhere.core import InvalidValue, UnknownName
from saywhere.explain import gradient_importance
from saywhere.learn.hint import (
    GradientNorms,
    Hints,
    HintSettings,
    gradient_norm_ratio,
    hinted_items,
    ordered_pairs,
    ranking_loss,
)
from tests.explain.tiny import TinyNet, fresh

_ALL = torch.ones(1, 3, dtype=torch.bool)
_NAN = math.nan


# People: region 0 before 1 before 2. Each row: importances, loss by sum, its gradient.
@pytest.mark.parametrize(
    ("alpha", "total", "gradient"),
    [
        ([3.0, 2.0, 1.0], 0.0, [0, 0, 0]),
        # Pairs (0, 1) wrong by 1, (0, 2) wrong by 2, (1, 2) wrong by 1.
        ([1.0, 2.0, 3.0], 4.0, [-2, 0, 2]),
        # Only (0, 1) is wrong, by 3.
        ([-1.0, 2.0, -4.0], 3.0, [-1, 1, 0]),
        # (0, 2) wrong by 1, (1, 2) wrong by 2.
        ([1.0, 0.0, 2.0], 3.0, [-1, -1, 2]),
    ],
)
def test_three_regions_by_hand(alpha: list[float], total: float, gradient: list[float]) -> None:
    human = torch.tensor([[0.9, 0.5, 0.1]])
    for reduction, divisor in (("sum", 1), ("mean", 3)):
        importances = torch.tensor([alpha], requires_grad=True)
        loss = ranking_loss(importances, human, _ALL, reduction)
        loss.backward()
        assert loss.item() == pytest.approx(total / divisor)
        assert importances.grad is not None
        assert importances.grad[0].tolist() == pytest.approx([g / divisor for g in gradient])


def test_ties_nan_and_absent_regions_give_no_pair() -> None:
    alpha = torch.tensor([[1.0, 2.0, 3.0]] * 4, requires_grad=True)
    human = torch.tensor([[0.5, 0.5, 0.1], [0.9, _NAN, 0.1], [0.9, 0.5, 0.1], [0.5, 0.5, 0.5]])
    present = torch.tensor([[1, 1, 1], [1, 1, 1], [1, 1, 0], [1, 1, 1]], dtype=torch.bool)
    # First: (0, 2) by 2 and (1, 2) by 1. Second: (0, 2) by 2. Third: (0, 1) by 1. Last: none, so it does not count.
    assert ordered_pairs(human, present).sum(dim=(1, 2)).tolist() == [2, 1, 1, 0]
    assert ranking_loss(alpha, human, present).item() == pytest.approx((3 + 2 + 1) / 3)
    loss = ranking_loss(alpha, human, present, "mean")
    assert loss.item() == pytest.approx((1.5 + 2 + 1) / 3)
    loss.backward()
    assert alpha.grad is not None
    assert alpha.grad[2, 2] == 0
    assert not alpha.grad[3].any()


def test_nan_importances_of_regions_without_a_pair_do_no_harm() -> None:
    alpha = torch.tensor([[1.0, 2.0, _NAN]], requires_grad=True)
    loss = ranking_loss(alpha, torch.tensor([[0.9, 0.5, _NAN]]), _ALL)
    loss.backward()
    assert loss.item() == 1
    assert alpha.grad is not None
    assert alpha.grad.tolist() == [[-1, 1, 0]]


def test_no_hint_at_all_is_a_loss_of_zero_that_can_be_learnt_from() -> None:
    alpha = torch.ones(2, 3, requires_grad=True)
    loss = ranking_loss(alpha, torch.full((2, 3), _NAN), _ALL.expand(2, 3))
    loss.backward()
    assert loss.item() == 0
    assert alpha.grad is not None
    assert not alpha.grad.any()
    assert ranking_loss(torch.zeros(0, 3), torch.zeros(0, 3), _ALL[:0]).item() == 0


@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 10**6), st.sampled_from(["sum", "mean"]))
def test_the_loss_is_what_two_loops_give(b: int, r: int, seed: int, reduction: str) -> None:
    rng = np.random.default_rng(seed)
    alpha = rng.integers(-3, 4, (b, r)).astype(np.float64)
    human = rng.choice([0.0, 0.25, 0.5, 1.0, math.nan], (b, r))
    present = rng.random((b, r)) > 0.2
    each: list[float] = []
    for a, s, p in zip(alpha, human, present, strict=True):
        terms = [max(0.0, a[j] - a[i]) for i in range(r) for j in range(r) if p[i] and p[j] and s[i] > s[j]]
        if terms:
            each.append(sum(terms) if reduction == "sum" else sum(terms) / len(terms))
    tensors = torch.from_numpy(alpha), torch.from_numpy(human), torch.from_numpy(present)
    assert ranking_loss(*tensors, reduction).item() == pytest.approx(sum(each) / len(each) if each else 0.0)
    assert hinted_items(*tensors[1:]).tolist() == ordered_pairs(*tensors[1:]).any(dim=2).any(dim=1).tolist()


def test_shapes_and_reductions_that_do_not_fit_are_refused() -> None:
    human = torch.zeros(1, 3)
    with pytest.raises(UnknownName, match="sum"):
        ranking_loss(human, human, _ALL, "summ")
    for arguments in ((torch.zeros(1, 2), human, _ALL), (human, human, _ALL.int()), (human, human, _ALL[:, :2])):
        with pytest.raises(InvalidValue):
            ranking_loss(*arguments)


_FEATURES = torch.randn(4, 3, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
_PRESENT = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 1, 1], [1, 1, 1]], dtype=torch.bool)
# The last item has no human attention.
_HUMAN = torch.tensor([[0.1, 0.9, 0.4], [0.8, 0.2, _NAN], [0.3, 0.3, 0.7], [_NAN] * 3], dtype=torch.float64)


def _total(net: TinyNet, parameters: Sequence[Tensor], reduction: str, human: Tensor = _HUMAN) -> Tensor:
    """weight · HINT + λ · task, with the sum of squared scores as the task."""
    named = dict(zip(dict(net.named_parameters()), parameters, strict=True))

    def score(features: Tensor, present: Tensor, items: Tensor) -> Tensor:
        result: Tensor = torch.func.functional_call(net, named, (features, present))
        return result

    alpha = gradient_importance(score, _FEATURES, _PRESENT, create_graph=True)
    task = (score(_FEATURES, _PRESENT, torch.arange(4)) - 1).square().mean()
    return 3.0 * ranking_loss(alpha, human, _PRESENT, reduction) + 0.5 * task


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_the_total_losss_gradient_is_that_of_finite_differences(reduction: str) -> None:
    net = fresh(2, seed=1)
    parameters = tuple(p.detach().clone().requires_grad_() for p in net.parameters())
    assert torch.autograd.gradcheck(lambda *given: _total(net, given, reduction), parameters)
    assert torch.autograd.gradgradcheck(lambda *given: _total(net, given, reduction), parameters, fast_mode=True)


def test_hint_moves_parameters_that_the_task_alone_would_not_move_so() -> None:
    net = fresh(2, seed=1)
    parameters = tuple(p.detach().clone().requires_grad_() for p in net.parameters())
    with_hint = torch.autograd.grad(_total(net, parameters, "sum"), parameters)
    without = torch.autograd.grad(_total(net, parameters, "sum", torch.full_like(_HUMAN, _NAN)), parameters)
    assert any(not torch.allclose(a, b) for a, b in zip(with_hint, without, strict=True))


def test_following_the_loss_brings_importances_into_peoples_order() -> None:
    net = fresh(2, seed=1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        alpha = gradient_importance(lambda f, p, i: net(f, p), _FEATURES, _PRESENT, create_graph=True)
        loss = ranking_loss(alpha, _HUMAN, _PRESENT)
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    assert losses[0] > 0
    assert losses[-1] < 0.2 * losses[0]


def test_the_ratio_is_that_of_the_gradients_lengths() -> None:
    x = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    idle = torch.nn.Parameter(torch.ones(1))
    norms = gradient_norm_ratio(10 * x.sum(), x.square().sum() / 2, [x, idle])
    assert (norms.hint, norms.task) == pytest.approx((10 * math.sqrt(2), 5))
    assert norms.ratio == pytest.approx(2 * math.sqrt(2))
    assert gradient_norm_ratio(torch.zeros(()), x.sum(), [x]).ratio == 0
    assert GradientNorms(1.0, 0.0).ratio == math.inf


# --- hints -----------------------------------------------------------------------------------------------------------

_COUNT = 200


def _vectors(index: int) -> list[NDArray[np.float32]]:
    """Three regions, four for every fifth item; every tenth item has no attention and item 11 the same everywhere."""
    if index % 10 == 0:
        return []
    if index == 11:
        return [np.full(3, 0.5, np.float32)]
    regions = 4 if index % 5 == 1 else 3
    return [np.linspace(0, 1, regions, dtype=np.float32) * (index / _COUNT)]


def _hints(vectors: Callable[[int], list[NDArray[np.float32]]] = _vectors, **settings: object) -> Hints:
    return Hints(HintSettings(**{"tie": 0.0, **settings}), range(_COUNT), vectors)  # type: ignore[arg-type]


def _told(hints: Hints, indices: Sequence[int], seed: int = 0) -> Tensor:
    human = torch.full((len(indices), 4), _NAN)
    for row, index in enumerate(indices):
        for vector in _vectors(index):
            human[row, : len(vector)] = torch.from_numpy(vector)
    numbers = torch.zeros(len(indices), dtype=torch.int64)
    return hints.of(torch.tensor(indices), numbers, human, torch.Generator().manual_seed(seed))


_HINTED = [1, 2, 3, 16]


def test_human_hints_are_peoples_and_inverse_ones_the_other_way_round() -> None:
    human, inverse = _told(_hints(), _HINTED), _told(_hints(hints="inverse"), _HINTED)
    for row, index in enumerate(_HINTED):
        (vector,) = _vectors(index)
        assert human[row, : len(vector)].tolist() == pytest.approx(vector.tolist())
        assert inverse[row, : len(vector)].tolist() == pytest.approx((1 - vector).tolist())
        assert human[row, len(vector) :].isnan().all()


@pytest.mark.parametrize("kind", ["human", "inverse", "random", "redrawn", "permuted", "none"])
def test_items_without_attention_are_told_nothing_whatever_the_hints(kind: str) -> None:
    told = _told(_hints(hints=kind), [0, 10, 11, *_HINTED])
    assert told[:3].isnan().all()
    assert told[3:].isnan().all() == (kind == "none")


def test_random_hints_belong_to_the_item_and_redrawn_ones_to_the_moment() -> None:
    first, again, other = (_told(_hints(hints="random"), _HINTED, seed) for seed in (0, 1, 2))
    assert torch.equal(first.nan_to_num(-1), again.nan_to_num(-1))
    assert torch.equal(first.nan_to_num(-1), other.nan_to_num(-1))
    # Beside other items in the batch, and in another batch, an item's hint is the same.
    assert torch.equal(_told(_hints(hints="random"), [5, 2])[1, :3], first[1, :3])
    assert not torch.equal(_told(_hints(hints="random", seed=1), _HINTED)[:, :3], first[:, :3])
    assert len(set(first[:3, 0].tolist())) == 3
    redrawn = [_told(_hints(hints="redrawn"), _HINTED, seed) for seed in (0, 0, 1)]
    assert torch.equal(redrawn[0].nan_to_num(-1), redrawn[1].nan_to_num(-1))
    assert not torch.equal(redrawn[0].nan_to_num(-1), redrawn[2].nan_to_num(-1))
    for told in (first, redrawn[0]):
        assert told[:, :3].isfinite().all()
        assert told[:3, 3].isnan().tolist() == [False, True, True]


def test_permuted_hints_are_the_items_own_in_another_order_and_the_unsaid_stays_unsaid() -> None:
    own = np.array([np.nan, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6], np.float32)
    human, numbers = torch.from_numpy(own).expand(3, -1), torch.zeros(3, dtype=torch.int64)
    told, again = (
        Hints(HintSettings(hints="permuted"), range(3), lambda index: [own]).of(
            torch.arange(3), numbers, human, torch.Generator()
        )
        for _ in range(2)
    )
    assert told[:, 0].isnan().all()
    assert [sorted(row[1:].tolist()) for row in told] == [sorted(own[1:].tolist())] * 3
    assert len({tuple(row[1:].tolist()) for row in told}) == 3
    assert torch.equal(again[:, 1:], told[:, 1:])


def test_hints_of_free_viewing_are_those_of_people_who_were_not_asked() -> None:
    own, seen = (np.array(values, np.float32) for values in ([np.nan, 0.0, 1.0], [np.nan, 0.7, 0.3]))
    free_view = {0: [seen], 1: []}
    settings = HintSettings(hints="free_view")
    hints = Hints(settings, range(2), lambda index: [own], lambda index: free_view[index])
    human = torch.from_numpy(own).expand(2, -1)
    told = hints.of(torch.arange(2), torch.zeros(2, dtype=torch.int64), human, torch.Generator())
    assert told[0, 1:].tolist() == pytest.approx([0.7, 0.3])
    # Of the second nobody knows where people look without a question.
    assert told[:, 0].isnan().all()
    assert told[1].isnan().all()
    with pytest.raises(InvalidValue, match="without a question"):
        Hints(settings, range(2), lambda index: [own])


def test_near_ties_give_no_pair() -> None:
    # A clock, and the sky that holds it: people look at both alike.
    human, present = torch.tensor([[0.9988, 1.0, 0.2]]), torch.ones(1, 3, dtype=torch.bool)
    alpha = torch.tensor([[1.0, 0.0, 0.5]])
    assert ordered_pairs(human, present, 0.02)[0].tolist() == [[False, False, True], [False, False, True], [False] * 3]
    assert ranking_loss(alpha, human, present, tie=0.02).item() == pytest.approx(0.5)
    assert ranking_loss(alpha, human, present).item() == pytest.approx(1.5)
    assert not hinted_items(human[:, :2], present[:, :2], 0.02).any()


def test_each_visual_word_has_a_random_hint_of_its_own() -> None:
    two = [np.array([0.0, 1.0], np.float32)] * 2
    hints = Hints(HintSettings(hints="random"), range(2), lambda index: two)
    human = torch.tensor([[0.0, 1.0]]).expand(2, 2)
    told = hints.of(torch.zeros(2, dtype=torch.int64), torch.arange(2), human, torch.Generator())
    assert not torch.equal(told[0], told[1])


def test_shares_are_nested_and_the_same_for_every_kind_of_hint() -> None:
    shares = [0.0, 0.015, 0.03, 0.06, 0.12, 0.5, 1.0]
    chosen = [_hints(share=share).chosen for share in shares]
    # Of 200 items 20 have no attention and one no order.
    assert [len(one) for one in chosen] == [0, 3, 6, 12, 24, 100, 179]
    for fewer, more in itertools.pairwise(chosen):
        assert more[: len(fewer)] == fewer
    for kind in ("inverse", "random", "redrawn", "permuted"):
        assert _hints(share=0.03, hints=kind).chosen == chosen[2]
    assert _hints(hints="none").chosen == ()
    assert _hints(share=0.03, seed=1).chosen != chosen[2]
    assert _told(_hints(share=0.03), [i for i in range(_COUNT) if i not in chosen[2]]).isnan().all()
    assert _told(_hints(share=0.03), list(chosen[2]))[:, :3].isfinite().all()


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"weight": -1.0}, InvalidValue),
        ({"task_weight": math.nan}, InvalidValue),
        ({"weight": 0.0, "task_weight": 0.0}, InvalidValue),
        ({"share": 1.5}, InvalidValue),
        ({"seed": -1}, InvalidValue),
        ({"reduction": "max"}, UnknownName),
        ({"hints": "humans"}, UnknownName),
        ({"on": "gradient"}, UnknownName),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        HintSettings(**settings)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(settings, HintSettings)
