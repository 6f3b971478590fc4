"""Text encoders: tiny random networks for what they do, the real MiniLM, where it is cached, for what they say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch.nn import functional
from transformers.utils import logging

from saywhere.assets import AssetUnavailable, is_cached
from saywhere.core import InvalidFile, InvalidValue, UnknownName
from saywhere.language.clip_text import Talk2DinoProjection, load_talk2dino_projection
from saywhere.language.embed import MINILM, MiniLM, TextEncoder, open_text_encoder
from tests.language.small_bert import END, randomized, save_tokenizer

WORDS = ["a", "cat", "dog", "on", "the", "mat", "sits", "runs", "fast", "red", "and"]
CLIP_END = 15
TEXTS = ["a cat sits on the mat", "dog", "the red dog runs fast and the cat sits", "a mat", "red"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("texts")
    small = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 16}
    bert = transformers.BertModel(transformers.BertConfig(**small, vocab_size=15, max_position_embeddings=300))
    text = small | {"vocab_size": 16, "max_position_embeddings": 10, "projection_dim": 6}
    vision = small | {"image_size": 8, "patch_size": 4, "projection_dim": 6}
    text |= {"bos_token_id": 1, "eos_token_id": CLIP_END, "pad_token_id": 0}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=6)
    logging.disable_progress_bar()
    for name, network, end in (("bert", bert, END), ("clip", transformers.CLIPModel(config), CLIP_END)):
        randomized(network).save_pretrained(root / name)
        save_tokenizer(root / name / "tokenizer.json", WORDS, end)
    logging.enable_progress_bar()
    tensors = {"linear_layer.weight": (5, 6), "linear_layer.bias": (5,), "linear_layer2.weight": (7, 5)}
    rng = torch.Generator().manual_seed(1)
    projection = {name: torch.randn(shape, generator=rng) for name, shape in tensors.items()}
    projection["linear_layer2.bias"] = torch.randn(7, generator=rng)
    save_file(projection, root / "projection.safetensors")
    return {name: root / name for name in ("bert", "clip", "projection.safetensors")}


@pytest.fixture(scope="module")
def encoders(folders: dict[str, Path]) -> dict[str, TextEncoder]:
    return {
        "minilm": MiniLM(folders["bert"], "0" * 64),
        "clip": open_text_encoder(f"clip:{folders['clip']}"),
        "talk2dino": open_text_encoder(f"talk2dino:{folders['clip']}+{folders['projection.safetensors']}"),
    }


ALL = pytest.mark.parametrize("name", ["minilm", "clip", "talk2dino"])


@ALL
def test_rows_have_length_one_and_the_encoders_size(encoders: dict[str, TextEncoder], name: str) -> None:
    found = encoders[name].embed(TEXTS)
    assert encoders[name].size == {"minilm": 8, "clip": 6, "talk2dino": 7}[name]
    assert found.shape == (len(TEXTS), encoders[name].size)
    assert found.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert len(np.unique(found.round(4), axis=0)) == len(TEXTS)


@ALL
@pytest.mark.parametrize("batch", [1, 2, 64])
def test_a_text_gets_the_same_vector_alone_and_among_others(
    encoders: dict[str, TextEncoder], name: str, batch: int
) -> None:
    together = encoders[name].embed(TEXTS, batch=batch)
    for text, row in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(encoders[name].embed([text])[0], row, atol=1e-5)


@ALL
def test_no_texts_are_no_rows(encoders: dict[str, TextEncoder], name: str) -> None:
    assert encoders[name].embed([]).shape == (0, encoders[name].size)


@ALL
def test_progress_ends_with_all_texts(encoders: dict[str, TextEncoder], name: str) -> None:
    told: list[tuple[int, int]] = []
    encoders[name].embed(TEXTS, batch=2, progress=lambda _, done, total: told.append((done, total)))
    assert told == [(2, 5), (4, 5), (5, 5)]


@pytest.mark.parametrize(
    ("texts", "batch", "reason"),
    [
        (["a cat", ""], 8, "number 1 is empty"),
        ([" \n"], 8, "number 0 is empty"),
        ("a cat", 8, "are one string"),
        ([None], 8, "is a NoneType"),
        (["a cat"], 0, "not at least 1"),
    ],
)
def test_what_cannot_be_embedded_is_a_clear_error(
    encoders: dict[str, TextEncoder], texts: list[str], batch: int, reason: str
) -> None:
    for encoder in encoders.values():
        with pytest.raises(InvalidValue, match=reason):
            encoder.embed(texts, batch=batch)


@torch.no_grad()
def test_minilm_is_the_mean_over_tokens_of_the_last_layer(folders: dict[str, Path]) -> None:
    network = transformers.BertModel.from_pretrained(folders["bert"]).eval()
    ids = [1, *(4 + WORDS.index(word) for word in ["a", "cat", "sits"]), END]
    mean = network(input_ids=torch.tensor([ids])).last_hidden_state[0].mean(dim=0)
    found = MiniLM(folders["bert"], "0").embed(["a cat sits"])[0]
    np.testing.assert_allclose(found, functional.normalize(mean, dim=0).numpy(), atol=1e-5)


def test_minilm_reads_256_tokens_and_no_more(encoders: dict[str, TextEncoder]) -> None:
    many = encoders["minilm"].embed(["cat " * 254, "cat " * 253 + "dog", "cat " * 254 + "dog dog dog"])
    np.testing.assert_allclose(many[0], many[2], atol=1e-6)
    assert np.abs(many[0] - many[1]).max() > 1e-5


@torch.no_grad()
def test_clip_is_the_projected_end_token(folders: dict[str, Path], encoders: dict[str, TextEncoder]) -> None:
    network = transformers.CLIPModel.from_pretrained(folders["clip"]).eval()
    ids = torch.tensor([[1, *(4 + WORDS.index(word) for word in ["a", "cat", "sits"]), CLIP_END]])
    state = network.text_model(input_ids=ids).last_hidden_state[0, -1]
    expected = functional.normalize(network.text_projection(state), dim=0)
    np.testing.assert_allclose(encoders["clip"].embed(["a cat sits"])[0], expected.numpy(), atol=1e-5)


def test_clip_cuts_long_texts_and_keeps_the_end(encoders: dict[str, TextEncoder]) -> None:
    short, long = encoders["clip"].embed(["cat " * 8, "cat " * 8 + "dog dog"])
    np.testing.assert_allclose(short, long, atol=1e-6)


@torch.no_grad()
def test_talk2dino_is_linear_tanh_linear_on_clips_vector(
    folders: dict[str, Path], encoders: dict[str, TextEncoder]
) -> None:
    network = transformers.CLIPModel.from_pretrained(folders["clip"]).eval()
    layers = load_file(folders["projection.safetensors"])
    ids = torch.tensor([[1, 4 + WORDS.index("dog"), CLIP_END]])
    vector = network.text_projection(network.text_model(input_ids=ids).last_hidden_state[0, -1])
    hidden = torch.tanh(layers["linear_layer.weight"] @ vector + layers["linear_layer.bias"])
    projected = layers["linear_layer2.weight"] @ hidden + layers["linear_layer2.bias"]
    found = encoders["talk2dino"].embed(["dog"])[0]
    np.testing.assert_allclose(found, functional.normalize(projected, dim=0).numpy(), atol=1e-5)


def test_a_projection_under_the_newer_names_is_the_same(folders: dict[str, Path], tmp_path: Path) -> None:
    tensors = load_file(folders["projection.safetensors"])
    renamed = {name.replace("linear_layer2", "hidden_layers.0"): tensor for name, tensor in tensors.items()}
    save_file(renamed, tmp_path / "new.safetensors")
    old, new = (load_talk2dino_projection(p) for p in (folders["projection.safetensors"], tmp_path / "new.safetensors"))
    assert isinstance(old, Talk2DinoProjection)
    torch.testing.assert_close(old(torch.ones(6)), new(torch.ones(6)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"linear_layer.bias": None}, "a projection is linear_layer.weight"),
        ({"extra": torch.zeros(1)}, "a projection is linear_layer.weight"),
        ({"linear_layer2.weight": torch.zeros(7, 4)}, "do not fit each other"),
        ({"linear_layer.weight": torch.zeros(5)}, "not a matrix"),
    ],
)
def test_a_projection_that_is_none_is_refused(
    folders: dict[str, Path], tmp_path: Path, change: dict[str, torch.Tensor | None], reason: str
) -> None:
    tensors = load_file(folders["projection.safetensors"]) | change
    save_file({name: tensor for name, tensor in tensors.items() if tensor is not None}, tmp_path / "bad.safetensors")
    with pytest.raises(InvalidFile, match=reason):
        load_talk2dino_projection(tmp_path / "bad.safetensors")
    with pytest.raises(InvalidFile, match="cannot be read as safetensors"):
        load_talk2dino_projection(tmp_path / "absent.safetensors")


def test_a_projection_for_another_clip_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    tensors = load_file(folders["projection.safetensors"]) | {"linear_layer.weight": torch.zeros(5, 512)}
    save_file(tensors, tmp_path / "wide.safetensors")
    with pytest.raises(InvalidValue, match=r"takes 512 numbers, but clip:.* gives 6"):
        open_text_encoder(f"talk2dino:{folders['clip']}+{tmp_path / 'wide.safetensors'}")


def test_the_fingerprints_differ(encoders: dict[str, TextEncoder]) -> None:
    assert len({str(sorted(encoder.fingerprint.items())) for encoder in encoders.values()}) == 3


@pytest.mark.parametrize(
    ("name", "error", "reason"),
    [
        ("all-minilm-l12-v2", UnknownName, "Did you mean 'all-minilm-l6-v2'"),
        ("klip:x/y", UnknownName, "unknown text encoder"),
        ("clip:", InvalidValue, "write clip:CHECKPOINT"),
        ("clip:./nowhere", InvalidFile, "is no folder"),
        ("talk2dino:x/y", InvalidValue, "is not of two parts"),
    ],
)
def test_an_unknown_name_is_a_clear_error(name: str, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        open_text_encoder(name)


def test_a_clip_that_is_neither_cached_nor_reachable_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(AssetUnavailable, match="hf download openai/clip-vit-base-patch16"):
        open_text_encoder("clip:openai/clip-vit-base-patch16")


def _without_a_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["text_projection.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_without_a_tensor, "lacks 1 tensors"),
        (lambda folder: (folder / "model.safetensors").unlink(), r"holds no \*.safetensors"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "holds no tokenizer.json"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"torn"), "cannot be read as safetensors"),
    ],
)
def test_a_spoilt_checkpoint_is_refused(
    folders: dict[str, Path], tmp_path: Path, spoil: Callable[[Path], None], reason: str
) -> None:
    for file in folders["clip"].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    spoil(tmp_path)
    with pytest.raises(InvalidFile, match=reason):
        open_text_encoder(f"clip:{tmp_path}")


@pytest.mark.skipif(not is_cached(MINILM), reason=f"needs the asset {MINILM} in the cache")
def test_the_real_minilm_gives_the_published_similarities() -> None:
    # The example on the model's page on the hub.
    said, *others = open_text_encoder().embed(
        ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]
    )
    np.testing.assert_allclose(np.stack(others) @ said, [0.6946, 0.9429, 0.2569], atol=1e-3)
