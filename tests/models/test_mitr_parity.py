"""Against the authors' numbers: their parameters, inputs, outputs, losses and decoded sequences."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from saywhere.core import InvalidValue
from saywhere.models.common.batches import padding_mask
from saywhere.models.mitr import MITR, MitrConfig, decode
from saywhere.models.mitr.layers import Norm, shifted_boxes, shifted_words
from saywhere.models.mitr.losses import caption_loss, trace_loss
from saywhere.models.mitr.network import Memory
from saywhere.models.mitr.released import released_names, to_released
from tests.models.small import generation, network

TOLERANCE = 1e-4
THEIR_ZERO_ROW = 2
"""Their token n is our id n + 2."""


class Golden:
    """The vectors, and the network made of their parameters."""

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as file:
            self.arrays = {name: file[name] for name in file.files}
        self.state = {name.removeprefix("param/"): a for name, a in self.arrays.items() if name.startswith("param/")}
        self.model = MITR.from_released(self.state)
        labels = self["in/labels"][:, 0]
        self.lengths = self["in/trace_mask"].sum(dim=1).long()
        self.words = labels[:, 1:-1] + THEIR_ZERO_ROW
        self.read, self.rows = shifted_words(self.words, self.lengths)
        # They know the end of a text by its zeros.
        self.real = padding_mask(self.lengths + 1, self.read.shape[1])
        self.trace_mask = self["in/trace_mask"].bool()

    def __getitem__(self, name: str) -> Tensor:
        return torch.from_numpy(self.arrays[name])

    def memory(self) -> Memory:
        with torch.no_grad():
            return self.model.encode(self["in/att"], self["in/box"], self["in/att_mask"].bool())


@pytest.fixture(scope="module")
def golden(shared: Callable[[str], Path]) -> Golden:
    return Golden(shared("vectors/mitr_golden_N1.npz"))


def farthest(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max())


@torch.no_grad()
def test_caption_scores_and_loss_are_the_authors(golden: Golden) -> None:
    logits = golden.model.caption(golden.memory(), golden.read, golden.real, golden["in/trace"], golden.trace_mask)
    assert farthest(logits.log_softmax(-1), golden["out/caption_logp"]) < TOLERANCE
    assert torch.equal(golden.real, golden["in/label_mask"][:, 0, 1:].bool())
    loss = caption_loss(logits, golden.rows, golden.real)
    assert farthest(loss, golden["out/loss_caption"]) < TOLERANCE


@torch.no_grad()
def test_trace_boxes_and_loss_are_the_authors(golden: Golden) -> None:
    count = golden.trace_mask.shape[1]
    shifted = shifted_boxes(golden["in/trace"])
    boxes = golden.model.ground(golden.memory(), golden.words[:, :count], golden.trace_mask, shifted)
    assert farthest(boxes, golden["out/trace_boxes"]) < TOLERANCE
    located = golden.trace_mask & (golden["in/trace"][..., 4] != 1)
    assert farthest(trace_loss(boxes, golden["in/trace"], located), golden["out/loss_trace"]) < TOLERANCE


@torch.no_grad()
def test_joint_scores_boxes_and_losses_are_the_authors(golden: Golden) -> None:
    logits, boxes = golden.model.joint(golden.memory(), golden.read, shifted_boxes(golden["in/trace"]), golden.real)
    assert farthest(logits.log_softmax(-1), golden["out/both_logp"]) < TOLERANCE
    assert farthest(boxes, golden["out/both_boxes"]) < TOLERANCE
    located = golden.trace_mask & (golden["in/trace"][..., 4] != 1)
    assert farthest(caption_loss(logits, golden.rows, golden.real), golden["out/loss_both_caption"]) < TOLERANCE
    assert farthest(trace_loss(boxes, golden["in/trace"], located), golden["out/loss_both_trace"]) < TOLERANCE


def test_greedy_words_are_the_authors_up_to_the_length_they_cut_at(golden: Golden) -> None:
    how = generation("greedy", max_words=12)
    said = decode.caption(golden.model, golden.memory(), golden["in/trace"], golden.trace_mask, how)
    for one, theirs, length in zip(said, golden.arrays["out/greedy_seq"], golden.lengths.tolist(), strict=True):
        assert [word - THEIR_ZERO_ROW for word in one.tokens[:length]] == theirs[:length].tolist()


def test_beam_words_and_scores_are_the_authors(golden: Golden) -> None:
    how = generation(beams=5, max_words=12)
    said = decode.caption(golden.model, golden.memory(), golden["in/trace"], golden.trace_mask, how)
    assert [[word - THEIR_ZERO_ROW for word in one.tokens] for one in said] == golden.arrays["out/beam5_seq"].tolist()
    np.testing.assert_allclose([sum(one.logprobs) for one in said], golden.arrays["out/beam5_score"], atol=TOLERANCE)


def test_joint_words_and_boxes_are_the_authors(golden: Golden) -> None:
    said = decode.joint(golden.model, golden.memory(), generation("greedy", max_words=12))
    assert [[word - THEIR_ZERO_ROW for word in one.tokens] for one in said] == golden.arrays["out/joint_seq"].tolist()
    for one, theirs in zip(said, golden["out/joint_boxes"], strict=True):
        assert one.outputs is not None
        assert farthest(one.outputs, theirs) < TOLERANCE


def test_decoded_traces_are_the_authors(golden: Golden) -> None:
    count = golden.trace_mask.shape[1]
    boxes = decode.trace(golden.model, golden.memory(), golden.words[:, :count], golden.lengths)
    mask = golden.trace_mask[:, :, None]
    assert farthest(boxes, golden["out/trace_gen"] * mask) < TOLERANCE


@pytest.mark.parametrize(("layers", "parameters"), [(1, 31_286_550), (2, 38_645_526)])
def test_the_number_of_parameters_is_the_authors(layers: int, parameters: int) -> None:
    with torch.device("meta"):
        model = MITR(MitrConfig(10_000, layers=layers))
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_parameters_go_out_and_come_back_under_the_authors_names(layers: int) -> None:
    model = network(layers=layers)
    state = to_released(model)
    assert len(state) == len(model.state_dict())
    again = MITR.from_released(state, heads=model.config.heads)
    assert again.config.layers == layers
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), again.state_dict().values(), strict=True))


def test_the_authors_names_of_a_second_layer_follow_their_order() -> None:
    names = released_names(2)
    layer = "model.decoder.layer"
    assert names["word_stream.layers.1.self_norm.scale"] == f"{layer}.sublayer.12.norm.a_2"
    assert names["trace_stream.layers.1.image_norm.shift"] == f"{layer}.sublayer.15.norm.b_2"
    assert names["trace_stream.layers.1.image_attention.out.bias"] == f"{layer}.trace_src_attn.1.linears.3.bias"
    assert names["encoder.1.feed.fc1.weight"] == "model.encoder.layers.1.feed_forward.w_1.weight"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda state: state.pop("model.decoder.norm_2.a_2"), "1 missing"),
        (lambda state: state.update({"att_embed.4.weight": np.ones(3, dtype=np.float32)}), "1 unknown"),
        (lambda state: state.update({"model.decoder.norm.a_2": np.ones(5, dtype=np.float32)}), "has shape"),
        (lambda state: state.update({"att_embed.0.bias": np.zeros(32, dtype=np.int64)}), "not real numbers"),
        (lambda state: state.clear(), "is this the authors' MITR"),
    ],
)
def test_released_parameters_that_do_not_fit_are_refused(
    change: Callable[[dict[str, object]], object], reason: str
) -> None:
    state: dict[str, object] = dict(to_released(network()))
    change(state)
    with pytest.raises(InvalidValue, match=reason):
        MITR.from_released(state, heads=4)


@torch.no_grad()
def test_the_fused_norm_is_the_norm_of_the_definition() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(50, 32, generator=generator) * torch.logspace(-2, 2, 50)[:, None] + 3
    norm = Norm(32)
    norm.scale.data, norm.shift.data = torch.rand(32, generator=generator), torch.rand(32, generator=generator)
    exact = x.double()
    wanted = (exact - exact.mean(-1, keepdim=True)) / (exact.std(-1, keepdim=True) + 1e-6) * norm.scale + norm.shift
    assert farthest(norm(x), wanted) < 5e-4
    assert torch.isfinite(norm(torch.ones(2, 32))).all()
