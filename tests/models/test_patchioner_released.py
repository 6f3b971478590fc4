"""The authors' published parts: their decoder's numbers and words, and the paper's full system on tiny random parts."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import tokenizers
import torch
import transformers
from PIL import Image
from safetensors.torch import save_file
from torch.nn.attention import SDPBackend, sdpa_kernel
from typer.testing import CliRunner

import saywhere
from saywhere.build.released import PublishedSystem, build_published, read_memory
from saywhere.cli.build import app
from saywhere.core import Box, BoxSet, InvalidFile, InvalidValue, Trace
from saywhere.language.embed import TextEncoder
from saywhere.models.patchioner.released import ReleasedDecoder, read_released
from saywhere.models.patchioner.seer import read_config, save_config
from saywhere.models.search import GenerationConfig
from tests.vision.hub.tiny import SIZE, dinov2_with_registers, randomized

WORDS = ["<|startoftext|>", "a", "cat", "dog", "red", "on", "mat", "<|endoftext|>"]
CAPTIONS = ["a cat", "a red cat on a mat", "a dog on a mat", "a red dog"]


def quiet(doing: str, done: int, total: int) -> None:
    assert done <= total, doing


class Spelled:
    """Stands in for CLIP's tokenizer, which is not here: tokens as they are."""

    def decode(self, tokens: list[int], skip_special_tokens: bool = True) -> str:
        assert skip_special_tokens
        return " ".join(map(str, tokens))


def with_biases(state: dict[str, torch.Tensor], kept: dict[str, Any], few: int = 2) -> dict[str, torch.Tensor]:
    """The state with the biases of queries, keys and values, which the file of vectors lacks.

    They are the 96 numbers with which the first two of six examples give the authors' 10,200 logits, by Gauss and
    Newton; that of keys changes nothing. The other four examples, and every token, must then follow by themselves.
    """
    names = [f"decoder.transformer.h.{layer}.attn.c_attn.bias" for layer in (0, 1)]
    decoder = ReleasedDecoder.from_released(state | dict.fromkeys(names, torch.zeros(48)), Spelled()).double()
    table = decoder.decoder.transformer.wte.weight[torch.from_numpy(kept["in/logit_columns"])]
    tokens, wanted = torch.from_numpy(kept["in/tokens"][:few]), torch.from_numpy(kept["out/logits"][:few]).double()
    first = decoder.prefix(torch.from_numpy(kept["in/features"][:few]).double())[:, None]
    embedded = torch.cat([first, decoder.decoder.transformer.wte(tokens)], dim=1).detach()

    def off(biases: torch.Tensor) -> torch.Tensor:
        inner = {
            name.removeprefix("decoder.transformer."): part for name, part in zip(names, biases.split(48), strict=True)
        }
        said = torch.func.functional_call(
            decoder.decoder.transformer, inner, kwargs={"inputs_embeds": embedded, "use_cache": False}
        )
        return (said.last_hidden_state @ table.T - wanted).flatten()

    found = torch.zeros(96, dtype=torch.float64)
    for _ in range(7):
        # The fused kernel has no forward derivative.
        with sdpa_kernel(SDPBackend.MATH):
            slope = torch.func.jacfwd(off)(found).detach()
        found = found - torch.linalg.lstsq(slope, off(found).detach()[:, None], driver="gelsd").solution[:, 0]
    return state | dict(zip(names, found.float().split(48), strict=True))


@pytest.mark.filterwarnings("ignore:.*jit.script.*:DeprecationWarning")
def test_logits_and_tokens_are_the_authors(shared: Callable[[str], Path]) -> None:
    with np.load(shared("vectors/decap_golden.npz")) as file:
        kept = {name: file[name] for name in file.files}
    state = {
        name.removeprefix("param/"): torch.from_numpy(kept[name]).float() for name in kept if name.startswith("param/")
    }
    with pytest.raises(InvalidValue, match=r"c_attn\.bias"):
        ReleasedDecoder.from_released(state, Spelled())
    decoder = ReleasedDecoder.from_released(with_biases(state, kept), Spelled())
    features, tokens = torch.from_numpy(kept["in/features"]), torch.from_numpy(kept["in/tokens"])
    with torch.no_grad():
        logits = decoder(features, tokens)[:, :, torch.from_numpy(kept["in/logit_columns"])]
        np.testing.assert_allclose(logits.numpy(), kept["out/logits"], atol=1e-5, rtol=0)
        # Thirty steps without a stop, as their program makes them, here with a cache.
        steps = decoder.steps(features)
        said = [steps.start().argmax(dim=1)]
        for _ in range(29):
            said.append(steps.advance(said[-1]).argmax(dim=1))
    np.testing.assert_array_equal(torch.stack(said, dim=1).numpy(), kept["out/greedy_tokens"])
    for one, wanted in zip(decoder.write(kept["in/features"]), kept["out/greedy_tokens"].tolist(), strict=True):
        ended = wanted.index(49407) if 49407 in wanted else len(wanted)
        assert one.text == " ".join(map(str, wanted[:ended]))
        assert one.ended == (49407 in wanted)


def tiny_clip(folder: Path) -> Path:
    """CLIP's text side with a tokenizer of eight words, as checkpoints have them."""
    vocabulary = {word: i for i, word in enumerate(WORDS)}
    config = transformers.CLIPTextConfig(
        **{"hidden_size": 12, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 16},
        **{"vocab_size": len(WORDS), "max_position_embeddings": 10, "projection_dim": 6},
        **{"bos_token_id": 0, "eos_token_id": 7, "pad_token_id": 7},
    )
    randomized(transformers.CLIPTextModelWithProjection(config)).save_pretrained(folder)
    by_word = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, WORDS[-1]))
    by_word.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    by_word.add_special_tokens([WORDS[0], WORDS[-1]])
    by_word.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{WORDS[0]} $A {WORDS[-1]}", special_tokens=[(WORDS[0], 0), (WORDS[-1], 7)]
    )
    by_word.save(str(folder / "tokenizer.json"))
    return folder


def tiny_decoder() -> dict[str, torch.Tensor]:
    """The tensors of a decoder as the authors save it, with the buffers that old versions had."""
    config = transformers.GPT2Config(vocab_size=len(WORDS), n_positions=20, n_embd=8, n_layer=2, n_head=4)
    network = randomized(transformers.GPT2LMHeadModel(config), seed=3)
    state = {f"decoder.{name}": value.clone() for name, value in network.state_dict().items()}
    state["decoder.transformer.h.0.attn.bias"] = torch.ones(1, 1, 20, 20, dtype=torch.bool)
    generator = torch.Generator().manual_seed(5)
    state["clip_project.model.0.weight"] = torch.randn(8, SIZE, generator=generator)
    state["clip_project.model.0.bias"] = torch.zeros(8)
    return state


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> PublishedSystem:
    root = tmp_path_factory.mktemp("published")
    dinov2_with_registers().save_pretrained(root / "dino")
    generator = torch.Generator().manual_seed(4)
    projection = {
        "linear_layer.weight": torch.randn(10, 6, generator=generator),
        "linear_layer.bias": torch.zeros(10),
        "linear_layer2.weight": torch.randn(SIZE, 10, generator=generator),
        "linear_layer2.bias": torch.zeros(SIZE),
    }
    torch.save(projection, root / "vitb_mlp_infonce.pth")
    torch.save(tiny_decoder(), root / "coco-009.pt")
    (root / "captions.json").write_text(json.dumps(CAPTIONS))
    return PublishedSystem(
        *(root / "vitb_mlp_infonce.pth", root / "coco-009.pt", root / "captions.json"),
        dino=str(root / "dino"),
        clip=str(tiny_clip(root / "clip")),
        input_px=16,
    )


@pytest.fixture(scope="module")
def system(parts: PublishedSystem, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("seer") / "patch-ioner"
    assert build_published(parts, out, quiet) == len(CAPTIONS)
    return out


@pytest.fixture(scope="module")
def photo() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8))


def test_the_papers_system_captions_every_kind_of_region_from_published_parts(system: Path, photo: Image.Image) -> None:
    seer = saywhere.load(str(system))
    look = seer.look(photo)
    box, trace = Box(0.1, 0.2, 0.6, 0.8), Trace([(0.1, 0.1, 0), (0.5, 0.5, 1), (0.9, 0.5, 2)])
    regions = [box, BoxSet([box, Box(0.7, 0.7, 1, 1)]), trace]
    captions = look.captions(regions)
    assert all(set(one.text.split()) <= {"a", "cat", "dog", "red", "on", "mat"} for one in captions)
    assert look.captions([trace])[0].text == captions[2].text
    assert {near.sentence for near in captions[0].nearest} <= set(CAPTIONS)
    assert seer.name == "patch-ioner"
    # Texts go through CLIP and the projection into the same space as patches.
    assert seer.texts(["a cat"]).shape == (1, SIZE)
    assert look.aligned.vectors([box]).shape == (1, SIZE)


def test_weights_other_than_the_papers_reach_captions_of_every_region(system: Path, photo: Image.Image) -> None:
    look = saywhere.load(str(system)).look(photo)
    box, trace = Box(0, 0, 1, 0.9), Trace([(0.05, 0.05, 0), (0.5, 0.5, 1), (0.95, 0.5, 2)])
    for region in (box, BoxSet([box, Box(0.5, 0.5, 1, 1)]), trace, None):
        for weighting in ("gaussian", "attention"):
            assert look.caption(region, weighting=weighting).text is not None
            if region is not None:
                usual, other = (one.aligned.vectors([region]) for one in (look, look.weighing(weighting)))
                assert not np.allclose(usual, other, atol=1e-3), (region, weighting)
    assert look.caption(box, weighting="uniform").text == look.caption(box).text


def test_a_folder_can_name_the_weighting(system: Path, photo: Image.Image, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(system, tmp_path / "gaussian"))
    config = json.loads((copied / "seer.json").read_text())
    save_config(copied, config | {"weighting": {"box": "gaussian"}})
    box = Box(0, 0, 1, 0.9)
    named, asked = saywhere.load(str(copied)).look(photo), saywhere.load(str(system)).look(photo).weighing("gaussian")
    np.testing.assert_allclose(named.aligned.vectors([box]), asked.aligned.vectors([box]), atol=1e-6)
    for wrong in (
        {"weighting": {"box": "bell"}},
        {"weighting": {"bx": "touch"}},
        {"alignment": "linear-ish"},
        {"gap": "x"},
    ):
        (copied / "seer.json").write_text(json.dumps(config | wrong))
        with pytest.raises(InvalidFile, match="does not describe a seer"):
            read_config(copied)


def test_beams_never_find_a_less_likely_text(system: Path) -> None:
    decoder = ReleasedDecoder.from_pretrained(system / "writer")
    vectors = np.random.default_rng(1).normal(size=(5, SIZE)).astype(np.float32)
    greedy = decoder.write(vectors)
    beams = decoder.write(vectors, GenerationConfig("beam", beams=4))
    assert all(b.score >= g.score - 1e-5 for b, g in zip(beams, greedy, strict=True))
    assert [decoder.write(vectors[i : i + 1])[0].text for i in range(5)] == [one.text for one in greedy]
    with pytest.raises(InvalidValue, match="learnt none"):
        decoder.write(vectors, prompts=["a"] * 5)


def test_nothing_but_tensors_is_loaded(tmp_path: Path, parts: PublishedSystem) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "owned",))

    (tmp_path / "evil.pt").write_bytes(pickle.dumps({"decoder": Evil()}))
    with pytest.raises(InvalidFile, match="more than plain tensors"):
        read_released(tmp_path / "evil.pt")
    assert not (tmp_path / "owned").exists()
    save_file({"a": torch.ones(2)}, tmp_path / "other.safetensors")
    with pytest.raises(InvalidValue, match="lacks"):
        ReleasedDecoder.from_released(read_released(tmp_path / "other.safetensors"), Spelled())
    assert set(read_released(parts.decoder)) == set(tiny_decoder())


class Counted(TextEncoder):
    """Embeds a text as its length."""

    size, fingerprint = 2, {"text_encoder": "counted"}

    def embed(self, texts: Any, **_: Any) -> Any:
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


def test_a_memory_is_read_from_captions_or_features_in_every_published_form(tmp_path: Path) -> None:
    texts = ["a cat", "a dog"]
    (tmp_path / "list.json").write_text(json.dumps(texts))
    coco = {"images": [{"id": 1, "file_name": "1.jpg"}], "annotations": []}
    coco["annotations"] = [{"id": i, "image_id": 1, "caption": text} for i, text in enumerate(texts)]
    (tmp_path / "coco.json").write_text(json.dumps(coco))
    rows = [{"caption": text, "features": [i, 2.0]} for i, text in enumerate(texts)]
    (tmp_path / "features.json").write_text(json.dumps(rows))
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["coco-embeddings"] = np.array([[3.0, 4.0], [0, 0], [1.0, 0.0]])
        file["coco-text"] = [b"a cat", b"nothing", b"a dog"]
    encoder = Counted()
    for name in ("list.json", "coco.json"):
        bank = read_memory(tmp_path / name, encoder, quiet)
        assert list(bank.sentences) == texts
        np.testing.assert_allclose(bank.vectors[0], np.array([5, 1]) / np.sqrt(26), atol=1e-3)
    given = read_memory(tmp_path / "features.json", encoder, quiet)
    np.testing.assert_allclose(given.vectors[0], [0, 1], atol=1e-3)
    kept = read_memory(tmp_path / "m.h5", encoder, quiet)
    assert list(kept.sentences) == texts
    np.testing.assert_allclose(kept.vectors[0], [0.6, 0.8], atol=1e-3)
    (tmp_path / "half.json").write_text(json.dumps([rows[0], "a dog"]))
    with pytest.raises(InvalidFile, match="none of 1"):
        read_memory(tmp_path / "half.json", encoder, quiet)


def test_a_memory_in_hdf5_reads_no_other_file_and_claims_no_more_than_it_holds(tmp_path: Path) -> None:
    vectors, texts = np.array([[3.0, 4.0], [1.0, 0.0]]), [b"a cat", b"a dog"]
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["hidden"], file["texts"] = vectors, texts
    faults: dict[str, tuple[Any, Any]] = {
        "lies elsewhere": (h5py.ExternalLink(str(tmp_path / "other.h5"), "/hidden"), texts),
        "'coco-text' lies elsewhere": (vectors, h5py.ExternalLink(str(tmp_path / "other.h5"), "/texts")),
        "holds 2 features, but 1 captions": (vectors, texts[:1]),
    }
    for number, (reason, (features, captions)) in enumerate(faults.items()):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file["coco-embeddings"], file["coco-text"] = features, captions
        with pytest.raises(InvalidFile, match=reason):
            read_memory(tmp_path / f"{number}.h5", Counted(), quiet)
    with h5py.File(tmp_path / "empty.h5", "w") as file:
        file.create_dataset("coco-embeddings", (2**33, 2), "f4", chunks=(1024, 2))
        file["coco-text"] = texts
    with pytest.raises(InvalidFile, match="bytes of an index; at most"):
        read_memory(tmp_path / "empty.h5", Counted(), quiet)


def test_the_command_makes_the_system(parts: PublishedSystem, tmp_path: Path) -> None:
    told = CliRunner().invoke(
        app,
        [
            *("published", "--projection", str(parts.projection), "--decoder", str(parts.decoder)),
            *("--memory", str(parts.memory), "--dino", parts.dino, "--clip", parts.clip),
            *("--input-px", "16", "--out", str(tmp_path / "made")),
        ],
    )
    assert told.exit_code == 0, told.output
    assert "remembers 4 captions" in told.output
    assert read_config(tmp_path / "made").alignment == "shared"
