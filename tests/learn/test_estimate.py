"""What a recipe costs, checked by hand on networks whose every product can be counted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from saywhere.learn import Recipe
from saywhere.learn.estimate import GPUS, Gpu, estimate

Tiny = Callable[..., Recipe]


def _counted(hidden: int, items: int) -> float:
    """FLOPs of the tiny network, 3 → hidden → 1, for so many items: forward, and backward for weights and inputs."""
    forward = 2 * items * (3 * hidden + hidden)
    # The inputs of the first layer want no gradient.
    backward = forward + 2 * items * hidden
    return float(forward + backward)


def test_flops_and_memory_are_those_of_the_network(tiny: Tiny) -> None:
    recipe = tiny("model.hidden=16", "train.batch_size=4")
    found = estimate(recipe)
    assert found.parameters == found.trainable == (3 * 16 + 16) + (16 + 1)
    assert found.flops_per_item == pytest.approx(_counted(16, 4) / 4)
    # Weights, gradients, two moments and a moving average, four bytes each.
    assert found.state_bytes == 20 * found.parameters
    assert found.steps == recipe.total_steps(-(-found.items // 4))
    assert found.flops == pytest.approx(found.flops_per_item * 4 * found.steps)


def test_processes_and_accumulation_need_less_memory_at_a_time(tiny: Tiny) -> None:
    one = estimate(tiny("train.batch_size=16"))
    two = estimate(tiny("train.batch_size=16"), processes=2)
    cut = estimate(tiny(), ["train.batch_size=16", "train.accumulate=4"])
    assert (one.micro_batch, two.micro_batch, cut.micro_batch) == (16, 8, 4)
    assert two.activation_bytes == pytest.approx(one.activation_bytes / 2, rel=0.2)
    assert cut.flops == pytest.approx(one.flops)


def test_hours_follow_from_the_peak_and_the_share_of_it(tiny: Tiny) -> None:
    found = estimate(tiny())
    gpu = Gpu(1e12, 2e12, 1)
    assert found.gpu_hours(gpu) == pytest.approx(found.flops / (0.35 * 1e12) / 3600)
    assert found.fits(gpu)
    assert not found.fits(Gpu(1e12, 2e12, 1e-9))
    half = estimate(tiny("train.precision=bf16"))
    assert half.gpu_hours(gpu) == pytest.approx(found.gpu_hours(gpu) / 2)
    assert half.activation_bytes == pytest.approx(found.activation_bytes / 2)
    assert all(one.half > one.fp32 and one.gib > 0 for one in GPUS.values())


def test_what_does_not_learn_has_neither_gradient_nor_moments(tiny: Tiny) -> None:
    frozen, learns = estimate(tiny("model.frozen=true")), estimate(tiny())
    assert frozen.trainable == 8 + 1
    assert frozen.parameters == learns.parameters
    assert frozen.state_bytes == 4 * frozen.parameters + 16 * frozen.trainable
    assert frozen.flops_per_item < learns.flops_per_item
