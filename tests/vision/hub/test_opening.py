"""From a line of text to an encoder: prefixes, folders, the hub's cache, and everything that can be wrong with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from saywhere.assets import AssetUnavailable
from saywhere.core import InvalidFile, InvalidValue, UnknownName
from saywhere.vision.hub import KINDS, open_hub_encoder
from tests.vision.hub.conftest import MakePhoto, OpenEncoder

# Each kind with the tiny checkpoints it is made of.
SPECS = {
    "dino": "dino:{dino}",
    "dinov2": "dinov2:{dinov2}",
    "registers": "dinov2:{dinov2_with_registers}",
    "dinov3": "dinov3:{dinov3}",
    "clip": "clip:{clip}",
    "invite": "invite:{clip}",
    "maskclip": "maskclip:{clip}",
    "proxyclip": "proxyclip:{clip}+{dinov2_coarse}",
    "siglip2": "siglip2:{siglip}",
    "naflex": "siglip2:{naflex}",
    "talk2dino": "talk2dino:{dinov2_with_registers}",
    "dinotxt": "dinotxt:{dinov2_with_registers}+{head}",
}


def test_every_kind_is_tried_here() -> None:
    assert {spec.partition(":")[0] for spec in SPECS.values()} == set(KINDS)


@pytest.mark.parametrize("name", sorted(SPECS))
def test_a_look_gives_a_view_of_the_promised_shape(opened: OpenEncoder, make_photo: MakePhoto, name: str) -> None:
    size = {"clip": 8, "invite": 8, "maskclip": 8, "proxyclip": 8, "dinotxt": 6}.get(name, 16)
    encoder = opened(SPECS[name])
    view = encoder.look(make_photo())
    rows = 2 if name == "proxyclip" else 4
    assert encoder.size == size
    assert encoder.frame((40, 30)) == view.frame
    assert view.frame.grid == (rows, rows)
    assert view.patches.shape == (rows, rows, size)
    assert view.whole.shape == (size,)
    assert (view.attention is None) == (name in ("siglip2", "naflex"))
    assert np.ptp(view.patches.reshape(-1, size), axis=0).min() > 1e-4


@pytest.mark.parametrize("name", sorted(SPECS))
def test_two_photos_at_once_are_seen_as_each_alone(opened: OpenEncoder, make_photo: MakePhoto, name: str) -> None:
    encoder = opened(SPECS[name])
    photos = [make_photo(1), make_photo(2, size=(17, 50))]
    for together, photo in zip(encoder.look_many(photos), photos, strict=True):
        alone = encoder.look(photo)
        np.testing.assert_allclose(together.patches, alone.patches, atol=1e-5)
        np.testing.assert_allclose(together.whole, alone.whole, atol=1e-5)
        if alone.attention is not None:
            np.testing.assert_allclose(together.attention, alone.attention, atol=1e-5)


@pytest.mark.parametrize("name", sorted(SPECS))
def test_a_larger_input_gives_a_finer_grid(opened: OpenEncoder, make_photo: MakePhoto, name: str) -> None:
    encoder = opened(SPECS[name], input_px=24)
    view = encoder.look(make_photo())
    assert view.frame.input_size == (24, 24)
    assert view.patches.shape[:2] == ((3, 3) if name == "proxyclip" else (6, 6))


def test_no_photos_are_no_views(opened: OpenEncoder) -> None:
    assert opened(SPECS["clip"]).look_many([]) == []


def test_the_fingerprint_tells_what_the_features_depend_on(opened: OpenEncoder) -> None:
    def fingerprint(name: str, **options: str | int) -> dict[str, str | int]:
        return opened(SPECS[name], **options).fingerprint

    assert fingerprint("invite") == fingerprint("invite", attention_off=1, fit="squash", input_px=16)
    different = [
        fingerprint("clip"),
        fingerprint("invite"),
        fingerprint("invite", attention_off=2),
        fingerprint("clip", fit="letterbox"),
        fingerprint("clip", input_px=24),
        fingerprint("dinov2"),
        fingerprint("registers"),
        fingerprint("dinotxt"),
    ]
    assert len({json.dumps(one, sort_keys=True) for one in different}) == len(different)


@pytest.mark.parametrize(
    ("spec", "error", "reason"),
    [
        ("dinov22:x/y", UnknownName, "Did you mean 'dinov2'"),
        ("clip", UnknownName, "unknown encoder 'clip'"),
        ("clip:", InvalidValue, "write clip:CHECKPOINT"),
        ("proxyclip:x/y", InvalidValue, r"write proxyclip:CLIP\+DINO"),
        ("proxyclip:x/y+", InvalidValue, r"write proxyclip:CLIP\+DINO"),
        ("dinotxt:x/y+a+b", InvalidValue, r"write dinotxt:DINOV2\+HEAD"),
        ("clip:./nowhere", InvalidFile, "is no folder"),
        ("clip:nowhere", InvalidFile, "is no folder, nor the name"),
    ],
)
def test_a_spec_that_says_nothing_is_a_clear_error(spec: str, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        open_hub_encoder(spec)


@pytest.mark.parametrize(
    ("name", "options", "error", "reason"),
    [
        ("clip", {"input_px": 18}, InvalidValue, "not a multiple of 4"),
        ("clip", {"input_px": 0}, InvalidValue, "not a multiple of 4"),
        ("clip", {"fit": "center_crop"}, UnknownName, "Did you mean 'centre_crop'"),
        ("clip", {"attention_off": 1}, InvalidValue, "is for invite"),
        ("invite", {"attention_off": 4}, InvalidValue, "not within 0 … 3 blocks"),
        ("invite", {"attention_off": -1}, InvalidValue, "not within 0 … 3 blocks"),
        ("clip", {"revision": "main"}, InvalidValue, "is a folder"),
        ("proxyclip", {"revision": "main"}, InvalidValue, "two sources"),
    ],
)
def test_an_option_that_cannot_be_is_a_clear_error(
    checkpoints: dict[str, str], name: str, options: dict[str, object], error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        open_hub_encoder(SPECS[name].format(**checkpoints), **options)


@pytest.mark.parametrize(
    "spec", ["dinov2:{clip}", "clip:{dinov2}", "dinov3:{dinov2}", "siglip2:{clip}", "proxyclip:{clip}+{siglip}"]
)
def test_a_checkpoint_of_another_family_is_refused(checkpoints: dict[str, str], spec: str) -> None:
    with pytest.raises(InvalidFile, match="is the prefix the right one"):
        open_hub_encoder(spec.format(**checkpoints))


def test_a_checkpoint_that_lacks_a_tensor_is_refused_rather_than_filled(copied: Callable[[str], Path]) -> None:
    folder = copied("dinov2")
    tensors = load_file(folder / "model.safetensors")
    del tensors["layernorm.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InvalidFile, match=r"lacks 1 tensors of Dinov2Model, first 'layernorm.weight'"):
        open_hub_encoder(f"dinov2:{folder}")


def test_pickled_weights_are_not_even_tried(copied: Callable[[str], Path]) -> None:
    folder = copied("dinov2")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(InvalidFile, match="nothing pickled is ever loaded"):
        open_hub_encoder(f"dinov2:{folder}")


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("model.safetensors", b"\x10torn", "cannot be read as safetensors"),
        ("config.json", b"{", "is not JSON"),
        ("config.json", b"[]", "is not a JSON object"),
        ("preprocessor_config.json", b'{"image_mean": [0.5]}', "does not say how colours are scaled"),
        ("preprocessor_config.json", b'{"image_std": [0, 1, 1]}', "does not say how colours are scaled"),
        ("preprocessor_config.json", b'{"resample": 99}', "does not say how colours are scaled"),
        ("preprocessor_config.json", b'{"image_mean": 3}', "does not say how colours are scaled"),
    ],
)
def test_a_damaged_file_is_a_clear_error(copied: Callable[[str], Path], file: str, content: bytes, reason: str) -> None:
    folder = copied("dinov2")
    (folder / file).write_bytes(content)
    with pytest.raises(InvalidFile, match=reason):
        open_hub_encoder(f"dinov2:{folder}")


def test_a_head_that_does_not_fit_is_refused(checkpoints: dict[str, str], tmp_path: Path) -> None:
    backbone, head = checkpoints["dinov2_with_registers"], load_file(checkpoints["head"])
    cases = [
        ({name: tensor for name, tensor in head.items() if "mlp.w1" not in name}, "are they a vision head"),
        ({name: tensor for name, tensor in head.items() if "norm2" not in name}, "does not hold a vision head"),
        ({"a": head["ln_final.bias"]}, "are they a vision head"),
    ]
    for tensors, reason in cases:
        save_file(tensors, tmp_path / "bad.safetensors")
        with pytest.raises(InvalidFile, match=reason):
            open_hub_encoder(f"dinotxt:{backbone}+{tmp_path / 'bad.safetensors'}")
    with pytest.raises(InvalidFile, match="cannot be read as safetensors"):
        open_hub_encoder(f"dinotxt:{backbone}+{tmp_path / 'absent.safetensors'}")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No network, and an empty cache of the hub."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


@pytest.mark.usefixtures("offline")
def test_a_checkpoint_that_is_neither_cached_nor_reachable_says_how_to_get_it() -> None:
    with pytest.raises(AssetUnavailable, match="hf download facebook/dinov2-with-registers-base") as raised:
        open_hub_encoder("dinov2:facebook/dinov2-with-registers-base")
    assert raised.value.name == "facebook/dinov2-with-registers-base"


def test_a_checkpoint_in_the_hubs_cache_opens_without_the_network(
    offline: Path, copied: Callable[[str], Path], checkpoints: dict[str, str], make_photo: MakePhoto
) -> None:
    place, commit = offline / "models--someone--tiny-clip", "0" * 40
    (place / "snapshots").mkdir(parents=True)
    copied("clip").rename(place / "snapshots" / commit)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(commit)
    encoder = open_hub_encoder("clip:someone/tiny-clip")
    assert encoder.name == "clip:someone/tiny-clip"
    same = open_hub_encoder(f"clip:{checkpoints['clip']}")
    assert encoder.fingerprint == same.fingerprint
    np.testing.assert_array_equal(encoder.look(make_photo()).patches, same.look(make_photo()).patches)
