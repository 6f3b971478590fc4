"""Perception: the two equations of a block by hand, images that stay as they are, and what it costs."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from saywhere.models.tracevlm.perception import Perception, PerceptionBlock, perception_flops
from tests.models.tracevlm.small import CONFIG

WIDTH = 8


def plain_block() -> PerceptionBlock:
    """Whose projections change nothing."""
    block = PerceptionBlock(2, 1, 1)
    with torch.no_grad():
        for attention in (block.enhance, block.refine):
            attention.in_proj_weight.copy_(torch.eye(2).repeat(3, 1))
            attention.in_proj_bias.zero_()
            attention.out_proj.weight.copy_(torch.eye(2))
            attention.out_proj.bias.zero_()
        for layer in block.feed_forward:
            if isinstance(layer, nn.Linear):
                layer.weight.copy_(torch.eye(2))
                layer.bias.zero_()
    return block


def test_a_block_gives_what_its_equations_give_by_hand() -> None:
    block = plain_block()
    with torch.no_grad():
        block.gamma.copy_(torch.tensor([0.5, 2.0]))
    none = torch.zeros(1, 1, dtype=torch.bool)
    image, points = block(
        torch.tensor([[[3.0, 1.0]]]), torch.tensor([[[0.0, 2.0], [4.0, 2.0]]]), none, none.expand(1, 2)
    )
    # Normed, the image is (1, −1) and the points are (−1, 1) and (1, −1): their scores are ∓√2.
    looked = math.tanh(math.sqrt(2))
    assert image[0, 0].tolist() == pytest.approx([3 + 0.5 * looked, 1 - 2 * looked], abs=1e-4)
    # To either point the image adds (1, −1), and the FFN gelu of the point, normed: gelu(±1) = 0.8413, −0.1587.
    assert points[0].flatten().tolist() == pytest.approx([0.8413, 1.8413, 5.8413, 0.8413], abs=1e-4)


def test_gamma_starts_at_0_for_every_number() -> None:
    gammas = [block.gamma for block in Perception(CONFIG, WIDTH).blocks]
    assert [gamma.tolist() for gamma in gammas] == [[0.0] * WIDTH] * CONFIG.blocks


def awake() -> Perception:
    torch.manual_seed(0)
    module = Perception(CONFIG, WIDTH)
    with torch.no_grad():
        for block in module.blocks:
            block.gamma.fill_(1.0)
    return module


def test_images_and_points_do_not_depend_on_those_beside_them() -> None:
    module = awake()
    images, points = [torch.randn(n, WIDTH) for n in (4, 9)], [torch.randn(n, WIDTH) for n in (5, 2)]
    together = module(images, points)
    for i in range(2):
        alone = module([images[i]], [points[i]])
        torch.testing.assert_close(together[0][i], alone[0][0])
        torch.testing.assert_close(together[1][i], alone[1][0])


def test_an_image_that_nobody_points_at_stays_as_it_is() -> None:
    images, points = [torch.randn(4, WIDTH), torch.randn(3, WIDTH)], [torch.randn(2, WIDTH), torch.empty(0, WIDTH)]
    seen, _ = awake()(images, points)
    assert torch.equal(seen[1], images[1])
    assert not torch.allclose(seen[0], images[0])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_images_keep_their_type_and_at_gamma_0_every_bit(dtype: torch.dtype) -> None:
    image = torch.randn(4, WIDTH).to(dtype)
    (seen,), _ = Perception(CONFIG, WIDTH)([image], [torch.randn(2, WIDTH)])
    assert seen.dtype == dtype
    assert torch.equal(seen, image)


@pytest.mark.parametrize(("image_tokens", "points"), [(391, 37), (391, 256), (1280, 100)])
def test_perception_costs_at_most_a_twentieth_of_a_7b(image_tokens: int, points: int) -> None:
    layer = 2 * 3584 * 3584 + 2 * 3584 * 512 + 3 * 3584 * 18944
    language = 2 * 28 * layer * (image_tokens + 8 * points + 100)  # a point takes some eight tokens of text
    eye = 2 * 32 * (4 * 1280 * 1280 + 3 * 1280 * 3420) * 4 * image_tokens
    assert perception_flops(3584, 2, 4, image_tokens, points) <= 0.05 * (language + eye)


def test_the_count_of_operations_is_that_of_the_matrices() -> None:
    module, n, p = Perception(CONFIG, WIDTH), 10, 3
    counted = 0

    def count(layer: nn.Linear, inputs: tuple[torch.Tensor], _output: torch.Tensor) -> None:
        nonlocal counted
        counted += 2 * inputs[0].numel() * layer.out_features

    for layer in module.modules():
        if isinstance(layer, nn.Linear) and not isinstance(layer, nn.modules.linear.NonDynamicallyQuantizableLinear):
            layer.register_forward_hook(count)
    module([torch.randn(n, WIDTH)], [torch.randn(p, WIDTH)])
    square = 2 * WIDTH * WIDTH
    attention = CONFIG.blocks * (4 * square * (n + p) + 8 * n * p * WIDTH)
    assert perception_flops(WIDTH, CONFIG.blocks, CONFIG.expansion, n, p) == attention + counted
