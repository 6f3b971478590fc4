"""Masks: the decoder of two scales, how they are joined, and what is minimised."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from saywhere.core import InvalidValue
from saywhere.models.tracevlm.objective import ImageMasks, MaskObjective, bce, dice, mask_losses, refinement, total
from saywhere.models.tracevlm.segmentation import MaskDecoder, ScaleDecoder, cell_codes, resized
from tests.models.tracevlm.small import CONFIG

WIDTH, PATCH = 12, 10


@pytest.fixture
def decoder() -> MaskDecoder:
    torch.manual_seed(0)
    return MaskDecoder(CONFIG, WIDTH, PATCH)


def features(rows: int = 2, cols: int = 3) -> list[Tensor]:
    torch.manual_seed(1)
    return [torch.randn(rows, cols, WIDTH), torch.randn(2 * rows, 2 * cols, PATCH)]


def test_masks_are_four_times_as_fine_as_the_finer_scale(decoder: MaskDecoder) -> None:
    masks = decoder(torch.randn(5, 6, WIDTH), torch.randn(3, WIDTH), features())
    assert masks.shape == (5, 16, 24)


def test_the_weights_of_scales_are_learnt(decoder: MaskDecoder) -> None:
    decoder(torch.randn(2, 6, WIDTH), torch.empty(0, WIDTH), features()).square().mean().backward()
    gradient = decoder.fusion.grad
    assert gradient is not None
    assert (gradient != 0).all()
    before = decoder.fusion.tolist()
    torch.optim.SGD(decoder.parameters(), 0.1).step()
    assert decoder.fusion.tolist() != before


def test_masks_are_the_weighted_sum_of_scales(decoder: MaskDecoder) -> None:
    tokens, points, seen = torch.randn(1, 6, WIDTH), torch.randn(2, WIDTH), features()
    with torch.no_grad():
        each = []
        for weights in ((1.0, 0.0), (0.0, 1.0), (0.25, 2.0)):
            decoder.fusion.copy_(torch.tensor(weights))
            each.append(decoder(tokens, points, seen))
    torch.testing.assert_close(each[2], 0.25 * each[0] + 2 * each[1])


def test_each_scale_has_tokens_of_its_own(decoder: MaskDecoder) -> None:
    tokens, seen = torch.randn(1, 6, WIDTH), features()
    with torch.no_grad():
        decoder.fusion.copy_(torch.tensor([1.0, 0.0]))
        other = tokens.clone()
        other[:, 3:] += 1
        coarse = [decoder(one, torch.empty(0, WIDTH), seen) for one in (tokens, other)]
        other[:, :3] += 1
        changed = decoder(other, torch.empty(0, WIDTH), seen)
    assert torch.equal(coarse[0], coarse[1])
    assert not torch.allclose(coarse[0], changed)


def test_the_finer_scale_sees_its_features_times_one_plus_the_coarser_mask() -> None:
    torch.manual_seed(0)
    scale = ScaleDecoder(CONFIG, PATCH)
    tokens, points, seen = torch.randn(1, 3, 16), torch.empty(0, 16), torch.randn(2, 2, PATCH)
    with torch.no_grad():
        scale.project.bias.zero_()
        sure = scale(tokens, points, seen, torch.full((1, 4, 4), 100.0))
        torch.testing.assert_close(sure, scale(tokens, points, 2 * seen, None))
        unsure = scale(tokens, points, seen, torch.zeros(1, 4, 4))
        torch.testing.assert_close(unsure, scale(tokens, points, 1.5 * seen, None))


def test_a_trajectory_changes_what_is_cut_out(decoder: MaskDecoder) -> None:
    tokens, seen = torch.randn(1, 6, WIDTH), features()
    without, along = (decoder(tokens, points, seen) for points in (torch.empty(0, WIDTH), torch.randn(4, WIDTH)))
    assert not torch.allclose(without, along)


def test_targets_do_not_depend_on_those_beside_them(decoder: MaskDecoder) -> None:
    tokens, points, seen = torch.randn(3, 6, WIDTH), torch.randn(2, WIDTH), features()
    torch.testing.assert_close(decoder(tokens, points, seen)[1:2], decoder(tokens[1:2], points, seen))


def test_every_cell_has_a_code_of_its_own() -> None:
    codes = cell_codes(6, 9, 16, torch.device("cpu"))
    assert codes.shape == (54, 16)
    assert (torch.cdist(codes, codes) + torch.eye(54)).min() > 1e-2


# Two masks that claim the same middle pixel.
LOGITS = torch.tensor([[[2.0, 1.0, -1.0]], [[-2.0, 3.0, -1.0]]])
TRUTHS = torch.tensor([[[1.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]])


def test_refinement_is_twice_the_bce_where_masks_overlap() -> None:
    pixel = [
        float(torch.nn.functional.softplus(torch.tensor(-1.0))),
        float(torch.nn.functional.softplus(torch.tensor(3.0))),
    ]
    assert refinement(LOGITS, TRUTHS, 2.0).tolist() == pytest.approx([2 * one / 3 for one in pixel])


def test_one_mask_alone_overlaps_nothing() -> None:
    assert refinement(LOGITS[:1], TRUTHS[:1], 2.0).tolist() == [0.0]


@pytest.mark.parametrize("term", [lambda x, y: refinement(x, y, 2.0), dice, bce])
def test_gradients_are_those_of_finite_differences(term: object) -> None:
    assert callable(term)
    torch.manual_seed(0)
    logits = (torch.randn(3, 2, 4, dtype=torch.float64) + 0.2).requires_grad_()
    truths = torch.randint(2, (3, 2, 4)).double()
    term(logits, truths).sum().backward()
    step = 1e-6
    for place in range(logits.numel()):
        moved = []
        for sign in (step, -step):
            other = logits.detach().clone()
            other.view(-1)[place] += sign
            moved.append(float(term(other, truths).sum()))
        assert logits.grad is not None
        assert float(logits.grad.view(-1)[place]) == pytest.approx((moved[0] - moved[1]) / (2 * step), abs=1e-7)


def test_dice_of_a_perfect_mask_is_0_and_of_a_wrong_one_nearly_1() -> None:
    truth = torch.zeros(1, 20, 20)
    truth[:, :10] = 1
    right = 100 * (2 * truth - 1)
    assert float(dice(right, truth)) == pytest.approx(0, abs=1e-6)
    assert float(dice(-right, truth)) > 0.99


def test_the_loss_is_the_sum_of_its_terms_times_their_weights() -> None:
    settings = MaskObjective(bce=0.5, refinement=2.0, dice=3.0)
    found = mask_losses([ImageMasks(LOGITS, TRUTHS)], settings)
    assert float(found["bce"]) == pytest.approx(0.5 * float(bce(LOGITS, TRUTHS).mean()))
    assert float(found["masks"]) == pytest.approx(sum(float(found[name]) for name in ("bce", "refinement", "dice")))
    assert float(total(torch.tensor(2.0), found)["loss"]) == pytest.approx(2 + float(found["masks"]))


def test_masks_are_compared_in_the_resolution_of_the_truth() -> None:
    truths = TRUTHS.repeat_interleave(4, dim=1).repeat_interleave(4, dim=2)
    fine = mask_losses([ImageMasks(LOGITS, truths)], MaskObjective())
    assert float(fine["bce"]) == pytest.approx(float(bce(resized(LOGITS, (4, 12)), truths).mean()))


def test_negative_weights_are_refused() -> None:
    with pytest.raises(InvalidValue, match="negative weight"):
        MaskObjective(dice=-1)
