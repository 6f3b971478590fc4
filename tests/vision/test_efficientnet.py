"""The network: its padding, its shapes, and weights that must fit exactly."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from saywhere.core import InvalidFile, InvalidValue, UnknownName
from saywhere.vision.efficientnet import (
    CONFIGS,
    ConvNorm,
    EfficientNetLite,
    LiteConfig,
    config_of,
    load_lite,
    released_names,
    same_padding,
)
from tests.vision.conftest import TINY, tiny_network

# Trainable numbers of the published networks.
PARAMETERS = {
    "efficientnet-lite0": 4_652_008,
    "efficientnet-lite1": 5_416_680,
    "efficientnet-lite2": 6_092_072,
}


def _released(network: EfficientNetLite) -> dict[str, Tensor]:
    names = released_names(network)
    return {names[name]: tensor.clone() for name, tensor in network.state_dict().items()}


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_each_variant_has_the_published_number_of_parameters(name: str) -> None:
    with torch.device("meta"):
        network = EfficientNetLite(config_of(name))
    assert sum(parameter.numel() for parameter in network.parameters()) == PARAMETERS[name]


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding"),
    [
        (224, 3, 2, (0, 1)),
        (7, 3, 2, (1, 1)),
        (8, 5, 2, (1, 2)),
        (9, 5, 2, (2, 2)),
        (8, 3, 1, (1, 1)),
        (8, 1, 2, (0, 0)),
    ],
)
def test_padding_is_tensorflows_same(size: int, kernel: int, stride: int, padding: tuple[int, int]) -> None:
    assert same_padding(size, kernel, stride) == padding


@torch.no_grad()
def test_a_strided_convolution_looks_right_and_down_first() -> None:
    layer = ConvNorm(1, 1, 3, 2, active=False).eval()
    layer.conv.weight.fill_(1)
    # Zeros come only after the last row and column, so the first window is the three by three at the top left.
    seen = layer(torch.arange(16.0).reshape(1, 1, 4, 4)) * (1 + 1e-3) ** 0.5
    torch.testing.assert_close(seen, torch.tensor([[[[45.0, 39.0], [66.0, 50.0]]]]))


@torch.no_grad()
def test_the_map_has_one_cell_for_32_pixels_and_stays_within_relu6() -> None:
    photos = torch.randn(2, 3, 64, 96, generator=torch.Generator().manual_seed(1))
    network = tiny_network()
    seen = network.features(photos)
    assert seen.shape == (2, TINY.head, 2, 3)
    assert seen.min() >= 0
    assert 0 < seen.max() <= 6
    torch.testing.assert_close(
        network(photos), functional.linear(seen.flatten(2).mean(2), *network.classifier.parameters())
    )


@torch.no_grad()
def test_folding_changes_no_feature() -> None:
    photos = torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(2))
    network = tiny_network()
    before = network.features(photos)
    network.fold()
    assert not any(isinstance(module, torch.nn.BatchNorm2d) for module in network.modules())
    torch.testing.assert_close(network.features(photos), before, rtol=1e-4, atol=1e-4)


def test_a_network_in_training_cannot_be_folded() -> None:
    with pytest.raises(InvalidValue, match="training mode"):
        tiny_network().train().fold()


@pytest.mark.parametrize("classifier", [True, False])
@torch.no_grad()
def test_released_weights_load_with_every_tensor_in_its_place(tmp_path: Path, classifier: bool) -> None:
    network = tiny_network(3, classifier=classifier)
    released = _released(network)
    assert len(released) == len(network.state_dict())
    assert {"_conv_stem.weight", "_blocks.0._depthwise_conv.weight", "_blocks.1._bn2.running_var"} <= set(released)
    save_file(released, tmp_path / "model.safetensors")
    photos = torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(4))
    loaded = load_lite(tmp_path / "model.safetensors", TINY)
    torch.testing.assert_close(loaded.features(photos), network.features(photos), rtol=1e-4, atol=1e-4)
    assert not any(parameter.requires_grad for parameter in loaded.parameters())
    assert (loaded.classifier is not None) == classifier


def test_logits_without_a_classifier_are_an_error() -> None:
    with pytest.raises(InvalidValue, match="has no classifier"):
        tiny_network(classifier=False)(torch.zeros(1, 3, 32, 32))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"_bn1.bias": None}, "lack 1 tensors, first '_bn1.bias'"),
        ({"_blocks.99._bn0.bias": torch.zeros(1)}, "hold 1 tensors too many, first '_blocks.99._bn0.bias'"),
        ({"_conv_stem.weight": torch.zeros(4, 1, 3, 3)}, r"'_conv_stem.weight' has shape \(4, 1, 3, 3\)"),
        ({"_fc.bias": None}, "lack 1 tensors, first '_fc.bias'"),
    ],
)
def test_weights_that_do_not_fit_are_refused(tmp_path: Path, change: dict[str, Tensor | None], reason: str) -> None:
    tensors = _released(tiny_network()) | change
    path = tmp_path / "model.safetensors"
    save_file({name: tensor for name, tensor in tensors.items() if tensor is not None}, path)
    with pytest.raises(InvalidFile, match=reason):
        load_lite(path, TINY)


def test_a_file_that_is_no_safetensors_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "torn.safetensors").write_bytes(b"\x10")
    for name in ("torn.safetensors", "absent.safetensors"):
        with pytest.raises(InvalidFile, match="cannot be read as safetensors"):
            load_lite(tmp_path / name, TINY)


@pytest.mark.parametrize("shape", [(3, 64, 64), (1, 1, 64, 64), (1, 3, 64, 60)])
def test_photos_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidValue, match="multiples of 32"):
        tiny_network().features(torch.zeros(shape))


def test_an_unknown_variant_and_a_config_without_seven_stages_are_errors() -> None:
    with pytest.raises(UnknownName, match="efficientnet-lite0"):
        config_of("efficientnet-lite9")
    with pytest.raises(InvalidValue, match="7 repeats"):
        LiteConfig((1, 2), (3, 4))
