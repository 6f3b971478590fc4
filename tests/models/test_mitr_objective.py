"""The losses: their values, what they are means over, and where their randomness comes from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saywhere.core import InvalidValue, UnknownName
from saywhere.core.alignment import NOWHERE
from saywhere.metrics.lbm import lbm
from saywhere.models.common.batches import padding_mask
from saywhere.models.mitr import MITR, Batch, ObjectiveSettings, losses
from saywhere.models.mitr.cycle import (
    cycle_loss,
    drawn_caption,
    noisy_chances,
    sampled_words,
    segments_shuffled,
    swapped_in_batch,
    word_log_probabilities,
    word_noise,
)
from saywhere.models.mitr.layers import (
    ROW_OFFSET,
    DrawnWords,
    WordEmbedding,
    masked_boxes,
    shifted_boxes,
    shifted_words,
)
from saywhere.models.mitr.losses import _band_costs, _band_shares, caption_loss, lbm_loss, trace_loss
from saywhere.models.mitr.network import Memory
from saywhere.models.mitr.objective import counts
from tests.models.small import WORDS, batch, network

ALL = ObjectiveSettings(lbm=0.5)


def drawing(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_trace_loss_is_the_mean_over_the_corners_of_located_words() -> None:
    predicted, boxes = torch.zeros(1, 3, 5), torch.zeros(1, 3, 5)
    boxes[0, 0] = torch.tensor([0.1, 0.2, 0.3, 0.4, 9.0])
    boxes[0, 1] = 1.0
    boxes[0, 2] = torch.tensor([0.0, 0.0, 0.0, 0.2, 9.0])
    located = torch.tensor([[True, False, True]])
    assert trace_loss(predicted, boxes, located).item() == pytest.approx((0.25 + 0.05) / 2)
    assert trace_loss(predicted, boxes, torch.zeros_like(located)).item() == 0


def test_caption_loss_is_the_mean_over_real_places() -> None:
    logits = torch.log(torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.8, 0.1], [1.0, 1.0, 1.0]]]))
    loss = caption_loss(logits, torch.tensor([[1, 0, 2]]), torch.tensor([[True, True, False]]))
    assert loss.item() == pytest.approx(-(np.log(0.25) + np.log(0.1)) / 2)


def test_loss_is_the_weighted_sum_of_its_terms() -> None:
    settings = replace(ALL, trace=0.7, caption=0.4, cycle=0.2, joint=0.9)
    found = losses(network(), batch(), settings, drawing())
    assert set(found) == {"loss", *settings.weights()}
    total = sum(weight * found[name].item() for name, weight in settings.weights().items())
    assert found["loss"].item() == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("task", ["trace", "caption", "cycle", "joint", "lbm"])
def test_a_task_of_weight_zero_is_not_computed(task: str) -> None:
    settings = replace(ALL, **{task: 0.0})
    found = losses(network(), batch(), settings, drawing())
    assert not any(name.startswith(task) for name in found)
    assert set(found) == {"loss", *settings.weights()}


def test_the_image_is_encoded_once_for_all_tasks() -> None:
    model = network()
    seen: list[int] = []
    handle = model.encoder_norm.register_forward_hook(lambda *_: seen.append(1))
    losses(model, batch(), ALL, drawing())["loss"].backward()
    handle.remove()
    assert len(seen) == 1


@pytest.mark.parametrize("kind", ["batch", "segments"])
def test_all_randomness_comes_from_the_generator(kind: str) -> None:
    model, one, settings = network().train(), batch(), replace(ALL, cycle_kind=kind)
    state = torch.get_rng_state()
    first = losses(model, one, settings, drawing(1))
    torch.rand(7)
    again, other = losses(model, one, settings, drawing(1)), losses(model, one, settings, drawing(2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)
    torch.set_rng_state(state)
    losses(model, one, settings, drawing(1))
    assert torch.equal(state, torch.get_rng_state())


def test_every_parameter_but_the_unread_norm_is_taught() -> None:
    model = network().train()
    losses(model, batch(), ALL, drawing())["loss"].backward()
    untaught = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0}
    # A key's bias moves all scores of a query alike, so attention cannot depend on it.
    assert {name for name in untaught if not name.endswith("key.bias")} == {"unread.weight", "unread.bias"}


def test_parts_of_a_batch_put_together_by_their_counts_are_the_whole() -> None:
    model, settings = network(), ObjectiveSettings(cycle=0.0, mask_rate=0.0, lbm=0.3)
    whole = batch(sizes=((5, 4), (9, 7), (3, 5)))
    parts = [_part(whole, [0]), _part(whole, [1, 2])]
    found = [losses(model, part, settings, drawing()) for part in parts]
    shares = [counts(part, settings) for part in parts]
    together = losses(model, whole, settings, drawing())
    for name, total in counts(whole, settings).items():
        mean = sum(share[name] * one[name] for share, one in zip(shares, found, strict=True)) / total
        torch.testing.assert_close(mean, together[name], atol=1e-5, rtol=0)


def _part(one: Batch, rows: list[int]) -> Batch:
    images = replace(
        one.images, **{n: getattr(one.images, n)[rows] for n in ("regions", "region_boxes", "region_mask")}
    )
    return Batch(images, one.words[rows], one.boxes[rows], one.located[rows], one.lengths[rows])


def test_a_small_network_learns_a_few_narratives_by_heart() -> None:
    model, one = network(input_dropout=0.0).train(), batch()
    optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), 3e-3)
    generator, history = drawing(), []
    for _ in range(40):
        found = losses(model, one, ObjectiveSettings(), generator)
        optimizer.zero_grad()
        found["loss"].backward()
        optimizer.step()
        history.append({name: loss.item() for name, loss in found.items()})
    assert history[-1]["caption"] < 0.6 * history[0]["caption"]
    assert history[-1]["joint_caption"] < 0.6 * history[0]["joint_caption"]
    assert history[-1]["trace"] < 0.8 * history[0]["trace"]


# --- the cycle


@given(st.integers(2, 40), st.integers(0, 1000))
def test_traces_are_swapped_without_anyone_keeping_his_own(size: int, seed: int) -> None:
    others = swapped_in_batch(size, drawing(seed)).tolist()
    assert sorted(others) == list(range(size))
    assert all(other != i for i, other in enumerate(others))


@given(st.integers(0, 1000), st.integers(2, 7))
def test_shuffled_segments_are_the_same_boxes_in_long_runs(seed: int, segments: int) -> None:
    one = batch(seed % 5)
    boxes, located = segments_shuffled(one, segments, drawing(seed))
    for i, length in enumerate(one.lengths.tolist()):
        before = [tuple(box) for box in one.boxes[i, :length].tolist()]
        after = [tuple(box) for box in boxes[i, :length].tolist()]
        # Unlocated words share one box, so places are told apart by box and flag in order of appearance.
        assert sorted(zip(before, one.located[i, :length].tolist(), strict=True)) == sorted(
            zip(after, located[i, :length].tolist(), strict=True)
        )
        assert torch.equal(boxes[i, length:], one.boxes[i, length:])
    places = replace(one, boxes=torch.arange(one.words.shape[1]).float()[None, :, None].expand(len(one), -1, 5))
    order, _ = segments_shuffled(places, segments, drawing(seed))
    for row, length in zip(order[:, :, 0], one.lengths.tolist(), strict=True):
        breaks = int((row[1:length] - row[: length - 1] != 1).sum())
        assert breaks <= min(segments, length) - 1


def test_segments_do_get_shuffled() -> None:
    one = batch(sizes=((20, 4), (20, 4)))
    assert any(not torch.equal(segments_shuffled(one, 5, drawing(seed))[0], one.boxes) for seed in range(3))


def test_noise_is_independent_gumbel_and_the_end_gets_none() -> None:
    noise = word_noise(torch.zeros(3, 40, 5), 200, drawing())
    words = noise[..., 1:]
    assert torch.isinf(noise[..., 0]).all()
    assert torch.isfinite(words).all()
    assert words.mean().item() == pytest.approx(0.5772, abs=0.03)
    assert words.var().item() == pytest.approx(np.pi**2 / 6, abs=0.08)
    flat = words.flatten(0, 1)
    assert torch.corrcoef(flat).fill_diagonal_(0).abs().max() < 0.4


def test_chosen_words_are_one_hot_forwards_and_soft_backwards() -> None:
    logits = torch.randn(2, 3, 6, generator=drawing(), requires_grad=True)
    noise = word_noise(torch.zeros(2, 3, 5), 5, drawing(1))
    rows = (logits.log_softmax(-1) + noise).argmax(-1)
    values = torch.randn(2, 3, 8, generator=drawing(2))
    embedding = WordEmbedding(5, 8, dropout=0.0)
    drawn = DrawnWords(rows, noisy_chances(word_log_probabilities(logits), noise, 0.7))
    vectors = embedding(drawn)
    assert torch.equal(vectors, embedding(rows + ROW_OFFSET))
    found = torch.autograd.grad((vectors * values).sum(), (logits, embedding.table.weight))
    soft = ((logits.log_softmax(-1) + noise) / 0.7).softmax(-1)
    wanted = torch.autograd.grad((soft @ embedding.table.weight * embedding.scale * values).sum(), logits)[0]
    torch.testing.assert_close(found[0], wanted)
    read = (embedding(rows + ROW_OFFSET) * values).sum()
    torch.testing.assert_close(found[1], torch.autograd.grad(read, embedding.table.weight)[0])


def _sampled(model: MITR, one: Batch) -> tuple[Tensor, Tensor, Tensor]:
    with torch.no_grad():
        memory = model.encode_images(one.images)
        mask = padding_mask(one.lengths, one.words.shape[1])
        noise = word_noise(one.boxes, WORDS, drawing(3))
        read = sampled_words(model, memory, one.boxes, mask, noise)
        return read, noise, model.caption(memory, read[:, :-1], mask, one.boxes, mask)


def test_sampled_words_are_what_the_noise_chooses_when_they_are_read_again() -> None:
    one = batch()
    read, noise, logits = _sampled(network(), one)
    mask = padding_mask(one.lengths, one.words.shape[1])
    chosen = (word_log_probabilities(logits) + noise).argmax(-1) + ROW_OFFSET
    assert torch.equal(chosen[mask], read[:, 1:][mask])
    assert (read[:, 1:] >= 3).all()


def test_the_cycle_aims_at_the_permuted_trace_with_its_own_mask() -> None:
    model, one = network(), batch()
    others = torch.tensor([1, 2, 0])
    boxes, located, lengths = one.boxes[others], one.located[others], one.lengths[others]
    with torch.no_grad():
        memory = model.encode_images(one.images)
        loss = cycle_loss(model, memory, boxes, located, lengths, 1.0, drawing(3))
        mask = padding_mask(lengths, boxes.shape[1])
        noise = word_noise(boxes, WORDS, drawing(3))
        read = sampled_words(model, memory, boxes, mask, noise)
        predicted = model.ground(memory, read[:, 1:], mask, shifted_boxes(boxes))
    off = (predicted[..., :4] - boxes[..., :4]).abs().mean(-1)
    wanted = sum(off[i, t] for i in range(3) for t in range(int(lengths[i])) if located[i, t]) / located.sum()
    assert loss.item() == pytest.approx(float(wanted), rel=1e-5)


def test_a_word_drawn_while_training_is_the_likeliest_of_its_own_soft_weights() -> None:
    model, one = network(dropout=0.5, attention_dropout=0.5, input_dropout=0.5).train(), batch()
    mask = padding_mask(one.lengths, one.words.shape[1])
    memory = model.encode_images(one.images)
    for seed in range(5):
        words = drawn_caption(model, memory, one.boxes, mask, 1.0, drawing(seed))
        assert torch.equal(words.chances.argmax(-1)[mask], words.rows[mask])
    assert model.training
    assert words.chances.requires_grad


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_the_cycle_hides_previous_boxes_as_task_1_does(rate: float, monkeypatch: pytest.MonkeyPatch) -> None:
    model, one = network(), batch()
    shown: list[Tensor] = []
    ground = MITR.ground

    def watched(self: MITR, memory: Memory, words: Tensor | DrawnWords, mask: Tensor, boxes: Tensor) -> Tensor:
        shown.append(boxes)
        return ground(self, memory, words, mask, boxes)

    monkeypatch.setattr(MITR, "ground", watched)
    settings = ObjectiveSettings(trace=1.0, caption=0.0, joint=0.0, cycle_kind="segments", trace_mask_rate=rate)
    losses(model, one, settings, drawing())
    hidden = [bool((boxes[:, 1:] == torch.tensor(NOWHERE, dtype=boxes.dtype)).all()) for boxes in shown]
    assert hidden == [rate == 1.0] * 2


@pytest.mark.parametrize("kind", ["batch", "segments"])
def test_boxes_flags_and_lengths_are_permuted_together(kind: str) -> None:
    model, one = network(), batch()
    settings = ObjectiveSettings(trace=0.0, caption=0.0, joint=0.0, cycle_kind=kind)
    generator = drawing(5)
    torch.randint(2**62, (), generator=generator)  # the seed of dropout
    boxes, located, lengths = one.boxes, one.located, one.lengths
    if kind == "batch":
        others = swapped_in_batch(3, generator)
        boxes, located, lengths = boxes[others], located[others], lengths[others]
    else:
        boxes, located = segments_shuffled(one, 5, generator)
    wanted = cycle_loss(model, model.encode_images(one.images), boxes, located, lengths, 1.0, generator)
    assert losses(model, one, settings, drawing(5))["cycle"].item() == pytest.approx(wanted.item(), rel=1e-6)


@pytest.mark.parametrize("temperature", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_an_underflow_never_turns_into_nan(temperature: float, scale: float) -> None:
    model = network().train()
    with torch.no_grad():
        model.say.weight.mul_(scale)
    settings = ObjectiveSettings(trace=0.0, caption=0.0, joint=0.0, temperature=temperature)
    found = losses(model, batch(), settings, drawing())
    found["loss"].backward()
    assert torch.isfinite(found["loss"])
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_a_lone_narrative_has_nobody_to_swap_with() -> None:
    found = losses(network(), batch(sizes=((5, 4),)), ObjectiveSettings(), drawing())
    assert found["cycle"].item() == 0


# --- random masking


@pytest.mark.parametrize(("rate", "share"), [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)])
def test_masked_boxes_become_the_whole_image(rate: float, share: float) -> None:
    boxes = torch.full((50, 60, 5), 0.25)
    masked = masked_boxes(boxes, rate, drawing())
    whole = (masked == torch.tensor([0.0, 0.0, 1.0, 1.0, 1.0])).all(-1)
    assert whole.float().mean().item() == pytest.approx(share, abs=0.03)
    assert torch.equal(masked[~whole], boxes[~whole])


def test_the_trace_task_masks_what_it_reads_only_if_asked() -> None:
    model, one = network(), batch()
    only = ObjectiveSettings(caption=0.0, cycle=0.0, joint=0.0, trace_mask_rate=1.0)
    mask = padding_mask(one.lengths, one.words.shape[1])
    hidden = shifted_boxes(torch.tensor([0.0, 0.0, 1.0, 1.0, 1.0]).repeat(3, one.words.shape[1], 1))
    with torch.no_grad():
        memory = model.encode_images(one.images)
        masked = trace_loss(model.ground(memory, one.words, mask, hidden), one.boxes, one.located)
        plain = trace_loss(model.ground(memory, one.words, mask, shifted_boxes(one.boxes)), one.boxes, one.located)
    assert losses(model, one, only, drawing())["trace"].item() == pytest.approx(masked.item(), rel=1e-5)
    open_eyed = replace(only, trace_mask_rate=0.0)
    assert losses(model, one, open_eyed, drawing())["trace"].item() == pytest.approx(plain.item(), rel=1e-5)


def test_guided_captions_are_learned_along_boxes_whose_number_tells_nothing() -> None:
    model, one = network(), batch()
    only = ObjectiveSettings(trace=0.0, cycle=0.0, joint=0.0, guided=7)
    boxes = torch.tensor([0.0, 0.0, 1.0, 1.0, 1.0]).repeat(3, 7, 1)
    for i, length in enumerate(one.lengths.tolist()):
        boxes[i, : min(length, 7)] = one.boxes[i, : min(length, 7)]
    read, rows = shifted_words(one.words, one.lengths)
    real = padding_mask(one.lengths + 1, read.shape[1])
    with torch.no_grad():
        memory = model.encode_images(one.images)
        logits = model.caption(memory, read, real, boxes, torch.ones(3, 7, dtype=torch.bool))
    found = losses(model, one, only, drawing())["caption"].item()
    assert found == pytest.approx(caption_loss(logits, rows, real).item(), rel=1e-5)
    plain = losses(model, one, replace(only, guided=0), drawing())["caption"].item()
    assert plain != pytest.approx(found, rel=1e-5)


def test_the_joint_task_reads_masked_boxes_and_aims_at_the_true_ones() -> None:
    model, one = network(), batch()
    settings = ObjectiveSettings(trace=0.0, caption=0.0, cycle=0.0, mask_rate=1.0)
    found = losses(model, one, settings, drawing())
    read, rows = shifted_words(one.words, one.lengths)
    real = padding_mask(one.lengths + 1, read.shape[1])
    hidden = torch.tensor([0.0, 0.0, 1.0, 1.0, 1.0]).repeat(3, read.shape[1], 1)
    hidden[:, 0] = 0
    with torch.no_grad():
        logits, boxes = model.joint(model.encode_images(one.images), read, hidden, real)
    assert found["joint_caption"].item() == pytest.approx(caption_loss(logits, rows, real).item(), rel=1e-5)
    wanted = trace_loss(boxes[:, :-1], one.boxes, one.located)
    assert found["joint_trace"].item() == pytest.approx(wanted.item(), rel=1e-5)


# --- LBM as a loss


def _traces(seed: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    generator = drawing(seed)
    boxes = torch.rand(2, 4, 12, 5, generator=generator, dtype=dtype)
    return boxes[0], boxes[1], torch.rand(4, 12, generator=generator) > 0.3


@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize("seed", [0, 1])
def test_without_entropy_the_loss_is_the_metric(k: int, seed: int) -> None:
    predicted, boxes, located = _traces(seed)
    exact = [
        lbm(a[keep][:, :4].numpy(), b[keep][:, :4].numpy(), k)
        for a, b, keep in zip(predicted, boxes, located, strict=True)
    ]
    smooth = lbm_loss(predicted, boxes, located, k, entropy=2e-3, iterations=1000)
    assert smooth.item() == pytest.approx(np.mean(exact), abs=2e-3)


def test_shares_sum_to_one_over_rows_and_columns() -> None:
    predicted, boxes, _ = _traces(2)
    count = torch.tensor([12, 7, 1, 0])
    costs, allowed = _band_costs(predicted[..., :4], boxes[..., :4], count, 2)
    shares = _band_shares(costs, allowed, 0.05, 500)
    full = torch.zeros(4, 12, 16, dtype=shares.dtype)
    for i in range(12):
        full[:, i, i : i + 5] = shares[:, i]
    real = padding_mask(count, 12).double()
    torch.testing.assert_close(full.sum(2), real, atol=1e-4, rtol=0)
    torch.testing.assert_close(full[:, :, 2:14].sum(1), real, atol=1e-4, rtol=0)


def test_the_gradient_is_that_of_the_smooth_minimum() -> None:
    predicted, boxes, located = _traces(3)
    located[:] = True

    def minimum(moved: Tensor) -> Tensor:
        costs, allowed = _band_costs(moved[..., :4], boxes[..., :4], located.sum(1), 1)
        shares = _band_shares(costs, allowed, 0.05, 300)
        return ((shares * costs).sum() + 0.05 * torch.special.xlogy(shares, shares).sum()) / 12 / 4

    predicted.requires_grad_()
    gradient = torch.autograd.grad(lbm_loss(predicted, boxes, located, 1, 0.05, 300), predicted)[0]
    for place in [(0, 0, 0), (1, 5, 2), (3, 11, 3)]:
        step = torch.zeros_like(predicted)
        step[place] = 1e-5
        with torch.no_grad():
            slope = (minimum(predicted + step) - minimum(predicted - step)) / 2e-5
        assert gradient[place].item() == pytest.approx(slope.item(), rel=1e-3, abs=1e-7)


def test_a_batch_without_a_located_word_costs_nothing() -> None:
    predicted, boxes, located = _traces(4)
    predicted.requires_grad_()
    loss = lbm_loss(predicted, boxes, torch.zeros_like(located))
    loss.backward()
    assert loss.item() == 0
    assert predicted.grad is not None
    assert torch.isfinite(predicted.grad).all()


@pytest.mark.parametrize(
    "change",
    [
        {"trace": -1.0},
        {"caption": float("nan")},
        {"trace": 0.0, "caption": 0.0, "cycle": 0.0, "joint": 0.0},
        {"temperature": 0.0},
        {"mask_rate": 1.5},
        {"trace_mask_rate": -0.5},
        {"cycle_segments": 1},
        {"lbm_k": -1},
        {"lbm_entropy": 0.0},
        {"guided": -1},
        {"guided": 5},
    ],
)
def test_settings_that_cannot_be_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(InvalidValue):
        ObjectiveSettings(**change)  # type: ignore[arg-type]


def test_an_unknown_cycle_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="segments"):
        ObjectiveSettings(cycle_kind="segment")
